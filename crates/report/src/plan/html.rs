//! The plan as one file for a browser: the answer, the table of the terminal, what happens
//! over time, latency, and a map of p99. Tables need no script; charts are drawn by one.

use reveille_plan::{Map, Picture, Plan, Shown, Subject};

use super::data;
use super::rows::{Cell, THREADS, Tone, blocks, by_thread, columns};
use super::words::{
    ABOUT_NEIGHBOURS, about_latency, answer, by_hand, cost, cpus, exact, footnote, goals, ms,
    observed, of_draws, recorded, recording, setting, thousands, today,
};
use crate::html::markup::{CLOSE_TABLE, escape, facts, open_table, table_row};
use crate::html::{Plots, page};
use crate::made::{Made, push};

const PLAN: &str = include_str!("../../assets/plan.js");

/// Renders a page of `plan`, and of what its settings do over time as far as `pictures` has
/// it. It fetches nothing.
pub fn plan_html(plan: &Plan, pictures: &[Picture], made: &Made) -> String {
    let title = answer(plan);
    let mut body = format!("<article>\n<h1>{}</h1>\n", escape(&title));
    if let Some(cost) = cost(plan) {
        push!(body, "<p class=\"score\">{}</p>\n", escape(&cost));
    }
    push!(body, "<p>Today: {}.</p>\n", escape(&today(plan)));
    if let Some(text) = about_latency(plan) {
        push!(body, "<p class=\"quiet\">Latency is {}</p>\n", escape(&text));
    }
    if let Some(text) = observed(plan) {
        push!(body, "<p>Recorded latency: {}</p>\n", escape(&text));
    }
    for warning in &plan.warnings {
        push!(body, "<p class=\"partial\">{}</p>\n", escape(warning));
    }
    table(&mut body, plan);
    by_threads(&mut body, plan);
    over_time(&mut body, pictures);
    if !columns(plan).is_empty() {
        section(&mut body, "by-latency", "Latency");
        if pictures.is_empty() {
            body += HINT;
        }
        body += "<div id=\"latency\"></div>\n</section>\n";
    }
    if let Some(map) = &plan.map {
        heat_map(&mut body, plan, map);
    }
    pairs(&mut body, plan);
    apply(&mut body, plan);
    provenance(&mut body, plan);
    body += "</article>\n";
    let data = data::block(plan, pictures);
    let plots = Plots { overview: String::new(), data, script: PLAN };
    page(&title, &body, Some(plots), made)
}

/// Shown by the script, with the plots.
const HINT: &str = "<p class=\"hint quiet\" hidden>Point at a plot, or focus it and use the \
    arrow keys, to read values below it.</p>\n";

/// A line for each number of threads, as in the terminal.
fn by_threads(out: &mut String, plan: &Plan) {
    if plan.threads.is_empty() {
        return;
    }
    open_table(out, "By the number of threads that may run at once", &THREADS);
    for of in &plan.threads {
        let problem = |problem: &String| {
            let text = escape(problem);
            format!("<td>{}</td><td class=\"words\" colspan=\"4\">{text}</td>", of.threads)
        };
        let cells =
            || by_thread(of).iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let row: String = of.problem.as_ref().map_or_else(cells, problem);
        push!(out, "<tr>{row}</tr>\n");
    }
    *out += CLOSE_TABLE;
}

fn section(out: &mut String, id: &str, name: &str) {
    push!(out, "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{name}</h2>\n");
}

/// Opens a table of this class in its own scrolling box.
fn scroll(out: &mut String, class: &str, label: &str) {
    push!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n\
             <table class=\"{class}\">\n"
    );
}

/// The rows of the terminal's table.
fn table(out: &mut String, plan: &Plan) {
    let columns = columns(plan);
    if columns.is_empty() {
        return;
    }
    section(out, "settings", "Settings");
    scroll(out, "plan", "Settings and what they do");
    *out += "<thead><tr><th scope=\"col\"><span class=\"quiet\">setting</span></th>";
    let chosen = |name: &str| if name == "recommended" { " class=\"chosen\"" } else { "" };
    for column in &columns {
        let name = column.name;
        push!(out, "<th scope=\"col\"{}>{name}</th>", chosen(name));
    }
    *out += "</tr></thead>\n";
    for block in blocks(plan) {
        *out += "<tbody>\n";
        if let Some(title) = &block.title {
            push!(
                out,
                "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n",
                columns.len() + 1,
                escape(title)
            );
        }
        for row in &block.rows {
            let class = if row.part { " class=\"part\"" } else { "" };
            let label = escape(&row.label);
            push!(out, "<tr><th scope=\"row\"{class}>{label}</th>");
            for (column, cell) in columns.iter().zip(&row.cells) {
                push!(out, "<td{}>{}</td>", chosen(column.name), value(cell));
            }
            *out += "</tr>\n";
        }
        *out += "</tbody>\n";
    }
    *out += "</table>\n</div>\n";
    push!(out, "<p class=\"quiet\">{}</p>\n", escape(&footnote(plan)));
    if !plan.neighbours.is_empty() {
        push!(out, "<p class=\"quiet\">{}</p>\n", escape(ABOUT_NEIGHBOURS));
    }
    *out += "</section>\n";
}

