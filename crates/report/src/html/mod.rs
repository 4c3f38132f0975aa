//! The comparison as one file for a browser. It fetches nothing (a content
//! security policy in the page forbids it), so it can be mailed, archived and
//! opened years later. Tables are written here as markup and need no script;
//! plots are drawn by a small script from the data block at the page's end.

mod agreement;
mod data;
pub(crate) mod markup;
mod sensitivity;
mod sweep;

use reveille_study::Comparison;

use crate::made::{Made, VERSION};
use markup::escape;

pub use agreement::agreement_html;
pub use sensitivity::sensitivity_html;
pub use sweep::sweep_html;

pub(crate) const PAGE: &str = include_str!("../../assets/page.html");
pub(crate) const STYLE: &str = include_str!("../../assets/style.css");
pub(crate) const CHART: &str = include_str!("../../assets/chart.js");
const PLOTS: &str = include_str!("../../assets/plots.js");

/// Renders one page with all comparisons of `cs`, in their order.
///
/// Each case gets its metrics plotted against load (mean and standard deviation
/// of the baseline and of every variant, with what was published), the wakeup
/// latency distribution and the use of every CPU at a selected load, and tables
/// of the rows and of the numbers that explain them. A case whose rows carry no
/// [`Detail`](reveille_study::Detail) has tables and load plots only.
pub fn html(cs: &[Comparison], made: &Made) -> String {
    let title = match cs {
        [one] => format!("Reveille: {}", one.study),
        _ => format!("Reveille: {} studies", cs.len()),
    };
    let overview = if cs.len() > 1 { markup::overview(cs) } else { String::new() };
    let body: String =
        cs.iter().enumerate().map(|(number, c)| markup::comparison(number, c)).collect();
    fill(
        PAGE,
        &[
            ("title", &escape(&title)),
            ("style", STYLE),
            ("overview", &overview),
            ("body", &body),
            ("made", &made.footer()),
            ("data", &data::block(cs)),
            ("chart", CHART),
            ("plots", PLOTS),
        ],
    )
}

impl Made {
    /// The last line of a page.
    pub(crate) fn footer(&self) -> String {
        let (command, date) = (escape(&self.command), escape(&self.date));
        format!("Made by reveille {VERSION} on {date}: <code>{command}</code>")
    }
}

/// Replaces every `{{name}}` of the template in one pass, so that a name from a
/// study file that looks like a placeholder stays what it is.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut pieces = template.split("{{");
    page.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("the template closes every placeholder");
        let (_, value) =
            values.iter().find(|(n, _)| *n == name).expect("every placeholder has a value");
        page.push_str(value);
        page.push_str(rest);
    }
    page
}
