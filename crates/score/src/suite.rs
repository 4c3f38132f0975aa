//! A suite: which cells make a score, in which stage each runs, and what its guardrails are. Read
//! from TOML, so that users can bring their own.

use std::collections::BTreeMap;
use std::path::Path;

use reveille_measure::Explain;
use reveille_place::{InputError, Mistake, Source, read_description};
use reveille_policy::Policy;
use reveille_study::StudyError;
use serde::Deserialize;
use toml::Spanned;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../suites/", $name, ".toml")))),*]
    };
}

/// Name and text of every shipped suite; the first is the default.
const SUITES: &[(&str, &str)] = shipped!["default", "holdout"];

/// Figures of a guardrail that are no explaining numbers.
const OWN_FIGURES: [&str; 3] = ["gain", "wakeup_p999_ns", "stacked_pct"];

pub fn names() -> Vec<&'static str> {
    SUITES.iter().map(|(name, _)| *name).collect()
}

#[derive(Clone, Debug)]
pub struct Suite {
    pub name: String,
    /// Baseline, unless the user names another.
    pub base: String,
    /// The suite that checks whether a score generalises; shares no machine and no workload.
    pub holdout: Option<String>,
    pub seed: u64,
    /// At least one.
    pub cases: Vec<SuiteCase>,
    /// In the order of the file; names differ.
    pub guardrails: Vec<Guardrail>,
    pub(crate) source: Source,
}

/// A workload on a machine at several loads; each load is a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteCase {
    pub(crate) workload: Spanned<String>,
    pub(crate) machine: Spanned<String>,
    pub(crate) loads: Spanned<Vec<u64>>,
    #[serde(default)]
    pub(crate) params: BTreeMap<String, String>,
    /// The workload's first, unless given.
    pub(crate) metric: Option<Spanned<String>>,
    /// 1 is cheap and runs first.
    #[serde(default = "second")]
    pub(crate) stage: Spanned<u8>,
    /// Names of those that judge its cells.
    #[serde(default)]
    pub(crate) guardrails: Vec<Spanned<String>>,
    pub(crate) repeats: Option<Spanned<u32>>,
    pub(crate) warmup: Option<String>,
    pub(crate) duration: Option<String>,
}

fn second() -> Spanned<u8> {
    Spanned::new(0..0, 2)
}

/// What a policy must not do in the cells that name it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guardrail {
    /// Short name: `few-clients`.
    pub name: String,
    /// What passes, in a sentence.
    pub about: String,
    /// At least one.
    pub limits: Vec<Spanned<Limit>>,
}

/// A bound of one figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// `gain`, `wakeup_p999_ns`, `stacked_pct`, or an explaining number.
    pub figure: String,
    /// Fails if the 95% interval of a cell's gain, or of the mean gain of all its cells, lies
    /// below this.
    pub at_least: Option<f64>,
    /// Fails above this multiple of the baseline's figure …
    pub times: Option<f64>,
    /// … if it is above this, too.
    pub above: Option<f64>,
    /// Fails if the figure rises by more than this.
    pub rise: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Spanned<String>,
    about: Spanned<String>,
    base: Spanned<String>,
    holdout: Option<String>,
    /// A suite whose guardrails this one has, too.
    guardrails_of: Option<String>,
    #[serde(default = "first_seed")]
    seed: u64,
    repeats: Option<Spanned<u32>>,
    warmup: Option<String>,
    duration: Option<String>,
    #[serde(default, rename = "case")]
    cases: Vec<Spanned<SuiteCase>>,
    #[serde(default, rename = "guardrail")]
    guardrails: Vec<Spanned<Guardrail>>,
}

fn first_seed() -> u64 {
    reveille_study::DEFAULT_SEED
}

impl Suite {
    /// Loads a suite: a shipped one by name, or a file by a path that ends in `.toml`.
    ///
    /// # Errors
    /// An unknown name, a file that cannot be read, or a mistake in it with its place.
    pub fn load(spec: &str) -> Result<Suite, StudyError> {
        Suite::load_at(spec, 0)
    }