fn value(cell: &Cell) -> String {
    let text = escape(&cell.value);
    let mut out = match cell.tone {
        Tone::Plain => text,
        Tone::Good => format!("<span class=\"better\">{text}</span>"),
        Tone::Bad => format!("<span class=\"worse\">{text}</span>"),
    };
    if let Some(range) = &cell.range {
        push!(out, " <span class=\"quiet\">{}</span>", escape(range));
    }
    if let Some(interval) = &cell.interval {
        push!(out, "<br><span class=\"quiet\">{}</span>", escape(interval));
    }
    out
}

fn over_time(out: &mut String, pictures: &[Picture]) {
    if pictures.is_empty() {
        return;
    }
    section(out, "time", "Over time");
    *out += "<p class=\"quiet\">Each setting at the phase of its period whose p99 is the median \
             of all phases. Above the quota line, more is used than the quota refills: unused \
             runtime, shown below, pays for it, until none is left and the group is throttled.</p>\n";
    *out += HINT;
    *out += "<div id=\"over-time\"></div>\n</section>\n";
}

/// Nearest row and column of a setting, and whether it lies there exactly.
fn place(map: &Map, shown: &Shown) -> Option<((usize, usize), bool)> {
    let quota = shown.limits.quota_ns? as f64;
    let (period, burst) = (shown.limits.period_ns as f64, shown.limits.burst_ns as f64 / quota);
    let nearest = |distances: Vec<f64>| {
        let all = distances.into_iter().enumerate();
        all.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let row = nearest(map.periods_ns.iter().map(|&p| (p as f64 / period).ln().abs()).collect())?;
    let column = nearest(map.burst_shares.iter().map(|share| (share - burst).abs()).collect())?;
    // Limits are whole microseconds.
    Some(((row.0, column.0), row.1 < 1e-6 && column.1 < 1e-3))
}

fn heat_map(out: &mut String, plan: &Plan, map: &Map) {
    let known = || map.p99_ns.iter().flatten().flatten().copied();
    let finite = || known().filter(|ns| ns.is_finite() && *ns > 0.0);
    if known().next().is_none() {
        return;
    }
    let (low, high) = finite().fold((f64::INFINITY, 0.0f64), |(l, h), ns| (l.min(ns), h.max(ns)));
    let heat = |ns: f64| match (high / low).ln() {
        _ if !ns.is_finite() => 100.0,
        width if width > 0.0 => 100.0 * (ns.max(low) / low).ln() / width,
        _ => 0.0,
    };
    let goal = plan.goals.iter().find(|goal| goal.subject == Subject::Latency(0.99));
    let here = plan.recommended.as_ref().and_then(|shown| place(map, shown));
    let was = plan.today.as_ref().and_then(|shown| place(map, shown));
    section(out, "map", "p99 over period and burst");
    push!(
        out,
        "<p class=\"quiet\">p99 in ms of settings that reserve {} CPUs, the median of three \
             phases; darker is longer.</p>\n",
        cpus(map.cpus)
    );
    scroll(out, "heat", "p99 in ms over period and burst");
    *out += "<thead><tr><th scope=\"col\">period \\ burst</th>";
    for share in &map.burst_shares {
        push!(out, "<th scope=\"col\">{:.0}%</th>", 100.0 * share);
    }
    *out += "</tr></thead>\n<tbody>\n";
    for (number, (period, row)) in map.periods_ns.iter().zip(&map.p99_ns).enumerate() {
        push!(out, "<tr><th scope=\"row\">{}</th>", exact(*period));
        for (column, cell) in row.iter().enumerate() {
            let at = |place: &Option<((usize, usize), bool)>| {
                place.is_some_and(|(place, _)| place == (number, column))
            };
            let Some(ns) = *cell else {
                *out += "<td class=\"none\" title=\"no kernel accepts it\">–</td>";
                continue;
            };
            let (class, name) = match (at(&here), at(&was)) {
                (true, true) => ("here", "<small>recommended, today</small>"),
                (true, false) => ("here", "<small>recommended</small>"),
                (false, true) => ("was", "<small>today</small>"),
                (false, false) => ("", ""),
            };
            let holds = goal.as_ref().is_some_and(|goal| goal.holds(ns));
            let tick = if holds { " ✓" } else { "" };
            push!(
                out,
                "<td class=\"{class}\" style=\"--heat:{:.0}%\">{}{tick}{name}</td>",
                heat(ns),
                ms(ns)
            );
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
    let mut notes = Vec::new();
    if let Some(goal) = &goal {
        notes.push(format!("✓ meets {} in the median.", goal.text));
    }
    if was.is_some() {
        let reserved = plan.today.as_ref().and_then(|today| today.reserved_cpus);
        notes.extend(reserved.map(|reserved| {
            format!(
                "Today's setting reserves {} CPUs; only its period and burst are shown.",
                cpus(reserved)
            )
        }));
    }
    if [here, was].iter().flatten().any(|(_, exactly)| !exactly) {
        notes.push("A setting between two fields is shown in the nearest.".into());
    }
    push!(out, "<p class=\"quiet\">{}</p>\n</section>\n", escape(&notes.join(" ")));
}

/// Every two groups under the recommended setting, or else today's.
fn pairs(out: &mut String, plan: &Plan) {
    let shown = plan.recommended.as_ref().or(plan.today.as_ref());
    let form = shown.and_then(|shown| shown.closed_form.as_ref());
    let Some(form) = form.filter(|form| !form.pairs.is_empty()) else { return };
    let under =
        if plan.recommended.is_some() { "the recommended setting" } else { "today's setting" };
    section(out, "pairs", "Groups by two");
    push!(
        out,
        "<p class=\"quiet\">Share of periods in which both groups ask for no more than their \
             quota, and in which both ask for more, under {under}: as it would be if they were \
             independent, and as recorded.</p>\n"
    );
    scroll(out, "", "Groups by two");
    *out += "<thead><tr>";
    for head in ["groups", "each within", "both within", "recorded", "both beyond", "recorded"] {
        push!(out, "<th scope=\"col\">{head}</th>");
    }
    *out += "</tr></thead>\n<tbody>\n";
    let share = |share: f64| format!("{:.2}%", 100.0 * share);
    for pair in &form.pairs {
        let groups = pair.groups.each_ref().map(|name| escape(name)).join(" and ");
        let within = pair.within.map(share).join(", ");
        let both =
            [pair.both_within, pair.both_within_seen, pair.both_beyond, pair.both_beyond_seen];
        table_row(out, &groups, [within].into_iter().chain(both.map(share)), None);
    }
    *out += "</tbody>\n</table>\n</div>\n</section>\n";
}

fn apply(out: &mut String, plan: &Plan) {
    let Some(shown) = plan.to_apply() else { return };
    section(out, "apply", "To apply it");
    push!(
        out,
        "<p>In the group's directory (cgroup v2), in an order that kernels accept whatever \
             was set before:</p>\n<pre tabindex=\"0\">{}</pre>\n\
             <p class=\"quiet\">Every write refills the group: write once. <code>reveille plan … \
             --apply cgroup:NAME</code> compares first and reads back; <code>--emit</code> gives \
             the lines for cgroup2, k8s, oci, koordinator and systemd.</p>\n</section>\n",
        escape(&by_hand(&shown.limits).replace("; ", "\n"))
    );
}

fn provenance(out: &mut String, plan: &Plan) {
    section(out, "made", "How it was made");
    let (of, model, counts) = (&plan.recording, &plan.model, &plan.counts);
    let mut list = vec![("Recording", format!("{}: {}", of.name, recorded(plan)))];
    list.extend(of.limits.as_ref().map(|limits| ("Limits while recorded", setting(limits))));
    if !plan.too_few.is_empty() {
        list.push(("Too few pieces of work for", plan.too_few.join(", ")));
    }
    let share = of_draws(model.confidence);
    list.push(("Goals", format!("{}, in {share} of the draws", goals(plan))));
    list.extend(plan.neighbours.iter().map(|given| {
        let limits = given.limits.as_ref().map_or("no quota".into(), setting);
        let of = &given.recording;
        ("Neighbour", format!("{}: {limits}; {}", of.name, recording(of)))
    }));
    let about = format!(
        "{} CPUs of {}, {} ticks/s, kernel {}, slice {}",
        model.cpus,
        model.machine,
        model.hz,
        model.base,
        exact(model.slice_ns)
    );
    list.push(("Model", about));
    list.extend(model.within.as_ref().map(|within| ("Within", setting(within))));
    let together = |sum| ("Quotas together", format!("at most {} CPUs", cpus(sum)));
    list.extend(model.quota_sum_cpus.map(together));
    let search = format!(
        "{} settings, {} looked at, {} left out between those; {} runs of the simulator, {:.0} s \
         of virtual time",
        thousands(counts.settings.into()),
        thousands(counts.simulated.into()),
        thousands(counts.pruned.into()),
        thousands(counts.runs),
        counts.simulated_ns as f64 / 1e9
    );
    list.push(("Search", search));
    list.push(("Draws", model.draws.to_string()));
    list.push(("Seed", model.seed.to_string()));
    facts(out, list);
    *out += "</section>\n";
}
