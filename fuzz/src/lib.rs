//! What the targets demand of every reader: an end, and an error that can be shown.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use reveille_machine::Machine;

/// Shows an error as the command does; the places that it marks must lie in the text.
pub fn show(error: &dyn Diagnostic) {
    let mut shown = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .render_report(&mut shown, error)
        .expect("an error can be shown");
    assert!(!shown.is_empty());
}

/// A machine that was accepted keeps the rules that everything else relies on.
pub fn check_machine(machine: &Machine) {
    let topology = &machine.topology;
    assert!(topology.n_cpus() > 0 && !machine.idle.is_empty() && machine.hz > 0);
    assert!(!topology.describe().is_empty());
    for constant in &machine.constants {
        assert!(constant.low <= constant.value && constant.value <= constant.high);
        assert_eq!(machine.cost.get(constant.key), Some(constant.value));
    }
}
