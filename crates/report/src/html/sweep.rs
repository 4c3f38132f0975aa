//! The page of a sweep: for each edit, workload and metric a heat map of gain over load and
//! machine. It needs no script, since there is nothing to choose.

use std::collections::HashMap;

use reveille_sweep::{Effect, Finished};

use super::markup::{CLOSE_TABLE, escape, facts, open_table, table_row};
use super::page;
use crate::made::{Made, push};
use crate::number;
use crate::sweep::{HEADS, LEGEND, cells, too_few};

/// The change, as a factor, whose colour is full.
const FULL: f64 = 1.5;

/// Changes of a field of a heat map: sum of logarithms, how many, and the least.
#[derive(Clone, Copy)]
struct Field {
    logs: f64,
    cells: usize,
    worst: f64,
}

/// Edit, workload, metric, machine, base and load.
type Place<'a> = [&'a str; 6];

/// Renders a page with a heat map of each edit. It fetches nothing.
pub fn sweep_html(sweep: &Finished, effects: &[Effect], made: &Made) -> String {
    let design = &sweep.design;
    let name = escape(&design.name);
    let mut body = format!("<article>\n<h1>{name}</h1>\n");
    let machines: Vec<&str> = design.machines.iter().map(|m| m.name.as_str()).collect();
    let constants: Vec<&str> = design.constants.iter().map(|c| c.key.as_str()).collect();
    let about = [
        ("Machines", machines.join(", ")),
        ("Baselines", design.bases.join(", ")),
        ("Constants that vary", constants.join(", ")),
        ("Seeds", design.seeds.len().to_string()),
        ("Repeats of a cell", design.repeats.to_string()),
        ("Cells that failed", sweep.failures().len().to_string()),
    ];
    facts(&mut body, about.into_iter().filter(|(_, value)| !value.is_empty()));
    overview(&mut body, effects);
    let fields = fields(sweep);
    for edit in design.edits.iter().skip(1) {
        push!(body, "<section>\n<h2>{}</h2>\n", escape(&edit.text));
        for workload in &design.workloads {
            for metric in &workload.metrics {
                let place = [edit.text.as_str(), workload.name.as_str(), metric.name.as_str()];
                heat_map(&mut body, sweep, place, &workload.loads, &fields);
            }
        }
        body += "</section>\n";
    }
    body += "<p class=\"quiet\">A field is the geometric mean over seeds and constants of the change \
             against the baseline; + is better. 0.0% is a change within the noise of the repeats, \
             – a field without figures. Point at a field to read how many cells are in it, and \
             the worst. Loads are in the workload's unit, or in percent of the machine's \
             CPUs.</p>\n</article>\n";
    let title = format!("Reveille: {}", design.name);
    page(&title, &body, None, made)
}

fn overview(out: &mut String, effects: &[Effect]) {
    if effects.is_empty() {
        *out += "<p>Only the baseline has run: there is no change to show.</p>\n";
        return;
    }
    open_table(out, "All conditions", &HEADS);
    for effect in effects {
        let [edits, rest @ ..] = cells(effect).map(|cell| escape(&cell));
        table_row(out, &edits, rest, None);
    }
    *out += CLOSE_TABLE;
    let too_few = too_few(effects).map(|text| format!("; {text}")).unwrap_or_default();
    push!(out, "<p class=\"quiet\">{LEGEND}{too_few}</p>\n");
}

fn fields(sweep: &Finished) -> HashMap<Place<'_>, Field> {
    let names = ["edits", "workload", "metric", "machine", "base", "load_given"];
    let columns = names.map(|name| sweep.table.texts(name));
    let mut fields: HashMap<Place<'_>, Field> = HashMap::new();
    for (row, change) in sweep.table.numbers("change_pct").iter().enumerate() {
        let Some(change) = *change else { continue };
        let place = columns.map(|column| column[row].as_deref().unwrap_or_default());
        let field =
            fields.entry(place).or_insert(Field { logs: 0.0, cells: 0, worst: f64::INFINITY });
        field.logs += (1.0 + change / 100.0).ln();
        field.cells += 1;
        field.worst = field.worst.min(change);
    }
    fields
}

fn heat_map<'a>(
    out: &mut String,
    sweep: &'a Finished,
    [edits, workload, metric]: [&'a str; 3],
    loads: &'a [String],
    fields: &HashMap<Place<'a>, Field>,
) {
    let mut heads =
        vec![if sweep.design.bases.len() > 1 { "machine, baseline" } else { "machine" }];
    heads.extend(loads.iter().map(String::as_str));
    *out += "<div class=\"heat\">\n";
    open_table(out, &format!("{workload}: {metric}"), &heads);
    for machine in &sweep.design.machines {
        for base in &sweep.design.bases {
            let name = match sweep.design.bases.len() {
                1 => machine.name.clone(),
                _ => format!("{}, {base}", machine.name),
            };
            push!(out, "<tr><th scope=\"row\">{}</th>", escape(&name));
            for load in loads {
                let place = [edits, workload, metric, &machine.name, base, load];
                field(out, fields.get(&place).copied());
            }
            *out += "</tr>\n";
        }
    }
    *out += CLOSE_TABLE;
    *out += "</div>\n";
}

/// The sign carries the meaning; the colour only repeats it.
fn field(out: &mut String, field: Option<Field>) {
    let Some(Field { logs, cells, worst }) = field else {
        *out += "<td class=\"none\">–</td>";
        return;
    };
    let mean = logs / cells as f64;
    let class = if mean < 0.0 { "down" } else { "up" };
    let heat = 60.0 * (mean.abs() / FULL.ln()).min(1.0);
    let (change, worst) = (number::change(100.0 * (mean.exp() - 1.0)), number::change(worst));
    push!(
        out,
        "<td class=\"{class}\" style=\"--heat:{heat:.0}%\" title=\"{cells} cells, worst \
             {worst}\">{change}</td>"
    );
}