    /// `depth` is 1 for a suite whose guardrails another has.
    fn load_at(spec: &str, depth: u8) -> Result<Suite, StudyError> {
        if let Some((_, text)) = SUITES.iter().find(|(name, _)| *name == spec) {
            return Suite::parse(&format!("suites/{spec}.toml"), text, None, depth);
        }
        let path = Path::new(spec);
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
            let help = "a suite is a shipped one's name or a TOML file";
            let text = read_description(path, help)?;
            return Suite::parse(spec, &text, path.parent(), depth);
        }
        let help = format!("suites: {}; or a path that ends in .toml", names().join(", "));
        let unknown = Mistake::unknown("suite", spec, names()).mended_by(help).or_file(spec);
        Err(InputError::Unknown(unknown).into())
    }

    /// The suite's hold-out, which shares no machine and no workload with it.
    ///
    /// # Errors
    /// There is none, it cannot be loaded, or it shares something.
    pub fn load_holdout(&self) -> Result<Suite, StudyError> {
        let Some(spec) = &self.holdout else {
            let problem = format!("the suite {} has no hold-out", self.name);
            let help = "add `holdout = \"FILE.toml\"` to it";
            let mistake = Mistake::new(problem, help);
            return Err(InputError::Option { option: "--holdout", mistake }.into());
        };
        let other = Suite::load(spec)?;
        let own = |of: fn(&SuiteCase) -> &str| self.cases.iter().map(of).collect::<Vec<_>>();
        let (machines, workloads) = (own(SuiteCase::machine), own(SuiteCase::workload));
        for case in &other.cases {
            for (key, place, taken) in
                [("machine", &case.machine, &machines), ("workload", &case.workload, &workloads)]
            {
                if taken.contains(&place.get_ref().as_str()) {
                    let problem = format!("`{}` is in {}, too", place.get_ref(), self.name);
                    let help = "a hold-out has others: replace it";
                    return Err(other.source.fault(place.span(), key, problem, help));
                }
            }
        }
        Ok(other)
    }

    fn parse(
        file: &str,
        text: &str,
        directory: Option<&Path>,
        depth: u8,
    ) -> Result<Suite, StudyError> {
        let source = Source::new(file, text);
        let raw: Raw = source
            .toml("correct the line: https://toml.io has the syntax, docs/score.md the keys")?;
        source.filled("name", &raw.name)?;
        source.filled("about", &raw.about)?;
        let (kernel, edits) =
            raw.base.get_ref().split_once(' ').unwrap_or((raw.base.get_ref(), ""));
        Policy::baseline(kernel)
            .and_then(|policy| if edits.is_empty() { Ok(policy) } else { policy.with(edits) })
            .map_err(|mistake| {
                source.error::<StudyError>(&raw.base.span(), Some("base"), mistake)
            })?;
        if raw.cases.is_empty() {
            let help = "add a [[case]] with workload, machine and loads";
            return Err(source.fault(0..0, "case", "there is none", help));
        }
        let beside = |spec: &str| match directory {
            Some(directory) if Path::new(spec).extension().is_some() => {
                directory.join(spec).to_string_lossy().into_owned()
            }
            _ => spec.to_owned(),
        };
        let mut guardrails = Vec::new();
        if let Some(spec) = raw.guardrails_of.filter(|_| depth == 0) {
            guardrails = Suite::load_at(&beside(&spec), 1)?.guardrails;
        }
        let used = |name: &str| {
            let named = raw.cases.iter().flat_map(|case| &case.get_ref().guardrails);
            named.into_iter().any(|used| used.get_ref() == name)
        };
        for guardrail in raw.guardrails {
            check_guardrail(&source, &guardrail, &guardrails)?;
            let own = guardrail.get_ref();
            if !used(&own.name) {
                let problem = format!("no case has the guardrail `{}`", own.name);
                let fix = "name it in the `guardrails` of a case, or leave it out";
                return Err(source.fault(guardrail.span(), "name", problem, fix));
            }
            guardrails.push(guardrail.into_inner());
        }
        let known: Vec<&str> = guardrails.iter().map(|g| g.name.as_str()).collect();
        let mut cases = Vec::new();
        for case in raw.cases {
            let mut case = case.into_inner();
            for name in &case.guardrails {
                if !known.contains(&name.get_ref().as_str()) {
                    let mistake = Mistake::unknown("guardrail", name.get_ref(), &known);
                    return Err(source.error(&name.span(), Some("guardrails"), mistake));
                }
            }
            if !(1..=2).contains(case.stage.get_ref()) {
                let (problem, help) = ("there are stages 1 and 2", "1 is cheap and runs first");
                return Err(source.fault(case.stage.span(), "stage", problem, help));
            }
            case.repeats = case.repeats.or_else(|| raw.repeats.clone());
            if let Some(few) = case.repeats.as_ref().filter(|repeats| *repeats.get_ref() < 2) {
                let help = "use 2 or more; 4 are usual";
                return Err(source.fault(few.span(), "repeats", "one repeat shows no noise", help));
            }
            case.warmup = case.warmup.or_else(|| raw.warmup.clone());
            case.duration = case.duration.or_else(|| raw.duration.clone());
            for place in [&mut case.machine, &mut case.workload] {
                *place.get_mut() = beside(place.get_ref());
            }
            cases.push(case);
        }
        Ok(Suite {
            name: raw.name.into_inner(),
            base: raw.base.into_inner(),
            holdout: raw.holdout.map(|spec| beside(&spec)),
            seed: raw.seed,
            cases,
            guardrails,
            source,
        })
    }
}

