/* Pane: one picture of the rows. Positions live in units of the full range, -1 … 1 in x and y, so that a view { x, y, zoom } means the same
   part of every pane, whatever its scale: linking zooms is sharing views. In three dimensions, `units` are the places after the turn. */

const MARGIN = 1.08;
const SOLID_MARGIN = 1.25; // a turned solid reaches farther than one seen from the front
const USUAL_TYPE = 13; // pixels; a presentation has larger type
const CLOSEST = 8; // how far "zoom to the selection" goes into a single point
const REACH = 9; // pixels within which the pointer takes a point
const SPOT = 1.5; // pixels around a row in which others are hidden by it
const DRAWING = new Set(["lasso", "box"]); // tools that draw the edge of a selection
const GLIDING = 450; // milliseconds in which points move to another map
const MOST_GLIDING = 60000; // rows; of more, a processor without a graphics card draws too few frames
const SAMPLE_GLIDING = 3000; // of these rows, without such a card: all that move at once are too many for 30 frames a second
const STILL = "(prefers-reduced-motion: reduce)";
const HOME = Object.freeze({ x: 0, y: 0, zoom: 1 });

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const opacity = (n) => clamp(1.08 - 0.1 * Math.log10(Math.max(n, 1)), 0.5, 0.95);

function element(tag, className = "", attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "circle", "polygon", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  if (className) node.setAttribute("class", className);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/* Set a mark of this name for those who check or measure; the one before goes, or a long session would gather thousands. */
function mark(name, detail) {
  performance.clearMarks(name);
  performance.mark(name, { detail });
}

function rgb(hex) {
  const number = parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

class Pane {
  /* `owner` hears what happens: brushed(rows, add, polygon), clicked(row), doubleClicked(pane), hovered(row, pane), viewed(pane),
     turned(turn), settled() after a turn, and drawn(pane); it knows the tool, the theme and what is selected. */
  constructor(owner) {
    this.owner = owner;
    this.view = HOME;
    this.title = element("span", "ls-title");
    this.note = element("span", "ls-note");
    this.density = element("canvas", "ls-density");
    this.canvas = element("canvas", "ls-points");
    this.key = new DensityKey();
    this.stars = new Stars();
    this.near = new Near();
    this.edges = new Edges();
    this.names = new Names();
    this.moving = new Moving(this);
    this.contours = new Contours(this);
    this.turn = FACING;
    this.lasso = element("path", "ls-lasso");
    this.axes = [1, 2, 3].map((number) => element("g", "ls-axis", { visibility: "hidden" }, element("path"), element("text", "", {}, number)));
    this.ring = element("circle", "ls-ring", { r: 8, visibility: "hidden" });
    this.overlay = element("svg", "ls-overlay", { "aria-hidden": "true" }, this.contours.root, this.edges.root, this.near.root, this.names.root, this.stars.root, ...this.axes, this.ring, this.lasso);
    this.plot = element("div", "ls-plot", {}, this.density, this.canvas, this.overlay, this.key.root);
    this.root = element("section", "ls-pane", {}, element("header", "ls-heading", {}, this.title, this.note), this.plot, zoomButtons(this));
    this.points = pointsOn(this.canvas);
    this.points.onchange = () => this.redraw();
    this.observer = new ResizeObserver(() => {
      this.measure();
      this.redraw();
    });
    this.observer.observe(this.plot);
    this.unwatch = watchRatio(() => this.redraw());
    listenTo(this);
  }

  setTitle({ title, note }) {
    if (this.title.textContent && this.title.textContent !== title) this.showAnother();
    this.title.textContent = title;
    const form = title.lastIndexOf(" · ");
    if (form > 0) this.title.replaceChildren(element("span", "ls-named", {}, title.slice(0, form)), element("span", "ls-form", {}, title.slice(form)));
    this.note.textContent = note;
    this.label = [title, note].filter(Boolean).join(", ");
  }

  /* Show a new picture as a whole. If views are linked, panes beside the first one show the part that the first one shows. */
  showAnother() {
    const { linked, panes } = this.owner;
    this.setView(linked ? (panes[0] === this ? HOME : panes[0].view) : HOME);
    if (panes[0] === this) this.owner.viewed(this);
  }

  /* Where the rows are: coordinates (n × 2 or 3), or steps of the full range (n × 2) where there are very many. */
  setPositions(places, dimensions) {
    this.owner.hovered(-1, this); // another row may be under the pointer now
    this.dense?.dispose();
    this.dense = places instanceof Uint16Array ? new DensePane(this, places, this.owner.turns) : null;
    this.unfollow();
    this.root.dataset.dense = this.dense ? places.length / 2 : "";
    this.density.style.visibility = "hidden";
    this.regroup = true;
    this.moving.forget();
    this.contours.forget();
    if (!this.dense) return this.setCoordinates(places, dimensions);
    [this.solid, this.depths, this.units] = [null, null, unitsOf(places)];
    this.redraw();
  }

  /* Each axis to its own full range in the plane, all to that of the longest in a solid, which must not bend. */
  setCoordinates(coordinates, dimensions) {
    const n = coordinates.length / dimensions;
    const ranges = Array.from({ length: dimensions }, (_, axis) => {
      let [low, high] = [Infinity, -Infinity];
      for (let i = axis; i < coordinates.length; i += dimensions) {
        if (coordinates[i] < low) low = coordinates[i];
        if (coordinates[i] > high) high = coordinates[i];
      }
      return [(low + high) / 2, (high - low) / 2];
    });
    const longest = Math.max(...ranges.map(([, half]) => half)) || 1;
    const units = new Float32Array(coordinates.length);
    ranges.forEach(([middle, half], axis) => {
      const unit = dimensions === 3 ? longest : half || 1;
      for (let i = axis; i < units.length; i += dimensions) units[i] = (coordinates[i] - middle) / unit;
    });
    this.solid = dimensions === 3 ? units : null;
    this.depths = this.solid && new Float32Array(n);
    const before = this.units;
    this.units = this.solid ? new Float32Array(2 * n) : units;
    if (!this.solid && this.points.content.depth) this.points.upload("depth", new Float32Array(n));
    this.glide = null;
    if (this.solid) return this.setTurn(this.turn);
    this.points.upload("position", units);
    if (this.owner.sameRows && before?.length === units.length && n <= MOST_GLIDING && !matchMedia(STILL).matches) this.glide = { before, after: units };
    this.redraw();
  }

  /* The points go from where they were to where they are now, so that one sees what changes. */
  move(time) {
    const { before, after, began = time } = this.glide;
    const share = Math.min((time - began) / GLIDING, 1);
    const eased = share * share * (3 - 2 * share);
    this.glide = share < 1 ? { before, after, began } : null;
    if (share === 1) this.units = after;
    else {
      if (this.units === before || this.units === after) this.units = new Float32Array(after.length);
      for (let i = 0; i < after.length; i++) this.units[i] = before[i] + eased * (after[i] - before[i]);
    }
    this.points.upload("position", this.units);
  }

  /* The places while an anchor moves, in units. If there are many rows, `most` of them are drawn, as points also if they are usually drawn as a
     density. `sampled`: the rows whose places these are; null for all rows. */
  follow(units, most, sampled = null) {
    Object.assign(this, { glide: null, units, following: most, sampled, unsettled: true });
    this.names.root.style.display = this.unnamed ? "none" : "";
    this.moving.forget();
    this.contours.forget();
    if (!this.dense) this.points.upload("position", units);
    this.redraw();
  }

  /* The hand that moves an anchor rests: all rows are drawn. */
  settle() {
    if (!this.unsettled) return;
    this.unfollow();
    if (this.dense) this.dense = this.dense.at(stepsOf(this.units));
    this.redraw();
  }

  /* Names are hidden while points move, if only some points have places or if no graphics card draws them. Laying out the texts would take as
     long as the points. */
  get unnamed() {
    return this.sampled || (this.following && this.points.inSoftware);
  }

  unfollow() {
    [this.following, this.sampled, this.unsettled] = [0, null, false];
    this.names.root.style.display = "";
  }

  /* The places before an anchor moved. */
  back(units, dense) {
    this.unfollow();
    [this.units, this.dense] = [units, dense];
    if (dense) [dense.points, dense.restyle] = [null, true];
    else this.points.upload("position", units);
    this.redraw();
  }

  setTurn(turn) {
    this.turn = turn;
    if (!this.solid) return;
    project(this.solid, turn, this.units, this.depths);
    for (const axis of [0, 1]) {
      let [low, high] = [Infinity, -Infinity];
      for (let i = axis; i < this.units.length; i += 2) [low, high] = [Math.min(low, this.units[i]), Math.max(high, this.units[i])];
      for (let i = axis; i < this.units.length; i += 2) this.units[i] -= (low + high) / 2; // in the middle, however it is turned
    }
    this.points.upload("position", this.units);
    this.points.upload("depth", this.depths);
    if (this.flags?.length === this.depths.length) this.points.upload("order", paintingOrder(this.flags, this.depths));
    this.redraw();
  }

  /* Which rows are selected, hidden or have no category; `order()` gives that of painting, the same for all flat panes. */
  setFlags(flags, selected, order) {
    this.flags = flags;
    this.moving.forget();
    this.contours.forget(false);
    if (this.dense) this.dense.setFlags(flags, selected);
    else {
      this.points.upload("flags", flags);
      this.points.upload("order", this.solid ? paintingOrder(flags, this.depths) : order());
    }
    this.redraw();
  }

  paint() {
    this.moving.forget();
    if (this.dense) this.dense.setColoring(this.coloring);
    else this.points.upload("color", this.coloring.colors);
  }

  /* The size of the plot and of its type: kept, as reading them amid changes of a frame would lay the page out again each time. */
  measure() {
    [this.width, this.height] = [this.plot.clientWidth, this.plot.clientHeight];
    this.type = parseFloat(getComputedStyle(this.plot).fontSize) / USUAL_TYPE;
  }

  redraw() {
    if (this.frame || this.disposed) return;
    this.frame = requestAnimationFrame((time) => {
      this.frame = 0;
      if (this.glide) this.move(time);
      this.draw(time);
      if (!this.glide) this.owner.drawn(this);
      this.owner.hand.drawn(this);
      if (this.glide || (this.dense && !this.dense.final)) this.redraw();
    });
  }

  draw(time) {
    if (!this.width) this.measure();
    const { width, height } = this;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (!width || !height || !this.units || !this.flags) return this.dense?.rest();
    const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== columns || this.canvas.height !== rows) this.points.resize(columns, rows);
    const scale = this.scales(width, height);
    const offset = [-this.view.x * scale[0], -this.view.y * scale[1]];
    if (this.following) this.dense?.follow(this.following);
    else this.dense?.draw(width, height, ratio, time);
    const most = this.following ? this.following : this.glide && this.points.inSoftware ? SAMPLE_GLIDING : this.moving.most(time);
    this.key.show(this.dense, this.moving.told, this.points.lost, this.contours.shown);
    const label = [this.label, this.key.said].filter(Boolean).join(", ");
    if (this.root.getAttribute("aria-label") !== label) this.root.setAttribute("aria-label", label);
    const growth = this.dense?.growth ?? this.view.zoom ** 0.35; // zooming in spreads the points, so they may grow, but less
    const { sizes, alphas } = this.coloring.style;
    if (this.dense?.hasPoints !== false || !this.blank) this.points.draw({ scale, offset, sizes: sizes.map((size) => Math.min(size * growth, 14)), alphas, ...this.owner.brush, surface: this.owner.surface, ratio, most, crowded: !(this.moving.sampled && this.moving.whole), sketched: Boolean(this.following) });
    this.blank = this.dense?.hasPoints === false; // nothing to wipe off
    this.contours.place(width, height);
    this.placeAxes(height);
    const pixel = (row) => (this.hides(row) ? null : this.pixel(row, width, height));
    this.stars.place(pixel, width, this.type);
    // Of a sample, not all rows have places.
    this.edges.place(this.sampled ? () => null : pixel, (x, y) => this.place(x, y, width, height));
    this.near.place((row) => this.pixel(row, width, height));
    if (!this.unnamed) this.names.place(this, this.owner, width, height);
    this.placeRing();
  }

  /* The three axes of a solid as they are turned, in the lower left corner. */
  placeAxes(height) {
    this.axes.forEach((axis, k) => {
      change(axis, "visibility", this.solid ? "visible" : "hidden");
      if (!this.solid) return;
      const [x, y, toX, toY] = [34, height - 34, 24 * this.turn[k], -24 * this.turn[3 + k]];
      axis.firstChild.setAttribute("d", `M${x} ${y}l${toX.toFixed(1)} ${toY.toFixed(1)}`);
      axis.lastChild.setAttribute("x", (x + 1.3 * toX).toFixed(1));
      axis.lastChild.setAttribute("y", (y + 1.3 * toY + 3).toFixed(1));
    });
  }

  /* How long a unit is, as a share of half the width and of half the height. In the plane, the picture fills the pane; a solid keeps its form. */
  scales(width, height) {
    const scale = this.view.zoom / (this.solid ? SOLID_MARGIN : MARGIN);
    const side = Math.min(width, height);
    return this.solid ? [(scale * side) / width, (scale * side) / height] : [scale, scale];
  }

  pixel(row, width = this.width, height = this.height) {
    return this.place(this.units[2 * row], this.units[2 * row + 1], width, height);
  }

  place(unitX, unitY, width, height) {
    const [across, up] = this.scales(width, height);
    const [x, y] = [(unitX - this.view.x) * across, (unitY - this.view.y) * up];
    return [((1 + x) / 2) * width, ((1 - y) / 2) * height];
  }

  unit(x, y, width = this.width, height = this.height) {
    const [across, up] = this.scales(width, height);
    return [((2 * x) / width - 1) / across + this.view.x, (1 - (2 * y) / height) / up + this.view.y];
  }

  hides(row) {
    return (this.flags[row] & HIDDEN) > 0;
  }

  /* The row under a pixel or -1: anchors first, then the nearest. */
  rowAt(x, y) {
    const reach = Math.max(REACH, this.stars.reach);
    let [best, nearest] = [-1, reach * reach];
    const { width, height } = this;
    for (const row of this.stars.shown ? this.stars.rows : []) {
      if (this.hides(row)) continue;
      const [px, py] = this.pixel(row, width, height);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance <= nearest) [best, nearest] = [row, distance];
    }
    if (best >= 0) return best;
    nearest = REACH * REACH;
    const [ux, uy] = this.unit(x, y);
    const [across, up] = this.scales(width, height);
    const [toX, toY, units] = [(across / 2) * width, (up / 2) * height, this.units];
    if (this.dense) return this.dense.rowAt(ux, uy, toX, toY);
    for (let row = 0, i = 0; i < units.length; row++, i += 2) {
      const [dx, dy] = [(units[i] - ux) * toX, (units[i + 1] - uy) * toY];
      const distance = dx * dx + dy * dy;
      if (distance < nearest && !this.hides(row)) [best, nearest] = [row, distance];
    }
    return best;
  }

  /* The row nearest to a pixel, however far, that is not hidden. */
  nearestTo(x, y) {
    const [ux, uy] = this.unit(x, y);
    const [across, up] = this.scales(this.width, this.height);
    const [toX, toY, units] = [across * this.width, up * this.height, this.units];
    let [best, nearest] = [-1, Infinity];
    const { sampled } = this; // only their places are known
    const n = sampled?.length ?? units.length / 2;
    for (let i = 0; i < n; i++) {
      const row = sampled ? sampled[i] : i;
      const [dx, dy] = [(units[2 * row] - ux) * toX, (units[2 * row + 1] - uy) * toY];
      const distance = dx * dx + dy * dy;
      if (distance < nearest && !this.hides(row)) [best, nearest] = [row, distance];
    }
    return best;
  }

  /* The row nearest to another one within 45 degrees of a direction, across and down the screen; -1 if there is none. `skips` rows. */
  nearestTowards(from, across, down, skips) {
    const [x, y] = this.pixel(from);
    let [best, nearest] = [-1, Infinity];
    for (let row = 0; row < this.units.length / 2; row++) {
      const [px, py] = this.pixel(row);
      const [dx, dy] = [px - x, py - y];
      const [along, aside] = [dx * across + dy * down, Math.abs(dx * down - dy * across)];
      const distance = dx * dx + dy * dy;
      if (along > 0 && aside <= along && distance < nearest && row !== from && !this.hides(row) && !skips(row)) [best, nearest] = [row, distance];
    }
    return best;
  }

  /* Rows within a polygon of unit coordinates, by the even-odd rule. */
  rowsWithin(polygon) {
    if (this.dense) return this.dense.rowsWithin(polygon);
    const [xs, ys] = [polygon.map(([x]) => x), polygon.map(([, y]) => y)];
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const rows = [];
    for (let row = 0; row < this.units.length / 2; row++) {
      const [x, y] = [this.units[2 * row], this.units[2 * row + 1]];
      if (x < left || x > right || y < low || y > high || this.hides(row)) continue;
      if (isWithin(x, y, polygon)) rows.push(row);
    }
    return rows;
  }

  /* How many other rows lie on a row's spot: within `SPOT` pixels of it. */
  under(row) {
    const [x, y] = this.pixel(row);
    return this.rowsWithin([[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([right, down]) => this.unit(x + SPOT * right, y + SPOT * down))).length - 1;
  }

  setRing(row) {
    this.ringed = row;
    this.placeRing();
  }

  placeRing() {
    const shown = this.ringed >= 0;
    this.ring.setAttribute("visibility", shown ? "visible" : "hidden");
    if (!shown) return;
    const [x, y] = this.pixel(this.ringed);
    this.ring.setAttribute("cx", x);
    this.ring.setAttribute("cy", y);
  }

  /* What is on the screen: "points", "density", or while the view moves some "sampled" points or a "stretched" density. */
  get picture() {
    if (this.following && this.following < this.units.length / 2) return "sampled";
    if (!this.dense) return this.moving.sampled ? "sampled" : "points";
    if (this.dense.asPoints) return "points";
    return this.dense.final ? "density" : "stretched";
  }

  get closest() {
    return this.dense ? CLOSEST_DENSE : 500;
  }

  setView(view) {
    const edge = 1.2; // the cloud cannot be lost out of sight
    this.view = { x: clamp(view.x, -edge, edge), y: clamp(view.y, -edge, edge), zoom: clamp(view.zoom, 0.5, this.closest) };
    this.redraw();
  }

  zoomAt(x, y, factor) {
    const [before, zoom] = [this.unit(x, y), clamp(this.view.zoom * factor, 0.5, this.closest)];
    const scale = this.view.zoom / zoom;
    this.setView({ x: before[0] + (this.view.x - before[0]) * scale, y: before[1] + (this.view.y - before[1]) * scale, zoom });
    this.owner.viewed(this);
  }

  /* Show these rows as large as the pane allows, with room around them. */
  zoomTo(rows) {
    const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
    for (const row of rows) {
      for (const axis of [0, 1]) {
        low[axis] = Math.min(low[axis], this.units[2 * row + axis]);
        high[axis] = Math.max(high[axis], this.units[2 * row + axis]);
      }
    }
    const half = Math.max(high[0] - low[0], high[1] - low[1]) / 2;
    this.setView({ x: (low[0] + high[0]) / 2, y: (low[1] + high[1]) / 2, zoom: clamp((0.75 * MARGIN) / half, 0.5, CLOSEST) });
  }

  /* Whether a star is under the pointer; also of one that rests while the stars or their channel change. */
  feel() {
    const onStar = this.pointer !== undefined && this.owner.hand.starAt(this, ...this.pointer) >= 0;
    this.plot.classList.toggle("ls-on-star", onStar);
    if (onStar) this.owner.hand.ready();
  }

  hover(x, y) {
    this.pointer = [x, y];
    this.hovering ||= requestAnimationFrame(() => {
      this.hovering = 0;
      if (this.disposed || !this.units) return;
      this.feel();
      this.owner.hovered(this.rowAt(...this.pointer), this);
    });
  }

  dispose() {
    this.disposed = true;
    cancelAnimationFrame(this.frame);
    this.moving.dispose();
    clearTimeout(this.contours.timer);
    this.dense?.dispose();
    this.observer.disconnect();
    this.unwatch();
    this.points.dispose();
    this.root.remove();
  }
}
