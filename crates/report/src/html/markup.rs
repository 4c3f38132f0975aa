//! The parts of the page that need no script: facts, score, claims and tables.

use reveille_study::{Claim, Comparison, Row, Unpredicted, Verdict};

use crate::explain;
use crate::group::{Group, groups, unique};
use crate::made::push;
use crate::number;
use crate::printed::{self, capitalised, claim_predicted, claimed, host_facts, score};

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(ch),
        }
    }
    out
}

/// A line per comparison with its score, for a page that has several.
pub(crate) fn overview(cs: &[Comparison]) -> String {
    let mut out = String::from("<nav aria-label=\"Studies\"><ul class=\"overview\">\n");
    for (number, c) in cs.iter().enumerate() {
        let partial = if c.partial { " <strong class=\"miss\">partial</strong>" } else { "" };
        let name = escape(&c.study);
        let score = escape(&score(c));
        push!(
            out,
            "<li><a href=\"#study{number}\">{name}</a> <span class=\"quiet\">{score}</span>{partial}</li>\n"
        );
    }
    out + "</ul></nav>\n"
}

/// One comparison; `number` is its place on the page and in the data block.
pub(crate) fn comparison(number: usize, c: &Comparison) -> String {
    let mut out = format!("<article id=\"study{number}\">\n<h1>{}</h1>\n", escape(&c.study));
    partial(&mut out, c.partial, "rows");
    about(&mut out, c);
    push!(out, "<p class=\"score\">{}</p>\n", escape(&capitalised(&score(c))));
    claims(&mut out, &c.claims);
    unpredicted(&mut out, &c.unpredicted);
    let several = c.rows.iter().any(|r| r.modes.is_some());
    let groups = groups(c);
    for (i, case) in unique(c.rows.iter().map(|r| r.case.as_str())).into_iter().enumerate() {
        let id = format!("study{number}-case{i}");
        push!(
            out,
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n\
             <p class=\"hint quiet\" hidden>{HINT}</p>\n\
             <div class=\"plots\" data-comparison=\"{number}\" data-case=\"{i}\"></div>\n",
            escape(case)
        );
        for group in groups.iter().filter(|g| g.first().case == case) {
            rows(&mut out, c, group);
        }
        push!(out, "<div class=\"look\" data-comparison=\"{number}\" data-case=\"{i}\"></div>\n");
        out += "</section>\n";
    }
    out += "<p class=\"quiet\">";
    if c.rows.iter().any(|row| !row.variant.is_empty()) {
        out += CHANGES;
    }
    out += LEGEND;
    let too_few = printed::too_few_of(c);
    let corrected = c.rows.iter().any(Row::is_corrected).then_some(printed::CORRECTED);
    let likely = printed::likely_legend(&groups);
    let misled = likely.as_ref().filter(|_| printed::misleads(&c.rows)).map(|_| printed::MISLED);
    let more = [
        printed::skill_legend(&c.skill),
        several.then_some(printed::STATES),
        too_few.as_deref(),
        likely.as_deref(),
        misled,
        corrected,
        c.rows.iter().any(|row| row.identical).then_some(printed::IDENTICAL),
    ];
    for text in more.into_iter().flatten() {
        push!(out, "<p class=\"quiet\">{}</p>\n", capitalised(text));
    }
    out + "</article>\n"
}

/// Shown by the script, with the plots.
const HINT: &str = "Point at a plot, or focus it and use the arrow keys, to read values below it.";

const CHANGES: &str = "Positive changes are better, whatever the metric. * p&lt;0.05 (Welch's \
    t-test). ";

const LEGEND: &str = "± standard deviation over repeats; without it, there were fewer \
    than two. <b>hit</b> and <b>MISS</b>: the predicted change agrees or disagrees with the \
    published one; <b>info</b>: published, but a spread, too noisy at the source to count, or of another \
    machine; –: nothing published.</p>\n";

pub(crate) fn partial(out: &mut String, is_partial: bool, missing: &str) {
    if is_partial {
        push!(
            out,
            "<p class=\"partial\" role=\"alert\"><strong>Partial result.</strong> The run was \
             interrupted and {missing} are missing.</p>\n"
        );
    }
}

