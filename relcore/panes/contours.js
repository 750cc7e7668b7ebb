/* Contours: lines about the places where most rows lie, on a map whose points hide each other. They are computed when the map rests, not while
   it moves. If the view moves, the lines move with it. */

const SHARES = [0.25, 0.5, 0.75, 0.95]; // of the rows in view, within each line
const SIDE = 4; // pixels of a bin
const AROUND_VIEW = 8; // bins beyond each edge of the view; without them, lines would run along the edges
const CROWDED = 3; // rows in the bin of an average row from which lines come by themselves,
const MANY = 5000; // number of rows

/* How many rows lie in each bin of a rectangle [left, low, right, high] of units, (columns × lines) from above. */
function binned(units, leaves, [left, low, right, high], columns, lines) {
  const bins = new Float32Array(columns * lines);
  const [across, up] = [columns / (right - left), lines / (high - low)];
  for (let row = 0; 2 * row < units.length; row++) {
    const [column, line] = [Math.floor((units[2 * row] - left) * across), Math.floor((high - units[2 * row + 1]) * up)];
    if (column >= 0 && line >= 0 && column < columns && line < lines && !leaves(row)) bins[line * columns + column]++;
  }
  return bins;
}

/* The mean number of rows in the bin of a row, itself included; 0 without rows. */
function crowding(bins) {
  let [rows, squares] = [0, 0];
  for (const count of bins) [rows, squares] = [rows + count, squares + count * count];
  return squares / (rows || 1);
}

/* Bins after three means over five neighbours in each direction, nearly a Gaussian of 2.4 bins. */
function smoothed(bins, columns, lines) {
  for (let pass = 0; pass < 6; pass++) {
    const [step, length] = pass % 2 ? [columns, lines] : [1, columns];
    const means = new Float32Array(bins.length);
    for (let at = 0; at < bins.length; at++) {
      const place = Math.floor(at / step) % length;
      for (let k = -2; k <= 2; k++) if (place + k >= 0 && place + k < length) means[at] += bins[at + k * step] / 5;
    }
    bins = means;
  }
  return bins;
}

/* The density within which each share of all rows lies. */
function levelsOf(bins) {
  const falling = bins.slice().sort().reverse();
  const rows = falling.reduce((sum, count) => sum + count, 0);
  let [at, within] = [-1, 0];
  return SHARES.map((share) => {
    while (within < share * rows && at + 1 < falling.length) within += falling[++at];
    return falling[Math.max(at, 0)];
  });
}

/* The line of a level as pieces [x, y, x, y] between the middles of bins, by marching squares (Lorensen & Cline 1987, in the plane). */
function outline(bins, columns, lines, level) {
  const pieces = [];
  for (let line = 0; line < lines - 1; line++) {
    for (let column = 0; column < columns - 1; column++) {
      const at = line * columns + column;
      const inside = (bins[at] >= level) + (bins[at + 1] >= level) + (bins[at + columns] >= level) + (bins[at + columns + 1] >= level);
      if (inside === 0 || inside === 4) continue;
      const corners = [[0, 0], [1, 0], [1, 1], [0, 1]];
      const ends = corners.flatMap(([x, y], i) => {
        const [toX, toY] = corners[(i + 1) % 4];
        const [here, there] = [bins[at + y * columns + x], bins[at + toY * columns + toX]];
        if (here >= level === there >= level) return [];
        const share = (level - here) / (there - here);
        return [column + x + share * (toX - x), line + y + share * (toY - y)];
      });
      for (let i = 0; i < ends.length; i += 4) pieces.push(ends.slice(i, i + 4));
    }
  }
  return pieces;
}

class Contours {
  constructor(pane) {
    this.pane = pane;
    this.root = element("path", "ls-contours", { "vector-effect": "non-scaling-stroke" });
    this.forget();
  }

  /* Whether there are lines. */
  get shown() {
    return this.root.hasAttribute("d");
  }

  /* Places or looks of rows have changed, so compute the lines again. With `moved`, also remove those that are drawn. */
  forget(moved = true) {
    this.made = null;
    if (moved) this.root.removeAttribute("d");
  }

  /* Move the lines with the view. Once the map rests, compute the lines of the new view. */
  place(width, height) {
    const { pane } = this;
    const { following, glide, solid, owner, view } = pane;
    clearTimeout(this.timer);
    if (following || glide || solid || owner.density === false) return this.forget();
    const [[x, y], [endX, endY]] = [pane.place(0, 0, width, height), pane.place(1, 1, width, height)];
    this.root.setAttribute("transform", `matrix(${endX - x} 0 0 ${endY - y} ${x} ${y})`);
    const wanted = JSON.stringify([view, width, height, owner.density]);
    if (this.made !== wanted) this.timer = setTimeout(() => this.make(wanted, width, height), REST);
  }

  make(wanted, width, height) {
    const { pane } = this;
    const { owner, units, flags } = pane;
    this.made = wanted;
    const [columns, lines] = [width, height].map((size) => Math.ceil(size / SIDE) + 2 * AROUND_VIEW);
    const [[left, high], [right, low]] = [pane.unit(-SIDE * AROUND_VIEW, -SIDE * AROUND_VIEW), pane.unit(SIDE * (columns - AROUND_VIEW), SIDE * (lines - AROUND_VIEW))];
    const { out } = owner.filter;
    const bins = binned(units, (row) => flags[row] & HIDDEN || out?.[row], [left, low, right, high], columns, lines);
    if (owner.density || (units.length > 2 * MANY && crowding(bins) >= CROWDED)) {
      const dense = smoothed(bins, columns, lines);
      const [across, up] = [(right - left) / columns, (high - low) / lines];
      const point = (x, y) => `${(left + (x + 0.5) * across).toPrecision(5)} ${(high - (y + 0.5) * up).toPrecision(5)}`;
      const pieces = levelsOf(dense).flatMap((level) => outline(dense, columns, lines, level));
      this.root.setAttribute("d", pieces.map(([x, y, toX, toY]) => `M${point(x, y)}L${point(toX, toY)}`).join(""));
    } else this.root.removeAttribute("d");
    pane.redraw(); // the switch and the corner of the pane say whether there are lines
  }
}

/* The rows that lie on one spot, the largest heaps first: rows whose steps of the full range are equal, [[row, row, …], …]. */
function heapsOf(units) {
  const steps = stepsOf(units);
  const n = steps.length / 2;
  const keys = Float64Array.from({ length: n }, (_, row) => (steps[2 * row] * (STEPS + 1) + steps[2 * row + 1]) * n + row).sort();
  const heaps = [];
  for (let at = 0, end = 1; at < n; at = end++) {
    const spot = Math.floor(keys[at] / n);
    while (end < n && Math.floor(keys[end] / n) === spot) end++;
    if (end > at + 1) heaps.push(Array.from(keys.subarray(at, end), (key) => key - spot * n));
  }
  return heaps.sort((a, b) => b.length - a.length);
}
