/** How lines and marks of a plot differ: by colour, by shape and by dashes; the rest are grey. */
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "star"];
/** On a phone, a plot is narrower instead of smaller, and names of levels stand within it. */
const SLIM = matchMedia("(max-width: 44rem)").matches;
const PLOT = { width: SLIM ? 400 : 800, height: SLIM ? 340 : 420, left: SLIM ? 46 : 56, right: SLIM ? 10 : 110, top: 16, bottom: 48 };

/** Numbers of methods against a cost, with what is pointed at read out, and a table of all. */
function plot({ title, x, y, series, levels, front, table: numbers }) {
  const all = series.flatMap((one, k) => one.points.map(([a, b, deviation, label]) => ({ k, a, b, deviation, label })));
  const across = costAxis(x, all.map(({ a }) => a));
  if (x.ticks.length) across.ticks = x.ticks;
  const heights = [0, ...levels.map(({ value }) => value), ...all.map(({ b, deviation }) => b + (deviation ?? 0))];
  const up = axis(heights, PLOT.height - PLOT.bottom, PLOT.top);
  const drawing = svg("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, class: "plot", tabindex: 0, role: "application", "aria-label": `${title}. Arrow keys go from point to point; the table below has all numbers.` });
  drawing.append(...frameOf(x, y, across, up));
  const named = levels.map(({ name, value }, i) => level(name, value, up, i));
  drawing.append(...named.map(([line]) => line));
  if (front.length > 1) drawing.append(frontLine(front, across, up));
  const groups = series.map((one, k) => drawSeries(one, k, across, up));
  drawing.append(...groups, ...named.map(([, name]) => name));
  drawing.append(...legendBelow(series, drawing));
  const ring = svg("circle", { class: "picked", r: 9, cx: -20, cy: -20 });
  drawing.append(ring);
  const readout = el("p", { class: "small readout", role: "status" }, "Point at a mark to read it.");
  pickable(drawing, all.map(({ a, b }) => [across.place(a), up.place(b)]), (i) => {
    const { k, a, b, label } = all[i];
    fill(ring, { cx: across.place(a), cy: up.place(b) }, []);
    readout.replaceChildren(el("b", {}, series[k].name), ` ${label}`);
  });
  const tools = saving(title, savingDrawing(title, drawing));
  const names = el("div", { class: "names" }, ...series.map((one, k) => nameOf(one, k, groups)));
  return [el("figure", { class: "plotted" }, el("figcaption", {}, el("b", {}, title)), drawing, readout, names, tools), ...[table(numbers)].flat()];
}

function look(k) {
  return k < SHAPES.length ? `s${k}` : "rest";
}

/** An axis of costs: by ratio where they span more than a factor of four, with a place for nothing. */
function costAxis({ ratio }, values) {
  const [from, to] = [PLOT.left + 14, PLOT.width - PLOT.right - 14];
  if (!ratio) return axis(values, from, to);
  const some = values.filter((v) => v > 0);
  const [low, high] = [Math.log(Math.min(...some)), Math.log(Math.max(...some))];
  const none = values.some((v) => v <= 0);
  const start = none ? from + 70 : from;
  const place = (v) => (v <= 0 ? from : start + ((Math.log(v) - low) / (high - low || 1)) * (to - start));
  return { ticks: [...(none ? [0] : []), ...ratioTicks(Math.exp(low), Math.exp(high))], place };
}

function ratioTicks(low, high) {
  const ticks = [];
  for (const steps of [[1], [1, 3], [1, 2, 5]]) {
    ticks.length = 0;
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const step of steps) ticks.push(Number((step * 10 ** power).toPrecision(3)));
    }
    const inside = ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
    if (inside.length >= 3 || steps.length === 3) return inside.length ? inside : [low, high];
  }
}

function costText(value, unit) {
  if (unit === "bytes") return bytes(value);
  if (unit === "seconds") return value <= 0 ? "none" : seconds(value);
  return tickText(value);
}

function bytes(value) {
  const power = value >= 1e9 ? 3 : value >= 1e6 ? 2 : value >= 1e3 ? 1 : 0;
  return `${Number((value / 1000 ** power).toPrecision(3))} ${["B", "kB", "MB", "GB"][power]}`;
}

function seconds(value) {
  if (value < 120) return `${Number(value.toPrecision(2))} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${Number((value / 3600).toPrecision(2))} h`;
}

