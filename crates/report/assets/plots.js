// Which charts a case gets: every metric against load, its change against the
// baseline beside what was published, and a look inside one load.

const data = JSON.parse(document.getElementById("data").textContent);

const publishedKey = () => key("published", "base", mark("diamond", 16, 8, "open"));

// Loads on a linear axis, or a logarithmic one when they span a wide range.
function loadAxis(curve) {
  const loads = [...new Set(curve.variants.flatMap((v) => v.points.map((p) => p.load)))].sort((a, b) => a - b);
  const first = loads[0];
  const last = loads[loads.length - 1];
  const log = first > 0 && last / first > 16;
  const margin = log ? (last / first) ** 0.05 : (last - first || last || 1) * 0.05;
  return {
    name: "load (workload's own unit)",
    log,
    low: log ? first / margin : first - margin,
    high: log ? last * margin : last + margin,
    ticks: loads.map((load) => [load, String(load)]),
  };
}

// The baseline of a metric: every variant carries the same one.
function basePoints(curve) {
  const byLoad = new Map();
  for (const { points } of curve.variants) {
    for (const p of points) if (!byLoad.has(p.load)) byLoad.set(p.load, { load: p.load, side: p.base });
  }
  return [...byLoad.values()].sort((a, b) => a.load - b.load);
}

function polyline(points, plot, value, dash) {
  const known = points.filter((p) => Number.isFinite(value(p)));
  const d = known.map((p, i) => `${i ? "L" : "M"}${plot.x(p.load)},${plot.y(value(p))}`).join("");
  return svg("path", { class: "line", d, "stroke-dasharray": dash });
}

// "throughput (operations/s)" is the title and the unit of its axis. A time is
// named by its ticks, which have units of their own.
function namesOf(metric, kind) {
  const [, name, unit] = /^(.*?)\s*\(([^()]*)\)$/.exec(metric) ?? [null, metric, metric];
  return [name, kind === "time" ? "time" : unit];
}

function valueChart(curve, base) {
  const [kind, factor] = curve.unit;
  const format = (v) => FORMATS[kind](v);
  const [title, unit] = namesOf(curve.metric, kind);
  const series = [
    { name: base, style: BASE, points: basePoints(curve) },
    // Without a variant the baseline stands alone.
    ...curve.variants.filter((v) => v.variant).map((v) => ({
      name: v.variant,
      style: v.style,
      points: v.points.map((p) => ({ ...p, side: p.candidate })),
    })),
  ];
  const mean = (p) => p.side[0] * factor;
  const spread = (p) => (p.side[1] ?? 0) * factor;
  const all = series.flatMap((s) => s.points).filter((p) => Number.isFinite(p.side[0]));
  const implied = all.map((p) => p.implied * factor).filter((v) => v > 0);
  const top = Math.max(...all.map((p) => mean(p) + spread(p)), ...implied, 0) || 1;
  const bottom = Math.min(...all.map(mean), ...implied);
  // Latency can rise by orders of magnitude where the machine fills up.
  const log = bottom > 0 && top / bottom > 50;
  const ticks = log ? logTicks(10 ** Math.floor(Math.log10(bottom)), 10 ** Math.ceil(Math.log10(top))) : roundTicks(0, top, 5);
  const low = ticks[0];
  return chart({
    title: `${title} against load`,
    label: `${curve.metric} against load, mean and standard deviation, for ${series.map((s) => s.name).join(", ")}`,
    height: 290,
    keys: [...series.map((s) => seriesKey(s.name, s.style)), ...(implied.length ? [publishedKey()] : [])],
    x: loadAxis(curve),
    y: { name: unit + (log ? " (log scale)" : ""), log, low, high: ticks[ticks.length - 1], ticks: ticks.map((t) => [t, format(t)]) },
    draw(plot) {
      series.forEach(({ name, style, points }, i) => {
        // Side by side, so that error bars of near-equal points stay apart.
        const shift = (i - (series.length - 1) / 2) * 3;
        const group = svg("g", { class: style.color, transform: `translate(${shift},0)` });
        group.append(polyline(points, plot, mean, style.dash));
        for (const p of points.filter((q) => Number.isFinite(q.side[0]))) {
          const [x, y] = [plot.x(p.load), plot.y(mean(p))];
          const high = plot.y(mean(p) + spread(p));
          const base = plot.y(Math.max(mean(p) - spread(p), low));
          let text = `${name} at load ${p.load}: ${format(mean(p))} ± ${tenths((100 * spread(p)) / (mean(p) || 1))}`;
          if (p.change !== undefined) text += `, change ${signed(p.change)}${p.significant ? "*" : ""}`;
          group.append(titled(svg("g", {},
            svg("path", { class: "whisker", d: `M${x},${base}V${high}M${x - 4},${base}h8M${x - 4},${high}h8` }),
            mark(style.shape, x, y, "")), text));
          plot.item(x + shift, y, text);
          if (p.implied > 0) {
            const at = plot.y(p.implied * factor);
            const published = `${name} at load ${p.load}: published change ${signed(p.published)} would give ${format(p.implied * factor)}`;
            group.append(titled(svg("g", {}, mark("diamond", x, at, "open")), published));
            plot.item(x + shift, at, published);
          }
        }
        plot.add(group);
      });
    },
  });
}

