// What a selection is worth together, beside the sum of its rows' values.
import { bars } from "./charts.js";
import { ask, count, el, link, plural, signed } from "./dom.js";

export async function worthPanel(chosen) {
  let said;
  try {
    said = await ask("/worth", chosen);
  } catch (error) {
    return el("p", { class: "error", role: "alert" }, error.message);
  }
  const lines = [{ name: "sum of values", value: said.summed.value, note: "what its rows are worth each, added up" }];
  if (said.alone) {
    lines.push({ name: "alone", value: said.alone.value, note: "v(S) − v(∅): only these rows, over no data" },
      { name: "to the others", value: said.to_others.value, note: "v(D) − v(D ∖ S): what is lost without them" });
  }
  const parts = ["utility", "dispersion", "consistency"];
  return el("div", { class: "worth", "data-rows": said.n_rows },
    el("h2", {}, `${plural(said.n_rows, "row")} together`),
    el("p", { class: "faint" }, `${count(said.n_rows)} of ${count(said.n_all)} rows`),
    bars(lines), said.alone ? reading(said) : null,
    said.alone ? el("table", {}, el("thead", {}, el("tr", {}, ["", "sum", "alone", "to others"].map((h) => el("th", { class: h ? "number" : null }, h)))),
      el("tbody", {}, parts.map((name) => el("tr", {}, el("td", {}, name), ["summed", "alone", "to_others"].map((k) => el("td", { class: "number" }, signed(said[k][name], 2))))))) : null,
    said.note ? el("p", { class: "note" }, said.note) : null,
    el("p", {}, el("a", { class: "button", href: link("/rows", chosen) }, "Its rows")));
}

function reading(said) {
  const sum = said.summed.value, lost = said.to_others.value, alone = said.alone.value;
  if (Math.abs(sum) < 1e-12) return null;
  if (alone < 0 && lost > 0) return el("p", {}, "By themselves they teach a model less than nothing, as rows of few kinds do; beside the others they help.");
  if (sum > 0 && lost < 0.5 * sum) return el("p", {}, "Without them little is lost: the other rows say much the same.");
  if (sum > 0 && lost > 1.5 * sum) return el("p", {}, "Without them more is lost than their values add up to: the others do not make up for them.");
  if (sum > 0 && alone > said.of_all.value * 0.8) return el("p", {}, "By themselves they are worth nearly as much as all rows.");
  if (sum < 0 && lost < 0) return el("p", {}, "The data are worth more without them.");
  return null;
}
