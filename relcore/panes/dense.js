/* DensePane: how a pane of very many rows is drawn: as density where many are in view, as points where few are. In both, every row can be
   hovered, clicked and selected. */

// Up to this many rows in view are drawn as points, and more as density: with a graphics card, and if WebGL runs in software.
const POINTS_IN_VIEW = { rest: 60000, moving: 60000 };
const POINTS_IN_SOFTWARE = { rest: 20000, moving: 4000 };
const REST = 160; // milliseconds without a new view
const POINTS_SELECTED = 5000; // selected rows at most that are drawn as points on the density
const AROUND = 0.25; // of the view, at each side: points there are kept ready for moving
const LOST = "The browser has stopped drawing points, as when many panes are open: close some and reload";
const CLOSEST_DENSE = 100; // zoom at which a step of the rounded places is about a pixel wide

/* Turns: while the view moves, the panes take turns to make a new picture of their density, one pane per frame. The other panes stretch their
   last picture. */
class Turns {
  constructor() {
    this.waiting = new Set();
  }

  /* Whether it is this one's turn in the frame that began at `time`. */
  take(one, time) {
    this.waiting.add(one);
    if (time === this.time || this.waiting.values().next().value !== one) return false;
    this.time = time;
    return this.leave(one);
  }

  leave(one) {
    return this.waiting.delete(one);
  }
}

class DensePane {
  /* `steps`: Uint16Array (2n), see RowGrid. */
  constructor(pane, steps, turns) {
    Object.assign(this, { pane, turns, n: steps.length / 2 });
    this.grid = new RowGrid(steps);
    this.density = new Density();
    this.image = element("canvas");
    this.looks = new Uint16Array(this.n);
    this.movedAt = -Infinity;
    this.points = null; // { rows, around }: the rows that are points, and the rectangle that has all of them
  }

  setColoring(coloring) {
    this.coloring = coloring;
    const colors = [...coloring.palette, coloring.neutral];
    const distinct = [...new Set(colors)]; // palettes repeat
    this.numbers = Uint16Array.from(colors, (color) => distinct.indexOf(color));
    this.channels = Uint8Array.from(distinct.flatMap(rgb));
    this.tints = tintsOf(this.channels);
    this.restyle = true;
  }

  /* `flags` of the rows; `selected`: Uint32Array of rows. */
  setFlags(flags, selected) {
    Object.assign(this, { flags, selected, restyle: true });
  }

  /* The same rows, colours and flags at other places. */
  at(steps) {
    const moved = new DensePane(this.pane, steps, this.turns);
    moved.setColoring(this.coloring);
    moved.setFlags(this.flags, this.selected);
    this.dispose();
    return moved;
  }

  /* While an anchor moves: every n-th row as a point, where it is now. */
  follow(most) {
    const rows = Uint32Array.from(this.pane.sampled ?? sampled(this.n, Math.min(this.n, most))).filter((row) => !(this.flags[row] & HIDDEN));
    this.upload(rows, null);
    [this.asPoints, this.final, this.inView] = [true, true, rows.length];
    this.pane.density.style.visibility = "hidden";
    this.turns.leave(this);
  }

  colorOf(row) {
    return this.numbers[Math.min(this.coloring.categories[row], this.numbers.length - 1)];
  }

  /* Bring colours and flags into the order of the grid; what was drawn with the old ones is forgotten. */
  dress() {
    this.restyle = false;
    const { n, flags, looks, numbers } = this;
    const { categories } = this.coloring;
    const { rows } = this.grid;
    const none = numbers.length - 1;
    const marks = Uint16Array.from({ length: 8 }, (_, flag) => (flag & SELECTED ? LIT : 0) | (flag & HIDDEN ? AWAY : 0));
    const byRow = new Uint16Array(n); // first in the order of the rows, so that only one array is read here and there
    let hidden = 0;
    for (let row = 0; row < n; row++) {
      const category = categories[row];
      const mark = marks[flags[row]];
      byRow[row] = numbers[category < none ? category : none] | mark;
      if (mark >= AWAY) hidden++;
    }
    for (let place = 0; place < n; place++) looks[place] = byRow[rows[place]];
    this.shown = hidden ? new Uint32Array(n + 1) : null; // how many rows before a place are not hidden
    for (let place = 0, shown = 0; hidden && place < n; place++) this.shown[place + 1] = looks[place] < AWAY ? ++shown : shown;
    this.made = this.overview = this.points = null;
  }

