"use strict";

const content = JSON.parse(document.getElementById("content").textContent);
const top_ = document.getElementById("top"), main = document.getElementById("main");

/** Answers of the server that this page came from. */
async function remote(query) {
  const response = await fetch(`search?q=${encodeURIComponent(query)}`);
  const found = await response.json();
  if (!response.ok) return { columns: [], message: found.error };
  return found;
}

const ask = content.local ? prepared(content.local) : remote;
const small = (photo) => (content.local ? content.local.pictures[photo] : `photo/${photo}`);
const large = (photo) => (content.local ? content.local.pictures[photo] : `photo/${photo}/large`);

/* One photo, larger */
const picture = el("img", { alt: "" }), words = el("p"), closing = el("button", { type: "button" }, "Close");
const dialog = el("dialog", { "aria-label": "Photo" }, picture, words, closing);
closing.addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

function show(hit) {
  picture.src = large(hit.photo);
  picture.alt = hit.caption || hit.name;
  words.replaceChildren(hit.caption || hit.name);
  if (hit.caption && hit.caption !== hit.name) words.append(el("br"), el("span", { class: "quiet small" }, hit.name));
  dialog.showModal();
}

function card(hit, rank, shared) {
  const image = el("img", { src: small(hit.photo), alt: hit.caption || hit.name, loading: rank < 12 ? "eager" : "lazy" });
  const mark = hit.fits ? el("span", { class: "mark" }, "✓ fits") : null;
  const label = el("span", { class: "label" }, el("span", { title: hit.name }, hit.caption || hit.name.split("/").pop()));
  if (hit.score !== undefined) label.append(el("b", {}, hit.score.toFixed(2)));
  const button = el("button", { type: "button" }, el("span", { class: "frame" }, image, mark), label);
  if (shared) button.setAttribute("data-shared", "");
  button.addEventListener("click", () => show(hit));
  return el("li", hit.fits ? { class: "fits" } : {}, button);
}

function summary(hits) {
  const right = hits.filter((hit) => hit.fits).length;
  return hits.length && hits[0].fits !== undefined ? `${right} of the first ${hits.length} fit` : "";
}

/* The search box */
const input = el("input", {
  type: "search", id: "query", name: "q", autocomplete: "off", spellcheck: "false",
  placeholder: content.placeholder, maxlength: "300", list: "completions",
});
const completions = el("datalist", { id: "completions" }, ...content.completions.map((value) => el("option", { value })));
const form = el("form", { role: "search" }, input, el("button", { type: "submit" }, "Search"), completions);
input.setAttribute("aria-label", "Search in words");
const status_ = el("p", { role: "status" });
const columns = el("div", { class: "columns" });
columns.style.setProperty("--columns", content.columns.length);
const lists = content.columns.map(({ name, note }) => {
  const list = el("ol", { class: "hits", "aria-label": name }), found = el("span");
  columns.append(el("div", { class: "column" }, el("h3", {}, name), el("p", { class: "quiet small" }, note, found), list));
  return { list, found };
});

let latest = 0;
async function search(query) {
  const mine = ++latest;
  input.value = query;
  status_.textContent = "Searching …";
  let answer;
  try {
    answer = await ask(query);
  } catch {
    answer = { columns: [], message: "The server does not answer: is ‘lors serve’ still running?" };
  }
  if (mine !== latest) return;
  lists.forEach(({ list, found }, place) => {
    const hits = answer.columns[place] ?? [];
    const others = new Set(answer.columns.filter((_, other) => other !== place).flat().map((hit) => hit.photo));
    list.replaceChildren(...hits.map((hit, rank) => card(hit, rank, others.has(hit.photo))));
    const told = summary(hits);
    found.textContent = told ? ` · ${told}` : "";
  });
  status_.textContent = answer.message ?? "";
  document.documentElement.dataset.query = query;
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (input.value.trim()) search(input.value.trim());
});
/* A word that was picked from the list is a search. */
input.addEventListener("input", () => content.completions.includes(input.value) && search(input.value));

const chips = el("ul", { class: "chips", "aria-label": "Examples" }, ...content.suggestions.map((query) => {
  const button = el("button", { type: "button" }, query);
  button.addEventListener("click", () => search(query));
  return el("li", {}, button);
}));

/* What else a page of a demonstration shows */
function tableOf({ title, words, head, rows, strong }) {
  const cells = (kind, row) => row.map((text) => el(kind, {}, text));
  return el("section", {}, el("h2", {}, title), el("p", { class: "quiet" }, words),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", {},
      el("thead", {}, el("tr", {}, ...cells("th", head))),
      el("tbody", {}, ...rows.map((row, place) => el("tr", strong.includes(place) ? { class: "strong" } : {}, ...cells("td", row)))))));
}

function pairsOf({ title, words, items }) {
  const side = (when, { picture, words }) =>
    el("figure", {}, el("img", { src: picture, alt: `${when}: ${words}` }), el("figcaption", {}, el("b", {}, when), words));
  return el("section", {}, el("h2", {}, title), el("p", { class: "quiet" }, words),
    el("div", { class: "pairs" }, ...items.map(({ before, after }) =>
      el("div", { class: "pair two" }, side("before", before), side("after", after)))));
}

top_.append(el("p", { class: "brand" }, "lors"), el("h1", {}, content.title), ...content.lead.map((text) => el("p", { class: "lead" }, text)));
const heading = content.heading ? [el("h2", {}, content.heading)] : [];
const box = el("section", {}, ...heading, form, chips, status_, columns);
main.append(box, ...content.tables.map(tableOf), ...(content.pairs ? [pairsOf(content.pairs)] : []), dialog);

if (content.suggestions.length) search(content.suggestions[0]);
else input.focus();
document.documentElement.dataset.ready = "";
