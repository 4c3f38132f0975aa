//! What stands in the way of a plan without a setting, where it is one thing.

use reveille_measure::duration_text;

use crate::Result;
use crate::facts::longest_ns;
use crate::goal::Subject;
use crate::grid::{DRAWS, Halves, Row};
use crate::possible::beyond;
use crate::request::Request;
use crate::search::Search;
use crate::worst_case::worst_case_bound_ns;

/// The bound of the worst case, or a goal that fails even with the quota that suits it best; with what to
/// do about it.
pub(crate) fn obstacle(request: &Request<'_>, search: &Search<'_>) -> Result<Option<String>> {
    let rows: Vec<Row> = search.rows().into_iter().filter(|row| search.allowed.row(row)).collect();
    let ms = |ns: u64| format!("{} ms", (ns as f64 / 1e5).round() / 10.0);
    if let Some(most_ns) = search.allowed.worst_case_ns {
        let bound = |row: &Row| {
            let limits = row.at(search.most_millicpus)?;
            Some((worst_case_bound_ns(search.stage, search.usage, limits)?, row.period_ns))
        };
        let least = rows.iter().filter_map(bound).min();
        if let Some((bound_ns, period_ns)) = least.filter(|least| least.0 > most_ns) {
            let enough_ms = bound_ns.div_ceil(1_000_000);
            return Ok(Some(format!(
                "--max-worst-case {} is in the way. The longest piece of work takes {}{}, so at a \
                 period of {} the bound of its worst case is {enough_ms} ms at best: allow that much, \
                 or a shorter period (--period, --for)",
                duration_text(most_ns as f64),
                ms(longest_ns(search.usage)),
                beyond(request),
                ms(period_ns),
            )));
        }
    }
    let (draws, mut alone): (Vec<u32>, _) = ((0..DRAWS).collect(), Vec::new());
    for (number, goal) in request.goals.iter().enumerate() {
        // Only neighbours are better off with less quota.
        let (millicpus, at) = match goal.subject {
            Subject::Tardiness => {
                (search.least_millicpus, "even with the least quota for its work")
            }
            _ => (search.most_millicpus, "even with the largest quota that may be reserved"),
        };
        let mut held = false;
        for limits in rows.iter().filter_map(|row| row.at(millicpus)) {
            let fails = |draw| Ok(!goal.holds(search.draw(Some(limits), draw)?.goals[number]));
            held = held || search.failing(&draws, Halves::default(), fails)?.is_some();
        }
        if !held {
            let cpus = millicpus as f64 / 1000.0;
            alone.push(format!("`{}` fails {at} ({cpus:.3} CPUs{})", goal.text, beyond(request)));
        }
    }
    Ok(match alone.as_slice() {
        [one] => Some(format!("{one}. Ease that goal, or give more CPUs: --cpus")),
        _ => None,
    })
}
