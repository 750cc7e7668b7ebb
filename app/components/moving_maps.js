/* Moving maps: the same rows in several maps, which move together from frame to frame, beside a chart of lines. The frames come once, as steps
   of 16 bits. While they play, points glide from frame to frame; nothing is sent to Python until they rest. */

const FRAME = 120; // milliseconds from frame to frame
const CALM_FRAME = 500; // where motion is to be reduced, and nothing glides
const SETTLED = 250; // milliseconds without another frame, after which Python hears of this one
const HELD = 1500; // milliseconds after a move of the reader, in which a payload that Python made before it heard of it moves nothing
const MOST_CLASSES = 24; // of the legend
const MOST_DOTS = 24; // of a line; of more, dots are as small as the line is wide
const INSETS = { left: 52, right: 12, top: 8, bottom: 36 }; // pixels around the lines
const ICONS = { back: "M11 2v12L3 8zM3 2h1.6v12H3z", play: "M4 2l10 6-10 6z", pause: "M3 2h3.6v12H3zM9.4 2H13v12H9.4z", on: "M5 2v12l8-6zM11.4 2H13v12h-1.6z" };
const players = new WeakMap();

function icon(name) {
  return element("svg", "", { viewBox: "0 0 16 16", "aria-hidden": "true" }, element("path", "", { d: ICONS[name] }));
}

