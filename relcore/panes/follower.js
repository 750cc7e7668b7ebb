/* Follower: the answers to a hand that drags an anchor in a file, which has no server: the same maps and scores as `relcore.compare.live`, of
   the unit rows of each model, which the file holds as float16. For few anchors. */

const STEPS_OF_AXES = 300; // of a power iteration, which begins from the last axes
const QUERIES = 300; // number of rows, evenly spaced, whose own row is searched in the other model
const NEAREST = 10; // rows that light up; a row that ranks lower counts nothing in the scores

class Follower {
  constructor({ n, live }, take) {
    Object.assign(this, { n, live, columns: new Map(), axes: [] });
    const known = halves();
    this.units = live.widths.map((_, side) => Float32Array.from(take(`units${side}`, Uint16Array), (one) => known[one]));
    this.onto = live.panes.map((pane) => take(`pane${pane}`));
  }

  /* The similarities (n) of all rows of a model to one of them, and their mean. */
  column(side, row) {
    const key = `${side} ${row}`;
    const found = this.columns.get(key);
    if (found) return found;
    const { n, units: { [side]: units }, live: { widths: { [side]: d } } } = this;
    const values = new Float32Array(n);
    let sum = 0;
    for (let i = 0; i < n; i++) {
      let product = 0;
      for (let j = 0, at = i * d, to = row * d; j < d; j++) product += units[at++] * units[to++];
      sum += values[i] = product;
    }
    const made = { values, mean: sum / n };
    this.columns.set(key, made);
    if (this.columns.size > 200) this.columns.delete(this.columns.keys().next().value);
    return made;
  }

  columnsOf(side, anchors) {
    return anchors.map((row) => this.column(side, row));
  }

  /* The maps (2n) of the panes that follow, x and y in turn. */
  maps(anchors) {
    const sides = this.units.map((_, side) => this.columnsOf(side, anchors));
    const drawn = {};
    return this.live.panes.map((_, i) => {
      const [representation, side] = [this.live.representations[i], i % sides.length];
      if (representation === "two") return interleaved(sides[side][0].values, (sides[side][1] ?? sides[side][0]).values);
      const axes = side && this.live.shared ? drawn.axes : this.leading(side, sides[side]);
      const origin = (side && this.live.shared ? sides[0] : sides[side]).map(({ mean }) => mean);
      const map = projected(sides[side], origin, axes);
      const turn = side && this.live.shared ? drawn.turn : turnOnto(map, side ? drawn.map : this.onto[i]);
      turned(map, turn);
      if (!side) Object.assign(drawn, { axes, turn, map });
      return map;
    });
  }

  /* The first two principal axes of the relative rows. */
  leading(side, columns) {
    const k = columns.length;
    const scatter = columns.map((one) => columns.map((other) => products(one, other)));
    let axes = this.axes[side]?.[0].length === k ? this.axes[side] : [columns.map((_, i) => 1 + i / k), columns.map((_, i) => (i % 2 ? 1 : -1))];
    const times = (axis) => scatter.map((row) => dot(row, axis));
    for (let step = 0; step < STEPS_OF_AXES; step++) axes = orthonormal(axes.map(times));
    const [first, second] = axes; // they span the plane; within it the axes are those of a 2 × 2 matrix
    const [a, b, c] = [dot(first, times(first)), dot(first, times(second)), dot(second, times(second))];
    const angle = 0.5 * Math.atan2(2 * b, a - c);
    const mix = (x, y) => first.map((value, i) => x * value + y * second[i]);
    return (this.axes[side] = [mix(Math.cos(angle), Math.sin(angle)), mix(-Math.sin(angle), Math.cos(angle))]);
  }

  /* The rows nearest to one, the nearest first. */
  near(side, row) {
    const { values } = this.column(side, row);
    const best = [];
    for (let i = 0; i < this.n; i++) {
      if (best.length === NEAREST && values[i] <= values[best[NEAREST - 1]]) continue;
      const place = best.findIndex((one) => values[one] < values[i]);
      best.splice(place < 0 ? best.length : place, 0, i);
      if (best.length > NEAREST) best.pop();
    }
    return best;
  }

  /* The share of rows that are their own nearest one in the other model, the mean reciprocal rank, and linear CKA, without the anchors. */
  scores(anchors) {
    const left = new Set(anchors);
    const rows = Array.from({ length: this.n }, (_, row) => row).filter((row) => !left.has(row));
    const sides = [0, 1].map((side) => this.columnsOf(side, anchors).map(({ values }) => Float32Array.from(rows, (row) => values[row])));
    const centred = sides.map((columns) => columns.map((values) => ({ values, mean: values.reduce((sum, one) => sum + one, 0) / rows.length })));
    const squares = (one, other) => one.reduce((sum, x) => sum + other.reduce((part, y) => part + products(x, y) ** 2, 0), 0);
    const cka = squares(...centred) / Math.sqrt(squares(centred[0], centred[0]) * squares(centred[1], centred[1]));
    if (anchors.length < 2) return [NaN, NaN, cka];
    for (const columns of sides) toLengthOne(columns);
    const step = Math.max(1, rows.length / QUERIES);
    let [asked, own, ranks] = [0, 0, 0];
    for (let query = 0; query < rows.length; query += step) {
      const rank = rankOf(Math.floor(query), ...sides);
      asked++;
      if (rank === 1) own++;
      if (rank <= NEAREST) ranks += 1 / rank;
    }
    return [own / asked, ranks / asked, cka];
  }
}