impl SuiteCase {
    pub(crate) fn machine(&self) -> &str {
        self.machine.get_ref()
    }

    pub(crate) fn workload(&self) -> &str {
        self.workload.get_ref()
    }
}

fn check_guardrail(
    source: &Source,
    guardrail: &Spanned<Guardrail>,
    earlier: &[Guardrail],
) -> Result<(), StudyError> {
    let own = guardrail.get_ref();
    let wrong = |key, mistake| source.error(&guardrail.span(), Some(key), mistake);
    if earlier.iter().any(|g| g.name == own.name) {
        let problem = format!("two guardrails are called `{}`", own.name);
        return Err(wrong("name", Mistake::new(problem, "give one of them another name")));
    }
    if own.limits.is_empty() {
        return Err(wrong("limits", Mistake::new("is empty", "add a limit")));
    }
    for place in &own.limits {
        let limit = place.get_ref();
        let known = OWN_FIGURES.into_iter().chain(Explain::FIGURES.iter().map(|f| f.name));
        let bounds = [limit.at_least, limit.times, limit.rise];
        let is_gain = limit.figure == "gain";
        let mistake = if !known.clone().any(|name| name == limit.figure) {
            Some(Mistake::unknown("figure", &limit.figure, known))
        } else if bounds.iter().flatten().count() != 1 {
            let fix = "give one of `at_least` (of a gain), `times` and `rise`";
            Some(Mistake::new("needs one bound", fix))
        } else if is_gain != limit.at_least.is_some() {
            Some(Mistake::new(
                "`at_least` bounds `gain`, and nothing else does",
                "use `times` or `rise` for other figures",
            ))
        } else if bounds.iter().flatten().any(|b| !b.is_finite() || *b < 0.0) {
            Some(Mistake::new("a bound is 0 or a positive number", "write one"))
        } else if limit.above.is_some() && limit.times.is_none() {
            Some(Mistake::new("`above` goes with `times`", "leave it out"))
        } else {
            None
        };
        if let Some(mistake) = mistake {
            return Err(source.error(&place.span(), Some("limits"), mistake));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_suite_loads_and_bears_its_file_name() {
        for name in names() {
            let suite = Suite::load(name).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(suite.name, name);
            for guardrail in &suite.guardrails {
                let used = |stage: u8| {
                    suite.cases.iter().any(|case| {
                        case.guardrails.iter().any(|g| *g.get_ref() == guardrail.name)
                            && *case.stage.get_ref() <= stage
                    })
                };
                assert!(used(2), "{name}: no cell is guarded by {}", guardrail.name);
            }
        }
    }

    #[test]
    fn the_holdout_shares_nothing_with_what_is_scored() {
        let suite = Suite::load("default").unwrap();
        let holdout = suite.load_holdout().unwrap_or_else(|e| panic!("{e}"));
        let loads = |s: &Suite| -> Vec<u64> {
            s.cases.iter().flat_map(|c| c.loads.get_ref().clone()).collect()
        };
        let (own, other) = (loads(&suite), loads(&holdout));
        assert!(own.iter().all(|load| !other.contains(load)), "a load is in both");
    }

    #[test]
    fn mistakes_have_a_place() {
        let base = "name = \"s\"\nabout = \"a\"\nbase = \"v6.12\"\n";
        let says = |rest: &str| match Suite::parse("s.toml", &format!("{base}{rest}"), None, 0) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{rest} is refused"),
        };
        let case = "[[case]]\nworkload = \"tcp_rr\"\nmachine = \"zen4-7950x\"\nloads = [1]\n";
        assert!(says("").contains("there is none"));
        assert!(
            says(&format!("{case}guardrails = [\"few\"]"))
                .contains("s.toml:8: `guardrails`: no guardrail is called `few`")
        );
        assert!(says(&format!("{case}stage = 3")).contains("stages 1 and 2"));
        assert!(says(&format!("{case}repeats = 1")).contains("shows no noise"));
        let guard = |limit: &str| {
            format!("{case}[[guardrail]]\nname = \"g\"\nabout = \"a\"\nlimits = [{limit}]\n")
        };
        assert!(
            says(&guard("{ figure = \"idle_pt\", rise = 1 }")).contains("did you mean `idle_pct`")
        );
        assert!(says(&guard("{ figure = \"idle_pct\" }")).contains("needs one bound"));
        assert!(
            says(&guard("{ figure = \"gain\", rise = 1 }")).contains("`at_least` bounds `gain`")
        );
        assert!(says(&guard("")).contains("is empty"));
        assert!(
            says(&guard("{ figure = \"idle_pct\", rise = 1 }"))
                .contains("s.toml:8: `name`: no case has the guardrail `g`")
        );
    }
}
