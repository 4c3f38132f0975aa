//! More work per request and more requests than recorded: what a recommendation must survive, and
//! how much growth a setting allows.

use reveille_policy::BandwidthLimits;
use reveille_usage::{Demand, Ns, Usage};

use crate::load::Load;
use crate::replay::{Phase, Stage};
use crate::sketch::Sketch;
use crate::{PlanError, Result};

/// Growth searched for, at most, as a share of the work.
const MOST: f64 = 3.0;
/// Resolution of that search.
const STEP: f64 = 0.01;
/// Phases at which the goals must hold.
const PHASES: u32 = 8;

/// The recording with `work` more CPU time per request and `requests` more requests in the same
/// time, both as shares.
pub(crate) fn grown(usage: &Usage, work: f64, requests: f64) -> Usage {
    let in_time = |ns: Ns| (ns as f64 / (1.0 + requests)) as Ns;
    let span_ns = in_time(usage.span_ns).max(1);
    let grow = |demand: &Demand| Demand {
        at_ns: in_time(demand.at_ns).min(span_ns - 1),
        cpu_ns: (demand.cpu_ns as f64 * (1.0 + work)).round() as Ns,
        done_ns: None,
        ..*demand
    };
    let demands = usage.demands.iter().map(grow).collect();
    Usage { demands, span_ns, samples: Vec::new(), ..usage.clone() }
}

/// Growth of every request's work at which a goal first fails at some phase of the recording, as a
/// share; at most 3.
pub(crate) fn until_it_breaks(
    stage: &Stage<'_>,
    sketch: &Sketch,
    usage: &Usage,
    limits: BandwidthLimits,
) -> Result<f64> {
    let holds = |work: f64| {
        let load = Load::new(&[&grown(usage, work, 0.0)]);
        for index in 0..PHASES {
            if sketch.strain(stage, &load, limits, Phase::of_grid(index, PHASES))? > 1.0 {
                return Ok::<_, PlanError>(false);
            }
        }
        Ok(true)
    };
    if !holds(0.0)? {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 0.1);
    while high < MOST && holds(high)? {
        (low, high) = (high, (2.0 * high).min(MOST));
    }
    if high >= MOST && holds(MOST)? {
        return Ok(MOST);
    }
    while high - low > STEP {
        let middle = (low + high) / 2.0;
        match holds(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(low)
}
