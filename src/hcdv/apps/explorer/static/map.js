// The map of the vectors: cells where rows are many, dots where they are few, and a lasso.
import { ask, countShade, doubtShade, el, fill, hue, link, onTheme, percent, plainNumber, plural, selection, shade, signed } from "./dom.js";
import { worthPanel } from "./worth.js";

const MOST_CORNERS = 60;

export async function showMap(asked, main) {
  const chosen = selection(asked);
  delete chosen.polygon;
  const said = await ask("/map", chosen);
  const canvas = el("canvas", { tabindex: 0, "aria-label": "Map of the rows. Draw around some with the pointer; arrow keys move it, plus and minus zoom." });
  const tip = el("div", { class: "tip", hidden: true }), box = el("div", { class: "mapbox" }, canvas, tip);
  const legend = el("div", { class: "legend" }), panel = el("aside", { class: "panel", id: "chosen" });
  const state = { said, chosen, view: padded(said.extent), colour: asked.colour ?? "value", mode: "lasso", spots: null, lasso: corners(asked.polygon), drawing: null, turn: 0 };
  const hint = () => fill(panel, el("h2", {}, "Draw around some rows"), el("p", { class: "faint" }, "The lasso asks what those rows are worth together, as one coalition: by themselves, and to all the others. It is computed anew for every selection."));

  const draw = () => paint(canvas, state);
  const load = async () => {
    const turn = ++state.turn, [x0, y0, x1, y1] = state.view;
    const spots = await ask("/spots", { ...chosen, colour: state.colour, x0, y0, x1, y1 });
    if (turn !== state.turn) return; // the view moved on meanwhile
    state.spots = spots;
    canvas.dataset.rows = spots.n_rows;
    fill(legend, key(state));
    draw();
  };
  let soon = 0;
  const later = () => { clearTimeout(soon); soon = setTimeout(load, 120); draw(); };
  const select = async (polygon) => {
    state.lasso = polygon;
    draw();
    const here = new URL(location.href);
    if (polygon) here.searchParams.set("polygon", written(polygon)); else here.searchParams.delete("polygon");
    history.replaceState(null, "", here);
    if (!polygon) return hint();
    fill(panel, el("p", { class: "loading" }, "Weighing …"));
    return fill(panel, await worthPanel({ ...chosen, polygon: written(polygon) }), el("p", {}, el("button", { onclick: () => select(null) }, "Let go")));
  };
  const size = () => {
    const w = box.clientWidth || 700, h = Math.round(Math.min(innerHeight * 0.7, w * 0.78)), ratio = devicePixelRatio || 1;
    canvas.width = w * ratio; canvas.height = h * ratio; canvas.style.height = `${h}px`;
    draw();
  };
  pointers(canvas, state, { draw, later, select, tip, box });
  const button = (name, mode, title) => el("button", { "aria-pressed": String(state.mode === mode), title, "data-mode": mode, onclick: () => setMode(mode) }, name);
  const setMode = (mode) => {
    state.mode = mode;
    canvas.classList.toggle("move", mode === "move");
    for (const each of main.querySelectorAll("[data-mode]")) each.setAttribute("aria-pressed", String(each.dataset.mode === mode));
  };
  const zoom = (by) => { state.view = zoomed(state.view, by); later(); };
  fill(main, el("h1", {}, "Map"),
    el("p", { class: "faint" }, `${plural(said.n_rows, "row")} on the two directions in which their vectors vary most (${percent(said.share)} of it is seen); near means alike to the model.`,
      Object.keys(chosen).length ? [" Only some are shown. ", el("a", { href: "/map" }, "Show all")] : ""),
    el("div", { class: "side" },
      el("div", {}, el("div", { class: "tools" }, button("Lasso", "lasso", "Draw around rows"), button("Move", "move", "Drag the map"),
        el("button", { onclick: () => zoom(0.6), "aria-label": "Zoom in" }, "+"), el("button", { onclick: () => zoom(1 / 0.6), "aria-label": "Zoom out" }, "−"),
        el("button", { onclick: () => { state.view = padded(said.extent); later(); } }, "Whole map"), el("span", { class: "grow" }),
        el("label", {}, "Colour ", el("select", { id: "colour", onchange: (event) => { state.colour = event.target.value; load(); } },
          [["value", "value of a row"], ["doubt", "doubt of the label"], said.has_classes ? ["label", "label"] : null, ["density", "how many"]].filter(Boolean)
            .map(([v, t]) => el("option", { value: v, selected: v === state.colour }, t))))), box, legend), panel));
  canvas.addEventListener("keydown", (event) => {
    const [x0, y0, x1, y1] = state.view, dx = (x1 - x0) / 8, dy = (y1 - y0) / 8;
    const step = { ArrowLeft: [-dx, 0], ArrowRight: [dx, 0], ArrowUp: [0, dy], ArrowDown: [0, -dy] }[event.key];
    if (step) state.view = [x0 + step[0], y0 + step[1], x1 + step[0], y1 + step[1]];
    else if (event.key === "+" || event.key === "=") state.view = zoomed(state.view, 0.7);
    else if (event.key === "-") state.view = zoomed(state.view, 1 / 0.7);
    else if (event.key === "Escape") { select(null); return; } else return;
    event.preventDefault();
    later();
  });
  new ResizeObserver(size).observe(box);
  onTheme(draw);
  size();
  await load();
  if (state.lasso) await select(state.lasso); else hint();
}

