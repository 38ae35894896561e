/** Below, at and above zero, as red, green and blue; and cells that have no value. */
const COLOURS = {
  light: { low: [22, 110, 128], zero: [250, 250, 248], high: [196, 74, 20], none: [214, 214, 210] },
  dark: { low: [66, 178, 196], zero: [28, 31, 36], high: [244, 132, 66], none: [58, 62, 70] },
};

/** S as two pictures: its diagonal around 1, and its residual around 0. */
function heatmap({ diagonal, diagonal_limit: spread, residual }, { pairs }) {
  const size = diagonal.length;
  const shown = el("div", { class: pairs.crisp ? "card crisp" : "card", role: "status" });
  shown.append(el("p", { class: "quiet" }, "Point at a cell to see its image, its text and their similarity."));
  const strip = el("canvas", { class: "strip", width: size, height: 1, tabindex: 0, role: "application", "aria-label": "Diagonal of S. Arrow keys go from pair to pair." });
  const maps = el("div", {}, el("h3", {}, "Diagonal, around 1"), strip, key(1 - spread, 1 + spread));
  const steps = residual ? decode(residual.steps) : null;
  const draws = [() => paint(strip, diagonal.map((v) => (v - 1) / spread))];
  pointed(strip, size, 1, (i) => inspect(shown, pairs, i, i, diagonal[i]));
  if (residual) {
    const at = (i, j) => steps[i * size + j] * residual.step;
    const canvas = el("canvas", { class: "residual", width: size, height: size, tabindex: 0, role: "application", "aria-label": "Residual of S. Arrow keys go from cell to cell." });
    const marker = el("div", { class: "marker" });
    const around = el("div", { class: "map" }, canvas, marker);
    maps.append(el("h3", {}, "Residual, around 0"), around, key(-residual.limit, residual.limit));
    maps.append(el("p", { class: "quiet small" }, "Rows are images, columns are texts. Arrow keys move."));
    const shade = (place) => (place % (size + 1) ? (steps[place] * residual.step) / residual.limit : null);
    draws.push(() => paint(canvas, Array.from(steps, (_, place) => shade(place))));
    pointed(canvas, size, size, (j, i) => {
      mark(marker, i, j, size);
      inspect(shown, pairs, i, j, i === j ? diagonal[i] : at(i, j));
    });
  }
  repaint(() => draws.forEach((draw) => draw()));
  const value = (i, j) => (i === j ? diagonal[i] : residual ? steps[i * size + j] * residual.step : 0);
  const rows = () => diagonal.map((_, i) => diagonal.map((_, j) => Number(value(i, j).toPrecision(6))));
  const kinds = { PNG: () => canvasAsPng(maps.querySelector("canvas.residual") ?? strip), CSV: () => csv(rows()) };
  maps.append(saving("similarity", kinds));
  return el("div", { class: "heatmap" }, maps, shown);
}

function decode(text) {
  return new Int16Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

/** Paint values between −1 and 1, one pixel each; null is a cell without a value. */
function paint(canvas, values) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const colours = COLOURS[inDark() ? "dark" : "light"];
  values.forEach((value, place) => {
    image.data.set(value === null ? colours.none : mixed(value, colours), 4 * place);
    image.data[4 * place + 3] = 255;
  });
  context.putImageData(image, 0, 0);
}

function mixed(value, { low, zero, high }) {
  const share = Math.min(1, Math.abs(value));
  const end = value < 0 ? low : high;
  return zero.map((from, channel) => from + share * (end[channel] - from));
}

let printing = false;

function inDark() {
  return !printing && matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Paint now, and again when the colours of the page change: dark, light, or paper. */
function repaint(draw) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  for (const [event, onPaper] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      printing = onPaper;
      draw();
    });
  }
}

/** The colours of a map from its lowest to its highest value. */
function key(low, high) {
  const scale = el("canvas", { width: 101, height: 1, "aria-hidden": "true" });
  repaint(() => paint(scale, Array.from({ length: 101 }, (_, i) => i / 50 - 1)));
  return el("div", { class: "legend" }, short(low), scale, short(high));
}

/** Call with column and row of the cell that is pointed at, tapped, or reached by arrow keys. */
function pointed(canvas, columns, rows, show) {
  let [column, row] = [0, 0];
  const go = (x, y) => {
    column = Math.max(0, Math.min(columns - 1, x));
    row = Math.max(0, Math.min(rows - 1, y));
    show(column, row);
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const along = (event.clientX - box.left) / box.width;
    const down = (event.clientY - box.top) / box.height;
    go(Math.floor(along * columns), Math.floor(down * rows));
  };
  canvas.addEventListener("pointermove", at);
  canvas.addEventListener("pointerdown", at);
  canvas.addEventListener("keydown", (event) => {
    const step = DIRECTIONS[event.key];
    if (!step) return;
    event.preventDefault();
    go(column + step[0], row + step[1]);
  });
}

function mark(marker, row, column, size) {
  const part = (n) => `${(100 * n) / size}%`;
  const side = `max(6px, ${part(1)})`;
  styled(marker, { left: part(column), top: part(row), width: side, height: side, visibility: "visible" });
}

/** What a cell of S is about. */
function inspect(shown, pairs, i, j, value) {
  shown.replaceChildren(
    el("div", {}, el("div", { class: "value" }, short(value)), el("div", { class: "quiet small" }, `image ${i}, text ${j}${i === j ? ": a pair" : ""}`)),
    picture(pairs.items[i].after, pairs, `image ${i}`, i),
    el("div", { class: "words" }, ...words(pairs.items[j].after, pairs, `text ${j}`)),
  );
}
