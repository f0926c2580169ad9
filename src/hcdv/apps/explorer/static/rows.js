// Tables of rows: search, filters, order, pages, and decisions on what is doubted.
import { ask, count, el, fill, link, percent, plainNumber, plural, post, selection, signed, swatch } from "./dom.js";
import { worthPanel } from "./worth.js";

const HEADS = { row: "row", id: "id", value: "value", stderr: "±", label: "label", suggested: "suggested", doubt: "wrong?", leaf: "coalition" };
const NUMBERS = ["row", "value", "stderr", "doubt", "leaf"];
const COLUMNS = ["row", "id", "value", "stderr", "label", "suggested", "doubt", "leaf"];
const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "~"];

export async function showRows(asked, main) {
  fill(main, el("h1", {}, "Rows"), await rowsTable(asked, { path: "/rows" }));
}

export async function showSuspects(asked, main) {
  fill(main, el("h1", {}, "Suspects"),
    el("p", { class: "faint" }, "Labels that are more likely wrong than right, as models taught without the row see them. ↑ and ↓ go through them; W marks a label wrong, K keeps it, D drops the row, U takes that back."),
    await rowsTable(asked, { path: "/suspects", decides: true }));
}

export async function showWorth(asked, main) {
  fill(main, el("h1", {}, "Worth together"), el("section", { class: "panel" }, await worthPanel(selection(asked))));
}

export async function rowsTable(asked, { path, small = false, decides = false }) {
  const said = await ask(path, { ...selection(asked), sort: asked.sort, down: asked.down, limit: asked.limit, offset: asked.offset });
  const go = (changes) => { location.href = link(path, { ...selection(asked), sort: asked.sort, down: asked.down, limit: asked.limit, ...changes }); };
  const { mean } = said;
  const sameId = said.rows.every((row) => String(row.id) === String(row.row));
  const columns = COLUMNS.filter((name) => !(name === "id" && sameId) && !(small && ["stderr", "leaf"].includes(name)));
  const given = said.rows[0]?.cells ? Object.keys(said.rows[0].cells) : [];
  const shownGiven = given.slice(0, small ? 5 : 8);
  const more = said.columns.length > shownGiven.length ? said.columns.length - shownGiven.length : 0;
  const head = (name, title, number) => {
    const on = said.sort === name;
    return el("th", { class: number ? "number" : null, "aria-sort": on ? (said.down ? "descending" : "ascending") : null, scope: "col" },
      el("button", { title: `Sort by ${name}`, onclick: () => go({ sort: name, down: on && !said.down ? "1" : on ? null : number ? "1" : null, offset: null }) },
        title, on ? (said.down ? " ↓" : " ↑") : ""));
  };
  const state = { rows: said.rows };
  const body = el("tbody", {}, said.rows.map((row) => line(row, { columns, shownGiven, said, mean, decides })));
  const table = el("div", { class: "scroll" }, el("table", { class: "rows" },
    el("thead", {}, el("tr", {}, decides ? el("th", {}, "decision") : null, said.has_images ? el("th", {}, "") : null,
      columns.map((name) => head(name, HEADS[name], NUMBERS.includes(name))), decides || said.rows.some((r) => r.decision) ? null : null,
      shownGiven.map((name) => head(name, name, typeof said.rows[0]?.cells?.[name] === "number")))), body));
  if (decides) keys(body, state);
  return [
    small ? null : tools(asked, said, go, path),
    el("p", { class: "summary" }, el("strong", {}, plural(said.totals.n_rows, "row")), `, worth ${signed(said.totals.value)} as the sum of their values`,
      said.totals.n_rows ? `, ${signed(said.totals.value / said.totals.n_rows)} a row. ` : ". ",
      more && said.rows.length ? el("span", { class: "faint" }, `${plural(more, "more column")} on a row's own page.`) : null),
    said.rows.length ? table : el("p", { class: "faint" }, "No row is like that."),
    pager(asked, said, go, small, path),
  ];
}