  /* How many rows that are not hidden lie in the cells that a rectangle of steps touches. */
  count(rectangle) {
    if (!this.shown) return this.grid.count(rectangle);
    let found = 0;
    this.grid.eachRun(rectangle, (start, end) => (found += this.shown[end] - this.shown[start]));
    return found;
  }

  /* The rectangle of steps in view. */
  rectangle(width, height) {
    const { pane } = this;
    return [...pane.unit(0, height, width, height), ...pane.unit(width, 0, width, height)].map(stepOf);
  }

  /* Draw what is in view in the frame that began at `time`; `final` is false if a better picture is to come. */
  draw(width, height, ratio, time) {
    if (this.restyle) this.dress();
    const rectangle = this.rectangle(width, height);
    this.inView = this.count(rectangle);
    const view = rectangle.join();
    if (this.view && this.view !== view) this.movedAt = time;
    this.view = view;
    const most = this.pane.points.inSoftware ? POINTS_IN_SOFTWARE : POINTS_IN_VIEW;
    const settling = this.inView > most.moving && this.inView <= most.rest && time - this.movedAt < REST;
    this.asPoints = this.inView <= most.rest && !settling;
    this.pane.density.style.visibility = this.asPoints ? "hidden" : "";
    if (this.asPoints) {
      this.turns.leave(this);
      this.gather(rectangle);
      this.final = true;
      return;
    }
    this.lift();
    this.final = this.picture(rectangle, width, height, time) && !settling;
    this.lay(rectangle, Math.round(width * ratio), Math.round(height * ratio));
  }

  /* Whether there are points to draw, of all rows in view or of the selection. */
  get hasPoints() {
    return this.points.rows.length > 0;
  }

  /* The factor by which points are drawn larger than they would be if all n rows were points. Their size is that of `point_size` in Python for
     this number of points. */
  get growth() {
    return clamp(19 * Math.max(this.asPoints ? this.inView : this.points.rows.length, 1) ** -0.18, 2, 8) / this.coloring.told.otherSize;
  }

  /* Have the points in view ready, and some around them. */
  gather(rectangle) {
    const [left, low, right, high] = rectangle;
    const { around, rows } = this.points ?? {};
    const covered = around && around[0] <= left && around[1] <= low && around[2] >= right && around[3] >= high;
    if (covered && rows.length <= 4 * this.inView + 1000) return;
    const [across, up] = [AROUND * (right - left), AROUND * (high - low)];
    const wide = [left - across, low - up, right + across, high + up];
    const reach = this.count(wide) <= 2 * this.inView + 1000 ? wide : rectangle;
    this.upload(this.grid.rowsIn(reach, (place) => this.looks[place] < AWAY), reach);
  }

  /* On a density, draw the selected rows as points if they are few. */
  lift() {
    if (this.points && !this.points.around) return;
    const rows = this.selected.length <= POINTS_SELECTED ? this.selected : new Uint32Array(0);
    this.upload(rows, null);
  }

  upload(rows, around) {
    const { pane, flags, channels } = this;
    const { points: canvas, units } = pane;
    const [position, color, own] = [new Float32Array(2 * rows.length), new Uint8Array(3 * rows.length), new Uint8Array(rows.length)];
    rows.forEach((row, i) => {
      position[2 * i] = units[2 * row];
      position[2 * i + 1] = units[2 * row + 1];
      const from = 3 * this.colorOf(row);
      for (let k = 0; k < 3; k++) color[3 * i + k] = channels[from + k];
      own[i] = flags[row];
    });
    canvas.upload("position", position);
    canvas.upload("color", color);
    canvas.upload("flags", own);
    canvas.upload("order", paintingOrder(own));
    if (canvas.content.depth) canvas.upload("depth", new Float32Array(rows.length));
    this.points = { rows, around };
  }

  /* The picture of the density in view. It is made at once if colours or rows changed, and in the pane's turn if only the view did. */
  picture(rectangle, width, height, time) {
    const wanted = [...rectangle, width, height].join();
    if (this.made?.wanted === wanted) return true;
    if (this.made && !this.turns.take(this, time)) return false;
    this.turns.leave(this);
    const [columns, lines] = [Math.ceil(width / BIN), Math.ceil(height / BIN)];
    this.density.count(this.grid, rectangle, columns, lines, this.looks, this.tints);
    Object.assign(this.image, { width: columns, height: lines });
    const context = this.image.getContext("2d");
    const image = context.createImageData(columns, lines);
    const { theme, brush } = this.pane.owner;
    this.density.paint(image.data, rgb(theme.text), brush.brushed);
    context.putImageData(image, 0, 0);
    this.made = { wanted, rectangle, image: this.image };
    if (rectangle[0] <= 0 && rectangle[1] <= 0 && rectangle[2] >= STEPS && rectangle[3] >= STEPS) this.overview = { image: copied(this.image), rectangle };
    return true;
  }

