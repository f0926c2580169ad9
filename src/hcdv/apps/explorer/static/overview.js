// The run at a glance; the tree of coalitions; the updates one after the other.
import { bars, histogram, icicle, lines } from "./charts.js";
import { ask, count, el, fill, link, nodeName, percent, plural, shade, signed, swatch } from "./dom.js";
import { rowsTable } from "./rows.js";
import { worthPanel } from "./worth.js";

const PARTS = {
  utility: "what they teach a model", dispersion: "how far apart they keep the classes",
  consistency: "what doubted labels pay the others",
};
const card = (name, big, ...more) => el("div", { class: "card" }, el("div", { class: "faint" }, name), el("div", { class: "big" }, big), more);

export async function showOverview() {
  const said = await ask("/overview"), { run, spread } = said;
  const mean = spread.mean;
  return [
    el("h1", {}, run.source.table ?? run.folder),
    el("div", { class: "cards" },
      card("rows", count(run.n_rows), el("div", { class: "note" }, run.n_classes ? plural(run.n_classes, "class").replace("classs", "classes") : "a number to predict",
        run.number ? `, after update ${run.number}` : "")),
      card("surplus", signed(said.surplus), el("div", { class: "note" }, "what all rows are worth together, over having no data")),
      card("below zero", percent(spread.n_below_zero / run.n_rows), el("div", { class: "note" },
        el("a", { href: link("/rows", { filter: "value<0", sort: "value" }) }, plural(spread.n_below_zero, "row")), " the model is better off without")),
      card("suspects", el("a", { href: "/suspects" }, count(said.n_suspects)), el("div", { class: "note" }, "labels more likely wrong than right; ",
        el("a", { href: "/decisions" }, plural(said.n_decisions, "decision")))),
      card("coalitions", el("a", { href: "/coalitions" }, count(run.n_coalitions)), el("div", { class: "note" }, `on ${plural(run.depth, "level")}`)),
      spread.n_stale ? card("stale", count(spread.n_stale), el("div", { class: "note" }, "values corrected, not computed anew: hcdv refresh does")) : null),
    el("div", { class: "grid" },
      el("section", { class: "panel" }, el("h2", {}, "How the values are spread"), histogram(spread, mean),
        el("p", { class: "note" }, `${signed(mean)} a row on average, from ${signed(spread.min)} to ${signed(spread.max)}, give or take ${signed(spread.median_stderr, 1).slice(1)}. The scale is even about zero and widens away from it.`)),
      el("section", { class: "panel" }, el("h2", {}, "What the surplus is made of"),
        bars(Object.entries(said.parts).map(([name, value]) => ({ name, value, note: PARTS[name] })))),
      coalitionList("Best coalitions, by worth of a row", said.best, mean),
      coalitionList("Worst coalitions, by worth of a row", said.worst, mean),
      said.labels.length ? el("section", { class: "panel wide" }, el("h2", {}, "Labels"), labelTable(said.labels, mean)) : null,
      el("section", { class: "panel wide" }, el("h2", {}, "This run"), el("dl", {}, about(run).map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
        said.notes.map((note) => el("p", { class: "note" }, `Note: ${note}.`)))),
  ];
}

const about = (run) => [
  ["folder", run.folder], ["valued", run.created], ["method", run.method], ["judged by", run.metric === "auto" ? "the share of squared loss explained" : run.metric], ["seed", run.seed],
  ...Object.entries(run.source).filter(([, v]) => v !== null && typeof v !== "object"),
].filter(([, v]) => v !== null && v !== undefined);

function labelTable(labels, mean) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["label", "rows", "value", "value of a row", "wrong, by the sum of chances"].map((h, i) => el("th", { class: i ? "number" : null }, h)))),
    el("tbody", {}, labels.map((each) => el("tr", {},
      el("td", {}, el("a", { href: link("/rows", { filter: `label=${each.label}` }) }, each.label)), el("td", { class: "number" }, count(each.n_rows)),
      el("td", { class: "number" }, signed(each.value)), el("td", { class: "number" }, swatch(each.mean, mean), signed(each.mean)),
      el("td", { class: "number" }, percent(each.doubt)))))));
}

function coalitionList(title, nodes, mean) {
  return el("section", { class: "panel" }, el("h2", {}, title), el("ul", { class: "plain" }, nodes.map((node) =>
    el("li", {}, swatch(node.value_per_row, mean), el("a", { href: link("/coalitions", { node: node.id }) }, nodeName(node)),
      ` ${signed(node.value_per_row)} a row, ${plural(node.size, "row")} `, el("span", { class: "faint" }, `(${node.label_mix}) `), inWords(node)))));
}

function inWords(node) {
  const place = el("span", {});
  ask("/description", { node: node.id }).then((told) => fill(place, told.words.replaceAll(/ \([^()]*\)/g, ""))).catch(() => {});
  return place;
}

