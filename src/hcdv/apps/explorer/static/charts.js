// Drawings: bars, histograms, lines, the tree of coalitions, two runs against each other.
import { count, countShade, el, inkOn, link, plural, shade, signed } from "./dom.js";

export function histogram(spread, mean) {
  const { counts, low, high, edges } = spread, W = 640, H = 150, top = Math.max(...counts, 1), w = W / counts.length;
  const unit = Math.abs(mean) || 1, left = Math.asinh(low / unit), right = Math.asinh(high / unit);
  const at = (v) => ((Math.asinh(v / unit) - left) / (right - left || 1)) * W;
  const bars = counts.map((n, i) => {
    const from = edges[i], to = edges[i + 1];
    const h = n ? Math.max(1, (n / top) * (H - 26)) : 0;
    return el("rect", { x: i * w + 0.5, y: H - 20 - h, width: w - 1, height: h, fill: shade((from + to) / 2, mean) },
      el("title", {}, `${plural(n, "row")} from ${signed(from)} to ${signed(to)}`));
  });
  const ticks = [0, mean, -10 * unit, 10 * unit].filter((v) => at(v) > 60 && at(v) < W - 60)
    .filter((v, i, all) => all.slice(0, i).every((other) => Math.abs(at(v) - at(other)) > 60));
  const marks = [[low, "start"], [high, "end"], ...ticks.map((v) => [v, "middle"])].map(([v, anchor]) =>
    el("text", { x: at(v), y: H - 4, "text-anchor": anchor, class: "tick" }, v === 0 ? "0" : signed(v, 2)));
  const zero = low < 0 && high > 0 && el("line", { x1: at(0), x2: at(0), y1: 4, y2: H - 18, class: "axis" });
  return el("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", role: "img", "aria-label": "How the values are spread" },
    bars, el("line", { x1: 0, x2: W, y1: H - 19.5, y2: H - 19.5, class: "axis" }), zero || [], marks);
}

// Bars around zero, one a line: [{name, value, note}].
export function bars(lines, { mean = null } = {}) {
  const most = Math.max(...lines.map((l) => Math.abs(l.value ?? 0)), 1e-300);
  const low = Math.min(0, ...lines.map((l) => l.value ?? 0)) / most, high = Math.max(0, ...lines.map((l) => l.value ?? 0)) / most;
  const span = high - low || 1;
  return el("div", { class: "bars" }, lines.map((line) => {
    const t = (line.value ?? 0) / most;
    const bar = el("span", { class: "bar", css: {
      left: `${(100 * (Math.min(0, t) - low)) / span}%`, width: `${Math.max(0.4, (100 * Math.abs(t)) / span)}%`,
      background: shade(line.value ?? 0, mean ?? most / 3) } });
    return el("div", { class: "barline" }, el("span", { class: "name" }, line.name),
      el("span", { class: "track" }, bar), el("span", { class: "number" }, signed(line.value)),
      line.note ? el("span", { class: "note" }, line.note) : null);
  }));
}

// A line over updates: points [{x, y, title}].
const told = (y) => (Number.isInteger(y) ? count(y) : signed(y, 4));
export function lines(points, { label }) {
  const W = 640, H = 130, L = 8, R = 8, T = 14, B = 20;
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  let [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  if (y0 === y1) [y0, y1] = [y0 - Math.abs(y0) * 0.1 - 1e-12, y1 + Math.abs(y1) * 0.1 + 1e-12];
  const X = (x) => L + ((x - x0) / (x1 - x0 || 1)) * (W - L - R), Y = (y) => T + (1 - (y - y0) / (y1 - y0)) * (H - T - B);
  const path = points.map((p, i) => `${i ? "L" : "M"}${X(p.x).toFixed(1)} ${Y(p.y).toFixed(1)}`).join("");
  const few = points.length <= 80;
  return el("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", role: "img", "aria-label": label },
    el("line", { x1: 0, x2: W, y1: H - B, y2: H - B, class: "axis" }),
    el("path", { d: path, class: "line" }),
    points.map((p) => el("circle", { cx: X(p.x), cy: Y(p.y), r: few ? 3.5 : 2, class: "dot" }, el("title", {}, p.title))),
    el("text", { x: L, y: H - 5, class: "tick" }, `update ${x0}`),
    el("text", { x: W - R, y: H - 5, class: "tick", "text-anchor": "end" }, `${x1}`),
    el("text", { x: L, y: 10, class: "tick" }, `${label}, from ${told(Math.min(...ys))} to ${told(Math.max(...ys))}`));
}

