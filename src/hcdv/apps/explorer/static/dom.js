// Elements, numbers and requests. Text is only ever set as text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "rect", "path", "line", "circle", "text", "title", "polyline", "polygon"]);

export function el(tag, attributes = {}, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag)
    : tag === "svg:a" ? document.createElementNS(SVG, "a") : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return node;
}

export const count = (n) => Number(n).toLocaleString("en-US");
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

export function signed(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  const a = Math.abs(x);
  if (a < 1e-13) return "0"; // rounding of sums
  const text = a !== 0 && (a < 1e-3 || a >= 1e6) ? a.toExponential(digits - 1) : a.toPrecision(digits);
  return (x < 0 ? "−" : "+") + text;
}

export function plainNumber(x) {
  if (typeof x !== "number" || Number.isInteger(x)) return x === null || x === undefined ? "" : String(x);
  const a = Math.abs(x);
  return a !== 0 && (a < 1e-3 || a >= 1e7) ? x.toExponential(2) : String(Number(x.toPrecision(5)));
}

export const percent = (x) => (x === null || x === undefined ? "–"
  : x > 0 && x < 0.001 ? "<0.1%" : `${(100 * x).toFixed(x < 0.1 ? 1 : 0)}%`);

export async function ask(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") query.append(name, each);
    }
  }
  const text = query.toString();
  return answered(await fetch(`${path}.json${text ? `?${text}` : ""}`));
}

export async function post(path, body) {
  return answered(await fetch(`${path}.json`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  }));
}

async function answered(response) {
  const said = await response.json();
  if (!response.ok) throw new Error(said.error);
  return said;
}

// Addresses of this application, with what they ask for.
export function link(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "" && each !== false) query.append(name, each === true ? "1" : each);
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export function asked() {
  const query = new URLSearchParams(location.search);
  const found = {};
  for (const name of new Set(query.keys())) {
    const all = query.getAll(name);
    found[name] = name === "filter" ? all : all[all.length - 1];
  }
  return found;
}

export const SELECTION = ["q", "filter", "coalition", "suspects", "decision", "polygon"];
export const selection = (all) => Object.fromEntries(SELECTION.filter((k) => all[k] !== undefined).map((k) => [k, all[k]]));

const dark = matchMedia("(prefers-color-scheme: dark)");
export const onTheme = (f) => dark.addEventListener("change", f);
const mix = (a, b, t) => `rgb(${a.map((x, i) => Math.round(x + (b[i] - x) * t)).join(" ")})`;

// A value beside that of the average row: 0 → neutral, the average → half way, far more → full.
export function shade(value, mean) {
  const middle = dark.matches ? [58, 63, 70] : [229, 231, 235];
  const [up, down] = dark.matches ? [[88, 166, 255], [255, 145, 77]] : [[29, 95, 180], [194, 65, 12]];
  const unit = Math.abs(mean) || 1e-12;
  const t = value / (Math.abs(value) + unit);
  return mix(middle, t >= 0 ? up : down, Math.abs(t));
}
export function doubtShade(doubt) {
  const [low, high] = dark.matches ? [[58, 63, 70], [255, 145, 77]] : [[221, 224, 229], [194, 65, 12]];
  return mix(low, high, Math.sqrt(Math.max(0, Math.min(1, doubt))));
}
export function countShade(t) {
  const [low, high] = dark.matches ? [[40, 46, 54], [200, 210, 222]] : [[216, 221, 228], [38, 50, 66]];
  return mix(low, high, t);
}
const HUES = ["#3b76c4", "#d9822b", "#2f9e77", "#c0518f", "#8a63c9", "#a98a12", "#3aa5c2", "#c4554d", "#6b8e23", "#8d6e63"]; // as in reports
export const hue = (place) => (place < 0 ? "#8b8b8b" : HUES[place] ?? "#8b8b8b");
// Whether dark or light text can be read on a colour.
export function inkOn(colour) {
  const [r, g, b] = colour.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111" : "#fff";
}
export const swatch = (value, mean) => el("span", { class: "swatch", css: { background: shade(value, mean) } });
export const nodeName = (node) => node.name || `#${node.id}`;