pub(crate) fn facts<'a>(out: &mut String, facts: impl IntoIterator<Item = (&'a str, String)>) {
    *out += "<dl class=\"facts\">\n";
    for (name, value) in facts {
        push!(out, "<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(&value));
    }
    *out += "</dl>\n";
}

fn about(out: &mut String, c: &Comparison) {
    let variants = unique(c.rows.iter().map(|r| r.variant.as_str())).join(", ");
    let bases = unique(c.rows.iter().map(|r| r.base.as_str()));
    let bases = if bases.is_empty() { c.base.clone() } else { bases.join(", ") };
    let mut about = vec![
        match variants.as_str() {
            "" => ("Baseline", bases),
            _ => ("Compared", format!("{variants} against {bases}")),
        },
        ("Machine", c.machine.clone()),
        ("Topology", c.topology.clone()),
    ];
    match &c.host {
        Some(host) => about.extend(host_facts(host)),
        None => about.push(("Cost model", c.cost_model.clone())),
    }
    about.extend(c.mechanism.as_ref().map(|m| ("Mechanism", m.clone())));
    about.extend(
        c.machines.iter().skip(1).map(|m| {
            ("Also on", format!("{}: {}; cost model {}", m.name, m.topology, m.cost_model))
        }),
    );
    about.push(("Seed", c.seed.to_string()));
    about.push(("Repeats", numbers(c.rows.iter().map(|r| r.repeats))));
    facts(out, about);
    for warning in c.host.iter().flat_map(|h| &h.warnings).chain(&c.not_judged) {
        push!(out, "<p class=\"partial\">{}</p>\n", escape(warning));
    }
}

/// Numbers of repeats: one, or the least and the largest.
pub(crate) fn numbers(all: impl Iterator<Item = usize> + Clone) -> String {
    match (all.clone().min(), all.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    }
}

fn claims(out: &mut String, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    open_table(
        out,
        "Claims about whole curves",
        &["claim", "published", "predicted", "verdict", "source"],
    );
    for claim in claims {
        push!(
            out,
            "<tr><th scope=\"row\" class=\"words\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>\n",
            escape(&claim.claim),
            claimed(claim),
            claim_predicted(claim),
            badge(Some(claim.verdict)),
            escape(&claim.source)
        );
    }
    *out += CLOSE_TABLE;
}

fn unpredicted(out: &mut String, unpredicted: &[Unpredicted]) {
    if unpredicted.is_empty() {
        return;
    }
    open_table(out, "Published, but not predicted", &["what", "figures", "why not", "source"]);
    for u in unpredicted {
        push!(
            out,
            "<tr><th scope=\"row\" class=\"words\">{}</th><td class=\"words\">{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>\n",
            escape(&u.what),
            escape(&u.figures),
            escape(&u.reason),
            escape(&u.source)
        );
    }
    *out += CLOSE_TABLE;
}

fn rows(out: &mut String, c: &Comparison, group: &Group<'_>) {
    let first = group.first();
    let caption = format!("{}: {}", first.metric, printed::heading(c, first));
    let as_printed = group.rows.iter().any(|row| printed::printed(row).is_some());
    let alone = first.variant.is_empty();
    let mut heads = vec!["load", "baseline"];
    heads.extend(["candidate", "change", "p"].iter().filter(|_| !alone));
    heads.extend(as_printed.then_some("printed"));
    let likely = group.shows_likely();
    heads.extend(if likely { &["likely"][..] } else { &["published", "verdict"] });
    open_table(out, &caption, &heads);
    for row in &group.rows {
        let [baseline, candidate] = printed::sides(row).map(|states| states.join("<br>"));
        let judged = if likely {
            cell(printed::likely(row))
        } else {
            let published = row.published_change_pct.map_or("–".into(), number::change);
            format!("<td>{published}</td><td>{}</td>", badge(row.verdict))
        };
        let compared = format!(
            "<td>{candidate}</td><td>{}</td><td>{}</td>",
            change(row),
            row.p_value.map_or("–".into(), p_value)
        );
        push!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{baseline}</td>{}{}{}</tr>\n",
            row.load,
            if alone { "" } else { &compared },
            if as_printed { cell(printed::printed(row)) } else { String::new() },
            judged
        );
    }
    *out += CLOSE_TABLE;
    for source in group.sources() {
        push!(out, "<p class=\"quiet source\">Published: {}</p>\n", escape(source));
    }
    if !group.explained_above {
        explanation(out, group);
    }
}

