// Which view a page is, what stands above it, and what happens when an update comes.
import { ask, asked, el, fill, link, onTheme, plural } from "./dom.js";
import { showCompare } from "./compare.js";
import { showCoalitions, showHistory, showOverview } from "./overview.js";
import { showMap } from "./map.js";
import { showRow } from "./row.js";
import { showDecisions, showRows, showSuspects, showWorth } from "./rows.js";

const VIEWS = {
  "/overview": ["Overview", showOverview], "/coalitions": ["Coalitions", showCoalitions], "/map": ["Map", showMap],
  "/rows": ["Rows", showRows], "/suspects": ["Suspects", showSuspects], "/decisions": ["Decisions", showDecisions],
  "/compare": ["Compare", showCompare], "/history": ["History", showHistory], "/row": ["Row", showRow], "/worth": ["Worth", showWorth],
};
const HIDDEN = ["/row", "/worth"];
const main = document.getElementById("main"), top = document.getElementById("top");
const EVERY = 3000;
let shown = null;

function dropToken() { // it is in the cookie now, and need not stand in the address
  const here = new URL(location.href);
  if (!here.searchParams.has("token")) return;
  here.searchParams.delete("token");
  history.replaceState(null, "", here);
}

async function show() {
  const [name, view] = VIEWS[location.pathname] ?? ["Not found", null];
  document.title = `${name} · hcdv explore`;
  const wait = setTimeout(() => { if (!main.querySelector("h1")) fill(main, el("p", { class: "loading" }, "Reading the run …")); }, 250);
  try {
    const made = await view(asked(), main);
    if (made) fill(main, made);
  } catch (error) {
    fill(main, el("h1", {}, name), el("p", { class: "error", role: "alert" }, error.message));
  } finally {
    clearTimeout(wait);
    document.body.dataset.ready = location.pathname;
  }
}

async function head() {
  const said = await ask("/overview");
  const names = Object.entries(VIEWS).filter(([path]) => !HIDDEN.includes(path)
    && (path !== "/compare" || said.compares) && (path !== "/map" || said.has_map));
  fill(top, el("span", { class: "brand" }, "hcdv"),
    el("nav", { "aria-label": "Views" }, names.map(([path, [name]]) =>
      el("a", { href: path, "aria-current": path === location.pathname ? "page" : null }, name))),
    el("span", { class: "run", title: said.run.folder }, said.run.folder.split(/[\\/]/).pop()),
    el("form", { role: "search", onsubmit: (event) => {
      event.preventDefault();
      location.href = link("/rows", { q: event.target.elements.q.value });
    } }, el("input", { type: "search", name: "q", placeholder: "Search rows  ( / )", "aria-label": "Search rows", value: asked().q ?? "" })));
}

async function look() {
  if (document.visibilityState === "visible") {
    try {
      const said = await ask("/history", { since: shown ?? -1 });
      document.getElementById("lost")?.remove();
      if (shown !== null && said.shown !== shown) arrived(said);
      shown = said.shown;
      if (said.failure) toast("failure", said.failure);
    } catch {
      toast("lost", "The explorer was stopped. Start it again with hcdv explore.");
    }
  }
  setTimeout(look, EVERY);
}

function arrived(said) {
  if (["/overview", "/history"].includes(location.pathname)) show();
  const last = said.updates.at(-1);
  const what = last ? `${last.kind}: ${plural(last.n_rows, "row")} now` : "";
  toast("arrived", `Update ${said.shown} is in. ${what}`, el("button", { onclick: () => location.reload() }, "Show it"));
}

function toast(id, ...said) {
  document.getElementById(id)?.remove();
  document.body.append(el("div", { class: "toast", id, role: "status" }, said,
    el("button", { "aria-label": "Close", onclick: () => document.getElementById(id)?.remove() }, "×")));
}

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    top.querySelector("input")?.focus();
  }
});
addEventListener("popstate", show);
onTheme(show);
dropToken();
// The cookie is set by the first answer; what follows carries it.
await show();
head().catch(() => {});
look();
