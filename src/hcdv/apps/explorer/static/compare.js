// Two runs side by side.
import { against, bars } from "./charts.js";
import { ask, count, el, link, plainNumber, plural, signed } from "./dom.js";

export async function showCompare() {
  const said = await ask("/compare", { limit: 40 }), { facts } = said, { first, second } = facts;
  const table = (heads, lines, id) => el("div", { class: "scroll" }, el("table", { id }, el("thead", {}, el("tr", {}, heads.map((h) => el("th", { class: /value|other|change|run|difference|common|level/.test(h) ? "number" : null }, h)))), el("tbody", {}, lines)));
  const number = (x, digits) => el("td", { class: "number" }, signed(x, digits));
  return [
    el("h1", {}, "Two runs"),
    el("p", {}, el("strong", {}, first.run), " beside ", el("strong", {}, second.run), `: ${plural(facts.n_common, "row")} in both, by id`, facts.n_relabelled ? `, ${count(facts.n_relabelled)} with another label` : "", "."),
    el("div", { class: "grid" },
      el("section", { class: "panel" }, el("h2", {}, "Values of the common rows"), against(said.spots),
        el("p", { id: "agreement" }, `Correlation ${fixed(facts.correlation)}, of ranks ${fixed(facts.rank_correlation)}. `, el("span", { class: "faint" }, "Dashed: the same value in both."))),
      el("section", { class: "panel" }, el("h2", {}, "Surplus and its parts"),
        table(["", "this run", "the other", "difference"], [["rows", first.n_rows, second.n_rows]].map(([k, a, b]) => el("tr", {}, el("td", {}, k), el("td", { class: "number" }, count(a)), el("td", { class: "number" }, count(b)), el("td", { class: "number" }, count(b - a))))
          .concat(["surplus", "utility", "dispersion", "consistency"].map((k) => el("tr", {}, el("td", {}, k), number(first[k]), number(second[k]), number(second[k] - first[k]))))),
        el("h2", {}, "The common rows"), bars([{ name: "in this run", value: facts.first_sum }, { name: "in the other", value: facts.second_sum }]))),
    el("div", { class: "grid" }, el("div", {}, el("h2", {}, "Rows that moved most"),
    table(["id", "label", "value", "in the other", "change"], said.movers.map((each) => el("tr", {}, el("td", {}, el("a", { href: link("/row", { id: each.id }) }, each.id)),
      el("td", {}, plainNumber(each.label), each.other_label !== each.label ? ` → ${plainNumber(each.other_label)}` : ""), number(each.value), number(each.other_value), number(each.change))), "movers")),
    el("div", {}, el("h2", {}, "Coalitions that moved most, by their common rows"),
    table(["coalition", "level", "common rows", "labels", "value", "in the other", "change"], said.coalitions.slice(0, 40).map((each) => el("tr", {}, el("td", {}, el("a", { href: link("/coalitions", { node: each.id }) }, `#${each.id}`)),
      el("td", { class: "number" }, each.level), el("td", { class: "number" }, count(each.n_common)), el("td", {}, each.label_mix), number(each.value), number(each.other_value), number(each.change))), "shifts"))),
  ];
}

const fixed = (x) => (x === null ? "–" : x.toFixed(3));
