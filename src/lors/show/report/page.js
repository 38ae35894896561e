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
function table({ head, rows, fold }) {
  const wordy = head.map((_, i) => rows.some((row) => !/^[\d.,–−]+( |$)/.test(row[i].text)));
  const cell = (tag, content, i, strong) => {
    const kind = [wordy[i] ? "words" : "", strong ? "strong" : ""].join(" ").trim();
    return el(tag, kind ? { class: kind } : {}, content);
  };
  const top = el("tr", {}, ...head.map((title, i) => cell("th", title, i, false)));
  const lines = rows.map((row) => el("tr", {}, ...row.map((c, i) => cell("td", c.text, i, c.strong))));
  const node = el("div", { class: "scroll" }, el("table", {}, el("thead", {}, top), el("tbody", {}, ...lines)));
  return fold ? el("details", {}, el("summary", {}, fold), node) : node;
}

function command({ line }) {
  return el("pre", { class: "command" }, line);
}

function code({ title, text: long }) {
  return el("details", {}, el("summary", {}, title), el("pre", {}, long));
}

const DRAW = { text, tiles, facts, bars, table, curves, gallery, heatmap, ranked, command, code };

/** Draw the page from the data in it. */
function draw(content) {
  const sections = content.sections.map(({ title, blocks }, i) =>
    el("section", { id: `part-${i}` }, el("h2", {}, title), ...blocks.flatMap((block) => DRAW[block.kind](block, content))),
  );
  const links = content.sections.map(({ title }, i) => el("a", { href: `#part-${i}` }, title));
  document.getElementById("top").append(
    el("p", { class: "brand" }, "lors"),
    el("h1", {}, content.title),
    ...content.lead.map((sentence) => el("p", { class: "lead" }, sentence)),
    ...content.notes.map((note) => el("p", { class: "note" }, note)),
    ...[tiles(content.tiles)].flat(),
    el("nav", {}, ...links),
  );
  document.getElementById("main").append(...sections);
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
}

draw(JSON.parse(document.getElementById("content").textContent));
document.documentElement.dataset.ready = Math.round(performance.now());