const VERDICTS = { hit: "hit", miss: "MISS", informative: "too noisy at the source to count" };

function changeChart(curve, base) {
  const finite = (p) => Number.isFinite(p.change);
  const points = curve.variants.flatMap((v) => v.points);
  const values = points.flatMap((p) => [p.change, p.published]).filter((v) => Number.isFinite(v));
  const ticks = roundTicks(Math.min(0, ...values) * 1.05, Math.max(1, ...values) * 1.05, 6);
  const hollow = points.some((p) => finite(p) && !p.significant);
  return chart({
    title: `Change against ${base}, + is better`,
    label: `Change of ${curve.metric} against ${base} in percent by load, predicted and published`,
    height: 290,
    keys: [
      ...curve.variants.map((v) => seriesKey(v.variant, v.style)),
      ...(hollow ? [key("hollow: not significant", "base", mark("square", 16, 8, "open"))] : []),
      ...(points.some((p) => Number.isFinite(p.published)) ? [publishedKey()] : []),
    ],
    x: loadAxis(curve),
    y: { name: "change (%)", low: ticks[0], high: ticks[ticks.length - 1], ticks: ticks.map((t) => [t, (t > 0 ? "+" : "") + short(t)]) },
    draw(plot) {
      curve.variants.forEach(({ variant, points, style }, i) => {
        const shift = (i - (curve.variants.length - 1) / 2) * 3;
        const group = svg("g", { class: style.color, transform: `translate(${shift},0)` });
        group.append(polyline(points, plot, (p) => p.change, style.dash));
        for (const p of points) {
          const x = plot.x(p.load);
          const published = Number.isFinite(p.published);
          let text = `${variant} at load ${p.load}: ${signed(p.change)}, ${p.significant ? "significant" : "not significant"}`;
          if (published) text += `; published ${signed(p.published)}: ${VERDICTS[p.verdict] ?? "not judged"}`;
          const put = (shape, value, classes) => {
            group.append(titled(svg("g", {}, mark(shape, x, plot.y(value), classes)), text));
            plot.item(x + shift, plot.y(value), text);
          };
          if (published && finite(p)) {
            group.append(svg("path", { class: "link", d: `M${x},${plot.y(p.change)}V${plot.y(p.published)}` }));
          }
          if (published) put("diamond", p.published, "open");
          if (finite(p)) put(style.shape, p.change, p.significant ? "" : "open");
        }
        plot.add(group);
      });
    },
  });
}

const QUANTILES = { p50: 0.5, p90: 0.9, p99: 0.99, "p99.9": 0.999, max: 1 };

function latencyChart(sides) {
  const known = sides.filter(({ side }) => side.cdf.length);
  const ends = known.flatMap(({ side }) => [side.cdf[0][0], side.cdf[side.cdf.length - 1][0]]);
  const low = Math.min(...ends);
  const high = Math.max(...ends, low * 10);
  return chart({
    title: "Wakeup latency, cumulative",
    label: `Share of wake-ups with at most a given latency, for ${known.map((s) => s.name).join(" and ")}`,
    height: 270,
    keys: known.map((s) => seriesKey(s.name, s.style)),
    x: { name: "wakeup latency (log scale)", log: true, low, high, ticks: logTicks(low, high).map((t) => [t, FORMATS.time(t)]) },
    y: { name: "wake-ups at or below (%)", low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1].map((t) => [t, `${100 * t}`]) },
    draw(plot) {
      for (const { name, side, style } of known) {
        let d = `M${plot.x(side.cdf[0][0])},${plot.y(0)}`;
        for (const [ns, share] of side.cdf) d += `L${plot.x(ns).toFixed(1)},${plot.y(share / 10000).toFixed(1)}`;
        const group = svg("g", { class: style.color }, svg("path", { class: "line", d }));
        for (const [quantile, ns] of side.marks) {
          const [x, y] = [plot.x(Math.max(ns, low)), plot.y(QUANTILES[quantile])];
          const text = `${name}: ${quantile} of wakeup latency ${FORMATS.time(ns)}`;
          group.append(titled(svg("g", {}, mark(style.shape, x, y, "")), text));
          plot.item(x, y, text);
        }
        plot.add(group);
      }
    },
  });
}

const PARTS = [["busy", "working"], ["cost", "scheduling"], ["idle", "idle"]];

