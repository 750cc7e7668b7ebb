/* LinkedScatter: panes, legend and toolbar around one selection. Streamlit calls the default export at mount, with every new payload and
   with every change of theme, always with the same parent. */

const ICONS = {
  lasso: "M10 3.2c-4 0-7 2-7 4.7 0 2.1 1.7 3.7 4.3 4.4M10 3.2c4 0 7 2 7 4.7s-3 4.6-7 4.6c-1 0-1.9-.1-2.7-.3M7.3 12.3a1.8 1.8 0 1 1-3 1.5c0-1 .8-1.8 1.8-1.8s1.6 1 1.6 2.2c0 1.5-1 2.8-2.4 3",
  box: "M3.5 3.5h3M8.5 3.5h3M13.5 3.5h3v3M16.5 8.5v3M16.5 13.5v3h-3M11.5 16.5h-3M6.5 16.5h-3v-3M3.5 11.5v-3M3.5 6.5v-3",
  pan: "M10 2.5v15M2.5 10h15M10 2.5 7.8 4.7M10 2.5l2.2 2.2M10 17.5l-2.2-2.2M10 17.5l2.2-2.2M2.5 10l2.2-2.2M2.5 10l2.2 2.2M17.5 10l-2.2-2.2M17.5 10l-2.2 2.2",
  link: "M8.3 11.7a3.2 3.2 0 0 0 4.6 0l2.7-2.7a3.25 3.25 0 0 0-4.6-4.6l-1 1M11.7 8.3a3.2 3.2 0 0 0-4.6 0L4.4 11a3.25 3.25 0 0 0 4.6 4.6l1-1",
  home: "M3 7.5V3h4.5M17 7.5V3h-4.5M3 12.5V17h4.5M17 12.5V17h-4.5M7.5 10h5M10 7.5v5",
  clear: "M5 5l10 10M15 5 5 15",
};
const TOOLS = { lasso: "Lasso (L); Shift adds", box: "Box (B); Shift adds", pan: "Move and zoom (P): drag, wheel" };
const NONE = 0xffff;
const COLUMNS = { selected: Uint8Array, categories: Uint16Array, anchors: Uint32Array, cells: Uint32Array, ids: Uint8Array };
const instances = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let scatter = instances.get(parentElement);
  if (!scatter) instances.set(parentElement, (scatter = new LinkedScatter(parentElement)));
  scatter.send = (events) => setTriggerValue("events", events);
  scatter.update(data);
  return () => {
    if (parentElement.isConnected) return; // the call was overtaken by a newer one, the panes are still on screen
    scatter.dispose();
    instances.delete(parentElement);
  };
}

function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const take = (name) => {
    const [start, size] = header.arrays[name];
    const copy = bytes.slice(4 + length + start, 4 + length + start + size); // aligned, and free of Streamlit's message
    return new (COLUMNS[name] ?? Float32Array)(copy.buffer);
  };
  return { header, take };
}

class LinkedScatter {
  constructor(parent) {
    this.panes = [];
    this.digests = {};
    this.unanswered = [];
    this.serial = 0;
    this.legend = element("div", "ls-legend", { role: "group", "aria-label": "Categories: click to select, Shift adds" });
    this.status = element("span", "ls-status", { role: "status", "aria-live": "polite" });
    this.toolbar = element("div", "ls-toolbar", { role: "toolbar", "aria-label": "Tools of the panes" });
    this.grid = element("div", "ls-grid");
    this.caption = element("figcaption", "ls-caption");
    this.tip = new Tip();
    const bar = element("div", "ls-bar", {}, this.legend, element("div", "ls-side", {}, this.status, this.toolbar));
    this.root = element("figure", "ls-root", { tabindex: 0, role: "figure" }, bar, this.grid, this.caption, this.tip.root);
    this.buttons = {};
    const button = (name, label, action) => {
      const icon = element("svg", "", { viewBox: "0 0 20 20", "aria-hidden": "true" }, element("path", "", { d: ICONS[name] }));
      this.buttons[name] = element("button", "ls-button", { type: "button", title: label, "aria-label": label, "data-tool": name }, icon);
      this.buttons[name].addEventListener("click", action);
      return this.buttons[name];
    };
    this.toolbar.append(
      element("span", "ls-segments", {}, ...Object.entries(TOOLS).map(([name, label]) => button(name, label, () => this.setTool(name)))),
      button("link", "Zoom all panes together", () => this.setLinked(!this.linked)),
      button("home", "Show everything (0)", () => this.home()),
      button("clear", "Clear the selection (Escape)", () => this.brushed([], false)),
    );
    this.root.addEventListener("keydown", (event) => this.key(event));
    parent.append(this.root);
  }

