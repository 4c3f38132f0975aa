// One chart: axes with units, marks, and a readout that pointer and arrow keys
// walk through. It is drawn at the width it has, so text never shrinks with the
// window, and drawn again when that width changes.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const tag = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

// Three significant digits without trailing zeros.
const short = (value) => String(Number(value.toPrecision(3)));

function suffixed(value, steps, smallest) {
  for (const [size, suffix] of steps) {
    if (Math.abs(value) >= size * 0.9995) return short(value / size) + suffix;
  }
  return short(value) + smallest;
}
const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
const FORMATS = {
  time: (v) => (v === 0 ? "0" : suffixed(v, TIMES, "ns")),
  rate: (v) => (v === 0 ? "0" : suffixed(v, SI, "") + "/s"),
  percent: (v) => short(v) + "%",
  count: (v) => suffixed(v, SI, ""),
};
const tenths = (pct) => pct.toFixed(1) + "%";
function signed(pct) {
  if (!Number.isFinite(pct)) return "n/a";
  const rounded = Math.round(pct * 10) / 10;
  return (rounded > 0 ? "+" : "") + tenths(rounded === 0 ? 0 : rounded);
}

// Round ticks between low and high, both ends included.
function roundTicks(low, high, count) {
  const raw = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((s) => s * power >= raw * 0.999) * power;
  const ticks = [];
  for (let i = Math.floor(low / step + 1e-9); ; i++) {
    ticks.push(i * step);
    if (i * step >= high - step * 1e-9) return ticks;
  }
}

// Ticks of a logarithmic axis: decades, with 2 and 5 where there are few.
function logTicks(low, high) {
  const wide = Math.log10(high / low) > 3;
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    for (const m of wide ? [1] : [1, 2, 5]) {
      const tick = m * 10 ** e;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

function scale(axis, from, to) {
  const turn = axis.log ? Math.log : (v) => v;
  const low = turn(axis.low);
  const span = turn(axis.high) - low || 1;
  return (v) => from + ((turn(v) - low) / span) * (to - from);
}

// The shape tells a series apart where colour cannot.
const SHAPES = {
  circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
  square: (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  up: (r) => `M0,${-1.2 * r}L${1.2 * r},${r}H${-1.2 * r}z`,
  down: (r) => `M0,${1.2 * r}L${1.2 * r},${-r}H${-1.2 * r}z`,
  bar: (r) => `M${-r / 2},${-1.4 * r}h${r}v${2.8 * r}h${-r}z`,
  flat: (r) => `M${-1.4 * r},${-r / 2}h${2.8 * r}v${r}h${-2.8 * r}z`,
  diamond: (r) => `M0,${-1.6 * r}L${1.3 * r},0L0,${1.6 * r}L${-1.3 * r},0z`,
};
const mark = (shape, x, y, classes) =>
  svg("path", { d: SHAPES[shape](3.2), transform: `translate(${x},${y})`, class: `mark ${classes}` });

// A legend entry: `swatch` nodes are drawn around (16, 8).
const key = (text, classes, ...swatch) =>
  tag("li", {}, svg("svg", { viewBox: "0 0 32 16", class: classes, "aria-hidden": "true" }, ...swatch), text);

// Classes and shapes of the variants, repeated with dashes after the fifth.
const STYLES = ["square", "up", "down", "bar", "flat"].map((shape, i) => ({ shape, color: `v${i + 1}` }));
function styleOf(index) {
  const { shape, color } = STYLES[index % STYLES.length];
  return { shape, color, dash: index < STYLES.length ? "none" : "6 3" };
}
const BASE = { shape: "circle", color: "base", dash: "none" };
const seriesKey = (text, { shape, color, dash }) =>
  key(text, color, svg("path", { class: "line", d: "M0,8H32", "stroke-dasharray": dash }), mark(shape, 16, 8, ""));

function titled(node, text) {
  node.prepend(svg("title", {}, text));
  return node;
}

const redraws = new WeakMap();
const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) redraws.get(target)?.();
});