function line(row, { columns, shownGiven, said, mean, decides }) {
  const href = link("/row", { id: row.id });
  const cell = {
    row: () => el("td", { class: "number" }, el("a", { href }, row.row)), id: () => el("td", { class: "one" }, el("a", { href }, row.id)),
    value: () => el("td", { class: "number one" }, swatch(row.value, mean), signed(row.value), row.stale ? el("span", { class: "faint", title: "corrected, not computed anew" }, " *") : null),
    stderr: () => el("td", { class: "number faint" }, signed(row.stderr, 1).slice(1)), label: () => el("td", {}, plainNumber(row.label), decides ? null : decided(row.decision)),
    suggested: () => el("td", { class: row.doubt > 0.5 ? "warn" : "faint" }, plainNumber(row.suggested)), doubt: () => el("td", { class: "number" }, percent(row.doubt)),
    leaf: () => el("td", { class: "number" }, el("a", { href: link("/coalitions", { node: row.leaf }) }, `#${row.leaf}`)),
  };
  return el("tr", { "data-id": row.id, tabindex: decides ? 0 : null },
    decides ? el("td", { class: "narrow" }, decider(row, said)) : null,
    said.has_images ? el("td", {}, el("a", { href }, el("img", { class: "thumb", src: link("/image.png", { id: row.id }), alt: `row ${row.row}`, loading: "lazy" }))) : null,
    columns.map((name) => cell[name]()), shownGiven.map((name) => cellOf(row.cells?.[name])));
}

function cellOf(value) {
  const text = plainNumber(value);
  return el("td", { class: typeof value === "number" ? "number" : text.length <= 20 ? "one" : null }, text);
}

const decided = (decision) => decision && [" ", el("span", { class: `tag ${decision.decision}` }, decision.decision, decision.label ? `: ${decision.label}` : "")];

// Buttons that decide on one row; what is decided stands beside them at once.
export function decider(row, said) {
  const place = el("div", { class: "decide" });
  const draw = () => {
    const now = row.decision;
    fill(place, now ? [el("span", { class: `tag ${now.decision}` }, now.decision, now.label ? `: ${now.label}` : ""), el("button", { onclick: () => set("clear"), title: "Take it back (U)", "data-set": "clear" }, "undo")]
      : [String(row.suggested) === String(row.label) ? null : el("button", { onclick: () => set("wrong"), title: `The label is wrong, ${row.suggested} is right (W)`, "data-set": "wrong" }, `→ ${plainNumber(row.suggested)}`),
        el("button", { onclick: () => other(), title: "Another label is right", "data-set": "other" }, "…"),
        el("button", { onclick: () => set("keep"), title: "The label is right (K)", "data-set": "keep" }, "keep"),
        el("button", { onclick: () => set("drop"), title: "The row should go (D)", "data-set": "drop" }, "drop")]);
  };
  const set = async (decision, label = decision === "wrong" && String(row.suggested) !== String(row.label) ? String(row.suggested) : null) => {
    try {
      await post("/decisions", { ids: [String(row.id)], decision, label });
      row.decision = decision === "clear" ? null : { decision, label };
      draw();
    } catch (error) {
      draw();
      place.append(el("span", { class: "warn", role: "alert" }, error.message));
    }
  };
  const other = () => {
    const field = el("input", { type: "text", size: 8, "aria-label": "The right label", list: "labels" });
    fill(place, el("form", { class: "decide", onsubmit: (event) => { event.preventDefault(); set("wrong", field.value); } }, field, el("button", { class: "main" }, "set"),
      el("button", { type: "button", onclick: draw }, "×")));
    field.focus();
  };
  place.decide = set;
  draw();
  return place;
}

