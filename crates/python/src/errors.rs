//! Errors as Python exceptions with their place: file, line, key, option and fix.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use reveille_study::{FileError, InputError, StudyError};

#[derive(Default)]
struct Told<'a> {
    message: String,
    input: bool,
    file: Option<String>,
    place: Option<&'a FileError>,
    option: Option<&'a str>,
    fix: Option<String>,
}

/// An error of a study or a score.
pub fn raised(py: Python<'_>, error: &StudyError) -> PyErr {
    let input = error.input();
    let (place, option) = (input.and_then(InputError::place), input.and_then(InputError::option));
    let file = input.and_then(InputError::file);
    Told { input: error.is_input(), file, place, option, ..Told::of(error) }.raise(py)
}

pub fn of_file(py: Python<'_>, error: &InputError) -> PyErr {
    Told { input: true, file: error.file(), place: error.place(), ..Told::of(error) }.raise(py)
}

/// A value that no option takes.
pub fn wrong_option(py: Python<'_>, option: &str, problem: &str) -> PyErr {
    let message = format!("`{option}`: {problem}");
    Told { message, input: true, option: Some(option), ..Told::default() }.raise(py)
}

impl<'a> Told<'a> {
    fn of(error: &dyn miette::Diagnostic) -> Told<'a> {
        let fix = error.help().map(|help| help.to_string());
        Told { message: error.to_string(), fix, ..Told::default() }
    }

    fn raise(self, py: Python<'_>) -> PyErr {
        let make = || {
            let fields = PyDict::new(py);
            fields.set_item("file", self.file)?;
            fields.set_item("line", self.place.and_then(|p| p.line))?;
            fields.set_item("key", self.place.and_then(|p| p.key.as_ref()))?;
            fields.set_item("option", self.option)?;
            fields.set_item("fix", self.fix)?;
            let class = if self.input { "InputError" } else { "Error" };
            let class = py.import("reveille._errors")?.getattr(class)?;
            class.call((&self.message,), Some(&fields))
        };
        match make() {
            Ok(exception) => PyErr::from_value(exception),
            Err(_) => PyRuntimeError::new_err(self.message.clone()),
        }
    }
}
