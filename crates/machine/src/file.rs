//! Reads machine files. A number without a source, without a range, or outside
//! its range is refused here, so that no run rests on one.

use std::ops::Range;

use reveille_place::{InputError, Mistake, Source};
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::cost::CostModel;
use crate::machine::{Constant, DEFAULT_HZ, IdleState, MAX_FITTED, Machine, Measured, Origin};
use crate::presets::{
    DEFAULT_COST_MODEL, cost_model_names, cost_model_text, file_of, machine_text, preset_names,
};
use crate::schema::{
    RawConstant, RawConstants, RawCostModel, RawIdle, RawMachine, RawMeasured, RawTopology,
};
use crate::topology::{MAX_THREADS, Shape, Topology, TopologyError};

const HZ: [u32; 4] = [100, 250, 300, 1000];

/// Reads a machine file; `file` names it in messages.
///
/// # Errors
/// [`InputError::File`] for anything that is not a machine: unknown or missing
/// keys, a value outside its range, a range that runs backwards, a number without
/// `source`, `estimate`, `measured` or `fitted`, more than [`MAX_FITTED`] fitted numbers, an impossible
/// topology, a timer frequency that kernels do not have.
pub fn parse_toml(file: &str, text: &str) -> Result<Machine, InputError> {
    let doc = Document(Source::new(file, text));
    let raw: RawMachine = doc.parse()?;
    doc.0.filled("name", &raw.name)?;
    doc.0.filled("about", &raw.about)?;
    doc.0.filled("source", &raw.source)?;
    let base = doc.base(&raw.cost)?;
    let hz = doc.hz(raw.hz.as_ref())?;
    let topology = doc.topology(&raw.topology)?;
    let own = doc.constants(&raw.constants)?;
    let idle = doc.idle(&raw.idle)?;

    let constants = base
        .constants
        .into_iter()
        .map(|inherited| own.iter().find(|c| c.key == inherited.key).cloned().unwrap_or(inherited));
    let machine = Machine {
        name: raw.name.into_inner(),
        about: raw.about.into_inner(),
        source: raw.source.into_inner(),
        topology,
        cost: CostModel::blank(),
        cost_model: raw.cost.into_inner(),
        idle: if idle.is_empty() { base.idle } else { idle },
        hz,
        constants: constants.collect(),
        warnings: Vec::new(),
    };
    doc.finished(machine)
}

/// A machine of the default cost model that only lacks its names.
pub(crate) fn base_machine(topology: Topology) -> Result<Machine, InputError> {
    let base = cost_model(DEFAULT_COST_MODEL)?;
    let doc = Document::of_cost_model(DEFAULT_COST_MODEL);
    doc.finished(Machine {
        name: String::new(),
        about: String::new(),
        source: String::new(),
        topology,
        cost: CostModel::blank(),
        cost_model: DEFAULT_COST_MODEL.to_owned(),
        idle: base.idle,
        hz: DEFAULT_HZ,
        constants: base.constants,
        warnings: Vec::new(),
    })
}

/// What a cost model file says: every constant, marked as inherited.
pub(crate) struct Base {
    pub(crate) constants: Vec<Constant>,
    pub(crate) idle: Vec<IdleState>,
}

/// What a machine with this `cost` inherits: a cost model's constants, or those of a
/// preset with its idle states. `None` if there is neither.
pub(crate) fn inherited(name: &str) -> Option<Result<Base, InputError>> {
    if cost_model_text(name).is_some() {
        return Some(cost_model(name));
    }
    let machine = parse_toml(&file_of(name), machine_text(name)?);
    Some(machine.map(|m| Base {
        constants: m.constants.into_iter().map(|c| Constant { inherited: true, ..c }).collect(),
        idle: m.idle,
    }))
}

/// Reads an embedded cost model, which must have every constant.
fn cost_model(name: &str) -> Result<Base, InputError> {
    let doc = Document::of_cost_model(name);
    let raw: RawCostModel = doc.parse()?;
    doc.0.filled("name", &raw.name)?;
    doc.0.filled("about", &raw.about)?;
    let own = doc.constants(&raw.constants)?;
    let mut constants = Vec::with_capacity(CostModel::FIELDS.len());
    for field in CostModel::FIELDS {
        let found = own.iter().find(|c| c.key == field.key).ok_or_else(|| {
            let help = "a cost model states every constant: add it under [constants]";
            doc.0.fault::<InputError>(0..0, field.key, "is missing", help)
        })?;
        constants.push(Constant { inherited: true, ..found.clone() });
    }
    Ok(Base { constants, idle: doc.idle(&raw.idle)? })
}

/// A file under way: every check reports its place in it.
struct Document(Source);

