//! Reads study files. Everything that could go wrong in a run is refused here,
//! with its place in the file, before the first second is spent.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use reveille_machine::{Machine, MachineError};
use reveille_policy::Policy;
use reveille_workload::{Workload, WorkloadError};
use toml::Spanned;

use crate::check::{self, BuildError, Problem};
use crate::raw::{RawCase, RawClaim, RawClaimKind, RawPublished, RawStudy, Texts};
use crate::study::{DEFAULT_DURATION, DEFAULT_REPEATS, DEFAULT_SEED, DEFAULT_WARMUP};
use crate::{Case, Ns, Peak, Point, Published, Study, StudyError};

/// Reads a study; `file` names it in messages. Paths of machines and workloads in
/// it are taken as they stand.
///
/// # Errors
/// [`StudyError::File`] with file, line, key and fix for anything that is not a
/// study; a mistake in a machine or workload file that it names has its own place.
pub fn parse(file: &str, text: &str) -> Result<Study, StudyError> {
    parse_beside(None, file, text)
}

/// [`parse`], with relative paths in the study taken from `directory`.
pub(crate) fn parse_beside(
    directory: Option<&Path>,
    file: &str,
    text: &str,
) -> Result<Study, StudyError> {
    let doc = Document { directory, file, text };
    let raw: RawStudy = toml::from_str(text).map_err(|error| doc.not_toml(&error))?;
    doc.filled("name", &raw.name)?;
    doc.filled("about", &raw.about)?;
    let machine = doc.machine(&raw.machine)?;
    let base = doc.at("base", &raw.base, check::base(raw.base.get_ref()))?;
    let variants = doc.variants(&base, &raw.variants)?;
    let defaults = Defaults { raw: &raw, base: &base, variants: &variants };
    let cases = doc.cases(&defaults)?;
    let peaks = raw.claims.iter().map(|claim| doc.peak(claim, &cases));
    let peaks = peaks.collect::<Result<Vec<Peak>, StudyError>>()?;
    let seed = match &raw.seed {
        Some(seed) => doc.at("seed", seed, check::seed(*seed.get_ref()))?,
        None => DEFAULT_SEED,
    };
    Ok(Study {
        name: raw.name.into_inner(),
        about: raw.about.into_inner(),
        machine,
        base,
        variants,
        seed,
        cases,
        peaks,
    })
}

/// What the whole study says, for cases that do not say otherwise.
struct Defaults<'a> {
    raw: &'a RawStudy,
    base: &'a Policy,
    variants: &'a [Policy],
}

/// A file under way: every check reports its place in it.
struct Document<'a> {
    directory: Option<&'a Path>,
    file: &'a str,
    text: &'a str,
}

