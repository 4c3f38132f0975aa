//! Every edit on every machine, base and workload, checked before anything runs.

use reveille_machine::Machine;
use reveille_place::{InputError, Mistake};
use reveille_policy::PolicyFile;
use reveille_study::{Study, predictable};
use toml::{Spanned, Value};

use super::{RawWorkload, Spec};
use crate::error::SweepError;
use crate::run::{LoadedWorkload, Sweep, Template};

impl Spec {
    /// Every edit on every machine, base and workload. An edit that some of these refuse fails
    /// there; one that all refuse is a mistake in the spec.
    pub(super) fn templates(
        &self,
        sweep: &mut Sweep,
        bases: &[&str],
        edits: &[(String, Option<PolicyFile>)],
    ) -> Result<(), SweepError> {
        let mut accepted = vec![false; edits.len()];
        let mut refusals: Vec<Option<Mistake>> = vec![None; edits.len()];
        for machine in &sweep.machines {
            for (b, base) in bases.iter().enumerate() {
                for (raw, workload) in self.raw.workload.get_ref().iter().zip(&sweep.workloads) {
                    let raw = raw.get_ref();
                    let mut whole =
                        self.study(machine, base, workload, raw, first(raw), &[], &[])?;
                    whole.machines.clear();
                    let resolved = whole.base.as_ref().map_or(*base, |base| base.base.as_str());
                    let resolved = resolved.to_owned();
                    if sweep.design.bases.len() == b {
                        if sweep.design.bases.contains(&resolved) {
                            return Err(self.twice(&self.raw.bases.get_ref()[b], "bases"));
                        }
                        sweep.design.bases.push(resolved);
                    }
                    let mut sides = vec![Ok(0)];
                    for (e, (text, file)) in edits.iter().enumerate().skip(1) {
                        let side = self.side(&mut whole, machine, base, workload, raw, text, file);
                        match side? {
                            Ok(side) => {
                                accepted[e] = true;
                                sides.push(Ok(side));
                            }
                            Err(mistake) => {
                                sides.push(Err(mistake.problem.clone()));
                                refusals[e].get_or_insert(mistake);
                            }
                        }
                    }
                    whole.cases[0].points.clear();
                    sweep.templates.push(Template { study: whole, sides });
                }
            }
        }
        for (e, refusal) in refusals.into_iter().enumerate() {
            if let Some(mistake) = refusal.filter(|_| !accepted[e]) {
                let place = self.raw.edits.as_ref().and_then(|edits| edits.get_ref().get(e - 1));
                return Err(self.wrong(place.map_or(0..0, Spanned::span), "edits", mistake));
            }
        }
        Ok(())
    }

    /// Adds an edit to the comparison: its side there, or why it is refused.
    #[expect(clippy::too_many_arguments, reason = "the parts of one comparison")]
    fn side(
        &self,
        whole: &mut Study,
        machine: &Machine,
        base: &str,
        workload: &LoadedWorkload,
        raw: &RawWorkload,
        text: &str,
        file: &Option<PolicyFile>,
    ) -> Result<Result<usize, Mistake>, SweepError> {
        let files = file.iter().map(|file| (file.clone(), text.to_owned())).collect::<Vec<_>>();
        let with: Vec<String> = if file.is_some() { Vec::new() } else { vec![text.to_owned()] };
        let alone = match self.study(machine, base, workload, raw, first(raw), &with, &files) {
            Ok(alone) => alone,
            // At the place of the edits: nothing else differs from the baseline's comparison.
            Err(SweepError::Input(InputError::File(error))) => {
                return Ok(Err(Mistake::new(error.problem, error.help)));
            }
            Err(error) => return Err(error),
        };
        let Some(case) = alone.cases.into_iter().next() else {
            return Ok(Err(Mistake::new("there is nothing to compare", "leave it out")));
        };
        if let Err(error) = predictable(&case) {
            return Ok(Err(Mistake::of(&error, "leave it out")));
        }
        let of_whole = &mut whole.cases[0].variants;
        of_whole.extend(case.variants);
        Ok(Ok(of_whole.len()))
    }
}

/// The first load: groups and edits depend on no other.
fn first(raw: &RawWorkload) -> &[Spanned<Value>] {
    raw.loads.get_ref().get(..1).unwrap_or_default()
}