function frameOf(x, y, across, up) {
  const parts = up.ticks.flatMap((tick) => [
    svg("line", { class: "grid", x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: up.place(tick), y2: up.place(tick) }),
    svg("text", { x: PLOT.left - 8, y: up.place(tick) + 4, "text-anchor": "end" }, tickText(tick)),
  ]);
  const below = PLOT.height - PLOT.bottom;
  for (const tick of across.ticks) {
    parts.push(svg("line", { class: "grid", x1: across.place(tick), x2: across.place(tick), y1: below, y2: below + 5 }));
    parts.push(svg("text", { x: across.place(tick), y: below + 19, "text-anchor": "middle" }, costText(tick, x.unit)));
  }
  parts.push(svg("text", { x: (PLOT.left + PLOT.width - PLOT.right) / 2, y: PLOT.height - 6, "text-anchor": "middle" }, x.label));
  const middle = (PLOT.top + below) / 2;
  parts.push(svg("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, y));
  return parts;
}

function level(name, value, up, i) {
  const at = up.place(value);
  const end = PLOT.width - PLOT.right;
  const named = SLIM ? { x: end, y: at - 5, "text-anchor": "end" } : { x: end + 6, y: at + 4 };
  return [
    svg("line", { class: `level level-${i}`, x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: at, y2: at }),
    svg("text", { class: "levelname", ...named }, `${name} ${value.toFixed(1)}`),
  ];
}

/** The best that can be had at each cost: steps through the points that none beats in both. */
function frontLine(front, across, up) {
  let path = "";
  for (const [a, b] of front) path += path ? `H${across.place(a)}V${up.place(b)}` : `M${across.place(a)} ${up.place(b)}`;
  return svg("path", { class: "front", d: path });
}

function drawSeries({ points, joined }, k, across, up) {
  const group = svg("g", { class: `series ${look(k)}` });
  const at = points.map(([a, b, deviation]) => [across.place(a), up.place(b), deviation, b]);
  if (joined) group.append(svg("polyline", { class: "join", points: at.map(([a, b]) => `${a},${b}`).join(" ") }));
  for (const [a, b, deviation, value] of at) {
    if (deviation && joined) group.append(svg("line", { class: "deviation", x1: a, x2: a, y1: up.place(value - deviation), y2: up.place(value + deviation) }));
    group.append(shape(k, a, b));
  }
  return group;
}

/** A mark of its own for each of the first methods. */
function shape(k, x, y) {
  const r = 5;
  const at = (...corners) => svg("polygon", { class: "mark", points: corners.map(([a, b]) => `${x + a * r},${y + b * r}`).join(" ") });
  const strokes = (d) => svg("path", { class: "mark open", d });
  switch (SHAPES[k]) {
    case "circle":
      return svg("circle", { class: "mark", cx: x, cy: y, r });
    case "square":
      return at([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]);
    case "triangle":
      return at([0, -1.2], [1.1, 0.9], [-1.1, 0.9]);
    case "diamond":
      return at([0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]);
    case "cross":
      return strokes(`M${x - r} ${y}h${2 * r}M${x} ${y - r}v${2 * r}`);
    case "star":
      return strokes(`M${x - 4} ${y - 4}l8 8M${x + 4} ${y - 4}l-8 8M${x - r} ${y}h${2 * r}`);
    default:
      return svg("circle", { class: "mark", cx: x, cy: y, r: 3 });
  }
}

/** The legend inside a drawing, below what the page shows of it: a saved file has room for it. */
function legendBelow(series, drawing) {
  const [columns, row] = [SLIM ? 2 : 4, 22];
  drawing.dataset.height = PLOT.height + row * Math.ceil(series.length / columns) + 8;
  return series.flatMap(({ name }, k) => {
    const x = PLOT.left + ((k % columns) * (PLOT.width - PLOT.left)) / columns;
    const y = PLOT.height + 12 + row * Math.floor(k / columns);
    return [svg("g", { class: `series ${look(k)}` }, shape(k, x, y)), svg("text", { x: x + 12, y: y + 4 }, name)];
  });
}

/** An entry of the legend, which lifts its line out of the others while it has pointer or focus. */
function nameOf({ name }, k, groups) {
  const sign = svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("g", { class: `series ${look(k)}` }, shape(k, 8, 8)));
  const node = el("button", { type: "button" }, sign, name);
  const lift = (on) => groups.forEach((group, other) => {
    group.classList.toggle("faded", on && other !== k);
    group.classList.toggle("lifted", on && other === k);
  });
  for (const [event, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) node.addEventListener(event, () => lift(on));
  return node;
}
