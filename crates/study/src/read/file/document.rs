//! A study file that is being read.

use std::ops::Range;
use std::path::Path;

use reveille_machine::Machine;
use reveille_place::{InputError, Mistake, Source};
use reveille_workload::{Workload, WorkloadError};
use toml::Spanned;

use crate::model::error::StudyError;
use crate::model::published::Side;
use crate::model::study::Case;
use crate::read::check;

/// A file under way: every check reports its place in it.
pub(super) struct Document<'a> {
    pub(super) directory: Option<&'a Path>,
    pub(super) source: Source,
}

impl Document<'_> {
    pub(super) fn wrong(&self, span: Range<usize>, key: &str, problem: Mistake) -> StudyError {
        self.source.error(&span, Some(key), problem)
    }

    pub(super) fn fault(
        &self,
        span: Range<usize>,
        key: &str,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> StudyError {
        self.wrong(span, key, Mistake::new(problem, help))
    }

    /// The outcome of a check of `place`, which is the value of `key`.
    pub(super) fn at<T, P>(
        &self,
        key: &str,
        place: &Spanned<P>,
        outcome: Result<T, Mistake>,
    ) -> Result<T, StudyError> {
        outcome.map_err(|problem| self.wrong(place.span(), key, problem))
    }

    /// A path in the study is relative to the study; anything else is a name.
    fn path(&self, spec: &str) -> String {
        let path = Path::new(spec);
        let is_file = path.extension().is_some_and(|e| e == "toml" || e == "xml" || e == "json");
        match self.directory {
            Some(directory) if is_file => directory.join(path).to_string_lossy().into_owned(),
            _ => spec.to_owned(),
        }
    }

    pub(super) fn machine(&self, spec: &Spanned<String>) -> Result<Machine, StudyError> {
        reveille_machine::load(&self.path(spec.get_ref())).map_err(|error| match error {
            InputError::File(_) => StudyError::Input(error),
            error => {
                let problem = Mistake::of(&error, "`reveille machines` lists them");
                self.wrong(spec.span(), "machine", problem)
            }
        })
    }

    pub(super) fn workload(&self, spec: &Spanned<String>) -> Result<Workload, StudyError> {
        reveille_workload::load(&self.path(spec.get_ref())).map_err(|error| match error {
            WorkloadError::Input(InputError::File(_)) => StudyError::Workload(Box::new(error)),
            error => {
                let problem = Mistake::of(&error, "`reveille workloads` lists them");
                self.wrong(spec.span(), "workload", problem)
            }
        })
    }

    pub(super) fn loads(&self, raw: &Spanned<Vec<Spanned<i64>>>) -> Result<Vec<u64>, StudyError> {
        let items = raw.get_ref();
        let loads = items.iter().map(|item| self.at("loads", item, check::load(*item.get_ref())));
        let loads = loads.collect::<Result<Vec<u64>, StudyError>>()?;
        check::loads(&loads).map_err(|(i, problem)| {
            let span = items.get(i).map_or(raw.span(), Spanned::span);
            self.wrong(span, "loads", problem)
        })?;
        Ok(loads)
    }

    pub(super) fn side(&self, raw: &Spanned<String>) -> Result<Side, StudyError> {
        match raw.get_ref().as_str() {
            "base" => Ok(Side::Base),
            "variant" => Ok(Side::Variant),
            other => {
                let problem = Mistake::unknown("side", other, &["base", "variant"]);
                Err(self.wrong(raw.span(), "side", problem))
            }
        }
    }

    pub(super) fn needed<'r, T>(
        &self,
        place: &Range<usize>,
        key: &str,
        value: Option<&'r Spanned<T>>,
    ) -> Result<&'r Spanned<T>, StudyError> {
        value.ok_or_else(|| self.fault(place.clone(), key, "is missing", format!("add `{key}`")))
    }

    /// A finite number that is at least `least`.
    pub(super) fn size(
        &self,
        key: &str,
        value: &Spanned<f64>,
        least: f64,
    ) -> Result<f64, StudyError> {
        let size = *value.get_ref();
        if size.is_finite() && size >= least {
            return Ok(size + 0.0);
        }
        Err(self.fault(
            value.span(),
            key,
            format!("{size} is no figure that can be compared"),
            if least > 0.0 { "write a number above 0" } else { "write 0 or a positive number" },
        ))
    }
}

/// The position of a load among those that a case runs.
pub(super) fn load_index(case: &Case, load: i64) -> Result<usize, Mistake> {
    case.points.iter().position(|p| i64::try_from(p.load) == Ok(load)).ok_or_else(|| {
        Mistake::new(format!("load {load} is not run"), "add it to the `loads` of the case")
    })
}
