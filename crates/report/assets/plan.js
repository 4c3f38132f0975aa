// The charts of a plan: what the group used over time under a quota, what was in the bank, and
// how latency is distributed under each setting.

const data = JSON.parse(document.getElementById("data").textContent);

const styles = data.settings.map(({ today }, i) => (today ? BASE : styleOf(data.settings.slice(0, i).filter((s) => !s.today).length)));
const inside = (ticks, low, high) => ticks.filter((t) => t >= low - 1e-9 && t <= high + 1e-9);
const area = (text, part) => key(text, "", svg("rect", { class: part, x: 4, y: 1, width: 24, height: 14 }));
const cpus = (v) => `${v.toFixed(2)} CPUs`;
const seconds = (ns) => `${(ns / 1e9).toFixed(2)} s`;
// Room for the ticks of both charts of a setting.
const CHARS = 5;

function timeAxis(strip, name) {
  const high = strip.from + strip.step * strip.used.length;
  const ticks = inside(roundTicks(strip.from, high, 8), strip.from, high);
  return { name, low: strip.from, high, ticks: ticks.map((t) => [t, `${Number((t / 1e9).toFixed(3))}`]) };
}

function said(picture, strip, i) {
  const parts = [`at ${seconds(strip.from + i * strip.step)}: ${cpus(strip.used[i])} used`];
  if (strip.throttled[i] > 0) parts.push(`throttled ${tenths(100 * strip.throttled[i])} of the time`);
  if (strip.least.length) parts.push(`${FORMATS.time(strip.least[i])} to ${FORMATS.time(strip.most[i])} to draw`);
  return parts.join(", ");
}

// Steps along the tops of bins, and back along the bottoms.
function outline(plot, strip, tops, bottoms) {
  const at = (i) => plot.x(strip.from + i * strip.step).toFixed(1);
  let there = "";
  let back = "";
  tops.forEach((top, i) => {
    there += `${i ? "L" : "M"}${at(i)},${plot.y(top).toFixed(1)}H${at(i + 1)}`;
    const bottom = plot.y(bottoms ? bottoms[i] : 0).toFixed(1);
    back = `L${at(i + 1)},${bottom}H${at(i)}` + back;
  });
  return `${there}${back}z`;
}

function shades(plot, strip) {
  const group = svg("g", { class: "shade" });
  strip.throttled.forEach((share, i) => {
    if (share < 0.005) return;
    const left = plot.x(strip.from + i * strip.step);
    const width = plot.x(strip.from + (i + 1) * strip.step) - left;
    // Short ones have to be seen as well.
    const opacity = (0.12 + 0.4 * share).toFixed(2);
    group.append(svg("rect", { x: left.toFixed(1), y: plot.box.top, width: (width + 0.3).toFixed(1), height: plot.box.bottom - plot.box.top, "fill-opacity": opacity }));
  });
  return group;
}

function usageChart(picture, strip, part, top) {
  const ticks = roundTicks(0, top, 4);
  const quota = picture.quota_cpus;
  const throttled = strip.throttled.some((share) => share >= 0.005);
  return chart({
    title: `${picture.name}, ${part}`,
    label: `CPUs used over time, ${picture.name}: ${picture.setting}, ${part}`,
    height: 190,
    columns: true,
    chars: CHARS,
    keys: [
      area("used", "busy"),
      ...(quota === null ? [] : [key(`quota ${cpus(quota)}`, "", svg("path", { class: "limit", d: "M0,8H32" }))]),
      ...(throttled ? [key("throttled", "", svg("rect", { class: "shade", x: 4, y: 1, width: 24, height: 14, "fill-opacity": 0.5 }))] : []),
    ],
    x: timeAxis(strip, strip.least.length ? "" : "s"),
    y: { name: "CPUs used", low: 0, high: ticks[ticks.length - 1], ticks: ticks.map((t) => [t, short(t)]) },
    draw(plot) {
      plot.add(shades(plot, strip), svg("path", { class: "busy", d: outline(plot, strip, strip.used) }));
      if (quota !== null) plot.add(svg("path", { class: "limit", d: `M${plot.box.left},${plot.y(quota)}H${plot.box.right}` }));
      strip.used.forEach((used, i) => plot.item(plot.x(strip.from + (i + 0.5) * strip.step), plot.y(used), said(picture, strip, i)));
    },
  });
}

