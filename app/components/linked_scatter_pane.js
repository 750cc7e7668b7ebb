/* Pane: one picture of the rows. Positions live in units of the full range, -1 … 1 in x and y, so that a view { x, y, zoom } means the same
   part of every pane, whatever its scale: linking zooms is sharing views. */

const MARGIN = 1.08;
const REACH = 9; // pixels within which the pointer takes a point
const HOME = Object.freeze({ x: 0, y: 0, zoom: 1 });
const STAR = Array.from({ length: 10 }, (_, i) => {
  const [radius, angle] = [i % 2 ? 0.42 : 1, (Math.PI * (i - 2.5)) / 5];
  return `${(radius * Math.cos(angle)).toFixed(3)},${(radius * Math.sin(angle)).toFixed(3)}`;
}).join(" ");

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
    this.stars = element("g");
    this.numbers = element("g");
    this.lasso = element("path", "ls-lasso");
    this.ring = element("circle", "ls-ring", { r: 8, visibility: "hidden" });
    this.overlay = element("svg", "ls-overlay", { "aria-hidden": "true" }, this.stars, this.numbers, this.ring, this.lasso);
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

  setPositions(xy) {
    const units = new Float32Array(xy.length);
    for (const axis of [0, 1]) {
      let [low, high] = [Infinity, -Infinity];
      for (let i = axis; i < xy.length; i += 2) {
        if (xy[i] < low) low = xy[i];
        if (xy[i] > high) high = xy[i];
      }
      const [middle, half] = [(low + high) / 2, (high - low) / 2 || 1];
      for (let i = axis; i < xy.length; i += 2) units[i] = (xy[i] - middle) / half;
    }
    this.units = units;
    this.points.upload("position", units);
    this.redraw();
  }

  setAnchors(anchors, { starSize, numbered }, colorOf) {
    this.anchors = anchors;
    // Stars that are there are kept: one anchor more is one star more, not hundreds of new ones.
    const stars = this.stars.children;
    while (stars.length > anchors.length) this.stars.lastChild.remove();
    while (stars.length < anchors.length) {
      this.stars.append(element("g", "ls-star", {}, element("polygon", "ls-halo", { points: STAR }), element("polygon", "ls-body", { points: STAR })));
    }
    for (let i = 0; i < anchors.length; i++) stars[i].lastChild.setAttribute("fill", colorOf(anchors[i]));
    this.stars.style.setProperty("--ls-star", starSize / 2);
    const place = { x: starSize * 0.55, y: -starSize * 0.28 };
    this.numbers.replaceChildren(...Array.from(numbered ? anchors : [], (_, i) => element("text", "ls-number", place, String(i + 1))));
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
    if (!width || !height || !this.units) return;
    const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== columns || this.canvas.height !== rows) Object.assign(this.canvas, { width: columns, height: rows });
    const scale = this.view.zoom / MARGIN;
    const offset = [-this.view.x * scale, -this.view.y * scale];
    const growth = this.view.zoom ** 0.35; // zooming in spreads the points, so they may grow, but less
    const { sizes, alphas, brushed, lift, surface } = this.owner.style;
    this.points.draw({ scale: [scale, scale], offset, sizes: sizes.map((size) => Math.min(size * growth, 14)), alphas, brushed, lift, surface, ratio });
    for (let i = 0; i < this.stars.children.length; i++) {
      const [x, y] = this.pixel(this.anchors[i], width, height);
      for (const { children } of [this.stars, this.numbers]) children[i]?.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    }
    this.placeRing();
  }

  /* Sizes are asked for once a drawing: reading them between changes of stars would lay the page out anew for each. */
  pixel(row, width = this.plot.clientWidth, height = this.plot.clientHeight) {
    const scale = this.view.zoom / MARGIN;
    const x = (this.units[2 * row] - this.view.x) * scale;
    const y = (this.units[2 * row + 1] - this.view.y) * scale;
    return [((1 + x) / 2) * width, ((1 - y) / 2) * height];
  }

  unit(x, y) {
    const scale = this.view.zoom / MARGIN;
    return [((2 * x) / this.plot.clientWidth - 1) / scale + this.view.x, (1 - (2 * y) / this.plot.clientHeight) / scale + this.view.y];
  }

  /* The row under a pixel or -1: anchors first, then the nearest. */
  rowAt(x, y) {
    const reach = Math.max(REACH, this.owner.header.starSize / 2);
    let [best, nearest] = [-1, reach * reach];
    const { clientWidth, clientHeight } = this.plot;
    for (const row of this.anchors) {
      const [px, py] = this.pixel(row, clientWidth, clientHeight);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance <= nearest) [best, nearest] = [row, distance];
    }
    if (best >= 0) return best;
    nearest = REACH * REACH;
    const [ux, uy] = this.unit(x, y);
    const scale = this.view.zoom / MARGIN / 2;
    const [toX, toY, units] = [scale * this.plot.clientWidth, scale * this.plot.clientHeight, this.units];
    for (let row = 0, i = 0; i < units.length; row++, i += 2) {
      const [dx, dy] = [(units[i] - ux) * toX, (units[i + 1] - uy) * toY];
      const distance = dx * dx + dy * dy;
      if (distance < nearest) [best, nearest] = [row, distance];
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
      if (x < left || x > right || y < low || y > high) continue;
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
      drag = { path: [at(event)], view: this.view, tool: this.owner.tool, moved: false };
      this.owner.hovered(-1, this);
    });
    plot.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!drag) return this.hover(x, y);
      const [[startX, startY], [lastX, lastY]] = [drag.path[0], drag.path.at(-1)];
      drag.moved ||= Math.hypot(x - startX, y - startY) > 4;
      if (!drag.moved) return;
      if (drag.tool === "pan") {
        const scale = drag.view.zoom / MARGIN / 2;
        this.setView({ ...drag.view, x: drag.view.x - (x - startX) / plot.clientWidth / scale, y: drag.view.y + (y - startY) / plot.clientHeight / scale });
        this.owner.viewed(this);
      } else if (drag.tool === "box") {
        drag.path = [drag.path[0], [x, startY], [x, y], [startX, y]];
      } else if (Math.hypot(x - lastX, y - lastY) > 3) {
        drag.path.push([x, y]);
      }
      if (drag.tool !== "pan") this.lasso.setAttribute("d", `M${drag.path.map((point) => point.map(Math.round).join(" ")).join("L")}Z`);
    });
    const end = (event) => {
      if (!drag) return;
      const { moved, tool, path } = drag;
      drag = null;
      this.lasso.removeAttribute("d");
      if (event.type === "pointercancel") return;
      if (!moved) this.owner.clicked(this.rowAt(...at(event)));
      else if (tool !== "pan") this.owner.brushed(this.rowsWithin(path.map(([x, y]) => this.unit(x, y))), event.shiftKey);
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    plot.addEventListener("pointerleave", () => this.hover(-1e4, -1e4));
    plot.addEventListener("dblclick", () => this.owner.doubleClicked(this));
    plot.addEventListener(
      "wheel",
      (event) => {
        if (this.owner.tool !== "pan" && !event.ctrlKey && !event.metaKey) return; // the page scrolls on
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