impl Document {
    fn of_cost_model(name: &str) -> Document {
        Document(Source::new(&file_of(name), cost_model_text(name).unwrap_or("")))
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        self.0.toml("correct the line: https://toml.io has the syntax, docs/machines.md the keys")
    }

    fn base(&self, cost: &Spanned<String>) -> Result<Base, InputError> {
        let name = cost.get_ref().as_str();
        if let Some(base) = inherited(name) {
            return base;
        }
        let models = cost_model_names();
        let help = format!("use a preset machine or one of: {}", models.join(", "));
        let known = models.iter().copied().chain(preset_names());
        let unknown = Mistake::unknown("cost model or preset machine", name, known);
        Err(self.0.error(&cost.span(), Some("cost"), unknown.mended_by(help)))
    }

    fn hz(&self, hz: Option<&Spanned<u32>>) -> Result<u32, InputError> {
        match hz {
            None => Ok(DEFAULT_HZ),
            Some(hz) if HZ.contains(hz.get_ref()) => Ok(*hz.get_ref()),
            Some(hz) => {
                let problem = format!("kernels have no timer frequency of {}", hz.get_ref());
                Err(self.0.fault(hz.span(), "hz", problem, "use 100, 250, 300 or 1000"))
            }
        }
    }

    fn topology(&self, raw: &Spanned<RawTopology>) -> Result<Topology, InputError> {
        let t = raw.get_ref();
        let one = |n: &Option<Spanned<u32>>| n.as_ref().map_or(1, |n| *n.get_ref());
        let shape = Shape {
            sockets: *t.sockets.get_ref(),
            nodes_per_socket: one(&t.nodes_per_socket),
            llcs_per_socket: *t.llcs_per_socket.get_ref(),
            cores_per_llc: *t.cores_per_llc.get_ref(),
            cores_per_cluster: one(&t.cores_per_cluster),
            threads: *t.threads.get_ref(),
        };
        Topology::of(shape).map_err(|error| {
            let key = match error {
                TopologyError::Zero { what } | TopologyError::Uneven { what, .. } => what,
                TopologyError::TooManyThreads { .. } => "threads",
                TopologyError::LlcTooWide { .. } => "cores_per_llc",
                _ => "topology",
            };
            let at = match key {
                "sockets" => Some(&t.sockets),
                "nodes_per_socket" => t.nodes_per_socket.as_ref(),
                "llcs_per_socket" => Some(&t.llcs_per_socket),
                "cores_per_llc" => Some(&t.cores_per_llc),
                "cores_per_cluster" => t.cores_per_cluster.as_ref(),
                "threads" => Some(&t.threads),
                _ => None,
            };
            let fewer = format!("use at most {MAX_THREADS}");
            let help = match error {
                TopologyError::TooManyThreads { .. } => fewer.as_str(),
                TopologyError::Uneven { .. } => "memory nodes and clusters have equal parts",
                _ => "the machine has sockets x llcs_per_socket x cores_per_llc x threads CPUs",
            };
            self.0.fault(at.map_or(raw.span(), Spanned::span), key, error.to_string(), help)
        })
    }

    fn constants(&self, raw: &RawConstants) -> Result<Vec<Constant>, InputError> {
        raw.iter().map(|(key, constant)| self.constant(key, constant)).collect()
    }

    fn constant(
        &self,
        key: &Spanned<String>,
        raw: &Spanned<RawConstant>,
    ) -> Result<Constant, InputError> {
        let (name, span, raw) = (key.get_ref().as_str(), raw.span(), raw.get_ref());
        let field = CostModel::field(name)
            .map_err(|unknown| self.0.error::<InputError>(&key.span(), Some(name), unknown))?;
        let (value, [low, high]) = (*raw.value.get_ref(), raw.range.get_ref().0);
        let (value_at, range_at) = (raw.value.span(), raw.range.span());
        for (number, at) in [(value, &value_at), (low, &range_at), (high, &range_at)] {
            field.check(number).map_err(|error| {
                self.0.fault::<InputError>(at.clone(), name, error.to_string(), "mend the number")
            })?;
        }
        self.in_range(&span, name, value, [low, high])?;
        Ok(Constant {
            key: field.key,
            value,
            unit: field.unit(),
            low,
            high,
            origin: self.origin(
                &span,
                name,
                [&raw.source, &raw.estimate, &raw.fitted],
                raw.measured.as_ref(),
            )?,
            meaning: field.meaning,
            inherited: false,
        })
    }