impl Document<'_> {
    fn wrong(&self, span: Range<usize>, key: &str, problem: Problem) -> StudyError {
        StudyError::at(self.file, self.text, span, Some(key), problem)
    }

    /// The outcome of a check of `place`, which is the value of `key`.
    fn at<T, P>(
        &self,
        key: &str,
        place: &Spanned<P>,
        outcome: Result<T, Problem>,
    ) -> Result<T, StudyError> {
        outcome.map_err(|problem| self.wrong(place.span(), key, problem))
    }

    /// Serde's message names the key in backquotes, and the allowed ones after it.
    fn not_toml(&self, error: &toml::de::Error) -> StudyError {
        let span = error.span().unwrap_or(0..0);
        let message = error.message();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let (key, help) = match quoted.split_first() {
            Some((key, known)) if message.starts_with("unknown field") => {
                (Some(*key), check::choose(key, known))
            }
            Some((key, _)) if message.starts_with("missing field") => {
                (Some(*key), format!("add `{key}`"))
            }
            Some((name, known)) if message.starts_with("unknown variant") => {
                (reveille_place::key_at(self.text, span.start), check::choose(name, known))
            }
            _ => {
                let help = "the files under studies/ show how a study is written";
                (reveille_place::key_at(self.text, span.start), help.to_owned())
            }
        };
        let problem = Problem::new(message.trim_end().replace('\n', ", "), help);
        StudyError::at(self.file, self.text, span, key, problem)
    }

    fn filled(&self, key: &str, value: &Spanned<String>) -> Result<(), StudyError> {
        if value.get_ref().trim().is_empty() {
            return Err(self.wrong(value.span(), key, Problem::new("is empty", "fill it in")));
        }
        Ok(())
    }

    /// A path in the study is relative to the study; anything else is a name.
    fn path(&self, spec: &str) -> String {
        let path = Path::new(spec);
        let is_file = path.extension().is_some_and(|e| e == "toml" || e == "xml");
        match self.directory {
            Some(directory) if is_file => directory.join(path).to_string_lossy().into_owned(),
            _ => spec.to_owned(),
        }
    }

    fn machine(&self, spec: &Spanned<String>) -> Result<Machine, StudyError> {
        reveille_machine::load(&self.path(spec.get_ref())).map_err(|error| match error {
            MachineError::File(_) => StudyError::Machine(Box::new(error)),
            error => {
                let problem = Problem::of(&error, "`reveille machines` lists them");
                self.wrong(spec.span(), "machine", problem)
            }
        })
    }

    fn workload(&self, spec: &Spanned<String>) -> Result<Workload, StudyError> {
        reveille_workload::load(&self.path(spec.get_ref())).map_err(|error| match error {
            WorkloadError::File(_) => StudyError::Workload(Box::new(error)),
            error => {
                let problem = Problem::of(&error, "`reveille workloads` lists them");
                self.wrong(spec.span(), "workload", problem)
            }
        })
    }

    fn variants(&self, base: &Policy, texts: &Texts) -> Result<Vec<Policy>, StudyError> {
        let mut variants = Vec::new();
        for edits in texts.get_ref() {
            let variant = check::variant(base, edits.get_ref(), &variants);
            variants.push(self.at("variants", edits, variant)?);
        }
        if variants.is_empty() {
            let problem = Problem::new("no variant is given", "name one, such as `+SIS_SHORT`");
            return Err(self.wrong(texts.span(), "variants", problem));
        }
        Ok(variants)
    }

    fn cases(&self, defaults: &Defaults<'_>) -> Result<Vec<Case>, StudyError> {
        let raw = &defaults.raw.cases;
        if raw.is_empty() {
            let help = "add a [[case]] with name, workload and loads";
            return Err(self.wrong(0..0, "case", Problem::new("there is none", help)));
        }
        let names: Vec<&str> = raw.iter().map(|c| c.get_ref().name.get_ref().as_str()).collect();
        if let Some(i) = check::duplicate(&names) {
            let text = format!("two cases are called `{}`", names[i]);
            let problem = Problem::new(text, "give one of them another name");
            return Err(self.wrong(raw[i].get_ref().name.span(), "name", problem));
        }
        raw.iter().map(|case| self.case(case.get_ref(), defaults)).collect()
    }

    fn case(&self, raw: &RawCase, defaults: &Defaults<'_>) -> Result<Case, StudyError> {
        self.filled("name", &raw.name)?;
        let workload = self.workload(&raw.workload)?;
        let params = self.params(raw, &workload)?;
        let loads = self.loads(&raw.loads)?;
        let name = raw.metric.as_ref().map(|m| m.get_ref().as_str());
        let metric = check::metric(&workload, name);
        let place = raw.metric.as_ref().unwrap_or(&raw.workload);
        let metric = self.at("metric", place, metric)?;
        let repeats = match raw.repeats.as_ref().or(defaults.raw.repeats.as_ref()) {
            Some(repeats) => self.at("repeats", repeats, check::repeats(*repeats.get_ref()))?,
            None => DEFAULT_REPEATS,
        };
        let (warmup_ns, duration_ns) = self.times(raw, defaults.raw)?;
        let mut points = check::points(&workload, &loads, &params)
            .map_err(|error| self.not_built(raw, error))?;
        for published in &raw.published {
            self.add_published(published, raw, defaults, &mut points)?;
        }
        Ok(Case {
            name: raw.name.get_ref().clone(),
            workload: workload.name,
            metric,
            points,
            repeats,
            warmup_ns,
            duration_ns,
        })
    }

    fn loads(&self, raw: &Spanned<Vec<Spanned<i64>>>) -> Result<Vec<u64>, StudyError> {
        let items = raw.get_ref();
        let loads = items.iter().map(|item| self.at("loads", item, check::load(*item.get_ref())));
        let loads = loads.collect::<Result<Vec<u64>, StudyError>>()?;
        check::loads(&loads).map_err(|(i, problem)| {
            let span = items.get(i).map_or(raw.span(), Spanned::span);
            self.wrong(span, "loads", problem)
        })?;
        Ok(loads)
    }

    fn params(
        &self,
        raw: &RawCase,
        workload: &Workload,
    ) -> Result<BTreeMap<String, String>, StudyError> {
        let mut params = BTreeMap::new();
        for (name, value) in &raw.params {
            let key = name.get_ref();
            self.at(key, name, check::param(workload, key))?;
            let text = match value.get_ref() {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                toml::Value::Float(number) if number.is_finite() => number.to_string(),
                _ => {
                    let help = "write a string or a number, such as 16 or \"30ms\"";
                    let problem = Problem::new("is not a value that a parameter can have", help);
                    return Err(self.wrong(value.span(), key, problem));
                }
            };
            params.insert(key.clone(), text);
        }
        Ok(params)
    }

    fn not_built(&self, raw: &RawCase, error: BuildError) -> StudyError {
        match error {
            BuildError::Workload(error) => StudyError::Workload(error),
            BuildError::Load(i, problem) => {
                let span = raw.loads.get_ref().get(i).map_or(raw.loads.span(), Spanned::span);
                self.wrong(span, "loads", problem)
            }
            BuildError::Param(name, problem) => {
                let place = raw.params.iter().find(|(key, _)| *key.get_ref() == name);
                let span = place.map_or(raw.workload.span(), |(_, value)| value.span());
                self.wrong(span, &name, problem)
            }
        }
    }

    /// Warm-up and measured time of a case.
    fn times(&self, case: &RawCase, study: &RawStudy) -> Result<(Ns, Ns), StudyError> {
        let time = |key, given: Option<&Spanned<String>>, default: &str| match given {
            Some(text) => self.at(key, text, check::time(text.get_ref())),
            None => check::time(default).map_err(|problem| self.wrong(0..0, key, problem)),
        };
        let warmup = case.warmup.as_ref().or(study.warmup.as_ref());
        let duration = case.duration.as_ref().or(study.duration.as_ref());
        let warmup_ns = time("warmup", warmup, DEFAULT_WARMUP)?;
        let duration_ns = time("duration", duration, DEFAULT_DURATION)?;
        let span = duration.or(warmup).map_or(0..0, Spanned::span);
        let measured = check::measured(warmup_ns, duration_ns);
        Ok((warmup_ns, measured.map_err(|problem| self.wrong(span, "duration", problem))?))
    }

    fn add_published(
        &self,
        raw: &Spanned<RawPublished>,
        case: &RawCase,
        defaults: &Defaults<'_>,
        points: &mut [Point],
    ) -> Result<(), StudyError> {
        let place = raw.span();
        let raw = raw.get_ref();
        let load = *raw.load.get_ref();
        let point = points.iter_mut().find(|p| i64::try_from(p.load) == Ok(load));
        let point = self.at("load", &raw.load, point.ok_or_else(|| not_run(load)))?;
        let variant = self.published_variant(raw, &place, defaults)?;
        if point.published.iter().any(|p| p.variant == variant) {
            let text = format!("load {load} has two published figures for one variant");
            let problem = Problem::new(text, "keep one of them");
            return Err(self.wrong(place, "load", problem));
        }
        let source = raw.source.as_ref().or(case.source.as_ref()).ok_or_else(|| {
            let help = "add `source` here or to the case: who published it, where and when";
            self.wrong(place, "source", Problem::new("a published figure needs one", help))
        })?;
        self.filled("source", source)?;
        if let Some(noise) = &raw.noise {
            self.filled("noise", noise)?;
        }
        point.published.push(Published {
            variant,
            change_pct: self.change_pct(&raw.change_pct)?,
            std_base_pct: self.std_pct("std_base_pct", raw.std_base_pct.as_ref())?,
            std_variant_pct: self.std_pct("std_variant_pct", raw.std_variant_pct.as_ref())?,
            noise: raw.noise.as_ref().map(|n| n.get_ref().clone()),
            source: source.get_ref().clone(),
        });
        Ok(())
    }

    /// The position of the variant that a figure was published for.
    fn published_variant(
        &self,
        raw: &RawPublished,
        place: &Range<usize>,
        defaults: &Defaults<'_>,
    ) -> Result<usize, StudyError> {
        let known: Vec<&str> = defaults.variants.iter().map(|v| v.edits.as_str()).collect();
        let Some(variant) = &raw.variant else {
            if known.len() == 1 {
                return Ok(0);
            }
            let help = format!("add `variant`, one of: {}", known.join(", "));
            let problem = Problem::new("the study has several variants", help);
            return Err(self.wrong(place.clone(), "variant", problem));
        };
        let policy = check::variant(defaults.base, variant.get_ref(), &[]);
        let policy = self.at("variant", variant, policy)?;
        let position = defaults.variants.iter().position(|v| v.features == policy.features);
        let missing = || {
            let text = format!("the variant `{}` is not run", policy.edits);
            Problem::new(text, format!("use one of: {}", known.join(", ")))
        };
        self.at("variant", variant, position.ok_or_else(missing))
    }

    fn change_pct(&self, value: &Spanned<f64>) -> Result<f64, StudyError> {
        let pct = *value.get_ref();
        if pct.is_finite() && pct > -100.0 {
            // Sources print `-0.00`; JSON should not.
            return Ok(pct + 0.0);
        }
        let help = "write a number above -100; + is better, so invert changes of times";
        let problem = Problem::new(format!("{pct} is no change in percent"), help);
        Err(self.wrong(value.span(), "change_pct", problem))
    }

    fn std_pct(&self, key: &str, value: Option<&Spanned<f64>>) -> Result<Option<f64>, StudyError> {
        match value.map(|v| (v, *v.get_ref())) {
            Some((place, pct)) if !pct.is_finite() || pct < 0.0 => {
                let text = format!("{pct} is no standard deviation in percent");
                let problem = Problem::new(text, "write 0 or a positive number, or leave it out");
                Err(self.wrong(place.span(), key, problem))
            }
            Some((_, pct)) => Ok(Some(pct)),
            None => Ok(None),
        }
    }

    fn peak(&self, raw: &Spanned<RawClaim>, cases: &[Case]) -> Result<Peak, StudyError> {
        let raw = raw.get_ref();
        let RawClaimKind::Peak = raw.kind;
        self.filled("source", &raw.source)?;
        let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
        let name = raw.case.get_ref().as_str();
        let case = names.iter().position(|n| *n == name);
        let case =
            self.at("case", &raw.case, case.ok_or_else(|| Problem::unknown("case", name, &names)))?;
        if !cases[case].metric.kind.higher_is_better() {
            let text = format!("the metric of `{name}` is better the lower it is");
            let problem = Problem::new(text, "claim a peak of a throughput");
            return Err(self.wrong(raw.case.span(), "case", problem));
        }
        let load = *raw.load.get_ref();
        let mut loads = cases[case].points.iter().map(|p| p.load);
        let found = loads.clone().find(|l| i64::try_from(*l) == Ok(load));
        let load = self.at("load", &raw.load, found.ok_or_else(|| not_run(load)))?;
        if !(loads.clone().any(|l| l < load) && loads.any(|l| l > load)) {
            let help = "run a lower and a higher load in the case as well";
            let problem = Problem::new("a peak is seen only between two other loads", help);
            return Err(self.wrong(raw.load.span(), "load", problem));
        }
        Ok(Peak { case, load, source: raw.source.get_ref().clone() })
    }
}

fn not_run(load: i64) -> Problem {
    Problem::new(format!("load {load} is not run"), "add it to the `loads` of the case")
}
