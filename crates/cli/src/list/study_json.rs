//! Studies as JSON, for `reveille studies --json`.

use reveille_study::{Case, Direction, Point, Published, PublishedFigure, Side};
use reveille_study::{FLUID, NO_BURST, Statement, StatementKind, Study, Unpredicted};
use serde::Serialize;

use super::interference::{self, InterferenceJson};

/// JSON of the list.
#[derive(Serialize)]
pub struct StudiesJson {
    pub studies: Vec<StudyLine>,
}

/// A study in the list.
#[derive(Serialize)]
pub struct StudyLine {
    pub name: String,
    pub about: String,
    pub machine: String,
    /// `sim`, `host` or `sim,host`.
    pub on: String,
    /// Null if the study names none.
    pub mechanism: Option<String>,
}

/// JSON of one study.
#[derive(Serialize)]
pub struct StudyJson {
    pub study: FullStudy,
}

#[derive(Serialize)]
pub struct FullStudy {
    name: String,
    about: String,
    mechanism: Option<String>,
    machine: String,
    base: String,
    on: String,
    variants: Vec<String>,
    seed: u64,
    cases: Vec<CaseJson>,
    interference: Vec<InterferenceJson>,
    peaks: Vec<PeakJson>,
    claims: Vec<ClaimJson>,
    unpredicted: Vec<Unpredicted>,
}

#[derive(Serialize)]
struct CaseJson {
    name: String,
    workload: String,
    machine: String,
    base: String,
    variants: Vec<String>,
    groups: Vec<GroupJson>,
    slice_ns: u64,
    /// The first of `metrics`.
    metric: String,
    metrics: Vec<MetricJson>,
    loads: Vec<u64>,
    repeats: u32,
    warmup_ns: u64,
    duration_ns: u64,
    published: Vec<PublishedJson>,
}

/// A task group of the baseline.
#[derive(Serialize)]
struct GroupJson {
    name: String,
    /// Null if it lies in no other group.
    parent: Option<String>,
    /// Null without a limit.
    quota_ns: Option<u64>,
    period_ns: u64,
    burst_ns: u64,
    /// Null if drawn from the seed.
    phase_ns: Option<u64>,
}

#[derive(Serialize)]
struct MetricJson {
    name: String,
    direction: Direction,
}

/// A published figure. Standard deviations are relative, in percent, and null where none was
/// published; fields that a kind does not have are null.
#[derive(Serialize)]
struct PublishedJson {
    /// `change`, `pair`, `side`, `std` or `runs`.
    kind: &'static str,
    load: u64,
    variant: String,
    metric: String,
    /// Positive is better.
    change_pct: Option<f64>,
    base: Option<f64>,
    variant_value: Option<f64>,
    unit: Option<String>,
    /// Of how many runs, and the bound that they exceeded.
    of: Option<u32>,
    runs_above: Option<String>,
    std_base_pct: Option<f64>,
    std_variant_pct: Option<f64>,
    /// Null unless the source itself calls the figure noise.
    noise: Option<String>,
    source: String,
}

/// A published statement: this case's baseline is best at this load.
#[derive(Serialize)]
struct PeakJson {
    case: String,
    load: u64,
    source: String,
}

/// A published statement of any kind, in words.
#[derive(Serialize)]
struct ClaimJson {
    kind: &'static str,
    case: String,
    claim: String,
    expected: String,
    source: String,
}

/// A study's line in the list.
pub fn line(s: Study) -> StudyLine {
    let machine = machine_name(&s).to_owned();
    let on = s.on.to_string();
    StudyLine { name: s.name, about: s.about, machine, on, mechanism: s.mechanism }
}

/// A study in full.
pub fn full_json(s: &Study) -> FullStudy {
    FullStudy {
        name: s.name.clone(),
        about: s.about.clone(),
        mechanism: s.mechanism.clone(),
        machine: machine_name(s).to_owned(),
        base: base_name(s).to_owned(),
        on: s.on.to_string(),
        variants: s.variants().into_iter().map(str::to_owned).collect(),
        seed: s.seed,
        cases: s.cases.iter().map(|c| case_json(s, c)).collect(),
        interference: s.interference.iter().map(interference::json).collect(),
        peaks: s.statements.iter().filter_map(|p| peak_json(s, p)).collect(),
        claims: s.statements.iter().map(|p| claim_json(s, p)).collect(),
        unpredicted: s.unpredicted.clone(),
    }
}