  update(bytes) {
    const { header, take } = unpack(bytes);
    const past = this.header;
    const fresh = (name) => {
      const digest = header.arrays[name]?.[2];
      const changed = this.digests[name] !== digest;
      this.digests[name] = digest;
      return changed;
    };
    this.header = header;
    this.unanswered = this.unanswered.filter((event) => event.serial > header.answered);
    this.root.style.setProperty("--ls-height", `${header.height}px`);
    this.root.setAttribute("aria-label", header.alt);
    this.caption.textContent = header.caption;
    if (past?.tool !== header.tool) this.setTool(header.tool);
    if (past?.linkZoom !== header.linkZoom) this.setLinked(header.linkZoom);

    const other = fresh("ids"); // other rows: what was selected among the old ones means nothing now
    if (other) [this.idBytes, this.ids, this.unanswered] = [take("ids"), null, []];
    if (fresh("cells")) this.cells = header.sheet ? take("cells") : null;
    this.tip.serve(header.files, header.sheet);
    const recategorised = fresh("categories") || other;
    if (recategorised) this.categories = take("categories");
    const recolored = this.setTheme() || recategorised || JSON.stringify(past?.names) !== JSON.stringify(header.names);
    if (recolored) this.color();

    while (this.panes.length > header.panes.length) this.panes.pop().dispose();
    const born = header.panes.length - this.panes.length;
    while (this.panes.length < header.panes.length) this.panes.push(this.newPane());
    this.root.dataset.panes = this.panes.length;
    const reanchored = fresh("anchors") || recolored || born;
    if (reanchored) this.anchors = take("anchors");
    this.panes.forEach((pane, i) => {
      pane.setTitle(header.panes[i]);
      const moved = fresh(`pane${i}`) || i >= this.panes.length - born;
      if (moved) pane.setPositions(take(`pane${i}`));
      if (recolored || born) pane.points.upload("color", this.colors);
      if (reanchored) pane.setAnchors(this.anchors, header, (row) => this.colorOf(row));
    });
    // Python's selection is law, unless it is older than a brush that Python has not answered yet.
    const law = header.arrays.selected && !this.unanswered.some((event) => event.kind === "select");
    const rows = law ? this.bits(take("selected")) : other ? [] : this.rows;
    const same = rows.length === this.rows?.length && rows.every((row, i) => row === this.rows[i]);
    if (!same || born || recolored) this.select(rows);
    this.awaited = new Set(this.panes.filter((pane) => pane.frame));
    this.drawn();
  }

  newPane() {
    const pane = new Pane(this);
    if (this.linked && this.panes.length) pane.setView(this.panes[0].view);
    this.grid.append(pane.root);
    return pane;
  }

  /* Light or dark, as asked or as the page is; true if it changed. */
  setTheme() {
    this.root.style.color = "var(--st-background-color)";
    const [r, g, b] = getComputedStyle(this.root).color.match(/[\d.]+/g).map(Number);
    this.root.style.color = "";
    const dark = this.header.dark ?? 0.299 * r + 0.587 * g + 0.114 * b < 128;
    const theme = this.header.themes[dark ? 1 : 0];
    if (JSON.stringify(theme) === JSON.stringify(this.theme)) return false;
    this.theme = theme;
    for (const name of ["surface", "text", "muted", "border", "grid", "accent", "font"]) this.root.style.setProperty(`--ls-${name}`, theme[name]);
    this.root.dataset.theme = dark ? "dark" : "light";
    return true;
  }

  colorOf(row) {
    return this.theme.colors[this.categories[row]] ?? this.theme.neutral;
  }

  color() {
    const { header, theme, categories } = this;
    const table = [...theme.colors, theme.neutral].map(rgb);
    const counts = new Uint32Array(header.names.length + 1);
    this.colors = new Uint8Array(3 * header.n);
    for (let row = 0; row < header.n; row++) {
      const category = Math.min(categories[row], header.names.length);
      counts[category]++;
      this.colors.set(table[category], 3 * row);
    }
    const [others, n] = [counts.at(-1), header.n];
    const mixed = others && others < n;
    this.style = {
      sizes: [header.pointSize, mixed ? header.otherSize * 0.85 : header.otherSize],
      alphas: [opacity(n - others), mixed ? opacity(others) * 0.6 : opacity(others)],
      surface: rgb(theme.surface).map((value) => value / 255),
    };
    const chip = (category, name, color) => {
      const node = element("button", "ls-chip", { type: "button", title: `${name}: ${counts[category].toLocaleString()} points; click to select` });
      node.append(element("span", "ls-dot", { style: `background:${color}` }), name);
      node.addEventListener("click", (event) => this.brushed(this.rowsOf(category), event.shiftKey));
      return node;
    };
    const named = header.names.map((name, category) => [category, name, theme.colors[category]]).filter(([category]) => counts[category]);
    this.legend.replaceChildren(...named.slice(0, header.named).map((entry) => chip(...entry)));
    if (named.length > header.named) this.legend.append(element("span", "ls-more", {}, `and ${named.length - header.named} more`));
    if (mixed) this.legend.append(chip(header.names.length, header.other, theme.neutral));
  }

  rowsOf(category) {
    const rows = [];
    this.categories.forEach((value, row) => Math.min(value, this.header.names.length) === category && rows.push(row));
    return rows;
  }

  bits(bytes) {
    const rows = [];
    for (let row = 0; row < this.header.n; row++) if ((bytes[row >> 3] >> (row & 7)) & 1) rows.push(row);
    return rows;
  }

