//! A load as measured on a kernel beside what was predicted.

use std::fmt::Write as _;

use reveille_plan::{Verdict, Verification};

use crate::number::TOO_FEW;

/// A table of all settings of one load. `!` marks runs outside of the predicted range: of
/// throttled periods by more than one period, of p99 also when the range is as wide as the
/// control runs were off.
pub fn verification_table(load: &Verification) -> String {
    let mut text = format!("{}\n", load.name);
    if let Some(control) = &load.control {
        let (p99, end) = match control.p99_stretch {
            Some([least, most]) => {
                (format!("p99 is {least:.3} to {most:.3} times as predicted, and "), "\n ")
            }
            None => (String::new(), ""),
        };
        let _ = writeln!(
            text,
            "  without a limit {p99}the kernel charges {:.0} us{end} more for a piece of work than \
             it asks for",
            control.charged_beyond_ns as f64 / 1e3
        );
    }
    text.push_str(
        "    setting, ms            throttled periods, %            p99, ms                   CPUs of\n  \
         quota period  burst   measured  least mid most   measured    least    mid   most     off  others\n",
    );
    let ms = |ns: f64| ns / 1e6;
    for v in &load.settings {
        let (t, p) = (&v.predicted.throttled_share, &v.predicted.p99_ns);
        for run in &v.measured {
            let inside = |runs: u32| if runs == v.measured.len() as u32 { ' ' } else { '!' };
            let p99 = match v.p99_inside_stretched {
                None => format!("{TOO_FEW:>10}{:>32}", ""),
                Some(stretched) => format!(
                    "{:>10.1}{}{:>9.1}{:>7.1}{:>7.1}{:>+7.1}%",
                    ms(run.figures.p99_ns),
                    inside(stretched),
                    ms(p.min),
                    ms(p.median),
                    ms(p.max),
                    100.0 * (run.figures.p99_ns / p.median - 1.0),
                ),
            };
            let _ = writeln!(
                text,
                "{:>7.1}{:>7.0}{:>7.1}{:>10.1}{}{:>6.1}{:>5.1}{:>5.1}{p99}{:>7.2}",
                ms(v.limits.quota_ns.unwrap_or(0) as f64),
                ms(v.limits.period_ns as f64),
                ms(v.limits.burst_ns as f64),
                100.0 * run.figures.throttled_share,
                inside(v.throttled_inside),
                100.0 * t.min,
                100.0 * t.median,
                100.0 * t.max,
                run.others_cpus,
            );
        }
    }
    if load.settings.iter().any(|v| v.p99_inside.is_none()) {
        text += "  too few: p99 needs 1000 requests, and the load has fewer; verdict by throttled periods \
                 alone\n";
    }
    text
}

/// The verdict of a trial as a line, and what to do about it.
pub fn verdict_line(trial: &Verification) -> String {
    let settings = trial.settings.len();
    let of = |verdict| trial.settings.iter().filter(|v| v.verdict == verdict).count();
    match trial.verdict {
        Verdict::Agrees => format!("verdict: agrees in all {settings} settings\n"),
        Verdict::Void => format!(
            "verdict: void, other programs used {:.2} of {} CPUs; repeat when the host is quiet\n",
            trial.most_others_cpus(),
            trial.cpus
        ),
        Verdict::Disagrees => format!(
            "verdict: disagrees in {} of {settings} settings; `!` marks a figure outside its \
             range\n  Do not rely on this plan here. Repeat with --verify-repeats 5; if it still \
             disagrees,\n  record the group again, or plan with the costs of this host (`reveille \
             calibrate`).\n",
            of(Verdict::Disagrees)
        ),
    }
}
