"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (name) node.className = name;
    return node;
  };

  /* ---- numbers and colours ---- */
  const sign = (text) => text.replace("-", "−");
  const worth = (value) => {
    const share = value / facts.unit.size;
    if (share === 0) return "0";
    if (!facts.unit.is_average) return sign((share > 0 ? "+" : "") + share.toExponential(2));
    const size = Math.abs(share);
    const digits = size >= 9.95 ? 0 : size >= 2 ? 1 : size >= 0.095 ? 2 : 3;
    return sign((share > 0 ? "+" : "") + share.toFixed(digits)) + "×";
  };
  const plainly = (value, digits = 4) =>
    value === null ? "–" : Math.abs(value) < 1e-12 ? "0" : sign((value > 0 ? "+" : "") + value.toPrecision(digits));
  const count = (n) => n.toLocaleString("en-US");

  const colour = (name) => {
    const text = getComputedStyle(root).getPropertyValue(name).trim();
    return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  };
  const ramp = () => {
    const [low, zero, high] = ["--low", "--zero", "--high"].map(colour);
    return (share) => {
      const t = Math.min(1, Math.abs(share));
      const end = share < 0 ? low : high;
      return zero.map((from, k) => Math.round(from + t * (end[k] - from)));
    };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((each) => {
      const c = each / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const inkOn = (rgb) => (light(rgb) > 0.179 ? "#111111" : "#ffffff");

  /* ---- the tree ---- */
  const tree = facts.tree;
  const icicle = $("icicle");
  const place = new Map(tree.id.map((id, at) => [id, at]));
  const children = tree.id.map(() => []);
  tree.parent.forEach((parent, at) => {
    if (parent >= 0 && tree.size[at] > 0) children[place.get(parent)].push(at);
  });
  const SHOWN = 4; // levels at once
  let focus = 0;
  let chosen = 0;

  const parentOf = (at) => (tree.parent[at] < 0 ? -1 : place.get(tree.parent[at]));
  const perRow = (at) => tree.value[at] / Math.max(1, tree.size[at]);
  const words = (at) => {
    if (at === 0) return "all rows";
    if (tree.name && tree.name[at]) return tree.name[at];
    const traits = tree.traits ? tree.traits[at] : [];
    return traits.length ? traits.map((each) => each[0]).join(", ") : `${facts.plane.numbers ? "target" : "label"} ${tree.mix[at]}`;
  };
  const spoken = (at) =>
    `group ${tree.id[at]}: ${words(at)}; ${count(tree.size[at])} rows, ${worth(perRow(at))} a row`;

  function laidOut() {
    const found = [{ at: focus, left: 0, width: 100, depth: 0 }];
    for (let k = 0; k < found.length; k += 1) {
      const { at, left, width, depth } = found[k];
      if (depth + 1 >= SHOWN) continue;
      let x = left;
      for (const child of children[at]) {
        const own = (width * tree.size[child]) / tree.size[at];
        found.push({ at: child, left: x, width: own, depth: depth + 1 });
        x += own;
      }
    }
    return found;
  }

  function drawTree(takeFocus) {
    const of = ramp();
    const laid = laidOut();
    const levels = 1 + Math.max(...laid.map((each) => each.depth));
    const room = icicle.clientWidth || 700;
    icicle.replaceChildren();
    for (const { at, left, width, depth } of laid) {
      const pixels = (width / 100) * room;
      if (pixels < 0.4 && at !== chosen) continue;
      const node = make("div", undefined, "node");
      node.dataset.at = at;
      node.setAttribute("role", "treeitem");
      node.setAttribute("aria-level", tree.level[at] + 1);
      node.setAttribute("aria-label", spoken(at));
      node.setAttribute("aria-selected", at === chosen);
      if (children[at].length) node.setAttribute("aria-expanded", depth + 1 < SHOWN);
      node.tabIndex = at === chosen ? 0 : -1;
      node.title = spoken(at);
      const ground = of(perRow(at) / tree.reach);
      node.style.left = `${left}%`;
      node.style.width = `${width}%`;
      node.style.top = `${(100 * depth) / levels}%`;
      node.style.height = `${100 / levels}%`;
      node.style.background = `rgb(${ground.join(",")})`;
      node.style.color = inkOn(ground);
      if (pixels > 54) {
        node.append(make("span", worth(perRow(at)), "worthy"));
        node.append(make("span", words(at)));
      } else if (pixels < 14) {
        node.style.padding = "0";
        if (pixels < 5) node.style.borderWidth = pixels < 3 ? "0" : "0 0.5px 0 0";
        if (pixels < 5) node.style.borderRadius = "0";
      }
      icicle.append(node);
    }
    drawCrumbs();
    drawDetail();
    if (takeFocus) icicle.querySelector('[aria-selected="true"]')?.focus();
  }

  function drawCrumbs() {
    const path = [];
    for (let at = focus; at >= 0; at = parentOf(at)) path.unshift(at);
    const crumbs = path.map((at, k) => {
      const last = k === path.length - 1;
      const button = make("button", at === 0 ? "all rows" : `#${tree.id[at]} ${words(at)}`);
      button.type = "button";
      if (last) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => open(at, false));
      return button;
    });
    const parts = crumbs.flatMap((each, k) => (k ? [make("span", "›", "soft"), each] : [each]));
    $("crumbs").replaceChildren(...parts);
  }

  function pair(list, name, what) {
    list.append(make("dt", name), make("dd", what));
  }

  function drawDetail() {
    const at = chosen;
    const box = $("detail");
    const head = make("h3", at === 0 ? "All rows" : `Group #${tree.id[at]}`);
    const list = make("dl", undefined, "pair");
    pair(list, "rows", count(tree.size[at]));
    const all = facts.surplus.total > 0 ? ` (${Math.round((100 * tree.value[at]) / facts.surplus.total)} % of all)` : "";
    pair(list, "worth", `${plainly(tree.value[at])} ± ${tree.stderr[at] > 1e-12 ? tree.stderr[at].toPrecision(1) : "0"}${sign(all)}`);
    pair(list, "a row", worth(perRow(at)));
    if (tree.as_player[at] !== null && at !== 0) pair(list, "as one player", plainly(tree.as_player[at]));
    for (const name of ["utility", "dispersion", "consistency"]) pair(list, name, plainly(tree[name][at], 3));
    pair(list, facts.plane && facts.plane.numbers ? "target" : "labels", tree.mix[at]);
    box.replaceChildren(head);
    const traits = tree.traits ? tree.traits[at] : [];
    if (tree.name && tree.name[at]) box.append(make("p", tree.name[at]));
    if (traits.length) {
      const said = make("ul", undefined, "small");
      for (const [text, inside, overall] of traits)
        said.append(make("li", `${text}: ${inside} % of them, ${overall} % of all`));
      box.append(said);
    }
    box.append(list);
    const examples = (tree.examples || {})[at];
    if (examples) {
      const strip = make("div", undefined, "thumbs");
      for (const each of examples) {
        const image = make("img", undefined, "thumb mini");
        image.src = each.image;
        image.alt = `row ${each.row}`;
        image.title = `row ${each.row}`;
        strip.append(image);
      }
      box.append(make("p", "Rows of it, from typical to less so:", "soft small"), strip);
    }
    if (tree.is_inner[at] && !children[at].length)
      box.append(make("p", "It has smaller groups, which are not drawn here.", "soft small"));
  }

  function choose(at, takeFocus = true) {
    chosen = at;
    drawTree(takeFocus);
  }
  function open(at, takeFocus = true) {
    focus = children[at].length ? at : Math.max(0, parentOf(at));
    choose(at, takeFocus);
  }
  function visible(at) {
    let depth = 0;
    for (let up = at; up >= 0; up = parentOf(up), depth += 1) if (up === focus) return depth < SHOWN;
    return false;
  }
  function move(at) {
    if (at === undefined || at < 0) return;
    if (!visible(at)) focus = Math.max(0, parentOf(at));
    choose(at);
  }
  function beside(step) {
    const up = parentOf(chosen);
    if (up < 0) return;
    const kin = children[up];
    move(kin[kin.indexOf(chosen) + step]);
  }

  icicle.addEventListener("click", (event) => {
    const node = event.target.closest(".node");
    if (node) open(Number(node.dataset.at));
  });
  icicle.addEventListener("keydown", (event) => {
    const up = () => {
      if (chosen === focus && focus !== 0) focus = parentOf(focus);
      move(chosen === focus ? chosen : parentOf(chosen));
    };
    const keys = {
      ArrowRight: () => beside(1),
      ArrowLeft: () => beside(-1),
      ArrowDown: () => move(children[chosen][0]),
      ArrowUp: () => move(parentOf(chosen)),
      Home: () => open(0),
      Enter: () => open(chosen),
      " ": () => open(chosen),
      Backspace: () => open(Math.max(0, parentOf(focus))),
      Escape: () => open(Math.max(0, parentOf(focus))),
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  $("low").textContent = worth(-tree.reach);
  $("high").textContent = worth(tree.reach);

  /* ---- the map ---- */
  const plane = facts.plane;
  let by = "value";
  let points = null;
  const bytes = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  if (plane.kind === "points") {
    points = {
      x: new Uint16Array(bytes(plane.x).buffer),
      y: new Uint16Array(bytes(plane.y).buffer),
      value: bytes(plane.value),
      class: bytes(plane.class),
      suspect: bytes(plane.suspect),
    };
  }

  function drawPoints() {
    const canvas = $("points");
    if (!canvas) return;
    const pen = canvas.getContext("2d");
    const { width, height } = canvas;
    const of = ramp();
    const palette = [...Array(10).keys()].map((k) => colour(`--c${k}`));
    const [gray, red, quiet] = ["--cx", "--suspect", "--quiet"].map(colour);
    const n = points.x.length;
    const size = Math.max(2.2, Math.min(7, 260 / Math.sqrt(n)));
    pen.clearRect(0, 0, width, height);
    const paint = (at, rgb, radius, alpha) => {
      pen.globalAlpha = alpha;
      pen.fillStyle = `rgb(${rgb.join(",")})`;
      pen.beginPath();
      pen.arc((points.x[at] / 65535) * (width - 24) + 12,
        (1 - points.y[at] / 65535) * (height - 24) + 12, radius, 0, 2 * Math.PI);
      pen.fill();
    };
    const order = [...Array(n).keys()];
    if (by === "value") order.sort((a, b) => Math.abs(points.value[a] - 127.5) - Math.abs(points.value[b] - 127.5));
    for (const at of order) {
      if (by === "value") paint(at, of((points.value[at] - 127.5) / 127.5), size, 0.9);
      else if (by === "class") paint(at, palette[points.class[at]] || gray, size, 0.8);
      else if (!points.suspect[at]) paint(at, quiet, size * 0.8, 0.8);
    }
    if (by === "suspect")
      for (let at = 0; at < n; at += 1) if (points.suspect[at]) paint(at, red, size * 1.15, 0.95);
  }

  function colourBy(name) {
    by = name;
    for (const button of document.querySelectorAll("#colourings button")) {
      const own = button.dataset.by === name;
      button.setAttribute("aria-checked", own);
      button.tabIndex = own ? 0 : -1;
    }
    for (const key of document.querySelectorAll("#plane-key [data-for]"))
      key.hidden = key.dataset.for !== name;
    if (points) drawPoints();
    else for (const each of ["value", "class", "suspect"]) $(`plane-${each}`).hidden = each !== name;
  }

  const switches = [...document.querySelectorAll("#colourings button")];
  switches.forEach((button, k) => {
    button.addEventListener("click", () => colourBy(button.dataset.by));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = switches[(k + step + switches.length) % switches.length];
      next.focus();
      colourBy(next.dataset.by);
    });
  });

  if (points) {
    const canvas = $("points");
    const tip = $("tip");
    canvas.addEventListener("pointermove", (event) => {
      const frame = canvas.getBoundingClientRect();
      const x = ((event.clientX - frame.left) / frame.width) * canvas.width;
      const y = ((event.clientY - frame.top) / frame.height) * canvas.height;
      let best = -1;
      let nearest = 400;
      for (let at = 0; at < points.x.length; at += 1) {
        const dx = (points.x[at] / 65535) * (canvas.width - 24) + 12 - x;
        const dy = (1 - points.y[at] / 65535) * (canvas.height - 24) + 12 - y;
        const gap = dx * dx + dy * dy;
        if (gap < nearest) [nearest, best] = [gap, at];
      }
      tip.hidden = best < 0;
      if (best < 0) return;
      const name = plane.classes[points.class[best]];
      const doubt = points.suspect[best] ? ", looks wrong" : "";
      tip.textContent = `row ${count(best)}${name === undefined ? "" : `: ${name}`}${doubt}`;
      tip.style.left = `${Math.min(event.clientX - frame.left + 12, frame.width - tip.offsetWidth)}px`;
      tip.style.top = `${event.clientY - frame.top + 14}px`;
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  /* ---- light and dark ---- */
  const button = $("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  function redraw() {
    button.textContent = isDark() ? "Light" : "Dark";
    drawTree(false);
    if (points) drawPoints();
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    redraw();
  });
  prefersDark.addEventListener("change", redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) { width = window.innerWidth; drawTree(false); }
  });
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    redraw();
  });
  window.addEventListener("afterprint", () => {
    if (before === undefined) delete root.dataset.theme;
    else root.dataset.theme = before;
    redraw();
  });

  redraw();
})();