function padded([x0, y0, x1, y1]) {
  const dx = (x1 - x0 || 1) * 0.03, dy = (y1 - y0 || 1) * 0.03;
  return [x0 - dx, y0 - dy, x1 + dx, y1 + dy];
}
function zoomed([x0, y0, x1, y1], by, cx = (x0 + x1) / 2, cy = (y0 + y1) / 2) {
  return [cx + (x0 - cx) * by, cy + (y0 - cy) * by, cx + (x1 - cx) * by, cy + (y1 - cy) * by];
}
const written = (polygon) => polygon.map(([x, y]) => `${x.toFixed(5)},${y.toFixed(5)}`).join(";");
const corners = (text) => (text ? text.split(";").map((pair) => pair.split(",").map(Number)) : null);
function thinned(path) {
  const step = Math.max(1, Math.ceil(path.length / MOST_CORNERS));
  return path.filter((_, i) => i % step === 0);
}

function paint(canvas, state) {
  const ink = canvas.getContext("2d"), { width: W, height: H } = canvas, ratio = devicePixelRatio || 1, [x0, y0, x1, y1] = state.view;
  const X = (x) => ((x - x0) / (x1 - x0)) * W, Y = (y) => H - ((y - y0) / (y1 - y0)) * H;
  ink.clearRect(0, 0, W, H);
  const { spots } = state;
  if (spots?.cells) {
    const { i, j, n, c } = spots.cells, [bx0, by0, bx1, by1] = spots.box, w = (bx1 - bx0) / spots.grid, h = (by1 - by0) / spots.grid;
    const top = Math.log1p(Math.max(...n.slice(0, 50000), 1));
    const pw = Math.max(1, (w / (x1 - x0)) * W) + 0.6, ph = Math.max(1, (h / (y1 - y0)) * H) + 0.6;
    for (let k = 0; k < n.length; k += 1) {
      const t = Math.log1p(n[k]) / top;
      ink.globalAlpha = state.colour === "density" ? 1 : 0.35 + 0.65 * t;
      ink.fillStyle = state.colour === "density" ? countShade(t) : colour(state, c[k], c[k], c[k]);
      ink.fillRect(X(bx0 + (i[k] - 0.5) * w), Y(by0 + (j[k] + 0.5) * h), pw, ph);
    }
    ink.globalAlpha = 1;
  } else if (spots?.points) {
    const { x, y, value, doubt, label } = spots.points, r = (x.length > 1200 ? 2.4 : x.length > 300 ? 3.2 : 4.4) * ratio;
    for (let k = 0; k < x.length; k += 1) {
      ink.fillStyle = state.colour === "density" ? countShade(0.8) : colour(state, value[k], doubt[k], label[k]);
      ink.beginPath();
      ink.arc(X(x[k]), Y(y[k]), r, 0, 7);
      ink.fill();
    }
  }
  const path = state.drawing ?? state.lasso;
  if (!path?.length) return;
  ink.beginPath();
  path.forEach(([x, y], k) => (k ? ink.lineTo(X(x), Y(y)) : ink.moveTo(X(x), Y(y))));
  if (!state.drawing) ink.closePath();
  const style = getComputedStyle(canvas);
  ink.strokeStyle = style.color; ink.lineWidth = 1.6 * ratio; ink.setLineDash([6 * ratio, 4 * ratio]);
  ink.stroke(); ink.setLineDash([]);
  ink.globalAlpha = 0.08; ink.fillStyle = style.color; ink.fill(); ink.globalAlpha = 1;
}

