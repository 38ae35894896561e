/** Arrow keys as directions on a drawing. */
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Points of a drawing that are picked by a pointer near them, or by arrow keys: each key goes to the
 * nearest point that way. Gives a function that picks a point by its number.
 */
function pickable(drawing, places, show, reach = 30) {
  let current = null;
  const pick = (i) => {
    current = i;
    show(i);
  };
  const at = (event) => {
    if (event.buttons && event.type === "pointermove") return;
    const frame = drawing.getScreenCTM();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(frame.inverse());
    const near = nearest(places, ([a, b]) => Math.hypot(a - x, b - y));
    if (near && near.cost * frame.a <= reach && near.place !== current) pick(near.place);
  };
  drawing.addEventListener("pointermove", at);
  drawing.addEventListener("pointerdown", at);
  drawing.addEventListener("keydown", (event) => {
    const way = DIRECTIONS[event.key];
    if (!way) return;
    event.preventDefault();
    if (current === null) return pick(0);
    const [x, y] = places[current];
    const next = nearest(places, ([a, b]) => {
      const along = (a - x) * way[0] + (b - y) * way[1];
      const across = Math.abs((a - x) * way[1] + (b - y) * way[0]);
      return along > 1e-6 ? along + 2 * across : Infinity;
    });
    if (next) pick(next.place);
  });
  return pick;
}

function nearest(places, cost) {
  let best = null;
  places.forEach((place, i) => {
    const here = cost(place);
    if (here < (best?.cost ?? Infinity)) best = { place: i, cost: here };
  });
  return best;
}
