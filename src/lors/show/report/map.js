const GRID = 10000;
const MARGIN = 400;
const WHOLE = [-MARGIN, -MARGIN, GRID + 2 * MARGIN, GRID + 2 * MARGIN];
const DEEPEST = 32;

/** Places as a path of points: a stroke of no length is a dot, or a square, as wide as the stroke. */
function points(flat) {
  let path = "";
  for (let i = 0; i < flat.length; i += 2) path += `M${flat[i]} ${GRID - flat[i + 1]}h.1`;
  return path;
}

function placeOf(flat, i) {
  return [flat[2 * i], GRID - flat[2 * i + 1]];
}

/** The set among the real pairs: two views of the same pairs, with what is pointed at beside them. */
function map(block, { pairs }) {
  const own = block.views[0].after.length / 2;
  const shown = el("div", { class: pairs.crisp ? "card crisp" : "card", role: "status" });
  shown.append(el("p", { class: "quiet" }, "Point at a dot or a square to see its pair."));
  const panels = block.views.map((view) => mapPanel(view));
  const entry = (i) => (i < own ? ownEntry(pairs, i) : realEntry(block, pairs, i - own));
  const show = (i) => {
    panels.forEach((panel) => panel.mark(i));
    shown.classList.add("picked-pair");
    shown.replaceChildren(...entry(i));
  };
  for (const panel of panels) panel.pick(show);
  const views = panels.map(({ title, drawing, zoom }) => {
    const tools = el("div", { class: "figuretools" }, zoom, saving(`map of ${title.toLowerCase()}`, savingDrawing(title, drawing)));
    return el("figure", {}, el("figcaption", {}, el("b", {}, title)), drawing, tools);
  });
  const help = "Arrow keys go from pair to pair, + and − zoom, 0 shows all. In a view that was clicked, the wheel zooms and dragging moves.";
  const legend = el("p", { class: "quiet small" }, el("span", { class: "dotkey" }), "real pair ", el("span", { class: "squarekey" }), "pair of the set. ", help);
  const table = saving("places on the map", { CSV: () => csv(mapRows(block, pairs, own)) });
  return [legend, el("div", { class: "map-views" }, ...views, shown), table];
}

function mapPanel(view) {
  const drawing = svg("svg", {
    viewBox: WHOLE.join(" "),
    class: "mapview",
    tabindex: 0,
    role: "application",
    "aria-label": `Map of ${view.title.toLowerCase()}: ${view.real.length / 2} real pairs, ${view.after.length / 2} of the set. Arrow keys go from pair to pair.`,
  });
  const marks = ["trail", "ring ring-out", "ring ring-in"].map((kind) => svg("path", { class: kind, d: "" }));
  drawing.append(
    svg("path", { class: "real", d: points(view.real) }),
    svg("path", { class: "own-edge", d: points(view.after) }),
    svg("path", { class: "own", d: points(view.after) }),
    ...marks,
  );
  const places = [];
  for (const flat of [view.after, view.real]) {
    for (let i = 0; i < flat.length / 2; i++) places.push(placeOf(flat, i));
  }
  const { zoom, reveal } = zooming(drawing);
  const mark = (i) => {
    const [x, y] = places[i];
    const own = i < view.after.length / 2;
    const from = own && view.before ? placeOf(view.before, i) : null;
    marks[0].setAttribute("d", from ? `M${from[0]} ${from[1]}L${x} ${y}` : "");
    for (const ring of marks.slice(1)) ring.setAttribute("d", `M${x} ${y}h.1`);
    marks[2].classList.toggle("of-own", own);
    reveal(x, y);
  };
  return { title: view.title, drawing, zoom, mark, pick: (show) => pickable(drawing, places, show) };
}