const dot = (one, other) => one.reduce((sum, value, i) => sum + value * other[i], 0);

/* Σ (x − x̄)(y − ȳ) of two columns. */
function products({ values, mean }, other) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * other.values[i];
  return sum - values.length * mean * other.mean;
}

function orthonormal([first, second]) {
  const unit = (axis) => ((length) => axis.map((value) => value / length))(Math.hypot(...axis) || 1);
  const one = unit(first);
  const along = dot(one, second);
  return [one, unit(second.map((value, i) => value - along * one[i]))];
}

function interleaved(x, y) {
  const both = new Float32Array(2 * x.length);
  for (let i = 0; i < x.length; i++) [both[2 * i], both[2 * i + 1]] = [x[i], y[i]];
  return both;
}

function projected(columns, origin, [first, second]) {
  const map = new Float32Array(2 * columns[0].values.length);
  columns.forEach(({ values }, j) => {
    for (let i = 0; i < values.length; i++) {
      map[2 * i] += (values[i] - origin[j]) * first[j];
      map[2 * i + 1] += (values[i] - origin[j]) * second[j];
    }
  });
  return map;
}

/* The turn or reflection [xx, xy, yx, yy] that brings a map nearest to another one. */
function turnOnto(map, goal) {
  const means = [0, 0];
  for (let i = 0; i < goal.length; i++) means[i % 2] += (2 * goal[i]) / goal.length;
  let [xx, xy, yx, yy] = [0, 0, 0, 0];
  for (let i = 0; i < map.length; i += 2) {
    const [x, y] = [goal[i] - means[0], goal[i + 1] - means[1]];
    xx += map[i] * x;
    xy += map[i] * y;
    yx += map[i + 1] * x;
    yy += map[i + 1] * y;
  }
  const [turn, mirror] = [Math.hypot(xx + yy, xy - yx), Math.hypot(xx - yy, xy + yx)];
  if (turn >= mirror) return turn ? [(xx + yy) / turn, (xy - yx) / turn, (yx - xy) / turn, (xx + yy) / turn] : [1, 0, 0, 1];
  return [(xx - yy) / mirror, (xy + yx) / mirror, (xy + yx) / mirror, (yy - xx) / mirror];
}

function turned(map, [xx, xy, yx, yy]) {
  for (let i = 0; i < map.length; i += 2) {
    const [x, y] = [map[i], map[i + 1]];
    map[i] = x * xx + y * yx;
    map[i + 1] = x * xy + y * yy;
  }
}

function toLengthOne(columns) {
  for (let i = 0; i < columns[0].length; i++) {
    const length = Math.hypot(...columns.map((values) => values[i])) || 1;
    for (const values of columns) values[i] /= length;
  }
}

/* The place of a row among all rows of the other model by their products with it, 1 for the nearest. */
function rankOf(query, columns, others) {
  const found = new Float32Array(others[0].length);
  others.forEach((values, j) => {
    const factor = columns[j][query];
    for (let i = 0; i < found.length; i++) found[i] += factor * values[i];
  });
  const own = found[query];
  let rank = 1;
  for (let i = 0; i < found.length; i++) if (found[i] > own) rank++;
  return rank;
}

/* A map in units of the range of each axis. */
function unitsOfMap(map) {
  const units = new Float32Array(map.length);
  for (const axis of [0, 1]) {
    let [low, high] = [Infinity, -Infinity];
    for (let i = axis; i < map.length; i += 2) [low, high] = [Math.min(low, map[i]), Math.max(high, map[i])];
    for (let i = axis; i < map.length; i += 2) units[i] = (2 * map[i] - low - high) / (high - low || 1);
  }
  return units;
}

/* A channel of `Hand` without a server: the answer comes once the page has drawn what it has to draw. */
function followHere(follower, anchors, answered) {
  const answer = (request) => {
    const [serial, kind, row, to] = request;
    const moved = kind === PROBE ? [...anchors(), to] : anchors().map((one) => (one === row ? to : one));
    if (kind === SCORE) return answered({ serial, kind, scores: follower.scores(follower.last) });
    follower.last = moved;
    answered({ serial, kind, near: follower.units.map((_, side) => follower.near(side, to)), similar: [], maps: follower.maps(moved).map(unitsOfMap) });
  };
  return { send: (request) => setTimeout(() => answer(request)), close: () => {} };
}