fn case_json(s: &Study, c: &Case) -> CaseJson {
    let groups = &c.groups.groups;
    let group = |g: &reveille_study::TaskGroup| GroupJson {
        name: g.name.clone(),
        parent: g.parent.map(|p| groups[p].name.clone()),
        quota_ns: g.limits.quota_ns,
        period_ns: g.limits.period_ns,
        burst_ns: g.limits.burst_ns,
        phase_ns: g.phase_ns,
    };
    CaseJson {
        name: c.name.clone(),
        workload: c.workload.clone(),
        machine: s.machines[c.machine].name.clone(),
        base: c.base.base.clone(),
        variants: c.variants.iter().map(|v| v.name.clone()).collect(),
        groups: groups.iter().map(group).collect(),
        slice_ns: c.groups.slice_ns,
        metric: c.metrics[0].metric.to_string(),
        metrics: c
            .metrics
            .iter()
            .map(|m| MetricJson { name: m.metric.to_string(), direction: m.metric.direction })
            .collect(),
        loads: c.points.iter().map(|p| p.load).collect(),
        repeats: c.repeats,
        warmup_ns: c.warmup_ns,
        duration_ns: c.duration_ns,
        published: published(c).map(|(point, p)| published_json(c, point, p)).collect(),
    }
}

fn published_json(c: &Case, point: &Point, p: &Published) -> PublishedJson {
    let mut json = PublishedJson {
        kind: "change",
        load: point.load,
        variant: c.variants.get(p.variant).map_or_else(String::new, |v| v.name.clone()),
        metric: c.metrics[p.metric].metric.to_string(),
        change_pct: p.change_pct(c.metrics[p.metric].metric.direction),
        base: None,
        variant_value: None,
        unit: None,
        of: None,
        runs_above: None,
        std_base_pct: p.std_base_pct,
        std_variant_pct: p.std_variant_pct,
        noise: p.noise.clone(),
        source: p.source.clone(),
    };
    let on_side = |json: &mut PublishedJson, side: Side, value: f64| match side {
        Side::Base => json.base = Some(value),
        Side::Variant => json.variant_value = Some(value),
    };
    match &p.figure {
        PublishedFigure::Change { .. } => {}
        PublishedFigure::Pair { base, variant, unit }
        | PublishedFigure::Std { base, variant, unit } => {
            let std = matches!(p.figure, PublishedFigure::Std { .. });
            json.kind = if std { "std" } else { "pair" };
            (json.base, json.variant_value) = (Some(*base), Some(*variant));
            json.unit.clone_from(unit);
        }
        PublishedFigure::Side { side, value, unit, .. } => {
            json.kind = "side";
            on_side(&mut json, *side, *value);
            json.unit.clone_from(unit);
        }
        PublishedFigure::RunsAbove { side, above_text, runs, of, .. } => {
            json.kind = "runs";
            on_side(&mut json, *side, f64::from(*runs));
            json.of = Some(*of);
            json.runs_above = Some(above_text.clone());
        }
    }
    json
}

fn peak_json(s: &Study, p: &Statement) -> Option<PeakJson> {
    let StatementKind::Peak { load } = p.kind else { return None };
    Some(PeakJson { case: s.cases[p.case].name.clone(), load, source: p.source.clone() })
}

fn claim_json(s: &Study, p: &Statement) -> ClaimJson {
    ClaimJson {
        kind: p.kind.name(),
        case: s.cases[p.case].name.clone(),
        claim: p.words(s),
        expected: p.expected(),
        source: p.source.clone(),
    }
}

/// The machine the study names.
pub(super) fn machine_name(s: &Study) -> &str {
    s.machine().map_or(FLUID, |machine| &machine.name)
}

/// The baseline the study names.
pub(super) fn base_name(s: &Study) -> &str {
    s.base.as_ref().map_or(NO_BURST, |base| &base.base)
}

/// The published figures of a case, load by load.
pub(super) fn published(c: &Case) -> impl Iterator<Item = (&Point, &Published)> {
    c.points.iter().flat_map(|point| point.published.iter().map(move |p| (point, p)))
}
