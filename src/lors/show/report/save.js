/** What a drawing takes from the style sheet of the page, and must carry along when it leaves it. */
const CARRIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "stroke-opacity", "vector-effect", "opacity", "paint-order", "visibility", "font-size", "font-family", "font-weight"];

/** Buttons that save a figure or a table as a file; each kind of file says how it is made. */
function saving(name, kinds) {
  const button = ([kind, make]) => {
    const node = el("button", { type: "button", class: "save", "aria-label": `Save ${name} as ${kind}` }, kind);
    node.addEventListener("click", async () => save(await make(), `${fileName(name)}.${kind.toLowerCase()}`));
    return node;
  };
  return el("div", { class: "saving" }, el("span", { "aria-hidden": "true" }, "Save"), ...Object.entries(kinds).map(button));
}

function savingDrawing(name, drawing) {
  return { SVG: () => new Blob([standalone(drawing)], { type: "image/svg+xml" }), PNG: () => drawingAsPng(drawing) };
}

function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function fileName(name) {
  return `${document.title.replace(/ · lors$/, "")} ${name}`.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}

/** A drawing as a file of its own: as it looks now, on the colour of the page, perhaps larger. */
function standalone(drawing, scale = 1) {
  const copy = drawing.cloneNode(true);
  const from = drawing.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    for (const property of CARRIED) node.setAttribute(property, style.getPropertyValue(property));
    if (style.vectorEffect === "non-scaling-stroke") node.setAttribute("stroke-width", scale * parseFloat(style.strokeWidth));
    node.removeAttribute("class");
  });
  const { x, y, width, height: seen } = drawing.viewBox.baseVal;
  const height = Number(drawing.dataset.height ?? seen);
  const size = { x, y, width, height, fill: getComputedStyle(document.body).backgroundColor };
  copy.prepend(svg("rect", size));
  const { width: shown } = drawing.getBoundingClientRect();
  fill(copy, { viewBox: `${x} ${y} ${width} ${height}`, width: scale * shown, height: (scale * shown * height) / width }, []);
  return new XMLSerializer().serializeToString(copy);
}

async function drawingAsPng(drawing) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(drawing, 2))}`;
  await image.decode();
  const canvas = el("canvas", { width: image.width, height: image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvasAsPng(canvas);
}

function canvasAsPng(canvas) {
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Rows of values as CSV. Text that a spreadsheet would take for a formula gets an apostrophe. */
function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const formula = /^[=+@\t\r]/.test(text) || (text.startsWith("-") && Number.isNaN(Number(text)));
    return `"${(formula ? "'" : "") + text.replaceAll('"', '""')}"`;
  };
  const lines = rows.map((row) => row.map(cell).join(","));
  return new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" });
}