/** Zoom and move a drawing, by buttons, keys, the wheel and dragging. */
function zooming(drawing) {
  let [left, top, side] = WHOLE;
  const set = () => drawing.setAttribute("viewBox", `${left} ${top} ${side} ${side}`);
  const around = (x, y, factor) => {
    const next = Math.min(WHOLE[2], Math.max(WHOLE[2] / DEEPEST, side / factor));
    left = keep(x - ((x - left) * next) / side, next);
    top = keep(y - ((y - top) * next) / side, next);
    side = next;
    set();
  };
  const keep = (start, size) => Math.min(Math.max(start, WHOLE[0]), WHOLE[0] + WHOLE[2] - size);
  const middle = (factor) => around(left + side / 2, top + side / 2, factor);
  const reset = () => middle(1 / DEEPEST);
  const reveal = (x, y) => {
    if (x > left && x < left + side && y > top && y < top + side) return;
    left = keep(x - side / 2, side);
    top = keep(y - side / 2, side);
    set();
  };
  drawing.addEventListener("keydown", (event) => {
    const act = { "+": () => middle(1.6), "=": () => middle(1.6), "-": () => middle(1 / 1.6), 0: reset }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  drawing.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== drawing) return;
      event.preventDefault();
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
      around(x, y, Math.exp(-event.deltaY / 300));
    },
    { passive: false },
  );
  drawing.addEventListener("pointermove", (event) => {
    if (!(event.buttons & 1) || event.pointerType === "touch") return;
    const { a } = drawing.getScreenCTM();
    left = keep(left - event.movementX / a, side);
    top = keep(top - event.movementY / a, side);
    set();
  });
  const button = (label, sign, act) => {
    const node = el("button", { type: "button", "aria-label": label, title: label }, sign);
    node.addEventListener("click", act);
    return node;
  };
  const zoom = el("div", { class: "zooming" }, button("Zoom in", "+", () => middle(1.6)), button("Zoom out", "−", () => middle(1 / 1.6)), button("Show all", "All", reset));
  return { zoom, reveal };
}

function ownEntry(pairs, i) {
  const pair = pairs.items[i];
  return [
    el("div", {}, el("b", {}, `Pair ${i} of the set`)),
    pair.after.picture === null ? el("p", { class: "small" }, pair.after.name) : picture(pair.after, pairs, `pair ${i}`),
    el("div", { class: "words" }, ...words(pair.after, pairs)),
    pair.before ? el("p", { class: "quiet small" }, "The line leads from where it began.") : null,
  ].filter(Boolean);
}

function realEntry(block, pairs, i) {
  const caption = block.captions ? pairs.captions[block.captions[i]] : "";
  return [
    el("div", {}, el("b", {}, `Real pair ${block.index[i]}`)),
    block.sprite ? tile(block.sprite, i, caption) : null,
    caption ? el("p", { class: "small" }, caption) : null,
  ].filter(Boolean);
}

/** One picture of a sprite. */
function tile(sprite, i, alt) {
  sprite.image ??= Object.assign(new Image(), { src: sprite.uri });
  const { side, columns, image } = sprite;
  const canvas = el("canvas", { class: "tile", width: side, height: side, role: "img", "aria-label": alt || "real image" });
  image.decode().then(() => {
    canvas.getContext("2d").drawImage(image, (i % columns) * side, Math.floor(i / columns) * side, side, side, 0, 0, side, side);
  });
  return canvas;
}

function mapRows(block, pairs, own) {
  const places = (kind, i) => block.views.flatMap((view) => (view[kind] ? [view[kind][2 * i], view[kind][2 * i + 1]] : ["", ""]));
  const rows = [["kind", "number", "image x", "image y", "text x", "text y", "caption"]];
  for (let i = 0; i < own; i++) {
    const [first] = pairs.items[i].after.texts;
    rows.push(["set", i, ...places("after", i), first ? pairs.captions[first[0]] : ""]);
  }
  block.index.forEach((number, i) => rows.push(["real", number, ...places("real", i), block.captions ? pairs.captions[block.captions[i]] : ""]));
  return rows;
}

/** Where a pair is on the map, small: instead of a picture where there is none. */
function miniature(block, view, number) {
  const { title, real, after, before } = block.views[view];
  const every = Math.ceil(real.length / 800);
  const few = real.filter((_, i) => (i >> 1) % every === 0);
  const drawing = svg("svg", { viewBox: WHOLE.join(" "), class: "mapview small", role: "img", "aria-label": `pair ${number} on the map of ${title.toLowerCase()}` });
  drawing.append(svg("path", { class: "real", d: points(few) }));
  const [x, y] = placeOf(after, number);
  if (before) {
    const [a, b] = placeOf(before, number);
    drawing.append(svg("path", { class: "trail", d: `M${a} ${b}L${x} ${y}` }));
    drawing.append(svg("path", { class: "ring ring-out", d: `M${a} ${b}h.1` }), svg("path", { class: "ring ring-in", d: `M${a} ${b}h.1` }));
  }
  drawing.append(svg("path", { class: "own-edge", d: `M${x} ${y}h.1` }), svg("path", { class: "own", d: `M${x} ${y}h.1` }));
  return drawing;
}