export async function showCoalitions(asked, main) {
  const said = await ask("/coalitions", { node: asked.node ?? 0 }), { node, mean } = said;
  const tree = el("div", {}), rows = el("section", {}), words = el("p", {});
  const left = [
    el("nav", { class: "crumbs", "aria-label": "From all rows down" }, said.path.map((step, i) => [i ? el("span", {}, "›") : null,
      i < said.path.length - 1 ? el("a", { href: link("/coalitions", { node: step.id }) }, step.id ? nodeName(step) : "all rows") : el("strong", {}, step.id ? nodeName(step) : "all rows")])),
    tree,
    el("p", { class: "note" }, "A band is a level, a block a coalition as wide as it has rows. ", legend(mean),
      said.below.length < said.n_below ? ` ${plural(said.n_below - said.below.length, "coalition")} further down: click to go there.` : ""),
  ];
  const facts = [
    ["rows", count(node.size)], ["value", `${signed(node.value)} ± ${signed(node.stderr, 1).slice(1)}`], ["of a row", `${signed(node.value_per_row)} (all rows: ${signed(mean)})`],
    ["utility", signed(node.utility)], ["dispersion", signed(node.dispersion)], ["consistency", signed(node.consistency)],
    ["as one player", node.as_player === null ? null : signed(node.as_player)], ["labels", node.label_mix],
  ].filter(([, v]) => v !== null);
  const together = el("div", {});
  fill(main, el("h1", {}, node.id ? `Coalition ${nodeName(node)}` : "All rows"), words,
    el("div", { class: "side" }, el("div", {}, left),
      el("aside", { class: "panel" }, el("dl", {}, facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
        node.id ? el("p", {}, el("button", { onclick: async (event) => { event.target.disabled = true; fill(together, await worthPanel({ coalition: node.id })); } }, "Worth together"), " ",
          el("a", { class: "button", href: link("/map", { coalition: node.id }) }, "On the map")) : null,
        together,
        said.past.length > 1 ? [el("h2", {}, "After each update"), lines(said.past.map((p) => ({ x: p.number, y: p.value, title: `update ${p.number} (${p.kind}): ${signed(p.value)}, ${plural(p.size, "row")}` })), { label: "value" }),
          lines(said.past.map((p) => ({ x: p.number, y: p.size, title: `update ${p.number} (${p.kind}): ${plural(p.size, "row")}` })), { label: "rows" })] : null)),
    rows);
  const draw = () => fill(tree, icicle(said, { width: Math.max(300, tree.clientWidth || 800) }));
  draw();
  new ResizeObserver(draw).observe(main);
  ask("/description", { node: node.id }).then((told) => fill(words, told.words ? [told.words, "."] : "")).catch(() => {});
  fill(rows, el("h2", {}, "Its rows"), await rowsTable({ ...asked, node: undefined, coalition: node.id || undefined, limit: 20, sort: asked.sort ?? "value" }, { path: "/rows", small: true }));
}

const legend = (mean) => [el("span", { class: "swatch", css: { background: shade(-4 * Math.abs(mean), mean) } }), "below zero ",
  el("span", { class: "swatch", css: { background: shade(0, mean) } }), "nothing ", el("span", { class: "swatch", css: { background: shade(mean, mean) } }), "the average row ",
  el("span", { class: "swatch", css: { background: shade(6 * Math.abs(mean), mean) } }), "far more."];

export async function showHistory() {
  const said = await ask("/history");
  if (said.updates.length < 1) {
    return [el("h1", {}, "History"), el("p", {}, "This run was never changed. hcdv update, hcdv forget and hcdv watch change it; each update then shows here as it comes.")];
  }
  const title = (u, what) => `update ${u.number}, ${u.kind}: ${what}`;
  return [
    el("h1", {}, "History"),
    el("p", { class: "faint" }, `Update ${said.shown} is shown; this page follows the run as it changes.`),
    el("div", { class: "grid" },
      el("section", { class: "panel" }, lines(said.updates.map((u) => ({ x: u.number, y: u.surplus, title: title(u, signed(u.surplus, 6)) })), { label: "surplus" })),
      el("section", { class: "panel" }, lines(said.updates.map((u) => ({ x: u.number, y: u.n_rows, title: title(u, plural(u.n_rows, "row")) })), { label: "rows" }))),
    el("div", { class: "scroll" }, el("table", { id: "updates" },
      el("thead", {}, el("tr", {}, ["update", "when", "kind", "rows", "came", "gone", "changed", "stale", "surplus"].map((h, i) => el("th", { class: i > 2 || !i ? "number" : null }, h)))),
      el("tbody", {}, said.updates.toReversed().map((u) => el("tr", {}, el("td", { class: "number" }, u.number), el("td", { class: "one" }, u.at.replace("T", " ").slice(0, 19)), el("td", {}, u.kind),
        ["n_rows", "came", "gone", "changed", "stale"].map((k) => el("td", { class: "number" }, count(u[k]))), el("td", { class: "number" }, signed(u.surplus, 6))))))),
  ];
}
