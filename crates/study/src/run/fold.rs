//! Folds the finished runs of a study into its comparison.

use reveille_measure::HostContext;

use crate::judge::comparison::{Comparison, MachineUsed};
use crate::judge::rows::{self, Finished};
use crate::judge::score;
use crate::judge::skill::Skill;
use crate::model::interference::{FLUID, NO_BURST};
use crate::model::study::Study;
use crate::run::matrix::Slot;

/// What the finished runs of a study amount to; `host` is where, if they were no
/// simulations.
///
/// Of an interrupted simulation only slots with all repeats count, for they are the same
/// at any number of threads. Runs on a host take turns over the whole study, so there the
/// repeats that all sides of a slot have make its rows.
pub(crate) fn comparison(
    study: &Study,
    slots: &[&Slot<'_>],
    host: Option<HostContext>,
) -> Comparison {
    let repeats = |slot: &Slot<'_>| match &host {
        Some(_) => slot.repeats_done(),
        None => slot.case.repeats as usize,
    };
    let finished: Vec<Vec<Option<Finished>>> = slots
        .iter()
        .map(|slot| (0..slot.sides()).map(|side| slot.finished(side, repeats(slot))).collect())
        .collect();
    let mut rows = Vec::new();
    let mut partial = slots.iter().any(|slot| slot.repeats_done() < slot.case.repeats as usize);
    for (slot, sides) in slots.iter().zip(&finished) {
        let machine = &study.machines[slot.case.machine].name;
        for index in 0..slot.case.variants.len().max(1) {
            match (&sides[0], sides.get(index + 1).unwrap_or(&sides[0])) {
                (Some(base), Some(candidate)) => {
                    rows.extend(rows::rows(machine, slot.case, slot.point, index, base, candidate))
                }
                _ => partial = true,
            }
        }
    }
    let claims = study.statements.iter().filter_map(|statement| {
        let first = slots.iter().position(|s| s.case_index == statement.case)?;
        let samples = |at: usize, side: usize| {
            let side = finished[first + at][side].as_ref()?;
            Some(side.samples[statement.metric].as_slice())
        };
        statement.claim(study, &samples)
    });
    let claims: Vec<_> = claims.collect();
    let machines = study.machines.iter().map(|machine| MachineUsed {
        name: machine.name.clone(),
        topology: machine.topology.describe(),
        cost_model: machine.cost_model.clone(),
        warnings: machine.warnings.clone(),
    });
    let fluid = (!study.interference.is_empty()).then(fluid);
    let mut machines: Vec<MachineUsed> = machines.chain(fluid).collect();
    let not_judged = study.not_judged();
    machines[0].warnings.extend(not_judged.clone());
    Comparison {
        study: study.name.clone(),
        mechanism: study.mechanism.clone(),
        machine: machines[0].name.clone(),
        topology: machines[0].topology.clone(),
        cost_model: machines[0].cost_model.clone(),
        machines,
        base: study.base.as_ref().map_or(NO_BURST, |base| &base.base).to_owned(),
        seed: study.seed,
        score: score::score(&rows),
        skill: Skill::of(&rows),
        not_judged,
        claim_score: score::count(claims.iter().map(|c| c.verdict)),
        partial,
        rows,
        claims,
        unpredicted: study.unpredicted.clone(),
        host,
    }
}

/// Stands in for the machine of cases that run on none.
fn fluid() -> MachineUsed {
    MachineUsed {
        name: FLUID.to_owned(),
        topology: "CPU time as a fluid, shared equally, period by period".to_owned(),
        cost_model: "none: nothing costs time".to_owned(),
        warnings: Vec::new(),
    }
}