  /* Show these rows in every pane; selected rows and named categories are drawn last, so they lie on top. */
  select(rows) {
    const { n } = this.header;
    const [flags, order, ends] = [new Uint8Array(n), new Uint32Array(n), [0, 0, 0, 0]];
    for (let row = 0; row < n; row++) if (this.categories[row] === NONE) flags[row] = 2;
    for (const row of rows) flags[row] |= 1;
    const layer = (flag) => (flag & 1) * 2 + (flag < 2 ? 1 : 0);
    for (let row = 0; row < n; row++) ends[layer(flags[row])]++;
    for (let i = 0, end = 0; i < 4; i++) [ends[i], end] = [end, end + ends[i]];
    for (let row = 0; row < n; row++) order[ends[layer(flags[row])]++] = row;
    this.rows = rows;
    this.style.brushed = rows.length > 0;
    this.style.lift = rows.length ? clamp(1 - (4 * rows.length) / n, 0, 1) : 0; // a small selection is drawn larger and stronger than a large one
    for (const pane of this.panes) {
      pane.points.upload("flags", flags);
      pane.points.upload("order", order);
      pane.redraw();
    }
    this.awaited = new Set(this.panes);
    this.status.textContent = rows.length ? `${rows.length.toLocaleString()} of ${n.toLocaleString()} selected` : "";
    this.root.classList.toggle("ls-brushed", rows.length > 0);
    this.buttons.clear.disabled = !rows.length;
  }

  // What panes report.

  brushed(rows, add) {
    if (add) rows = [...new Set([...this.rows, ...rows])].sort((a, b) => a - b);
    if (!rows.length && !this.rows.length) return;
    performance.mark("linked_scatter:brushed");
    this.select(rows);
    const bytes = new Uint8Array((this.header.n + 7) >> 3);
    for (const row of rows) bytes[row >> 3] |= 1 << (row & 7);
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    this.unanswered = this.unanswered.filter((event) => event.kind !== "select"); // only the last brush matters
    this.report({ kind: "select", bits: btoa(text) });
  }

  clicked(row) {
    clearTimeout(this.clickTimer); // a second click makes it a double click, which is no click on a point
    if (row >= 0) this.clickTimer = setTimeout(() => this.report({ kind: "click", row }), 220);
  }

  doubleClicked(pane) {
    clearTimeout(this.clickTimer);
    if (this.tool === "pan") this.home(pane);
    else this.brushed([], false);
  }

  report(event) {
    this.serial = Math.max(Date.now(), this.serial + 1, this.header.answered + 1);
    this.unanswered.push({ ...event, serial: this.serial, version: this.header.version });
    this.send(this.unanswered);
  }

  hovered(row, pane) {
    if (row === this.hoverRow) return;
    this.hoverRow = row;
    this.panes.forEach((each) => each.setRing(row));
    if (row < 0) return this.tip.hide();
    this.ids ??= new TextDecoder().decode(this.idBytes).split("\x1f");
    const [name, number] = [this.header.names[this.categories[row]], this.anchors.indexOf(row) + 1];
    this.tip.show(row, this.cells?.[row], { id: this.ids[row], category: name, color: this.colorOf(row), anchor: number });
    this.tip.place(pane.pixel(row), pane.plot, this.root);
  }

  viewed(pane) {
    if (this.linked) for (const other of this.panes) if (other !== pane) other.setView(pane.view);
  }

  drawn(pane) {
    this.awaited.delete(pane);
    if (this.awaited.size) return;
    const drawn = this.panes.map((_, i) => this.digests[`pane${i}`]).join("-");
    if (this.root.dataset.drawn !== drawn) performance.mark("linked_scatter:drawn");
    this.root.dataset.drawn = drawn;
    this.root.dataset.selected = this.rows.length;
    this.root.dataset.anchors = this.anchors.length;
    this.root.dataset.views = JSON.stringify(this.panes.map(({ view }) => [view.x, view.y, view.zoom]));
  }

  // What the toolbar and the keyboard do.

  setTool(tool) {
    this.tool = this.root.dataset.tool = tool;
    for (const name of Object.keys(TOOLS)) this.buttons[name].setAttribute("aria-pressed", name === tool);
  }

  setLinked(linked) {
    this.linked = linked;
    this.buttons.link.setAttribute("aria-pressed", linked);
    if (linked && this.panes.length) this.viewed(this.panes.find((pane) => pane.view.zoom !== 1) ?? this.panes[0]);
  }

  home(pane) {
    for (const each of pane && !this.linked ? [pane] : this.panes) each.setView(HOME);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zoom = (factor) => this.panes.forEach((pane) => pane.setView({ ...pane.view, zoom: pane.view.zoom * factor }));
    const actions = { Escape: () => this.brushed([], false), 0: () => this.home(), "+": () => zoom(1.25), "-": () => zoom(0.8) };
    for (const tool of Object.keys(TOOLS)) actions[tool[0]] = () => this.setTool(tool);
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation(); // or Streamlit would take the key for one of its own
    action();
  }

  dispose() {
    clearTimeout(this.clickTimer);
    this.panes.forEach((pane) => pane.dispose());
    this.root.remove();
  }
}
