//! Reads study files. Everything that could go wrong in a run is refused here,
//! with its place in the file, before the first second is spent.

mod claims;
mod document;
mod groups;
mod interference;
mod published;

use std::collections::BTreeMap;
use std::path::Path;

use reveille_machine::Machine;
use reveille_measure::Ns;
use reveille_place::Source;
use reveille_policy::{Groups, Policy};
use reveille_workload::Workload;
use toml::Spanned;

use self::document::Document;
use crate::model::error::{Result, StudyError};
use crate::model::measure::{self, Measure};
use crate::model::on::On;
use crate::model::published::Unpredicted;
use crate::model::scheduler::Scheduler;
use crate::model::study::{
    Case, DEFAULT_REPEATS, DEFAULT_SEED, Study, Variant, checked_repeats, default_times,
};
use crate::read::check::{self, BuildError};
use crate::read::raw::{RawCase, RawStudy, RawUnpredicted, Texts};
use crate::read::variant;

/// Reads a study; `file` names it in messages. Paths of machines and workloads in
/// it are taken as they stand.
///
/// # Errors
/// [`InputError::File`](reveille_place::InputError::File) with file, line, key and fix for anything that is not a
/// study; a mistake in a machine or workload file that it names has its own place.
pub fn parse(file: &str, text: &str) -> Result<Study> {
    parse_beside(None, file, text)
}

/// [`parse`], with relative paths in the study taken from `directory`.
pub(crate) fn parse_beside(directory: Option<&Path>, file: &str, text: &str) -> Result<Study> {
    let doc = Document { directory, source: Source::new(file, text) };
    let raw: RawStudy = doc
        .source
        .toml("correct the line: https://toml.io has the syntax, docs/studies.md the keys")?;
    doc.source.filled("name", &raw.name)?;
    doc.source.filled("about", &raw.about)?;
    if let Some(mechanism) = &raw.mechanism {
        doc.source.filled("mechanism", mechanism)?;
    }
    let mut machines = Machines::default();
    let on = match &raw.on {
        Some(on) => doc.at("on", on, check::on(on.get_ref()))?,
        None => On::Sim,
    };
    let interference = doc.interference(&raw, on)?;
    let base = match doc.own(&raw)? {
        None => None,
        Some((machine, base, variants)) => {
            machines.index(&doc, machine)?;
            let (base, scheduler) = doc.at("base", base, variant::base(base.get_ref()))?;
            Some((base, scheduler, variants))
        }
    };
    let cases = match &base {
        None => Vec::new(),
        Some((base, scheduler, variants)) => {
            let defaults = Defaults { raw: &raw, base: (base, scheduler), variants, on };
            doc.cases(&defaults, &mut machines)?
        }
    };
    let statements = raw.claims.iter().map(|claim| doc.statement(claim, &cases));
    let statements = statements.collect::<Result<Vec<_>>>()?;
    let unpredicted = raw.unpredicted.iter().map(|u| doc.unpredicted(u));
    let unpredicted = unpredicted.collect::<Result<Vec<_>>>()?;
    let seed = match &raw.seed {
        Some(seed) => doc.at("seed", seed, check::seed(*seed.get_ref()))?,
        None => DEFAULT_SEED,
    };
    let base = base.map(|(base, _, _)| base);
    Ok(Study {
        name: raw.name.into_inner(),
        about: raw.about.into_inner(),
        mechanism: raw.mechanism.map(Spanned::into_inner),
        machines: machines.machines,
        base,
        on,
        seed,
        cases,
        interference,
        statements,
        unpredicted,
    })
}

/// What the whole study says, for cases that do not say otherwise.
struct Defaults<'a> {
    raw: &'a RawStudy,
    base: (&'a Policy, &'a Scheduler),
    variants: &'a Texts,
    on: On,
}

/// Machine, baseline and variants as a study gives them.
type Own<'r> = (&'r Spanned<String>, &'r Spanned<String>, &'r Texts);

