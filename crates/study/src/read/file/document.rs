//! A study file that is being read.

use std::ops::Range;
use std::path::Path;

use reveille_machine::Machine;
use reveille_place::{InputError, Mistake, Source};
use reveille_workload::{Workload, WorkloadError};
use toml::Spanned;

use crate::model::error::{Result, StudyError};
use crate::model::published::Side;
use crate::read::check;
use crate::read::raw::Texts;

/// A file under way: every check reports its place in it.
pub(super) struct Document<'a> {
    pub(super) directory: Option<&'a Path>,
    pub(super) source: Source,
}

/// Those of these keys that are there, with their places.
pub(super) fn given<'k, T>(
    keys: &[(&'k str, &Option<Spanned<T>>)],
) -> Vec<(&'k str, Range<usize>)> {
    keys.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?.span()))).collect()
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
        self.source.fault(span, key, problem, help)
    }

    /// Refuses `place`, which is the value of `key`.
    pub(super) fn refuse<T, P>(
        &self,
        key: &str,
        place: &Spanned<P>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Result<T> {
        Err(self.fault(place.span(), key, problem, help))
    }

    /// Refuses a key beside another that says the same.
    pub(super) fn beside<T, P>(&self, key: &str, place: &Spanned<P>, other: &str) -> Result<T> {
        self.refuse(key, place, format!("stands beside `{other}`"), "keep one of the two")
    }

    /// Refuses the first of the keys that are `given` and not `meant`.
    pub(super) fn only<'k>(
        &self,
        given: impl IntoIterator<Item = (&'k str, Range<usize>)>,
        meant: &[&str],
        here: &str,
        help: &str,
    ) -> Result<()> {
        match given.into_iter().find(|(key, _)| !meant.contains(key)) {
            Some((key, span)) => Err(self.fault(span, key, format!("has no meaning {here}"), help)),
            None => Ok(()),
        }
    }

    /// The outcome of a check of `place`, which is the value of `key`.
    pub(super) fn at<T, P>(
        &self,
        key: &str,
        place: &Spanned<P>,
        outcome: Result<T, Mistake>,
    ) -> Result<T> {
        outcome.map_err(|problem| self.wrong(place.span(), key, problem))
    }

    /// A path in the study is relative to the study; anything else is a name.
    fn path(&self, spec: &str) -> String {
        let path = Path::new(spec);
        let ends =
            |e: &std::ffi::OsStr| ["toml", "xml", "json", "txt"].iter().any(|known| e == *known);
        let is_file = path.extension().is_some_and(ends);
        match self.directory {
            Some(directory) if is_file => directory.join(path).to_string_lossy().into_owned(),
            _ => spec.to_owned(),
        }
    }

    pub(super) fn machine(&self, spec: &Spanned<String>) -> Result<Machine> {
        reveille_machine::load(&self.path(spec.get_ref())).map_err(|error| match error {
            InputError::File(_) => StudyError::Input(error),
            error => {
                let problem = Mistake::of(&error, "`reveille machines` lists them");
                self.wrong(spec.span(), "machine", problem)
            }
        })
    }

    pub(super) fn workload(&self, spec: &Spanned<String>) -> Result<Workload> {
        reveille_workload::load(&self.path(spec.get_ref())).map_err(|error| match error {
            WorkloadError::Input(InputError::File(_)) => StudyError::Workload(Box::new(error)),
            error => {
                let problem = Mistake::of(&error, "`reveille workloads` lists them");
                self.wrong(spec.span(), "workload", problem)
            }
        })
    }

    pub(super) fn loads(&self, raw: &Spanned<Vec<Spanned<i64>>>) -> Result<Vec<u64>> {
        let items = raw.get_ref();
        let loads = items.iter().map(|item| self.at("loads", item, check::load(*item.get_ref())));
        let loads = loads.collect::<Result<Vec<u64>>>()?;
        check::loads(&loads).map_err(|(i, problem)| {
            let span = items.get(i).map_or(raw.span(), Spanned::span);
            self.wrong(span, "loads", problem)
        })?;
        Ok(loads)
    }

    /// The members of a list: at least one, which `none` asks for, and no two the `same`.
    pub(super) fn distinct<T>(
        &self,
        key: &str,
        list: &Texts,
        none: [&str; 2],
        read: impl Fn(&str) -> Result<T, Mistake>,
        same: impl Fn(&T, &T) -> bool,
        twice: impl Fn(&T) -> String,
    ) -> Result<Vec<T>> {
        let mut all: Vec<T> = Vec::new();
        for text in list.get_ref() {
            let one = self.at(key, text, read(text.get_ref()))?;
            if all.iter().any(|other| same(other, &one)) {
                return self.refuse(key, text, twice(&one), "remove one of them");
            }
            all.push(one);
        }
        if all.is_empty() { self.refuse(key, list, none[0], none[1]) } else { Ok(all) }
    }

    /// The source of a published figure: its own, or that of all figures of the case.
    pub(super) fn source(
        &self,
        place: &Range<usize>,
        own: Option<&Spanned<String>>,
        of_case: Option<&Spanned<String>>,
    ) -> Result<String> {
        let source = own.or(of_case).ok_or_else(|| {
            let help = "add `source` here or to the case: who published it, where and when";
            self.fault(place.clone(), "source", "a published figure needs one", help)
        })?;
        self.source.filled("source", source)?;
        Ok(source.get_ref().clone())
    }

    /// The position of a load among those that a case runs.
    pub(super) fn load_index(
        &self,
        key: &str,
        load: &Spanned<i64>,
        mut run: impl Iterator<Item = u64>,
    ) -> Result<usize> {
        let wanted = *load.get_ref();
        run.position(|l| i64::try_from(l) == Ok(wanted)).ok_or_else(|| {
            let problem = format!("load {wanted} is not run");
            self.fault(load.span(), key, problem, "add it to the `loads` of the case")
        })
    }

    pub(super) fn side(&self, raw: &Spanned<String>) -> Result<Side> {
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
        value: &'r Option<Spanned<T>>,
    ) -> Result<&'r Spanned<T>> {
        value
            .as_ref()
            .ok_or_else(|| self.fault(place.clone(), key, "is missing", format!("add `{key}`")))
    }

    /// A finite number that is at least `least`.
    pub(super) fn size(&self, key: &str, value: &Spanned<f64>, least: f64) -> Result<f64> {
        let size = *value.get_ref();
        if size.is_finite() && size >= least {
            return Ok(size + 0.0);
        }
        self.refuse(
            key,
            value,
            format!("{size} is no figure that can be compared"),
            if least > 0.0 { "write a number above 0" } else { "write 0 or a positive number" },
        )
    }
}
