// One row: why it has its value, what it looks like, its neighbours and its past.
import { bars, lines } from "./charts.js";
import { ask, count, el, link, nodeName, percent, plainNumber, plural, signed, swatch } from "./dom.js";
import { decider } from "./rows.js";

export async function showRow(asked) {
  const said = await ask("/row", { id: asked.id }), { row, mean } = said;
  const doubted = row.doubt > 0.5 && (!said.has_classes || String(row.label) !== String(row.suggested));
  row.decision = said.decision;
  return [
    el("h1", {}, `Row ${row.id}`),
    el("p", {}, swatch(row.value, mean), el("strong", {}, signed(row.value)), ` ± ${signed(row.stderr, 1).slice(1)}, rank ${count(said.rank)} of ${count(said.n_rows)} (top ${percent(said.rank / said.n_rows)}); `,
      `the average row is worth ${signed(mean)}.`, row.stale ? " Corrected since the data changed, not computed anew." : ""),
    el("div", { class: "grid" },
      el("section", { class: "panel" }, el("h2", {}, "What it looks like"), looks(said)),
      el("section", { class: "panel" }, el("h2", {}, "Why"),
        bars([{ name: "utility", value: row.utility, note: "what it teaches a model, beside the others" }, { name: "dispersion", value: row.dispersion, note: "how far it keeps the classes apart" },
          { name: "consistency", value: row.consistency, note: "whether its label agrees with what others predict" }], { mean }),
        el("p", {}, "Label ", el("strong", {}, plainNumber(row.label)), doubted ? [el("span", { class: "warn" }, " is doubted"), ": models taught without it prefer "] : " is supported; models taught without it say ",
          el("strong", {}, plainNumber(row.suggested)), ` (wrong with a chance of ${percent(row.doubt)}).`), decider(row, said)),
      el("section", { class: "panel" }, el("h2", {}, "Coalitions it belongs to"), el("ul", { class: "plain" }, said.path.map((step) => el("li", {},
        swatch(step.value_per_row, mean), el("a", { href: link("/coalitions", { node: step.id }) }, step.id ? nodeName(step) : "all rows"),
        ` ${plural(step.size, "row")}, ${signed(step.value)}, ${signed(step.value_per_row)} a row `, el("span", { class: "faint" }, `(${step.label_mix})`))))),
      said.same.length + said.others.length ? el("section", { class: "panel" }, el("h2", {}, "Nearest rows"), el("div", { class: "two" },
        near(said.has_classes ? "of its label" : "with numbers near its own", said.same, said, mean), near(said.has_classes ? "of other labels" : "with other numbers", said.others, said, mean))) : null,
      said.past.length ? el("section", { class: "panel wide" }, el("h2", {}, "After each update"),
        said.past.length > 1 ? lines(said.past.map((p) => ({ x: p.number, y: p.value, title: `update ${p.number}: ${signed(p.value)}` })), { label: "value" }) : null,
        el("p", { class: "faint" }, `In the run since update ${said.past[0].number}`, new Set(said.past.map((p) => String(p.label))).size > 1
          ? `; labels over time: ${said.past.map((p) => plainNumber(p.label)).filter((l, i, a) => !i || l !== a[i - 1]).join(" → ")}` : "", ".")) : null),
  ];
}

function looks(said) {
  const image = said.has_image ? el("img", { class: "picture", src: link("/image.png", { id: said.row.id }), alt: `row ${said.row.row} as an image` }) : null;
  if (!said.cells || !Object.keys(said.cells).length) return image ?? el("p", { class: "faint" }, "The rows as they were given are not kept with this run, or have too many columns to read.");
  return [image, el("dl", {}, Object.entries(said.cells).map(([k, v]) => [el("dt", {}, k), el("dd", {}, plainNumber(v) === "" ? el("span", { class: "faint" }, "empty") : plainNumber(v))]))];
}

const near = (title, rows, said, mean) => el("div", {}, el("p", { class: "faint" }, title), rows.length ? el("ul", { class: "plain" }, rows.map((each) => el("li", { class: "beside" },
  said.has_image ? el("a", { href: link("/row", { id: each.id }) }, el("img", { class: "thumb", src: link("/image.png", { id: each.id }), alt: `row ${each.row}` })) : null,
  swatch(each.value, mean), el("span", {}, el("a", { href: link("/row", { id: each.id }) }, each.id), ` ${plainNumber(each.label)}`, el("span", { class: "faint" }, `, cosine ${each.cosine.toFixed(2)}`))))) : el("p", {}, "none"));