function bankChart(picture, strip, part) {
  const full = (picture.quota_ns + picture.burst_ns) / 1e6;
  const quota = picture.quota_ns / 1e6;
  const ticks = roundTicks(0, full, 3);
  const inMs = (of) => of.map((ns) => ns / 1e6);
  const figure = chart({
    title: "",
    label: `CPU time in the bank over time, ${picture.name}, ${part}`,
    height: 130,
    columns: true,
    chars: CHARS,
    keys: [
      area("in the bank, least to most", "band"),
      ...(picture.burst_ns > 0 ? [key(`quota ${short(quota)} ms; above it, what the burst lets it keep`, "", svg("path", { class: "limit", d: "M0,8H32" }))] : []),
    ],
    x: timeAxis(strip, "s"),
    y: { name: "ms to draw", low: 0, high: Math.max(full, ticks[ticks.length - 1]), ticks: ticks.map((t) => [t, short(t)]) },
    draw(plot) {
      plot.add(shades(plot, strip), svg("path", { class: "band", d: outline(plot, strip, inMs(strip.most), inMs(strip.least)) }));
      if (picture.burst_ns > 0) plot.add(svg("path", { class: "limit", d: `M${plot.box.left},${plot.y(quota)}H${plot.box.right}` }));
      strip.most.forEach((most, i) => plot.item(plot.x(strip.from + (i + 0.5) * strip.step), plot.y(most / 1e6), said(picture, strip, i)));
    },
  });
  figure.classList.add("slim");
  return figure;
}

// The same axis for all settings, so that they can be compared.
function overTime(pictures) {
  const tallest = (of) => Math.max(...pictures.filter(of).flatMap((p) => [...of(p).used, p.quota_cpus ?? 0]), 0.01);
  const rows = [];
  for (const picture of pictures) {
    const strips = [["all of the recording", (p) => p.whole], ["the worst part", (p) => p.close]];
    const panels = strips.filter(([, of]) => of(picture)).map(([part, of]) => {
      const strip = of(picture);
      const bank = strip.least.length ? [bankChart(picture, strip, part)] : [];
      return tag("div", {}, usageChart(picture, strip, part, tallest(of)), ...bank);
    });
    rows.push(tag("div", { class: "over" }, ...panels));
  }
  return rows;
}

// Shares so near to 1 are what a quantile is about: the axis is that of -log10(1 - share).
const MOST = 0.9999;
const tail = (share) => -Math.log10(1 - Math.min(share, MOST));
const SHARES = [0, 0.5, 0.9, 0.99, 0.999, MOST];
const shareText = (share) => `${Number((100 * share).toFixed(2))}`;

function latencyChart() {
  const all = data.settings.flatMap(({ cdf }) => cdf.map(([ns]) => ns)).concat(data.goals.map(({ ns }) => ns));
  const low = Math.min(...all) / 1.1;
  const high = Math.max(...all, low * 10) * 1.1;
  return chart({
    title: "Latency of a piece of work, over all phases",
    label: `Share of the work done within a given time, for ${data.settings.map((s) => s.name).join(", ")}`,
    height: 340,
    keys: [
      ...data.settings.map((s, i) => seriesKey(s.name, styles[i])),
      ...(data.goals.length ? [key("goal", "", mark("diamond", 16, 8, "open"))] : []),
    ],
    x: { name: "latency (log scale)", log: true, low, high, ticks: logTicks(low, high).map((t) => [t, FORMATS.time(t)]) },
    y: { name: "work done within that time (%, towards 100)", low: 0, high: tail(MOST), ticks: SHARES.map((s) => [tail(s), shareText(s)]) },
    draw(plot) {
      data.settings.forEach(({ name, cdf, p50, p99, never }, i) => {
        const d = cdf.map(([ns, share], n) => `${n ? "L" : "M"}${plot.x(Math.max(ns, low)).toFixed(1)},${plot.y(tail(share)).toFixed(1)}`).join("");
        const group = svg("g", { class: styles[i].color }, svg("path", { class: "line", d, "stroke-dasharray": styles[i].dash }));
        for (const [quantile, share, ns] of [["p50", 0.5, p50], ["p99", 0.99, p99]]) {
          if (ns === undefined) continue;
          const text = ns === null
            ? `${name}: ${tenths(100 * never)} of the work is never done`
            : `${name}: ${quantile} of latency ${FORMATS.time(ns)}`;
          const [x, y] = [ns === null ? plot.box.right : plot.x(ns), plot.y(tail(share))];
          if (ns !== null) group.append(titled(svg("g", {}, mark(styles[i].shape, x, y, "")), text));
          plot.item(x, y, text);
        }
        plot.add(group);
      });
      for (const { text, share, ns } of data.goals) {
        const [x, y] = [plot.x(ns), plot.y(tail(share))];
        plot.add(
          svg("path", { class: "limit", d: `M${x},${plot.box.bottom}V${y}` }),
          titled(svg("g", {}, mark("diamond", x, y, "open")), `goal ${text}`),
        );
        plot.item(x, y, `goal ${text}: curves that pass left of it or above meet it in the median`);
      }
    },
  });
}

const time = document.getElementById("over-time");
if (time) time.append(...overTime(data.pictures));
const latency = document.getElementById("latency");
if (latency) latency.append(latencyChart());
for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
