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

const STYLE: &str = include_str!("../../assets/style.css");
const CHART: &str = include_str!("../../assets/chart.js");
const PLOTS: &str = include_str!("../../assets/plots.js");
const NO_SCRIPT: &str = "<noscript><p class=\"quiet\">Plots need scripts, which are off here. All \
    figures are in the tables.</p></noscript>\n";

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
    let plots = Plots { overview, data: data::block(cs), script: PLOTS };
    page(&title, &body, Some(plots), made)
}

/// What a page with plots has beyond its body.
pub(crate) struct Plots {
    /// Markup above the body.
    pub(crate) overview: String,
    /// JSON that may stand inside a script element.
    pub(crate) data: String,
    /// Draws `data`, with the help of chart.js.
    pub(crate) script: &'static str,
}

/// A page of its own that fetches nothing; without plots it runs no script.
pub(crate) fn page(title: &str, body: &str, plots: Option<Plots>, made: &Made) -> String {
    let (mut allowed, mut above, mut scripts) = ("", String::new(), String::new());
    if let Some(Plots { overview, data, script }) = plots {
        allowed = "; script-src 'unsafe-inline'";
        above = overview + NO_SCRIPT;
        scripts = format!(
            "<script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\n(() => {{\n\"use strict\";\n{CHART}\n{script}\n}})();\n</script>\n"
        );
    }
    format!(
        include_str!("../../assets/page.html"),
        allowed = allowed,
        title = escape(title),
        style = STYLE,
        above = above,
        body = body,
        made = made.footer(),
        scripts = scripts,
    )
}

impl Made {
    fn footer(&self) -> String {
        let (command, date) = (escape(&self.command), escape(&self.date));
        format!("Made by reveille {VERSION} on {date}: <code>{command}</code>")
    }
}
