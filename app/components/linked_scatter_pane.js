/* Pane: one picture of the rows. Positions live in units of the full range, -1 … 1 in x and y, so that a view { x, y, zoom } means the same
   part of every pane, whatever its scale: linking zooms is sharing views. Of three dimensions, `units` is what the turn shows. */

const MARGIN = 1.08;
const CLOSEST = 8; // how far "zoom to the selection" goes into a single point
const REACH = 9; // pixels within which the pointer takes a point
const DRAWING = new Set(["lasso", "box"]); // tools that draw the edge of a selection
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

function rgb(hex) {
  const number = parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

class Pane {
  /* `owner` hears what happens: brush(pane, polygon, add), click(row), hover(row, pane), view(pane), double(pane); and knows the tool. */
  constructor(owner) {
    this.owner = owner;
    this.view = HOME;
    this.title = element("span", "ls-title");
    this.note = element("span", "ls-note");
    this.canvas = element("canvas", "ls-points");
    this.stars = new Stars();
    this.names = new Names();
    this.turn = FACING;
    this.lasso = element("path", "ls-lasso");
    this.ring = element("circle", "ls-ring", { r: 8, visibility: "hidden" });
    this.overlay = element("svg", "ls-overlay", { "aria-hidden": "true" }, this.stars.root, this.names.root, this.ring, this.lasso);
    this.plot = element("div", "ls-plot", {}, this.canvas, this.overlay);
    this.root = element("section", "ls-pane", {}, element("header", "ls-heading", {}, this.title, this.note), this.plot);
    this.points = new Points(this.canvas);
    this.points.onrestored = () => this.redraw();
    this.observer = new ResizeObserver(() => this.redraw());
    this.observer.observe(this.plot);
    this.listen();
  }

  setTitle({ title, note }) {
    if (this.title.textContent && this.title.textContent !== title) this.setView(HOME); // another picture
    this.title.textContent = title;
    this.note.textContent = note;
    this.root.setAttribute("aria-label", [title, note].filter(Boolean).join(", "));
  }

  /* Coordinates (n × 2 or 3): each axis to its own full range in the plane, all to that of the longest in a solid, which must not bend. */
  setPositions(coordinates, dimensions) {
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
    this.units = this.solid ? new Float32Array(2 * n) : units;
    if (!this.solid && this.points.content.depth) this.points.upload("depth", new Float32Array(n));
    this.regroup = true;
    if (this.solid) return this.setTurn(this.turn);
    this.points.upload("position", units);
    this.redraw();
  }

  setTurn(turn) {
    this.turn = turn;
    if (!this.solid) return;
    project(this.solid, turn, this.units, this.depths);
    this.points.upload("position", this.units);
    this.points.upload("depth", this.depths);
    if (this.flags?.length === this.depths.length) this.points.upload("order", paintingOrder(this.flags, this.depths));
    this.redraw();
  }

  /* Which rows are selected or have no category; `order` is that of painting, the same for all flat panes. */
  setFlags(flags, order) {
    this.flags = flags;
    this.points.upload("flags", flags);
    this.points.upload("order", this.solid ? paintingOrder(flags, this.depths) : order);
    this.redraw();
  }

  redraw() {
    if (this.frame || this.disposed) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      this.owner.drawn(this);
    });
  }

  draw() {
    const [width, height, ratio] = [this.plot.clientWidth, this.plot.clientHeight, Math.min(devicePixelRatio || 1, 2)];
    if (!width || !height || !this.units || !this.flags) return;
    const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== columns || this.canvas.height !== rows) Object.assign(this.canvas, { width: columns, height: rows });
    const scale = this.scales(width, height);
    const offset = [-this.view.x * scale[0], -this.view.y * scale[1]];
    const growth = this.view.zoom ** 0.35; // zooming in spreads the points, so they may grow, but less
    const { sizes, alphas } = this.coloring.style;
    this.points.draw({ scale, offset, sizes: sizes.map((size) => Math.min(size * growth, 14)), alphas, ...this.owner.brush, surface: this.owner.surface, ratio });
    this.stars.place((row) => (this.hides(row) ? null : this.pixel(row, width, height)));
    this.names.place(this, this.owner, width, height);
    this.placeRing();
  }

  /* Shares of half the width and half the height by a unit: in the plane the picture fills the pane, a solid keeps its form. */
  scales(width, height) {
    const scale = this.view.zoom / MARGIN;
    const side = Math.min(width, height);
    return this.solid ? [(scale * side) / width, (scale * side) / height] : [scale, scale];
  }

  /* Sizes are asked for once a drawing: reading them between changes of stars would lay the page out anew for each. */
  pixel(row, width = this.plot.clientWidth, height = this.plot.clientHeight) {
    const [across, up] = this.scales(width, height);
    const x = (this.units[2 * row] - this.view.x) * across;
    const y = (this.units[2 * row + 1] - this.view.y) * up;
    return [((1 + x) / 2) * width, ((1 - y) / 2) * height];
  }

  unit(x, y, width = this.plot.clientWidth, height = this.plot.clientHeight) {
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
    const { clientWidth, clientHeight } = this.plot;
    for (const row of this.stars.shown ? this.stars.rows : []) {
      if (this.hides(row)) continue;
      const [px, py] = this.pixel(row, clientWidth, clientHeight);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance <= nearest) [best, nearest] = [row, distance];
    }
    if (best >= 0) return best;
    nearest = REACH * REACH;
    const [ux, uy] = this.unit(x, y);
    const [across, up] = this.scales(clientWidth, clientHeight);
    const [toX, toY, units] = [(across / 2) * clientWidth, (up / 2) * clientHeight, this.units];
    for (let row = 0, i = 0; i < units.length; row++, i += 2) {
      const [dx, dy] = [(units[i] - ux) * toX, (units[i + 1] - uy) * toY];
      const distance = dx * dx + dy * dy;
      if (distance < nearest && !this.hides(row)) [best, nearest] = [row, distance];
    }
    return best;
  }

  /* Rows within a polygon of unit coordinates, by the even-odd rule. */
  rowsWithin(polygon) {
    const [xs, ys] = [polygon.map(([x]) => x), polygon.map(([, y]) => y)];
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const rows = [];
    for (let row = 0; row < this.units.length / 2; row++) {
      const [x, y] = [this.units[2 * row], this.units[2 * row + 1]];
      if (x < left || x > right || y < low || y > high || this.hides(row)) continue;
      let inside = false;
      for (let i = 0, j = xs.length - 1; i < xs.length; j = i++) {
        if (ys[i] > y !== ys[j] > y && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) inside = !inside;
      }
      if (inside) rows.push(row);
    }
    return rows;
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

  setView(view) {
    const edge = 1.2; // the cloud cannot be lost out of sight
    this.view = { x: clamp(view.x, -edge, edge), y: clamp(view.y, -edge, edge), zoom: clamp(view.zoom, 0.5, 500) };
    this.redraw();
  }

  zoomAt(x, y, factor) {
    const [before, zoom] = [this.unit(x, y), clamp(this.view.zoom * factor, 0.5, 500)];
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

  listen() {
    const { plot } = this;
    const at = (event) => {
      const box = plot.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let drag = null;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      plot.setPointerCapture(event.pointerId);
      drag = { path: [at(event)], view: this.view, turn: this.turn, tool: this.owner.tool, moved: false };
      this.owner.hovered(-1, this);
    });
    plot.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!drag) return this.hover(x, y);
      const [[startX, startY], [lastX, lastY]] = [drag.path[0], drag.path.at(-1)];
      drag.moved ||= Math.hypot(x - startX, y - startY) > 4;
      if (!drag.moved) return;
      if (drag.tool === "pan") {
        const [across, up] = this.scales(plot.clientWidth, plot.clientHeight);
        const [dx, dy] = [(x - startX) / plot.clientWidth, (y - startY) / plot.clientHeight];
        this.setView({ ...drag.view, x: drag.view.x - (2 * dx) / across, y: drag.view.y + (2 * dy) / up });
        this.owner.viewed(this);
      } else if (drag.tool === "turn") {
        this.owner.turned(turnedBy(drag.turn, x - startX, y - startY));
      } else if (drag.tool === "box") {
        drag.path = [drag.path[0], [x, startY], [x, y], [startX, y]];
      } else if (Math.hypot(x - lastX, y - lastY) > 3) {
        drag.path.push([x, y]);
      }
      if (DRAWING.has(drag.tool)) this.lasso.setAttribute("d", `M${drag.path.map((point) => point.map(Math.round).join(" ")).join("L")}Z`);
    });
    const end = (event) => {
      if (!drag) return;
      const { moved, tool, path } = drag;
      drag = null;
      this.lasso.removeAttribute("d");
      if (event.type === "pointercancel") return;
      if (!moved) this.owner.clicked(this.rowAt(...at(event)));
      else if (tool === "turn") this.owner.settled();
      else if (DRAWING.has(tool)) this.owner.brushed(this.rowsWithin(path.map(([x, y]) => this.unit(x, y))), event.shiftKey);
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    plot.addEventListener("pointerleave", () => this.hover(-1e4, -1e4));
    plot.addEventListener("dblclick", () => this.owner.doubleClicked(this));
    plot.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoomAt(...at(event), Math.exp(-clamp(event.deltaY, -120, 120) * (event.ctrlKey ? 0.006 : 0.0025)));
      },
      { passive: false },
    );
  }

  hover(x, y) {
    this.pointer = [x, y];
    this.hovering ||= requestAnimationFrame(() => {
      this.hovering = 0;
      if (!this.disposed && this.units) this.owner.hovered(this.rowAt(...this.pointer), this);
    });
  }

  dispose() {
    this.disposed = true;
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.points.dispose();
    this.root.remove();
  }
}