/// Machines by how the study names them; each is read once.
#[derive(Default)]
struct Machines {
    specs: Vec<String>,
    machines: Vec<Machine>,
}

impl Machines {
    fn index(&mut self, doc: &Document<'_>, spec: &Spanned<String>) -> Result<usize> {
        if let Some(known) = self.specs.iter().position(|s| s == spec.get_ref()) {
            return Ok(known);
        }
        self.machines.push(doc.machine(spec)?);
        self.specs.push(spec.get_ref().clone());
        Ok(self.machines.len() - 1)
    }
}

impl Document<'_> {
    fn variants(
        &self,
        base: (&Policy, &Scheduler),
        groups: &Groups,
        machine: &Machine,
        texts: &Texts,
    ) -> Result<Vec<Variant>> {
        let mut variants = Vec::new();
        for edits in texts.get_ref() {
            let variant = variant::variant(base, groups, edits.get_ref(), &variants);
            let variant = self.at("variants", edits, variant)?;
            self.at("variants", edits, variant.runs_on(machine))?;
            variants.push(variant);
        }
        Ok(variants)
    }

    fn unpredicted(&self, raw: &RawUnpredicted) -> Result<Unpredicted> {
        let text = |key: &str, value: &Spanned<String>| {
            self.source.filled(key, value).map(|()| value.get_ref().clone())
        };
        Ok(Unpredicted {
            what: text("what", &raw.what)?,
            figures: text("figures", &raw.figures)?,
            reason: text("reason", &raw.reason)?,
            source: text("source", &raw.source)?,
        })
    }

    /// Machine, baseline and variants of a study: all three, unless all of its cases are
    /// of groups that share CPUs by chance.
    fn own<'r>(&self, raw: &'r RawStudy) -> Result<Option<Own<'r>>> {
        if raw.cases.is_empty() && !raw.interference.is_empty() {
            let place = raw.machine.as_ref().map(|m| ("machine", m.span()));
            let place = place.or(raw.base.as_ref().map(|b| ("base", b.span())));
            let place = place.or(raw.variants.as_ref().map(|v| ("variants", v.span())));
            let Some((key, span)) = place else { return Ok(None) };
            return Err(self.fault(span, key, "has no meaning without a [[case]]", "leave it out"));
        }
        let missing = |key: &'static str| {
            self.fault(0..0, key, format!("missing field `{key}`"), format!("add `{key}`"))
        };
        Ok(Some((
            raw.machine.as_ref().ok_or_else(|| missing("machine"))?,
            raw.base.as_ref().ok_or_else(|| missing("base"))?,
            raw.variants.as_ref().ok_or_else(|| missing("variants"))?,
        )))
    }

    fn cases(&self, defaults: &Defaults<'_>, machines: &mut Machines) -> Result<Vec<Case>> {
        let raw = &defaults.raw.cases;
        if raw.is_empty() {
            let help = "add a [[case]] with name, workload and loads";
            return Err(self.fault(0..0, "case", "there is none", help));
        }
        let names: Vec<&str> = raw.iter().map(|c| c.get_ref().name.get_ref().as_str()).collect();
        if let Some(i) = check::duplicate(&names) {
            return self.refuse(
                "name",
                &raw[i].get_ref().name,
                format!("two cases are called `{}`", names[i]),
                "give one of them another name",
            );
        }
        raw.iter().map(|case| self.case(case.get_ref(), defaults, machines)).collect()
    }

    fn case(
        &self,
        raw: &RawCase,
        defaults: &Defaults<'_>,
        machines: &mut Machines,
    ) -> Result<Case> {
        self.source.filled("name", &raw.name)?;
        let machine = raw.machine.as_ref().map_or(Ok(0), |spec| machines.index(self, spec))?;
        let (base, scheduler) = match &raw.base {
            Some(name) => self.at("base", name, variant::base(name.get_ref()))?,
            None => (defaults.base.0.clone(), defaults.base.1.clone()),
        };
        let workload = self.workload(&raw.workload)?;
        let params = self.params(raw, &workload)?;
        let loads = self.loads(&raw.loads)?;
        let points = check::points(&workload, &loads, &params)
            .map_err(|error| self.not_built(raw, error))?;
        let groups = self.groups(raw, &points[0].program)?;
        let texts = raw.variants.as_ref().unwrap_or(defaults.variants);
        let machine_of = &machines.machines[machine];
        let variants = self.variants((&base, &scheduler), &groups, machine_of, texts)?;
        let metrics = self.metrics(raw, &workload, &groups)?;
        let repeats = match raw.repeats.as_ref().or(defaults.raw.repeats.as_ref()) {
            Some(repeats) => self.at("repeats", repeats, checked_repeats(*repeats.get_ref()))?,
            None => DEFAULT_REPEATS,
        };
        let pass_ns = workload.pass_ns;
        let (warmup_ns, duration_ns) = self.times(raw, defaults, pass_ns)?;
        let mut case = Case {
            name: raw.name.get_ref().clone(),
            workload: workload.name,
            machine,
            base,
            scheduler,
            groups,
            variants,
            metrics,
            points,
            repeats,
            warmup_ns,
            duration_ns,
            pass_ns,
            baselines: defaults.raw.baselines,
            published_on: None,
        };
        for published in &raw.published {
            self.add_published(published, raw, &mut case)?;
        }
        Ok(case)
    }

    /// What a case is judged by: `metric`, or `metrics`, or its workload's first.
    fn metrics(&self, raw: &RawCase, workload: &Workload, groups: &Groups) -> Result<Vec<Measure>> {
        match (&raw.metric, &raw.metrics) {
            (Some(_), Some(several)) => self.beside("metrics", several, "metric"),
            (Some(one), None) => {
                let found = measure::find(workload, groups, Some(one.get_ref()));
                Ok(vec![self.at("metric", one, found)?])
            }
            (None, None) => {
                let first = measure::find(workload, groups, None);
                Ok(vec![self.at("metric", &raw.workload, first)?])
            }
            (None, Some(several)) => {
                let none = ["no metric is given", "name one, or leave it out"];
                let read = |name: &str| measure::find(workload, groups, Some(name));
                let same = |a: &Measure, b: &Measure| a.metric == b.metric;
                let twice = |m: &Measure| format!("`{}` is given twice", m.metric);
                self.distinct("metrics", several, none, read, same, twice)
            }
        }
    }

    fn params(&self, raw: &RawCase, workload: &Workload) -> Result<BTreeMap<String, String>> {
        let mut params = BTreeMap::new();
        for (name, value) in &raw.params {
            let key = name.get_ref();
            self.at(key, name, check::param(workload, key))?;
            let text = self.at(key, value, check::param_text(value.get_ref()))?;
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

    /// Warm-up and measured time of a case: a pass through the workload's phases at least,
    /// unless the file gives a time.
    fn times(&self, case: &RawCase, defaults: &Defaults<'_>, pass_ns: Ns) -> Result<(Ns, Ns)> {
        let (study, (usual_warmup, usual_duration)) = (defaults.raw, default_times(defaults.on));
        let time = |key, given: Option<&Spanned<String>>, default: &str| match given {
            Some(text) => self.at(key, text, check::time(text.get_ref())),
            None => check::time(default).map_err(|problem| self.wrong(0..0, key, problem)),
        };
        let warmup = case.warmup.as_ref().or(study.warmup.as_ref());
        let duration = case.duration.as_ref().or(study.duration.as_ref());
        let warmup_ns = time("warmup", warmup, usual_warmup)?;
        let given_ns = time("duration", duration, usual_duration)?;
        let duration_ns = if duration.is_some() { given_ns } else { given_ns.max(pass_ns) };
        let span = duration.or(warmup).map_or(0..0, Spanned::span);
        let measured = check::measured(warmup_ns, duration_ns);
        Ok((warmup_ns, measured.map_err(|problem| self.wrong(span, "duration", problem))?))
    }
}
