function text({ paragraphs }) {
  return paragraphs.map((words) => el("p", {}, words));
}

function tiles({ entries }) {
  if (!entries.length) return [];
  const tile = ([number, what]) => el("div", {}, el("dt", {}, what), el("dd", {}, number));
  return el("dl", { class: "tiles" }, ...entries.map(tile));
}

function facts({ entries }) {
  const rows = entries.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  return el("dl", { class: "facts" }, ...rows);
}

/** A table; columns in which a cell does not begin with a number are set as words. */
function table({ head, rows, fold, name = "table" }) {
  const wordy = head.map((_, i) => rows.some((row) => !/^[\d.,–−]+( |$)/.test(row[i].text)));
  const cell = (tag, content, i, strong) => {
    const kind = [wordy[i] ? "words" : "", strong ? "strong" : ""].join(" ").trim();
    return el(tag, kind ? { class: kind } : {}, content);
  };
  const top = el("tr", {}, ...head.map((title, i) => fill(cell(title ? "th" : "td", title, i, false), title ? { scope: "col" } : {}, [])));
  const line = (row) => row.map((c, i) => (i ? cell("td", c.text, i, c.strong) : fill(cell("th", c.text, i, c.strong), { scope: "row" }, [])));
  const lines = rows.map((row) => el("tr", {}, ...line(row)));
  const area = { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${name}` };
  const node = el("div", area, el("table", {}, el("thead", {}, top), el("tbody", {}, ...lines)));
  const tools = saving(name, { CSV: () => csv([head, ...rows.map((row) => row.map((c) => c.text))]) });
  return fold ? el("details", {}, el("summary", {}, fold), node, tools) : [node, tools];
}

function command({ line }) {
  return el("pre", { class: "command" }, line);
}

function code({ title, text: long }) {
  return el("details", {}, el("summary", {}, title), el("pre", {}, long));
}

const DRAW = { text, tiles, facts, bars, table, curves, plot, retrievals, map, gallery, heatmap, ranked, command, code };

/** Draw the page from the data in it. */
function draw(content) {
  if (content.pairs) content.pairs.map = content.sections.flatMap(({ blocks }) => blocks).find(({ kind }) => kind === "map");
  const sections = content.sections.map(({ title, blocks }, i) =>
    el(
      "section",
      { id: `part-${i}`, "aria-labelledby": `title-${i}` },
      el("h2", { id: `title-${i}` }, title),
      ...blocks.flatMap((block) => DRAW[block.kind](block, content)),
    ),
  );
  const links = content.sections.map(({ title }, i) => el("a", { href: `#part-${i}` }, title));
  document.getElementById("top").append(
    el("p", { class: "brand" }, "lors"),
    el("h1", {}, content.title),
    ...content.lead.map((sentence) => el("p", { class: "lead" }, sentence)),
    ...content.notes.map((note) => el("p", { class: "note" }, note)),
    ...[tiles(content.tiles)].flat(),
    el("nav", { "aria-label": "Parts of this page" }, ...links),
  );
  document.getElementById("main").append(...sections);
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
}

draw(JSON.parse(document.getElementById("content").textContent));
document.documentElement.dataset.ready = Math.round(performance.now());