// The tree below a node: one band a level, widths by rows, colours by worth of a row.
export function icicle(said, { width }) {
  const root = said.node, H = 46, all = [root, ...said.below], by = new Map(all.map((n) => [n.id, { ...n, kids: [] }]));
  for (const node of all) if (node.id !== root.id) by.get(node.parent)?.kids.push(by.get(node.id));
  const drawn = [];
  const place = (node, x, w, depth) => {
    drawn.push({ node, x, w, depth });
    const total = node.kids.reduce((sum, kid) => sum + kid.size, 0) || 1;
    let at = x;
    for (const kid of node.kids) {
      const own = (w * kid.size) / total;
      if (own >= 1) place(kid, at, own, depth + 1);
      at += own;
    }
  };
  place(by.get(root.id), 0, width, 0);
  const deep = Math.max(...drawn.map((d) => d.depth)) + 1;
  const cells = drawn.map(({ node, x, w, depth }) => {
    const colour = shade(node.value_per_row, said.mean), name = node.name || `#${node.id}`;
    const letters = Math.floor((w - 10) / 6.6), ink = inkOn(colour);
    const cut = (text) => (letters < 3 ? "" : text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
    const about = `${name}: ${plural(node.size, "row")}, ${signed(node.value)}, ${signed(node.value_per_row)} a row; ${node.label_mix}`;
    return el("svg:a", { href: link("/coalitions", { node: node.id }), "aria-label": about, "data-node": node.id },
      el("title", {}, about),
      el("rect", { x: x + 0.5, y: depth * H + 0.5, width: Math.max(0.5, w - 1), height: H - 1, fill: colour, rx: 2, class: depth ? "cell" : "cell here" }),
      el("text", { x: x + 6, y: depth * H + 18, fill: ink, class: "celltext" }, cut(`${name} · ${signed(node.value, 2)}`)),
      el("text", { x: x + 6, y: depth * H + 34, fill: ink, class: "celltext faint" }, cut(`${count(node.size)} · ${node.label_mix}`)));
  });
  return el("svg", { viewBox: `0 0 ${width} ${deep * H}`, width, height: deep * H, class: "icicle", role: "group", "aria-label": "Coalitions below this one" }, cells);
}

// Values in one run against values in the other, as counts on a grid.
export function against(spots) {
  const S = 420, { grid, cells, ends } = spots, w = S / grid, top = Math.log1p(Math.max(...cells.n, 1));
  const X = (v) => ((v - ends[0]) / (ends[1] - ends[0] || 1)) * S, Y = (v) => S - ((v - ends[2]) / (ends[3] - ends[2] || 1)) * S;
  const low = Math.max(ends[0], ends[2]), high = Math.min(ends[1], ends[3]);
  return el("svg", { viewBox: `-2 -2 ${S + 4} ${S + 24}`, class: "chart square", role: "img", "aria-label": "Values here against values there" },
    el("rect", { x: 0, y: 0, width: S, height: S, class: "frame" }),
    cells.n.map((n, k) => el("rect", { x: cells.i[k] * w, y: S - (cells.j[k] + 1) * w, width: w, height: w, fill: countShade(Math.log1p(n) / top) },
      el("title", {}, plural(n, "row")))),
    low < high ? el("line", { x1: X(low), y1: Y(low), x2: X(high), y2: Y(high), class: "same" }) : null,
    el("text", { x: 0, y: S + 16, class: "tick" }, signed(ends[0], 2)),
    el("text", { x: S / 2, y: S + 16, class: "tick", "text-anchor": "middle" }, "value in this run →"),
    el("text", { x: S, y: S + 16, class: "tick", "text-anchor": "end" }, signed(ends[1], 2)),
    el("text", { x: 6, y: 14, class: "tick" }, "↑ value in the other"));
}