// spec: {title, label, keys, height, x, y, columns, draw(plot)}; an axis is
// {name, low, high, log, ticks: [[value, text]]}; `chars` is the room for the ticks of y, so
// that charts above each other have one x. `draw` places things with
// plot.x and plot.y, adds nodes with plot.add and announces what the readout
// walks through with plot.item, in the order of the arrow keys. With `columns`,
// the nearest item is searched along x only and shown by a line.
function chart(spec) {
  const readout = tag("p", { class: "readout", "aria-live": "polite" });
  const canvas = svg("svg", { height: spec.height, role: "img", tabindex: "0", "aria-label": spec.label });
  const figure = tag("figure", {}, tag("figcaption", {}, spec.title), tag("ul", { class: "keys" }, ...spec.keys), canvas, readout);
  let items = [];
  let current = -1;
  let cursor;
  let width = 0;

  function redraw() {
    const now = Math.floor(figure.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    items = [];
    canvas.setAttribute("viewBox", `0 0 ${width} ${spec.height}`);
    const label = spec.chars ?? Math.max(...spec.y.ticks.map(([, text]) => text.length));
    const box = { left: label * 7 + 10, right: width - 14, top: 24, bottom: spec.height - 38 };
    const x = scale(spec.x, box.left, box.right);
    const y = scale(spec.y, box.bottom, box.top);
    canvas.replaceChildren(...axes(spec, box, x, y));
    cursor = spec.columns
      ? svg("path", { class: "ring", d: `M0,${box.top - 4}V${box.bottom}`, visibility: "hidden" })
      : svg("circle", { class: "ring", r: 9, visibility: "hidden" });
    spec.draw({ x, y, box, add: (...nodes) => canvas.append(...nodes), item: (px, py, text) => items.push({ px, py, text }) });
    canvas.append(cursor);
    if (current >= 0) show(Math.min(current, items.length - 1));
  }

  function show(index) {
    if (!items[index]) return;
    current = index;
    const { px, py, text } = items[index];
    cursor.setAttribute("transform", `translate(${px},${spec.columns ? 0 : py})`);
    cursor.setAttribute("visibility", "visible");
    readout.textContent = text;
  }

  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    const last = items.length - 1;
    let next;
    if (event.key in steps) next = Math.max(0, Math.min(last, current + steps[event.key]));
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else return;
    event.preventDefault();
    show(next);
  });
  const point = (event) => {
    const rect = canvas.getBoundingClientRect();
    const far = ({ px, py }) => Math.hypot(px - event.clientX + rect.left, spec.columns ? 0 : py - event.clientY + rect.top);
    let best = 0;
    items.forEach((item, i) => { if (far(item) < far(items[best])) best = i; });
    show(best);
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  redraws.set(figure, redraw);
  watcher.observe(figure);
  return figure;
}

// Grid, tick labels and axis names. Labels that would touch are left out.
function axes(spec, box, x, y) {
  const nodes = [];
  for (const [value, text] of spec.y.ticks) {
    const at = y(value);
    nodes.push(
      svg("path", { class: value === 0 ? "zero" : "grid", d: `M${box.left},${at}H${box.right}` }),
      svg("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" }, text),
    );
  }
  let end = -Infinity;
  for (const [value, text] of spec.x.ticks) {
    const at = x(value);
    const half = text.length * 3.5;
    nodes.push(svg("path", { class: "axis", d: `M${at},${box.bottom}v4` }));
    if (at - half < end + 8) continue;
    end = at + half;
    nodes.push(svg("text", { x: at, y: box.bottom + 17, "text-anchor": "middle" }, text));
  }
  nodes.push(
    svg("path", { class: "axis", d: `M${box.left},${box.bottom}H${box.right}` }),
    svg("text", { x: 0, y: 12 }, spec.y.name),
    svg("text", { x: box.right, y: box.bottom + 33, "text-anchor": "end" }, spec.x.name),
  );
  return nodes;
}