class Player {
  constructor(parent) {
    this.at = 0; // a whole number for a frame; between two frames, the points are on their way
    this.moved = -Infinity; // when the reader moved last
    this.begun = ""; // the film that played by itself
    this.hovered = -1;
    this.maps = element("div", "mm-maps");
    this.chart = element("svg", "mm-chart", { role: "img" });
    this.key = element("ul", "mm-key");
    this.now = element("div", "mm-now");
    this.lines = element("div", "mm-lines", {}, element("div", "mm-graph", {}, this.chart, this.now), this.key);
    this.buttons = { back: this.button("back", "One step back", () => this.step(-1)), play: this.button("play", "Play", () => this.toggle()), on: this.button("on", "One step on", () => this.step(1)) };
    this.slider = element("input", "", { type: "range", min: 0, step: 1, "aria-label": "Step of the training" });
    this.slider.addEventListener("input", () => this.choose(Number(this.slider.value)));
    this.said = element("output", "mm-step");
    this.bar = element("div", "mm-bar", {}, ...Object.values(this.buttons), this.slider, this.said);
    this.classes = element("div", "mm-classes");
    this.stage = element("div", "mm-stage", {}, element("div", "", {}, this.maps, this.bar, this.classes), this.lines);
    this.tip = new Tip();
    this.root = element("div", "ls-root mm-root", { role: "group" }, this.stage, this.tip.root);
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    this.chart.addEventListener("pointerdown", (event) => this.pick(event));
    parent.append(this.root);
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.root);
    this.still = matchMedia(STILL);
  }

  button(name, label, act) {
    const node = element("button", "", { type: "button", "aria-label": label, title: label }, icon(name));
    node.addEventListener("click", act);
    return node;
  }

  /* Show a payload from Python. Its frame is shown if it is another one than Python knew of. */
  show({ header, take }) {
    this.header = header;
    const dark = isDark(this.root, "var(--st-background-color)");
    const theme = header.themes[dark ? 1 : 0];
    wear(this.root, theme);
    this.surface = rgb(theme.surface).map((value) => value / 255);
    this.palette = header.colors[dark ? 1 : 0];
    this.lineColors = header.lineColors[dark ? 1 : 0];
    this.neutral = theme.neutral;
    this.steps = take("places", Uint16Array);
    this.groups = take("groups", Uint16Array);
    this.ids = new TextColumn(take("names", Uint8Array));
    this.root.setAttribute("aria-label", header.alt);
    this.root.style.setProperty("--mm-height", `${header.height}px`);
    this.root.style.setProperty("--mm-columns", Math.min(header.panels.length, 4));
    this.root.style.setProperty("--mm-share", header.panels.length > 1 ? "68%" : "52%");
    this.slider.max = header.frames.length - 1;
    this.frameMaps();
    this.nameClasses();
    this.drawLines();
    if (!this.playing && performance.now() - this.moved > HELD) {
      if (header.frame !== this.told) this.at = header.frame;
      this.told = header.frame;
    }
    this.at = clamp(this.at, 0, header.frames.length - 1);
    this.draw();
    if (header.film !== this.begun) this.begin(header.film);
  }

  /* A film that Python names plays once by itself, and ends at its last frame. */
  begin(film) {
    this.begun = film;
    if (!film) return;
    if (this.still.matches) return this.choose(this.last);
    this.at = 0;
    this.play();
  }

  /* The canvases, which stay while only the frames change. */
  frameMaps() {
    const { panels, n } = this.header;
    if (this.panes?.length !== panels.length) {
      this.panes = panels.map(() => this.pane());
      this.maps.replaceChildren(...this.panes.map(({ root }) => root));
    }
    const table = [...this.palette, this.neutral].map(rgb);
    const color = new Uint8Array(3 * n);
    const flags = new Uint8Array(n);
    for (let row = 0; row < n; row++) {
      const group = Math.min(this.groups[row], table.length - 1);
      color.set(table[group], 3 * row);
      if (this.groups[row] === NONE) flags[row] = 2;
    }
    const order = Uint32Array.from({ length: n }, (_, row) => row);
    this.panes.forEach((pane, number) => {
      pane.title.textContent = panels[number];
      pane.units = new Float32Array(2 * n);
      for (const [name, array] of Object.entries({ color, flags, order })) pane.points.upload(name, array);
      if (!pane.points.inSoftware) pane.points.upload("depth", new Float32Array(n));
    });
  }

  pane() {
    const canvas = element("canvas", "", { role: "img" });
    const ring = element("circle", "ls-ring", { r: 7, visibility: "hidden" });
    const plot = element("div", "mm-plot", {}, canvas, element("svg", "", { "aria-hidden": "true" }, ring));
    const title = element("figcaption");
    const pane = { canvas, ring, plot, title, root: element("figure", "mm-map", {}, title, plot), points: pointsOn(canvas) };
    plot.addEventListener("pointermove", (event) => this.hover(pane, event));
    plot.addEventListener("pointerdown", (event) => this.hover(pane, event));
    plot.addEventListener("pointerleave", () => this.ring(pane, -1));
    return pane;
  }

  nameClasses() {
    const { groupNames } = this.header;
    const named = groupNames.slice(0, MOST_CLASSES).map((name, number) => {
      const dot = element("i", "ls-dot", { style: `background:${this.palette[number]}` });
      return element("span", "", { title: name }, dot, name);
    });
    if (groupNames.length > MOST_CLASSES) named.push(element("span", "", {}, `and ${groupNames.length - MOST_CLASSES} more`));
    this.classes.replaceChildren(...named);
  }

  get frame() {
    return Math.round(this.at);
  }

  get last() {
    return this.header.frames.length - 1;
  }

  /* Moves. */

  choose(frame) {
    this.pause();
    this.at = clamp(frame, 0, this.last);
    this.draw();
    this.tell();
  }

  step(by) {
    this.choose(this.frame + by);
  }

  toggle() {
    if (this.playing) this.choose(Math.ceil(this.at));
    else this.play();
  }

  play() {
    if (this.at >= this.last) this.at = 0;
    this.setPlaying(true);
    let before = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      const calm = this.still.matches;
      this.passed = Math.max(0, now - before);
      if (!calm || this.passed >= CALM_FRAME) {
        this.at = Math.min(this.last, this.at + (calm ? 1 : this.passed / FRAME));
        before = now;
        this.draw();
      }
      if (this.at < this.last) return void (this.ticking = requestAnimationFrame(tick));
      this.pause();
      this.tell();
    };
    this.ticking = requestAnimationFrame(tick);
  }

  pause() {
    cancelAnimationFrame(this.ticking);
    this.setPlaying(false);
  }

  setPlaying(playing) {
    if (Boolean(this.playing) === playing) return;
    this.playing = playing;
    const label = playing ? "Pause" : "Play";
    this.buttons.play.replaceChildren(icon(label.toLowerCase()));
    this.buttons.play.setAttribute("aria-label", label);
    this.buttons.play.title = label;
  }

  /* Python hears of a frame once the reader rests at it. */
  tell() {
    this.moved = performance.now();
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.frame === this.told) return;
      this.told = this.frame;
      this.send(this.header.frames[this.frame]);
    }, SETTLED);
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation(); // Streamlit would take the key for a shortcut, such as the next step of the story
    this.choose(clamp(this.frame + moves[event.key], 0, this.last));
  }

  /* A click on the lines shows the nearest frame. */
  pick(event) {
    const { left, width } = this.chart.getBoundingClientRect();
    const share = (event.clientX - left - INSETS.left) / (width - INSETS.left - INSETS.right);
    const far = this.header.shares.map((one) => Math.abs(one - share));
    this.choose(far.indexOf(Math.min(...far)));
  }

  /* Pictures. */

  draw() {
    if (!this.header) return;
    const { header, steps, at } = this;
    const { n, frames } = header;
    const before = Math.floor(at);
    const share = at - before;
    this.panes.forEach((pane, number) => {
      const start = 2 * n * (number * frames.length + before);
      const end = share ? start + 2 * n : start;
      const { units } = pane;
      for (let i = 0; i < 2 * n; i++) units[i] = (2 * (steps[start + i] + share * (steps[end + i] - steps[start + i]))) / STEPS - 1;
      this.paint(pane);
    });
    this.follow();
    if (this.hovered >= 0) this.placeRings();
  }

  paint(pane) {
    const { canvas, points, plot, units } = pane;
    const [width, height] = [plot.clientWidth, plot.clientHeight];
    if (!width || !height) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const [columns, lines] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== columns || canvas.height !== lines) points.resize(columns, lines);
    const side = this.header.zoom * Math.min(width, height);
    pane.scale = [side / width, side / height];
    points.upload("position", units);
    const { pointSize } = this.header;
    const opaque = opacity(this.header.n);
    points.draw({ scale: pane.scale, offset: [0, 0], sizes: [pointSize, pointSize], alphas: [opaque, opaque], brushed: 0, lift: 0, surface: this.surface, ratio });
  }

  /* Slider, words and chart follow the frame. */
  follow() {
    const { header, frame } = this;
    this.place();
    if (this.shown === frame && this.shownOf === header) return;
    [this.shown, this.shownOf] = [frame, header];
    this.root.dataset.frame = frame;
    this.slider.value = frame;
    this.slider.setAttribute("aria-valuetext", header.frames[frame]);
    this.said.textContent = header.frames[frame];
    this.buttons.back.disabled = frame === 0;
    this.buttons.on.disabled = frame === this.last;
    this.panes.forEach(({ canvas }, number) => canvas.setAttribute("aria-label", `${header.panels[number]}, ${header.frames[frame]}: ${header.about}`));
    header.lines.forEach(({ texts, points }, number) => (this.key.children[number].lastChild.textContent = texts[points[frame]] ?? "–"));
  }

  /* Lines: their names and values are in the list below, their picture is the chart. */
  drawLines() {
    const { lines, baselines, alt } = this.header;
    this.key.replaceChildren(...lines.map(({ name, dashed }, number) => this.entry(name, this.lineColors[number], dashed ? "dashed" : "solid")));
    this.key.append(...baselines.map(([name, value]) => this.entry(name, "var(--ls-muted)", "dotted", value)));
    this.chart.setAttribute("aria-label", alt);
    this.shownOf = null;
    this.chartSize = "";
  }

  entry(name, color, style, value = "") {
    return element("li", "", { title: name }, element("i", "", { style: `border-top:2.5px ${style} ${color}` }), element("span", "", {}, name), element("b", "", {}, value));
  }

  /* The mark of the frame moves as a layer of its own, because a chart that is painted again for each picture would take half of the time. */
  place() {
    const [width, height] = [this.chart.clientWidth, this.chart.clientHeight];
    if (!width || !height) return;
    const { left, right, top, bottom } = INSETS;
    const x = (share) => left + share * (width - left - right);
    const y = (share) => top + (1 - share) * (height - top - bottom);
    if (this.chartSize !== `${width} ${height}`) this.sketch(width, height, x, y);
    this.chartSize = `${width} ${height}`;
    const { shares } = this.header;
    const before = Math.floor(this.at);
    const along = shares[before] + (this.at - before) * ((shares[before + 1] ?? shares[before]) - shares[before]);
    this.now.style.height = `${height - top - bottom}px`;
    this.now.style.transform = `translate(${x(along) - 1}px, ${top}px)`;
  }

  sketch(width, height, x, y) {
    const { header } = this;
    const { left, right, top, bottom } = INSETS;
    const parts = [];
    let end = -Infinity;
    for (const [share, text] of header.xTicks) {
      parts.push(element("path", "mm-grid", { d: `M${x(share)} ${top}V${height - bottom}` }));
      if (x(share) - end < 12 + 7 * text.length) continue;
      end = x(share);
      parts.push(element("text", "", { x: end, y: height - bottom + 15, "text-anchor": "middle" }, text));
    }
    for (const [share, text] of header.yTicks) {
      parts.push(element("path", "mm-grid", { d: `M${left} ${y(share)}H${width - right}` }));
      parts.push(element("text", "", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, text));
    }
    parts.push(element("text", "", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, header.xTitle));
    parts.push(element("text", "", { transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, header.yTitle));
    for (const share of header.baselineShares) parts.push(element("path", "mm-base", { d: `M${left} ${y(share)}H${width - right}` }));
    header.lines.forEach(({ dashed, places }, number) => {
      const color = this.lineColors[number];
      const at = places.map(([along, up]) => [x(along).toFixed(1), y(up).toFixed(1)]);
      const d = at.map(([toX, toY], i) => `${i ? "L" : "M"}${toX} ${toY}`).join("");
      parts.push(element("path", "mm-line", { d, stroke: color, "stroke-dasharray": dashed ? "5 4" : "none" }));
      parts.push(...at.map(([cx, cy]) => element("circle", "", { cx, cy, r: at.length > MOST_DOTS ? 1.5 : 3, fill: color })));
    });
    this.chart.replaceChildren(...parts);
  }

  /* A row under the pointer is ringed in all maps. */

  pixel({ units, scale, plot }, row) {
    return [((1 + units[2 * row] * scale[0]) / 2) * plot.clientWidth, ((1 - units[2 * row + 1] * scale[1]) / 2) * plot.clientHeight];
  }

  hover(pane, event) {
    const { left, top } = pane.plot.getBoundingClientRect();
    const [toX, toY] = [event.clientX - left, event.clientY - top];
    let [nearest, least] = [-1, REACH * REACH];
    for (let row = 0; row < this.header.n; row++) {
      const [x, y] = this.pixel(pane, row);
      const far = (x - toX) ** 2 + (y - toY) ** 2;
      if (far < least) [nearest, least] = [row, far];
    }
    this.ring(pane, nearest);
  }

  ring(pane, row) {
    this.hovered = row;
    this.hoveredIn = pane;
    this.placeRings();
    if (row < 0) return this.tip.hide();
    const group = this.groups[row];
    const category = this.header.groupNames[group];
    this.tip.show(row, undefined, { id: this.ids.at(row), category, color: this.palette[group] });
    this.tip.place(this.pixel(pane, row), pane.plot, this.root);
  }

  placeRings() {
    const row = this.hovered;
    for (const pane of this.panes) {
      pane.ring.setAttribute("visibility", row >= 0 && row < this.header.n ? "visible" : "hidden");
      if (row < 0 || row >= this.header.n) continue;
      const [x, y] = this.pixel(pane, row);
      pane.ring.setAttribute("cx", x);
      pane.ring.setAttribute("cy", y);
    }
    if (row >= 0 && this.playing) this.tip.hide();
  }

  end() {
    this.pause();
    clearTimeout(this.telling);
    this.sizes.disconnect();
    for (const { points } of this.panes ?? []) points.dispose?.();
    this.root.remove();
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!players.has(parentElement)) players.set(parentElement, new Player(parentElement));
  const player = players.get(parentElement);
  player.send = (frame) => setTriggerValue("frame", frame);
  arrived(parentElement, unpack(data), (payload) => player.show(payload));
  return () => {
    if (parentElement.isConnected) return; // a newer call has come
    forget(parentElement);
    player.end();
    players.delete(parentElement);
  };
}