function colour(state, value, doubt, label) {
  if (state.colour === "value") return shade(value, state.said.mean);
  if (state.colour === "doubt") return doubtShade(doubt);
  return hue(state.said.labels.findIndex((each) => String(each) === String(label)));
}

function key(state) {
  const { said, spots } = state, mean = said.mean, dot = (c, text) => el("span", {}, el("span", { class: "swatch", css: { background: c } }), text);
  const what = spots.cells ? `${plural(spots.n_rows, "row")} here, in cells; zoom in to see each` : `${plural(spots.n_rows, "row")} here, one dot each`;
  const colours = {
    value: () => [dot(shade(-4 * Math.abs(mean), mean), "below zero"), dot(shade(0, mean), "nothing"), dot(shade(mean, mean), `the average row, ${signed(mean)}`), dot(shade(6 * Math.abs(mean), mean), "far more")],
    doubt: () => [0, 0.1, 0.5, 1].map((d) => dot(doubtShade(d), percent(d))),
    label: () => said.labels.slice(0, 10).map((each, k) => dot(hue(k), plainNumber(each))), density: () => [],
  };
  return [...colours[state.colour](), el("span", {}, what)];
}

function pointers(canvas, state, { draw, later, select, tip, box }) {
  const at = (event) => {
    const area = canvas.getBoundingClientRect(), [x0, y0, x1, y1] = state.view;
    return [x0 + ((event.clientX - area.left) / area.width) * (x1 - x0), y1 - ((event.clientY - area.top) / area.height) * (y1 - y0)];
  };
  let from = null, moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = at(event); moved = false;
    if (state.mode === "lasso" && !event.shiftKey) state.drawing = [from];
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (!from) { hover(event, here, canvas, state, tip, box); return; }
    moved = true;
    tip.hidden = true;
    if (state.drawing) { state.drawing.push(here); draw(); return; }
    const [x0, y0, x1, y1] = state.view, dx = from[0] - here[0], dy = from[1] - here[1];
    state.view = [x0 + dx, y0 + dy, x1 + dx, y1 + dy];
    later();
  });
  const up = () => {
    const path = state.drawing;
    state.drawing = null; from = null;
    if (path && path.length > 3) select(thinned(path));
    else if (!moved && state.near) location.href = link("/row", { id: state.near.id });
    else draw();
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", () => { state.drawing = null; from = null; draw(); });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    state.view = zoomed(state.view, event.deltaY > 0 ? 1.25 : 0.8, ...at(event));
    later();
  }, { passive: false });
}

function hover(event, here, canvas, state, tip, box) {
  const points = state.spots?.points, [x0, y0, x1, y1] = state.view;
  state.near = null;
  tip.hidden = true;
  if (!points) return;
  const wide = canvas.clientWidth / (x1 - x0), high = canvas.clientHeight / (y1 - y0);
  let best = 9 ** 2, at = -1;
  for (let k = 0; k < points.x.length; k += 1) {
    const far = ((points.x[k] - here[0]) * wide) ** 2 + ((points.y[k] - here[1]) * high) ** 2;
    if (far < best) { best = far; at = k; }
  }
  if (at < 0) return;
  state.near = { id: points.id[at] };
  const area = box.getBoundingClientRect();
  fill(tip, el("strong", {}, points.id[at]), ` ${plainNumber(points.label[at])}`, el("br"), `${signed(points.value[at])}, wrong ${percent(points.doubt[at])}`);
  tip.hidden = false;
  tip.style.left = `${Math.min(event.clientX - area.left + 14, area.width - 200)}px`;
  tip.style.top = `${event.clientY - area.top + 14}px`;
}
