/** An element of a drawing. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Groups of horizontal bars with deviations, on one scale, with the full data as a dashed line. */
function bars({ groups }) {
  const ends = groups.flatMap((group) => [
    group.reference ?? 0,
    ...group.bars.map((bar) => bar.mean + (bar.deviation ?? 0)),
  ]);
  const percent = (value) => `${(100 * Math.max(0, value)) / (Math.max(...ends) || 1)}%`;
  const drawn = el("div", { class: "bars" }, ...groups.map((group) => barGroup(group, percent)));
  return [drawn, saving("bars", { SVG: () => barsFile(groups), PNG: () => withBars(groups, drawingAsPng) })];
}

function barsFile(groups) {
  return withBars(groups, (drawing) => new Blob([standalone(drawing)], { type: "image/svg+xml" }));
}

/** Bars as one drawing, which is on the page only as long as a file is made of it. */
async function withBars(groups, make) {
  const [width, row, from, to] = [720, 24, 180, 600];
  const high = Math.max(...groups.flatMap(({ bars: all, reference }) => [reference ?? 0, ...all.map((b) => b.mean + (b.deviation ?? 0))])) || 1;
  const at = (value) => from + (Math.max(0, value) / high) * (to - from);
  const parts = [];
  let y = 8;
  for (const { title, bars: all, reference } of groups) {
    if (title) parts.push(svg("text", { class: "heading", x: 8, y: (y += row) - 8 }, title));
    const top = y;
    for (const { name, mean, deviation, label, accent } of all) {
      parts.push(svg("text", { x: from - 8, y: y + 16, "text-anchor": "end" }, name), svg("text", { x: to + 8, y: y + 16 }, label));
      parts.push(svg("rect", { class: accent ? "barfill accented" : "barfill", x: from, y: y + 3, width: at(mean) - from, height: row - 6 }));
      if (deviation) parts.push(svg("path", { class: "spread", d: `M${at(mean - deviation)} ${y + row / 2}H${at(mean + deviation)}` }));
      y += row;
    }
    if (reference !== null) parts.push(svg("line", { class: "level", x1: at(reference), x2: at(reference), y1: top, y2: y }));
  }
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${y + 8}`, width, class: "offstage" }, ...parts);
  document.body.append(drawing);
  try {
    return await make(drawing);
  } finally {
    drawing.remove();
  }
}

function barGroup(group, percent) {
  const node = el("div", {}, group.title ? el("h3", {}, group.title) : null);
  for (const bar of group.bars) {
    const track = el("div", { class: "track" });
    track.append(styled(el("div", { class: "fill" }), { width: percent(bar.mean) }));
    if (bar.deviation) {
      const low = Math.max(0, bar.mean - bar.deviation);
      const ends = { left: percent(low), width: percent(bar.mean + bar.deviation - low) };
      track.append(styled(el("div", { class: "whisker" }), ends));
    }
    if (group.reference !== null) {
      track.append(styled(el("div", { class: "reference" }), { left: percent(group.reference) }));
    }
    node.append(
      el(
        "div",
        { class: bar.accent ? "bar accent" : "bar" },
        el("span", { class: "name" }, bar.name),
        track,
        el("span", { class: "number" }, bar.label),
      ),
    );
  }
  if (group.reference !== null) {
    node.append(el("p", { class: "quiet small" }, `dashed: full data, ${group.reference.toFixed(1)}`));
  }
  return node;
}

/** Small line charts side by side. */
function curves({ charts }) {
  return el("div", { class: "curves" }, ...charts.map(lineChart));
}

const FRAME = { width: 360, height: 210, left: 46, right: 10, top: 8, bottom: 24 };

function lineChart({ title, series }) {
  const points = series.flatMap((line) => line.points);
  const x = axis(points.map((p) => p[0]), FRAME.left, FRAME.width - FRAME.right);
  const y = axis(points.map((p) => p[1]), FRAME.height - FRAME.bottom, FRAME.top);
  const box = `0 0 ${FRAME.width} ${FRAME.height}`;
  const drawing = svg("svg", { viewBox: box, tabindex: 0, role: "application", "aria-label": `${title}: ${ends(series)}. Arrow keys read out values.` });
  for (const tick of y.ticks) {
    const at = y.place(tick);
    drawing.append(
      svg("line", { class: "grid", x1: FRAME.left, x2: FRAME.width - FRAME.right, y1: at, y2: at }),
      svg("text", { x: FRAME.left - 6, y: at + 4, "text-anchor": "end" }, tickText(tick)),
    );
  }
  for (const tick of x.ticks.filter(Number.isInteger)) {
    const place = { x: x.place(tick), y: FRAME.height - 6, "text-anchor": "middle" };
    drawing.append(svg("text", place, tickText(tick)));
  }
  series.forEach((line, place) => drawing.append(...drawLine(line, place, x, y)));
  const readout = el("span", { class: "quiet", role: "status" }, ...legend(series));
  follow(drawing, series, x, readout);
  const rows = () => [["line", "iteration", "value"], ...series.flatMap(({ name, points }) => points.map((point) => [name, ...point]))];
  const tools = saving(title, { ...savingDrawing(title, drawing), CSV: () => csv(rows()) });
  return el("figure", {}, el("figcaption", {}, el("b", {}, title), readout), drawing, tools);
}

/** Where lines begin and end, in words. */
function ends(series) {
  return series
    .map(({ name, points }) => `${name} from ${short(points[0][1])} to ${short(points.at(-1)[1])}`)
    .join(", ");
}

function drawLine({ points }, place, x, y) {
  const path = points.map(([a, b]) => `${x.place(a).toFixed(1)},${y.place(b).toFixed(1)}`);
  const line = svg("polyline", { class: place ? "line second" : "line", points: path.join(" ") });
  if (points.length > 40) return [line];
  const dots = points.map(([a, b]) =>
    svg("circle", { class: "dot", cx: x.place(a), cy: y.place(b), r: place ? 0 : 2.5 }),
  );
  return [line, ...dots];
}

/** A linear axis from the smallest to the largest value, with round ticks. */
function axis(values, from, to) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  const room = high > low ? 0 : Math.abs(high) / 10 || 1;
  [low, high] = [low - room, high + room];
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) ticks.push(Number((n * step).toPrecision(12)));
  return { ticks, place: (v) => from + ((v - low) / (high - low)) * (to - from) };
}

function tickText(value) {
  return Number(value.toPrecision(6)).toLocaleString("en");
}

function legend(series) {
  if (series.length < 2) return [];
  return series.flatMap(({ name }, place) => [
    el("span", { class: place ? "key second" : "key" }),
    `${name} `,
  ]);
}

/** Values at a point or at the arrow keys are read out beside the title. */
function follow(drawing, series, x, readout) {
  const still = [...readout.childNodes];
  const cursor = svg("line", { class: "cursor", y1: FRAME.top, y2: FRAME.height - FRAME.bottom });
  drawing.append(cursor);
  const steps = series[0].points.map(([a]) => [x.place(a), 0]);
  const show = (i) => {
    const at = series[0].points[i][0];
    const near = series.map(({ points }) =>
      points.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best)),
    );
    const values = series.map(({ name }, k) => (series.length > 1 ? `${name} ${short(near[k][1])}` : short(near[k][1])));
    readout.replaceChildren(`${tickText(at)}: ${values.join(", ")}`);
    fill(cursor, { x1: x.place(at), x2: x.place(at) }, []);
    cursor.style.visibility = "visible";
  };
  pickable(drawing, steps, show, Infinity);
  for (const event of ["pointerleave", "blur"]) {
    drawing.addEventListener(event, () => {
      readout.replaceChildren(...still);
      cursor.style.visibility = "hidden";
    });
  }
}