fn cell(text: Option<String>) -> String {
    format!("<td>{}</td>", text.map_or("–".into(), |text| escape(&text)))
}

/// The sign carries the meaning; the colour only repeats it.
fn change(row: &Row) -> String {
    let class = match number::has_star(row.significant, row.change_pct) {
        true if row.change_pct > 0.0 => "better",
        true if row.change_pct < 0.0 => "worse",
        _ => "",
    };
    let line = |(change, mark): (String, Option<char>)| match mark {
        Some(mark) => format!("{change}{mark}"),
        None => format!("{change}<span class=\"gap\">*</span>"),
    };
    let lines: Vec<String> = printed::marked_changes(row).into_iter().map(line).collect();
    format!("<span class=\"{class}\">{}</span>", lines.join("<br>"))
}

fn p_value(p: f64) -> String {
    match p {
        p if !p.is_finite() => number::UNDEFINED.into(),
        p if p < 0.001 => "&lt;0.001".into(),
        p => format!("{p:.3}"),
    }
}

pub(crate) fn badge(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Hit) => "<span class=\"badge hit\">hit</span>",
        Some(Verdict::Miss) => "<span class=\"badge miss\">MISS</span>",
        Some(Verdict::Informative) => "<span class=\"badge info\">info</span>",
        None => "–",
    }
}

fn explanation(out: &mut String, group: &Group<'_>) {
    let first = group.first();
    let alone = first.variant.is_empty();
    let (of, sides) = match alone {
        true => (escape(&first.base), ""),
        false => (escape(&first.variant), ", baseline → candidate"),
    };
    push!(out, "<details>\n<summary>Why: the numbers behind {of}{sides}</summary>\n");
    let rows = group.loads();
    let loads: Vec<String> = rows.iter().map(|r| r.load.to_string()).collect();
    let mut heads = vec!["at load"];
    heads.extend(loads.iter().map(String::as_str));
    open_table(out, "", &heads);
    for line in explain::lines(group.rows.iter().copied()) {
        let class = if line.part { "part" } else { "whole" };
        push!(out, "<tr><th scope=\"row\" class=\"{class}\">{}</th>", line.label);
        for row in &rows {
            let (before, after) = (&row.explain.baseline, &row.explain.candidate);
            let [before, after] = [before, after].map(line.value);
            match alone {
                true => push!(out, "<td>{before}</td>"),
                false => push!(out, "<td>{before} → {after}</td>"),
            }
        }
        *out += "</tr>\n";
    }
    *out += CLOSE_TABLE;
    *out += "</details>\n";
}

/// A row of a table: its head and its cells, and `words` in a last one. All of them are markup.
pub(crate) fn table_row(
    out: &mut String,
    head: &str,
    cells: impl IntoIterator<Item: AsRef<str>>,
    words: Option<&str>,
) {
    push!(out, "<tr><th scope=\"row\">{head}</th>");
    for cell in cells {
        push!(out, "<td>{}</td>", cell.as_ref());
    }
    if let Some(words) = words {
        push!(out, "<td class=\"words\">{words}</td>");
    }
    *out += "</tr>\n";
}

/// Opens a table inside its own scrolling box, which the keyboard can reach.
pub(crate) fn open_table(out: &mut String, caption: &str, heads: &[&str]) {
    let caption = escape(caption);
    let label = if caption.is_empty() { "Explaining numbers" } else { &caption };
    // Not a caption element: that would scroll sideways with its table.
    if !caption.is_empty() {
        push!(out, "<h3>{caption}</h3>\n");
    }
    push!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table>\n"
    );
    *out += "<thead><tr>";
    for head in heads {
        let class = if WORDS.contains(head) { " class=\"words\"" } else { "" };
        push!(out, "<th scope=\"col\"{class}>{}</th>", escape(head));
    }
    *out += "</tr></thead>\n<tbody>\n";
}

/// Columns of words, which read from the left; all others hold figures.
const WORDS: [&str; 6] = ["claim", "source", "what", "figures", "why not", "remarks"];

pub(crate) const CLOSE_TABLE: &str = "</tbody>\n</table>\n</div>\n";