function keys(body, state) {
  body.addEventListener("keydown", (event) => {
    const line = event.target.closest("tr"), letter = event.key.toLowerCase();
    if (!line || event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = { arrowdown: line.nextElementSibling, arrowup: line.previousElementSibling }[letter];
    const what = { w: "wrong", k: "keep", d: "drop", u: "clear" }[letter];
    if (next) next.focus();
    else if (what) { line.querySelector(".decide").decide(what); line.nextElementSibling?.focus(); } else if (letter === "enter" && event.target === line) location.href = link("/row", { id: line.dataset.id });
    else return;
    event.preventDefault();
  });
  state.body = body;
}

function tools(asked, said, go, path) {
  const filters = asked.filter ?? [];
  const chips = [
    ...filters.map((text) => [text, { filter: filters.filter((f) => f !== text) }]),
    asked.q ? [`“${asked.q}”`, { q: null }] : null, asked.coalition ? [`coalition #${asked.coalition}`, { coalition: null }] : null,
    asked.polygon ? ["lasso on the map", { polygon: null }] : null, asked.decision ? [`decided: ${asked.decision}`, { decision: null }] : null,
    asked.suspects === "1" ? ["suspects", { suspects: null }] : null,
  ].filter(Boolean).map(([text, changes]) => el("span", { class: "chip" }, text, el("button", { "aria-label": `Remove ${text}`, onclick: () => go(changes) }, "×")));
  const column = el("select", { "aria-label": "Column" }, [...new Set([...said.points.filter((n) => !["x", "y"].includes(n)), ...said.columns])].map((name) => el("option", {}, name)));
  const operator = el("select", { "aria-label": "Comparison" }, OPERATORS.map((name) => el("option", { value: name }, name === "~" ? "contains" : name)));
  const value = el("input", { type: "text", size: 10, "aria-label": "Value", placeholder: "value" });
  const panel = el("div", {});
  column.value = "value"; operator.value = "<";
  return [el("div", { class: "tools" },
    el("form", { class: "tools", id: "filter", onsubmit: (event) => { event.preventDefault(); go({ filter: [...filters, `${column.value}${operator.value}${value.value}`], offset: null }); } },
      column, operator, value, el("button", {}, "Add filter")),
    el("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); go({ q: event.target.elements.q.value, offset: null }); } },
      el("input", { type: "search", name: "q", placeholder: "Words in these rows", "aria-label": "Words in these rows", value: asked.q ?? "" })),
    el("select", { "aria-label": "Decided", onchange: (event) => go({ decision: event.target.value, offset: null }) },
      [["", "decided or not"], ["any", "decided"], ["none", "not decided"], ["wrong", "wrong"], ["keep", "kept"], ["drop", "dropped"]].map(([v, t]) => el("option", { value: v, selected: (asked.decision ?? "") === v }, t))),
    el("span", { class: "grow" }), chips.length ? el("button", { id: "together", onclick: async () => fill(panel, el("section", { class: "panel" }, await worthPanel({ ...selection(asked), suspects: path === "/suspects" ? "1" : asked.suspects }))) }, "Worth together") : null),
  chips.length ? el("div", { class: "tools" }, chips) : null, panel];
}

function pager(asked, said, go, small, path) {
  const { offset, limit } = said, all = said.totals.n_rows;
  if (small) return all > limit ? el("p", {}, el("a", { href: link(path, { ...selection(asked), sort: said.sort, down: said.down }) }, `All ${count(all)} of them`)) : null;
  if (all <= limit) return null;
  return el("div", { class: "tools", role: "navigation", "aria-label": "Pages" },
    el("button", { disabled: offset === 0, onclick: () => go({ offset: Math.max(0, offset - limit) }) }, "← Before"),
    el("span", { class: "faint" }, `${count(offset + 1)} – ${count(Math.min(all, offset + limit))} of ${count(all)}`),
    el("button", { disabled: offset + limit >= all, onclick: () => go({ offset: offset + limit }) }, "Next →"));
}

export async function showDecisions() {
  const { decisions } = await ask("/decisions");
  const all = (kind) => decisions.filter((each) => each.decision === kind).length;
  return [
    el("h1", {}, "Decisions"),
    decisions.length ? el("div", { class: "tools" },
      el("a", { class: "button", href: "/decisions.csv", download: "decisions.csv" }, "Export as CSV"),
      el("a", { class: "button", href: "/decisions.txt?decision=drop", download: "drop.txt" }, `Ids to drop (${all("drop")})`),
      el("a", { class: "button", href: "/decisions.txt?decision=wrong", download: "wrong.txt" }, `Ids of wrong labels (${all("wrong")})`),
      el("span", { class: "faint" }, "hcdv forget RUN --rows drop.txt withdraws rows.")) : el("p", {}, "None yet. Suspects and rows can be marked wrong, kept or dropped; every decision is kept in the run folder."),
    decisions.length ? el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["id", "decision", "given", "right", "wrong?", "value", "when"].map((h) => el("th", {}, h)))),
      el("tbody", {}, decisions.map((each) => el("tr", {}, el("td", {}, each.row ? el("a", { href: link("/row", { id: each.id }) }, each.id) : [each.id, el("span", { class: "faint" }, " (gone)")]),
        el("td", {}, el("span", { class: `tag ${each.decision}` }, each.decision)), el("td", {}, plainNumber(each.row?.label)), el("td", {}, each.label ?? ""),
        el("td", { class: "number" }, each.row ? percent(each.row.doubt) : ""), el("td", { class: "number" }, each.row ? signed(each.row.value) : ""), el("td", { class: "one" }, each.at.replace("T", " ").slice(0, 19))))))) : null,
  ];
}