  /* Rows in the order in which they get names: those in view if points are drawn, and otherwise the most prominent ones of all. */
  byProminence({ prominence }) {
    if (!this.asPoints) return prominence.subarray(0, LOOKED_AT);
    const ranks = ranksOf(prominence);
    return (this.points.byProminence ??= this.points.rows.map((row) => ranks[row]).sort().map((rank) => prominence[rank]));
  }

  /* Draw the picture at its place in the view. Until a new one is made, this is the old one, with the overview around it. */
  lay([left, low, right, high], width, height) {
    const canvas = this.pane.density;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    const put = ({ image, rectangle }) => {
      const [x, y] = [((rectangle[0] - left) / (right - left)) * width, ((high - rectangle[3]) / (high - low)) * height];
      const size = [((rectangle[2] - rectangle[0]) / (right - left)) * width, ((rectangle[3] - rectangle[1]) / (high - low)) * height];
      context.clearRect(x, y, ...size);
      context.drawImage(image, x, y, ...size);
    };
    if (!this.final && this.overview) put(this.overview);
    put(this.made);
  }

  /* The row nearest to a place in units within REACH pixels, or -1; `toX` and `toY` are the pixels of a unit. */
  rowAt(x, y, toX, toY) {
    const takes = (row) => !(this.flags[row] & HIDDEN);
    return this.grid.nearest(stepOf(x), stepOf(y), (2 * toX) / STEPS, (2 * toY) / STEPS, REACH, takes);
  }

  /* The rows within a polygon of units that are not hidden, ascending. */
  rowsWithin(polygon) {
    const steps = polygon.map((point) => point.map(stepOf));
    const [inside, found] = this.grid.within(steps, (row) => !(this.flags[row] & HIDDEN));
    const rows = new Uint32Array(found);
    for (let row = 0, i = 0; i < found; row++) if (inside[row]) rows[i++] = row;
    return rows;
  }

  /* There is nothing to draw now, so the other panes need not wait for this one. */
  rest() {
    this.turns.leave(this);
    this.final = true;
  }

  dispose() {
    this.turns.leave(this);
  }
}

const ranks = new WeakMap();

/* The place of each row in an order of rows. */
function ranksOf(order) {
  if (!ranks.has(order)) {
    const places = new Uint32Array(order.length);
    order.forEach((row, place) => (places[row] = place));
    ranks.set(order, places);
  }
  return ranks.get(order);
}

function copied(canvas) {
  const copy = element("canvas", "", { width: canvas.width, height: canvas.height });
  copy.getContext("2d").drawImage(canvas, 0, 0);
  return copy;
}

/* DensityKey: what a picture of density means, or how many rows are drawn, in the corner of its pane. */
class DensityKey {
  constructor() {
    this.words = element("span");
    this.most = element("span");
    this.ramp = element("span", "ls-density-ramp", {}, "1", element("i"), this.most);
    this.root = element("div", "ls-density-key", {}, this.words, this.ramp);
    this.show(null);
  }

  /* `told`: the message of a pane without density, "" in most cases. `lost`: its points cannot be drawn. `lined`: contours are drawn. */
  show(dense, told = "", lost = false, lined = false) {
    if (lost) [dense, told] = [null, LOST];
    const rows = dense?.inView.toLocaleString();
    this.ramp.hidden = !dense || dense.asPoints;
    if (dense) told = dense.asPoints ? `${rows} rows as points` : `Density of ${rows} rows; zoom in for points`;
    this.said = this.ramp.hidden ? told : `density of ${rows} rows: the stronger a colour, the more rows, on a logarithmic scale`;
    const lines = lined && !lost ? `Inside the lines: ${SHARES.map((share) => 100 * share).join(", ")} % of the rows` : "";
    this.words.textContent = [told, lines].filter(Boolean).join(" · ");
    this.root.hidden = !this.words.textContent;
    if (!this.ramp.hidden) this.most.textContent = `${dense.density.top.toLocaleString()} or more rows in a dot`;
  }
}
