/** How many pairs are shown at first: on a phone, what follows should not be too far below. */
const PAGE = matchMedia("(max-width: 44rem)").matches ? 8 : 24;

/** The orders of the gallery: a name, the value of a pair, and whether the largest comes first. */
const ORDERS = [
  ["number", (pair) => pair.number, false],
  ["similarity of the pair", (pair) => pair.diagonal, true],
  ["largest similarity to another", (pair) => pair.largest, true],
  ["how far the text moved", (pair) => pair.moved, true],
];

/** A picture of a pair with a label, or what stands in for it. */
function picture(look, pairs, label, number = null) {
  const under = look.picture === null || !look.name ? label : `${label}: ${look.name}`;
  return el("figure", { class: "picture" }, standIn(look, pairs, label, number), el("figcaption", {}, under));
}

function standIn(look, pairs, label, number) {
  if (look.picture !== null) {
    const [first] = look.texts;
    return zoomable(pairs.pictures[look.picture], first ? `${label}: ${pairs.captions[first[0]]}` : label);
  }
  return pairs.map && number !== null ? miniature(pairs.map, 0, number) : el("span", { class: "small" }, look.name);
}

/** The nearest captions of a text, the first in full ink. */
function words(look, pairs, label = "", most = look.texts.length) {
  return look.texts.slice(0, most).map(([caption, cosine], place) =>
    el(
      "p",
      { class: place ? "quiet small" : "small" },
      label && !place ? el("b", {}, `${label} `) : null,
      pairs.captions[caption],
      el("span", { class: "quiet" }, ` ${cosine.toFixed(2)}`),
    ),
  );
}

/** The pictures of a pair before and after; of embeddings without pictures, its places on the map. */
function pictures(pair, pairs) {
  const { before, after, number } = pair;
  if (after.picture === null) {
    if (!pairs.map) return after.name ? el("p", { class: "small" }, after.name) : null;
    const views = pairs.map.views.map(({ title }, view) =>
      el("figure", { class: "picture" }, miniature(pairs.map, view, number), el("figcaption", {}, title.toLowerCase())),
    );
    return el("div", {}, el("div", { class: "two" }, ...views), el("p", { class: "quiet small" }, `nearest: ${after.name}`));
  }
  if (!before) return picture(after, pairs, `pair ${number}`);
  return el("div", { class: "two" }, picture(before, pairs, "initial"), picture(after, pairs, "distilled"));
}

function card(pair, pairs) {
  const { before, after } = pair;
  const told = before
    ? [...words(before, pairs, "before"), ...words(after, pairs, "after")]
    : words(after, pairs);
  return el("article", { class: "card" }, pictures(pair, pairs), el("div", { class: "words" }, ...told), foot(pair));
}

function foot(pair) {
  const entry = (name, value) => el("span", {}, `${name} `, el("b", {}, value));
  const line = el("div", { class: "foot" }, entry("pair", String(pair.number)));
  line.append(entry("S with itself", short(pair.diagonal)));
  if (pair.largest) line.append(entry("S with text", `${pair.partner}: ${short(pair.largest)}`));
  if (pair.moved !== null) line.append(entry("text moved", short(pair.moved)));
  return line;
}

/** All pairs: a page of them at first, more on request, sorted and searched by captions. */
function gallery(_, { pairs }) {
  const every = pairs.items.map((pair, number) => ({ ...pair, number, search: searchable(pair, pairs) }));
  const orders = ORDERS.filter(([, value]) => new Set(every.map(value)).size > 1);
  const list = el("div", { class: pairs.crisp ? "gallery crisp" : "gallery" });
  const more = el("button", { type: "button" });
  const count = el("span", { class: "quiet small", role: "status" });
  const order = el("select", {}, ...orders.map(([name], i) => el("option", { value: i }, name)));
  const search = el("input", { type: "search", placeholder: "words of a caption" });
  let found = [];

  function show(upTo) {
    for (const pair of found.slice(list.children.length, upTo)) list.append(card(pair, pairs));
    more.hidden = list.children.length >= found.length;
    more.textContent = `Show more of ${found.length} pairs`;
    count.textContent = `${list.children.length} of ${every.length} pairs shown`;
  }

  function arrange() {
    const sought = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [, value, largestFirst] = orders[order.value] ?? ORDERS[0];
    const sign = largestFirst ? -1 : 1;
    found = every.filter((pair) => sought.every((word) => pair.search.includes(word)));
    found.sort((a, b) => sign * (value(a) - value(b)) || a.number - b.number);
    list.replaceChildren();
    show(PAGE);
  }

  order.addEventListener("change", arrange);
  search.addEventListener("input", arrange);
  more.addEventListener("click", () => show(list.children.length + 2 * PAGE));
  arrange();
  const tools = el("div", { class: "tools" });
  if (orders.length > 1) tools.append(el("label", {}, "Sort by", order));
  if (pairs.captions.length) tools.append(el("label", {}, "Search", search));
  tools.append(count);
  return [tools, list, more];
}

function searchable(pair, pairs) {
  const texts = [...(pair.before?.texts ?? []), ...pair.after.texts];
  return texts.map(([caption]) => pairs.captions[caption]).join("\n").toLowerCase();
}

/** Images with a text of another pair, each with the similarity that was mined between them. */
function ranked({ entries }, { pairs }) {
  const cards = entries.map(({ image, text: other, value }) =>
    el(
      "article",
      { class: "card" },
      picture(pairs.items[image].after, pairs, `image ${image}`, image),
      el(
        "div",
        { class: "words" },
        el("div", { class: "value" }, short(value)),
        ...words(pairs.items[other].after, pairs, `text ${other}`, 1),
        ...words(pairs.items[image].after, pairs, "its own", 1),
      ),
    ),
  );
  return el("div", { class: pairs.crisp ? "ranked crisp" : "ranked" }, ...cards);
}