    fn in_range(
        &self,
        span: &Range<usize>,
        key: &str,
        value: f64,
        [low, high]: [f64; 2],
    ) -> Result<(), InputError> {
        let (problem, help) = if low > high {
            (format!("its range [{low}, {high}] runs backwards"), "write range = [lowest, highest]")
        } else if value < low || value > high {
            (
                format!("{value} lies outside its plausible range [{low}, {high}]"),
                "change the value, or widen the range if the source supports that",
            )
        } else {
            return Ok(());
        };
        Err(self.0.fault(span.clone(), key, problem, help))
    }

    fn origin(
        &self,
        span: &Range<usize>,
        key: &str,
        texts: [&Option<String>; 3],
        measured: Option<&RawMeasured>,
    ) -> Result<Origin, InputError> {
        let measured = measured.map(|m| self.measured(span, key, m)).transpose()?;
        let kinds = [Origin::Cited, Origin::Estimated, Origin::Fitted];
        let said = kinds.into_iter().zip(texts).filter_map(|(kind, text)| {
            text.as_ref().filter(|t| !t.trim().is_empty()).map(|t| kind(t.clone()))
        });
        let mut said = said.chain(measured);
        let (problem, help) = match (said.next(), said.next()) {
            (Some(origin), None) => return Ok(origin),
            (None, _) => (
                "has no source",
                "add source = \"commit, mail or manual\", estimate = \"from what, and how\", \
                 measured = { how, p10, p90, samples } or fitted = \"why, and against what\"",
            ),
            (Some(_), Some(_)) => (
                "has more than one of `source`, `estimate`, `measured` and `fitted`",
                "keep `source` if it was published, `estimate` if it follows from a source, \
                 `measured` if it was on this very machine, `fitted` if none of these",
            ),
        };
        Err(self.0.fault(span.clone(), key, problem, help))
    }

    fn measured(
        &self,
        span: &Range<usize>,
        key: &str,
        raw: &RawMeasured,
    ) -> Result<Origin, InputError> {
        let RawMeasured { how, p10, p90, samples } = raw.clone();
        let (problem, help) = if how.trim().is_empty() {
            ("does not say how it was measured", "fill `how`")
        } else if samples == 0 {
            ("rests on no sample", "`samples` is at least 1")
        } else if !(p10.is_finite() && p90.is_finite() && p10 <= p90) {
            ("has a p90 that is not above its p10", "write p10 = lower, p90 = higher")
        } else {
            return Ok(Origin::Measured(Measured { how, p10, p90, samples }));
        };
        Err(self.0.fault(span.clone(), key, problem, help))
    }

    fn idle(&self, raw: &[Spanned<RawIdle>]) -> Result<Vec<IdleState>, InputError> {
        let mut states: Vec<IdleState> = Vec::with_capacity(raw.len());
        for spanned in raw {
            let (span, state) = (spanned.span(), spanned.get_ref());
            self.in_range(&span, "exit_ns", state.exit_ns.into(), state.range.0.map(f64::from))?;
            if states.iter().any(|s| s.name == state.name) {
                let problem = format!("the idle state {} appears twice", state.name);
                return Err(self.0.fault(span, "name", problem, "remove one of them"));
            }
            if let Some(lighter) = states
                .last()
                .filter(|s| s.exit_ns > state.exit_ns || s.residency_ns > state.residency_ns)
            {
                let problem = format!("{} is lighter than {} before it", state.name, lighter.name);
                let help = "list idle states from the lightest to the deepest";
                return Err(self.0.fault(span, "idle", problem, help));
            }
            let texts = [&state.source, &state.estimate, &state.fitted];
            let origin = self.origin(&span, "idle", texts, state.measured.as_ref())?;
            states.push(IdleState {
                name: state.name.clone(),
                exit_ns: state.exit_ns,
                residency_ns: state.residency_ns,
                polling: state.polling,
                exit_low_ns: state.range.0[0],
                exit_high_ns: state.range.0[1],
                origin,
            });
        }
        Ok(states)
    }

    /// Fills the cost model from the constants and makes the checks that need all
    /// of the machine.
    fn finished(&self, mut machine: Machine) -> Result<Machine, InputError> {
        for c in &machine.constants {
            machine.cost.set(c.key, c.value).map_err(|error| {
                self.0.fault::<InputError>(0..0, c.key, error.to_string(), "mend the number")
            })?;
        }
        let fitted = machine.fitted();
        if fitted.len() > MAX_FITTED {
            let problem = format!(
                "{} numbers are fitted, inherited ones included; at most {MAX_FITTED} may be: {}",
                fitted.len(),
                fitted.join(", ")
            );
            let help = "find a source for some of them";
            return Err(self.0.fault(0..0, "fitted", problem, help));
        }
        Ok(machine)
    }
}