function cpuChart({ name, side }) {
  const count = side.busy.length;
  const mean = (part) => tenths(part.reduce((sum, v) => sum + v, 0) / count / 10);
  const ticks = roundTicks(0, count - 1, 8).filter((cpu) => cpu < count && Number.isInteger(cpu));
  return chart({
    title: `Use of every CPU under ${name}: ${mean(side.busy)} working, ${mean(side.cost)} scheduling`,
    label: `Share of time that each of ${count} CPUs spent working, on scheduling and idle under ${name}`,
    height: 170,
    columns: true,
    keys: PARTS.map(([part, text]) => key(text, "", svg("rect", { class: part, x: 4, y: 1, width: 24, height: 14 }))),
    x: { name: "CPU number", low: 0, high: count, ticks: ticks.map((cpu) => [cpu + 0.5, String(cpu)]) },
    y: { name: "share of time (%)", low: 0, high: 1, ticks: [0, 0.5, 1].map((t) => [t, `${100 * t}`]) },
    draw(plot) {
      const gap = plot.x(1) - plot.x(0) >= 4 ? 1 : 0;
      for (let cpu = 0; cpu < count; cpu++) {
        const left = Math.round(plot.x(cpu));
        const width = Math.max(1, Math.round(plot.x(cpu + 1)) - left - gap);
        const [busy, cost] = [side.busy[cpu] / 1000, side.cost[cpu] / 1000];
        const idle = Math.max(0, 1 - busy - cost);
        const text = `CPU ${cpu}: ${tenths(100 * busy)} working, ${tenths(100 * cost)} scheduling, ${tenths(100 * idle)} idle`;
        const bar = (part, from, to) =>
          svg("rect", { class: part, x: left, y: plot.y(to), width, height: plot.y(from) - plot.y(to) });
        plot.add(titled(svg("g", {}, bar("idle", 0, 1), bar("busy", 0, busy), bar("cost", busy, Math.min(1, busy + cost))), text));
        plot.item(plot.x(cpu + 0.5), plot.y(busy), text);
      }
    },
  });
}

function choice(name, options, selected) {
  const select = tag("select", {}, ...options.map((option) => tag("option", {}, String(option))));
  select.selectedIndex = selected;
  return { select, label: tag("label", {}, name, select) };
}

// One load of one variant, seen from inside: latencies and CPUs.
function inside(runs, variants, base) {
  const loads = [...new Set(runs.map((run) => run.load))];
  const load = choice("Load", loads, Math.floor(loads.length / 2));
  const variant = choice("Variant", [...new Set(runs.map((run) => run.variant))], 0);
  const which = choice("CPUs under", ["both", "baseline", "variant"], 0);
  const charts = tag("div");
  function update() {
    const run = runs.find((r) => String(r.load) === load.select.value && r.variant === variant.select.value);
    if (!run) {
      charts.replaceChildren(tag("p", { class: "quiet" }, "This variant was not run at this load."));
      return;
    }
    const style = styleOf(variants.indexOf(run.variant));
    const sides = [
      { name: base, side: data.sides[run.base], style: BASE },
      ...(run.variant ? [{ name: run.variant, side: data.sides[run.candidate], style }] : []),
    ];
    const shown = sides.filter(({ side }, i) => side.busy.length && [i, -1].includes(which.select.selectedIndex - 1));
    const latency = sides.some(({ side }) => side.cdf.length) ? [latencyChart(sides)] : [];
    charts.replaceChildren(...latency, ...shown.map(cpuChart));
  }
  const choices = [load, ...(variants.length > 1 ? [variant] : []), ...(variants.some(Boolean) ? [which] : [])];
  for (const { select } of choices) select.addEventListener("change", update);
  update();
  return tag("div", { class: "inside" },
    tag("h3", {}, "Inside one load"),
    tag("div", { class: "choices" }, ...choices.map(({ label }) => label)),
    charts);
}

function caseOf(place) {
  const { cases } = data.comparisons[place.dataset.comparison];
  const { base, curves, runs } = cases[place.dataset.case];
  const variants = [...new Set(curves.flatMap((curve) => curve.variants.map((v) => v.variant)))];
  // A variant looks the same in every chart of its case.
  for (const v of curves.flatMap((curve) => curve.variants)) v.style = styleOf(variants.indexOf(v.variant));
  return { base, curves, runs, variants };
}

for (const place of document.querySelectorAll(".plots")) {
  const { base, curves } = caseOf(place);
  for (const curve of curves) {
    const change = curve.variants.some((v) => v.variant) ? [changeChart(curve, base)] : [];
    place.append(tag("div", { class: "pair" }, valueChart(curve, base), ...change));
  }
}
for (const place of document.querySelectorAll(".look")) {
  const { base, runs, variants } = caseOf(place);
  if (runs.length) place.append(inside(runs, variants, base));
}
for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
