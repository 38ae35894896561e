const ASKED = { image: "Captions that look for their image", text: "Images that look for their caption" };

/** Queries with the best answers of the network; right ones are marked by a tick and in words. */
function retrievals(block) {
  const parts = Object.entries(ASKED).map(([kind, title]) => {
    const entries = block.entries.filter((entry) => entry.kind === kind);
    return entries.length ? [el("h3", {}, title), ...entries.map((entry) => retrieval(entry, block))] : [];
  });
  const list = el("div", { class: block.crisp ? "retrievals crisp" : "retrievals" }, ...parts.flat());
  return [list, saving("retrievals", { CSV: () => csv(retrievalRows(block)) })];
}

function retrieval(entry, block) {
  const verdict = entry.hit ? `✓ found at place ${entry.place}` : `✗ missed: the right one is at place ${entry.place.toLocaleString("en")}`;
  const asked = el(
    "div",
    { class: "asked" },
    entry.kind === "text" ? face(entry.query, block) : el("p", { class: "query" }, said(entry.query, block)),
    el("p", { class: entry.hit ? "verdict hit" : "verdict miss" }, verdict),
  );
  const answers = entry.answers.map((answer, place) => answered(answer, place, block));
  return el("article", { class: `retrieval of-${entry.kind}` }, asked, el("ol", { class: "answers" }, ...answers));
}

function answered(answer, place, block) {
  const beyond = answer.cosine === null;
  const mark = answer.right ? (beyond ? "✓ the right one" : "✓ right") : `${place + 1}`;
  const label = el("span", { class: answer.right ? "mark right" : "mark" }, mark);
  const cosine = beyond ? null : el("span", { class: "quiet" }, ` ${answer.cosine.toFixed(2)}`);
  const kind = [answer.right ? "right" : "", beyond ? "beyond" : ""].join(" ").trim();
  const what = "picture" in answer ? face(answer, block) : el("span", { class: "said" }, said(answer, block));
  return el("li", kind ? { class: kind } : {}, what, el("span", { class: "under small" }, label, cosine));
}

/** An image, or its number where there is none to see. */
function face(look, block) {
  const caption = look.caption === null ? "" : block.captions[look.caption];
  if (look.picture !== null) return zoomable(block.pictures[look.picture], caption ? `${look.name}: ${caption}` : look.name);
  return el("span", { class: "said" }, caption ? el("b", {}, `${look.name} `) : look.name, caption);
}

function said(look, block) {
  return look.caption === null ? look.name : block.captions[look.caption];
}

function retrievalRows(block) {
  const rows = [["query", "asked for", "place of the right one", "answer", "place", "cosine", "right"]];
  for (const { query, kind, place, answers } of block.entries) {
    answers.forEach((answer, i) => {
      const at = answer.cosine === null ? place : i + 1;
      rows.push([`${query.name}: ${said(query, block)}`, kind, place, `${answer.name}: ${said(answer, block)}`, at, answer.cosine, answer.right ? "yes" : "no"]);
    });
  }
  return rows;
}
