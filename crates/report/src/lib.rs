//! Views of a [`Comparison`](reveille_study::Comparison): a table for the terminal, a
//! page for a browser, JSON, CSV, and the record of fidelity of many; and of a
//! [`Plan`](reveille_plan::Plan). Views only format: the study crate computes figures and
//! verdicts, so no two views can disagree.
//!
//! Every view is a pure function of its input, byte for byte.
//!
//! # Figures without a value
//!
//! A figure can be undefined (the relative spread around a mean of zero is NaN).
//! No view prints a number in its place: the terminal and the page show `n/a`, JSON has `null`, CSV
//! an empty cell.

mod agreement;
mod baselines;
mod bench;
pub mod emit;
mod explain;
mod export;
mod fidelity;
mod fit;
mod fleet;
mod fragile;
mod group;
mod html;
mod made;
mod number;
mod plan;
mod printed;
mod score;
mod sensitivity;
mod summary;
mod sweep;
mod table;
mod verification;

pub use agreement::{agreement_csv, agreement_table};
pub use baselines::baselines;
pub use bench::{bench_change_table, bench_json, bench_table, read_bench};
pub use export::csv;
pub use fidelity::fidelity;
pub use fit::fit_table;
pub use fleet::{fleet_csv, fleet_html, fleet_table};
pub use fragile::{fragility_table, read_fragility};
pub use html::{agreement_html, html, sensitivity_html, sweep_html};
pub use made::{Made, VERSION, json_text};
pub use plan::{headroom, plan_html, plan_table};
pub use score::score_page;
pub use sensitivity::sensitivity_table;
pub use summary::{json_all, score_table};
pub use sweep::effects_table;
pub use table::table;
pub use verification::{verdict_line, verification_table};
