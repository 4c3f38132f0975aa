//! Reads the file that describes a sweep. What can be known before a run is refused here, with
//! its place: every name, every load and constant, and an edit that no condition allows.

mod points;
mod templates;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use reveille_machine::Machine;
use reveille_place::{InputError, InputKind, Mistake, Source, read_description, read_input};
use reveille_policy::PolicyFile;
use reveille_study::{
    self as study, DEFAULT_REPEATS, DEFAULT_SEED, Parts, Study, StudyError, compare_on, param_text,
};
use reveille_workload::WorkloadError;
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::design::{Design, Edit, MODEL, MachinePart, MetricPart, WorkloadPart, amount, digest};
use crate::error::SweepError;
use crate::run::{LoadedWorkload, Sweep};

type Texts = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpec {
    name: Spanned<String>,
    machines: Texts,
    bases: Texts,
    edits: Option<Texts>,
    seeds: Option<Spanned<Vec<Spanned<i64>>>>,
    repeats: Option<Spanned<i64>>,
    warmup: Option<Spanned<String>>,
    duration: Option<Spanned<String>>,
    workload: Spanned<Vec<Spanned<RawWorkload>>>,
    #[serde(default)]
    constants: BTreeMap<Spanned<String>, Spanned<Value>>,
    sample: Option<RawSample>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    name: Spanned<String>,
    loads: Spanned<Vec<Spanned<Value>>>,
    metrics: Option<Texts>,
    groups: Option<Texts>,
    #[serde(default)]
    params: BTreeMap<Spanned<String>, Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSample {
    points: Spanned<i64>,
    method: Option<Spanned<String>>,
    seed: Option<Spanned<i64>>,
}

/// A spec that is well formed; what it names is not loaded yet.
pub struct Spec {
    source: Source,
    raw: RawSpec,
}

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// It cannot be read, or is no spec; with line, key and fix.
    pub fn read(path: &Path) -> Result<Spec, SweepError> {
        let text = read_description(path, "a spec is a TOML file; docs/sweep.md shows one")?;
        let source = Source::new(&path.display().to_string(), &text);
        let raw: RawSpec = source
            .toml("correct the line: https://toml.io has the syntax, docs/sweep.md the keys")?;
        source.filled("name", &raw.name)?;
        Ok(Spec { source, raw })
    }

    /// Paths of the policy files among the edits, each once.
    pub fn policy_files(&self) -> Result<Vec<String>, SweepError> {
        let mut files: Vec<String> = Vec::new();
        for text in self.raw.edits.iter().flat_map(|edits| edits.get_ref()) {
            let Some((file, _)) = file_of(text.get_ref()) else { continue };
            let file = self.beside(file);
            if !files.contains(&file) {
                self.content(text, &file)?;
                files.push(file);
            }
        }
        Ok(files)
    }

    /// What is in the policy file that an edit names.
    fn content(&self, text: &Spanned<String>, path: &str) -> Result<Vec<u8>, SweepError> {
        read_input(Path::new(path), InputKind::DESCRIPTION).map_err(|error| {
            let help = "name a policy file, as `reveille policy new` writes it";
            let unreadable = InputError::unreadable(path, error, help);
            self.wrong(text.span(), "edits", Mistake::of(&unreadable, help))
        })
    }

    /// Loads what the spec names and checks every combination. `files` are the policy files, in
    /// the order of [`Spec::policy_files`].
    ///
    /// # Errors
    /// The first mistake, with its place in the spec or in the file that has it.
    pub fn load(&self, files: &[PolicyFile]) -> Result<Sweep, SweepError> {
        let machines = self.machines()?;
        let (edits, loaded) = self.edits(files)?;
        let bases = self.texts("bases", &self.raw.bases)?;
        let mut sweep = Sweep {
            design: Design {
                model: MODEL.to_owned(),
                name: self.raw.name.get_ref().clone(),
                machines: machines.iter().map(part).collect(),
                bases: Vec::new(),
                edits,
                workloads: Vec::new(),
                constants: Vec::new(),
                seeds: self.seeds()?,
                repeats: 0,
                drawn: None,
            },
            machines,
            workloads: Vec::new(),
            templates: Vec::new(),
        };
        let raw_workloads = self.raw.workload.get_ref();
        if raw_workloads.is_empty() {
            let (place, help) =
                (self.raw.workload.span(), "add a [[workload]] with name and loads");
            return Err(self.source.fault(place, "workload", "there is none", help));
        }
        let mut studies = Vec::new();
        for raw in raw_workloads {
            let raw = raw.get_ref();
            let workload = self.workload(raw)?;
            let loads = raw.loads.get_ref();
            let machine = &sweep.machines[0];
            let first = self.study(machine, bases[0], &workload, raw, loads, &[], &[])?;
            sweep.design.workloads.push(self.workload_part(raw, &workload, &first, &sweep)?);
            studies.push(first);
            sweep.workloads.push(workload);
        }
        sweep.design.repeats = studies[0].cases[0].repeats;
        self.templates(&mut sweep, &bases, &loaded)?;
        self.points(&mut sweep)?;
        Ok(sweep)
    }

    fn machines(&self) -> Result<Vec<Machine>, SweepError> {
        let mut machines: Vec<Machine> = Vec::new();
        for text in self.list("machines", &self.raw.machines)? {
            let machine = reveille_machine::load(&self.beside(text.get_ref()));
            let machine = machine.map_err(|error| match error {
                InputError::File(_) => StudyError::Input(error).into(),
                error => {
                    let mistake = Mistake::of(&error, "`reveille machines` lists them");
                    self.wrong(text.span(), "machines", mistake)
                }
            })?;
            if machines.iter().any(|known| known.name == machine.name) {
                return Err(self.twice(text, "machines"));
            }
            machines.push(machine);
        }
        Ok(machines)
    }

    /// The baseline and all edits, and of each its policy file and the edits behind that.
    #[expect(clippy::type_complexity, reason = "two lists of the same length")]
    fn edits(
        &self,
        files: &[PolicyFile],
    ) -> Result<(Vec<Edit>, Vec<(String, Option<PolicyFile>)>), SweepError> {
        let mut edits = vec![Edit { text: String::new(), file: None }];
        let mut loaded = vec![(String::new(), None)];
        let mut paths: Vec<String> = Vec::new();
        for text in self.raw.edits.iter().flat_map(|edits| edits.get_ref()) {
            let words = text.get_ref().replace(',', " ");
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            if edits.iter().any(|known| known.text == words) {
                return Err(match words.as_str() {
                    "" => {
                        let help = "leave it out: the baseline runs anyway";
                        self.source.fault(text.span(), "edits", "an edit is empty", help)
                    }
                    _ => self.twice(text, "edits"),
                });
            }
            let mut file = None;
            if let Some((path, behind)) = file_of(text.get_ref()) {
                let path = self.beside(path);
                file = Some(digest(&self.content(text, &path)?));
                let known = paths.iter().position(|known| *known == path);
                let policy = files.get(known.unwrap_or(paths.len())).cloned();
                if known.is_none() {
                    paths.push(path);
                }
                loaded.push((behind.to_owned(), policy));
            } else {
                loaded.push((text.get_ref().clone(), None));
            }
            edits.push(Edit { text: words, file });
        }
        Ok((edits, loaded))
    }

    fn seeds(&self) -> Result<Vec<u64>, SweepError> {
        let Some(raw) = &self.raw.seeds else { return Ok(vec![DEFAULT_SEED]) };
        let mut seeds: Vec<u64> = Vec::new();
        for seed in raw.get_ref() {
            let Ok(number) = u64::try_from(*seed.get_ref()) else {
                let problem = format!("{} is negative", seed.get_ref());
                return Err(self.source.fault(
                    seed.span(),
                    "seeds",
                    problem,
                    "use 0 or a positive number",
                ));
            };
            if seeds.contains(&number) {
                return Err(self.twice(seed, "seeds"));
            }
            seeds.push(number);
        }
        if seeds.is_empty() {
            let help = "write `seeds = [1]`, or leave it out";
            return Err(self.source.fault(raw.span(), "seeds", "no seed is given", help));
        }
        Ok(seeds)
    }

    fn workload(&self, raw: &RawWorkload) -> Result<LoadedWorkload, SweepError> {
        let workload = reveille_workload::load(&self.beside(raw.name.get_ref()));
        let workload = workload.map_err(|error| match error {
            WorkloadError::Input(InputError::File(_)) => {
                StudyError::Workload(Box::new(error)).into()
            }
            error => {
                let mistake = Mistake::of(&error, "`reveille workloads` lists them");
                self.wrong(raw.name.span(), "name", mistake)
            }
        })?;
        let mut params = BTreeMap::new();
        for (key, value) in &raw.params {
            let key = key.get_ref();
            let text = param_text(value.get_ref());
            let text = text.map_err(|mistake| self.wrong(value.span(), key, mistake))?;
            params.insert(key.clone(), text);
        }
        Ok(LoadedWorkload { workload, params })
    }

    /// The comparison of a workload at these loads.
    #[expect(clippy::too_many_arguments, reason = "the parts of one comparison")]
    fn study(
        &self,
        machine: &Machine,
        base: &str,
        LoadedWorkload { workload, params }: &LoadedWorkload,
        raw: &RawWorkload,
        loads: &[Spanned<Value>],
        with: &[String],
        files: &[(PolicyFile, String)],
    ) -> Result<Study, SweepError> {
        let loads = loads.iter().map(|load| {
            let text = self.load_text(load)?;
            Ok(amount(&text, machine.topology.n_cpus()).to_string())
        });
        let mut loads = loads.collect::<Result<Vec<String>, SweepError>>()?;
        loads.sort_unstable();
        loads.dedup();
        let texts = |list: &Option<Texts>| -> Vec<String> {
            let texts = list.iter().flat_map(|list| list.get_ref());
            texts.map(|text| text.get_ref().clone()).collect()
        };
        let param: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let (metric, group) = (texts(&raw.metrics), texts(&raw.groups));
        let repeats = self.raw.repeats.as_ref();
        let usual = i64::from(DEFAULT_REPEATS);
        let parts = Parts {
            load: &loads.join(","),
            base,
            with,
            files,
            param: &param,
            metric: &metric,
            group: &group,
            repeats: u32::try_from(repeats.map_or(usual, |n| *n.get_ref())).unwrap_or(0),
            warmup: self.raw.warmup.as_ref().map(|text| text.get_ref().as_str()),
            duration: self.raw.duration.as_ref().map(|text| text.get_ref().as_str()),
            ..Parts::default()
        };
        compare_on(machine.clone(), workload, &parts).map_err(|error| self.placed(error, raw))
    }

    /// A mistake in what the spec gives, at its place.
    fn placed(&self, error: StudyError, raw: &RawWorkload) -> SweepError {
        let StudyError::Input(InputError::Option { option, mistake }) = error else {
            return error.into();
        };
        fn span<T>(value: &Option<Spanned<T>>) -> Range<usize> {
            value.as_ref().map_or(0..0, Spanned::span)
        }
        let (key, span) = match option {
            "--load" => ("loads", raw.loads.span()),
            "--param" => {
                let named = |key: &&Spanned<String>| {
                    mistake.problem.contains(&format!("`{}`", key.get_ref()))
                };
                let place = raw.params.keys().find(named).map_or(raw.name.span(), Spanned::span);
                ("params", place)
            }
            "--metric" => ("metrics", span(&raw.metrics)),
            "--group" => ("groups", span(&raw.groups)),
            "--base" => ("bases", self.raw.bases.span()),
            "--repeats" => ("repeats", span(&self.raw.repeats)),
            "--warmup" => ("warmup", span(&self.raw.warmup)),
            "--duration" => ("duration", span(&self.raw.duration)),
            _ => ("edits", span(&self.raw.edits)),
        };
        self.wrong(span, key, mistake)
    }

    fn workload_part(
        &self,
        raw: &RawWorkload,
        loaded: &LoadedWorkload,
        study: &Study,
        sweep: &Sweep,
    ) -> Result<WorkloadPart, SweepError> {
        let case = &study.cases[0];
        let given = loaded.params.iter().map(|(key, value)| format!("{key}={value}"));
        let groups = raw.groups.iter().flat_map(|groups| groups.get_ref());
        let given = given.chain(groups.map(|group| group.get_ref().clone()));
        let name =
            std::iter::once(case.workload.clone()).chain(given).collect::<Vec<_>>().join(" ");
        if sweep.design.workloads.iter().any(|known| known.name == name) {
            return Err(self.twice(&raw.name, "name"));
        }
        let mut loads: Vec<String> = Vec::new();
        for load in raw.loads.get_ref() {
            let text = self.load_text(load)?;
            if loads.contains(&text) {
                let problem = format!("load {text} is given twice");
                return Err(self.source.fault(load.span(), "loads", problem, "remove one of them"));
            }
            loads.push(text);
        }
        let metric = |measure: &study::Measure| MetricPart {
            name: measure.metric.name.to_string(),
            unit: measure.metric.unit.to_string(),
            direction: direction(measure.metric.direction).to_owned(),
        };
        Ok(WorkloadPart {
            name,
            digest: digest(format!("{:?}", loaded.workload).as_bytes()),
            loads,
            metrics: case.metrics.iter().map(metric).collect(),
            warmup_ns: case.warmup_ns,
            duration_ns: case.duration_ns,
        })
    }

    fn load_text(&self, load: &Spanned<Value>) -> Result<String, SweepError> {
        let text = match load.get_ref() {
            Value::Integer(number) if *number > 0 => return Ok(number.to_string()),
            Value::String(text) => text.as_str(),
            _ => "",
        };
        let percent = text.strip_suffix('%').and_then(|percent| percent.parse::<u32>().ok());
        percent
            .filter(|percent| (1..=100_000).contains(percent))
            .map(|p| format!("{p}%"))
            .ok_or_else(|| {
                let problem = format!("{} is no load", load.get_ref());
                let help = "write a whole number from 1 on, or \"50%\" of the machine's CPUs";
                self.source.fault(load.span(), "loads", problem, help)
            })
    }

    fn texts<'a>(&self, key: &str, list: &'a Texts) -> Result<Vec<&'a str>, SweepError> {
        Ok(self.list(key, list)?.iter().map(|text| text.get_ref().as_str()).collect())
    }

    fn list<'a>(&self, key: &str, list: &'a Texts) -> Result<&'a [Spanned<String>], SweepError> {
        if list.get_ref().is_empty() {
            return Err(self.source.fault(
                list.span(),
                key,
                "the list is empty",
                "name at least one",
            ));
        }
        Ok(list.get_ref())
    }

    fn twice<T: std::fmt::Display>(&self, place: &Spanned<T>, key: &str) -> SweepError {
        let problem = format!("`{}` is given twice", place.get_ref());
        self.source.fault(place.span(), key, problem, "remove one of them")
    }

    fn wrong(&self, span: Range<usize>, key: &str, mistake: Mistake) -> SweepError {
        self.source.error(&span, Some(key), mistake)
    }

    /// A path in the spec is relative to the spec; anything else is a name.
    fn beside(&self, spec: &str) -> String {
        let path = Path::new(spec);
        let ends = |e: &std::ffi::OsStr| {
            ["toml", "xml", "json", "txt", "c"].iter().any(|known| e == *known)
        };
        match Path::new(&self.source.file).parent() {
            Some(directory) if path.extension().is_some_and(ends) => {
                directory.join(path).to_string_lossy().into_owned()
            }
            _ => spec.to_owned(),
        }
    }
}

/// The policy file that an edit begins with, and the edits behind it.
fn file_of(edit: &str) -> Option<(&str, &str)> {
    let (file, behind) = edit.split_once(',').unwrap_or((edit, ""));
    file.trim().ends_with(".c").then_some((file.trim(), behind))
}

fn part(machine: &Machine) -> MachinePart {
    let Machine { name, topology, cost, idle, hz, .. } = machine;
    let content = format!("{topology:?} {cost:?} {idle:?} {hz}");
    MachinePart { name: name.clone(), cpus: topology.n_cpus(), digest: digest(content.as_bytes()) }
}

fn direction(direction: reveille_measure::Direction) -> &'static str {
    match direction {
        reveille_measure::Direction::Higher => "higher",
        reveille_measure::Direction::Lower => "lower",
        reveille_measure::Direction::Neither => "neither",
    }
}
