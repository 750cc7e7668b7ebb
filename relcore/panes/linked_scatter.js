/* LinkedScatter: panes, legend and toolbar around one selection.

   A home shows them: a page of Streamlit, a notebook, a file. It offers
     send(events): takes all events that Python has not answered yet, the oldest first;
     load(address): gives a promise of the Blob of a file that the payload names;
     open(live, answered, ended), optional: opens a channel { send, close } for an anchor that is dragged, see `Hand`;
     inspector(), optional: gives the element below or beside the panes that describes the selected row, or null;
     watched(), optional: gives the row whose similarities to the anchors are shown, or -1;
     moved(number, similar, id), optional: hears where an anchor moves: its number, from 0 on, these similarities to it in each model, and the
     id of its row; number -1 where it is back;
     found(share), optional: hears which share of the rows are their own nearest neighbour while it is dragged, null for that of before, undefined
     until it is known;
     background: the CSS colour of the page behind the panes;
     scroller(root), content(root): the element that scrolls the page, and the one that holds all of it; by default the document's. */

const instances = new WeakMap();
const openFilters = new Set(); // pages whose filter was left open

/* Draw this payload, { header, take }, in the host element: the panes that are there already keep zoom and tool. */
function render(host, payload, home) {
  let scatter = instances.get(host);
  if (!scatter) instances.set(host, (scatter = new LinkedScatter(host)));
  scatter.place = home;
  scatter.update(payload);
  return scatter;
}

function remove(host) {
  instances.get(host)?.dispose();
  instances.delete(host);
}

class LinkedScatter {
  constructor(parent) {
    this.panes = [];
    this.digests = {};
    this.unanswered = [];
    this.serial = 0;
    this.colorings = new Colorings();
    this.turns = new Turns();
    this.legend = new Legend({
      toggle: (coloring, number) => this.hide(() => coloring.toggle(number)),
      isolate: (coloring, number) => this.hide(() => coloring.isolate(number)),
      select: (coloring, number) => this.brushed(coloring.rowsOf(number).filter((row) => !this.colorings.hides(row)), true),
      showAll: () => this.hide(() => this.colorings.showAll()),
      stars: () => this.stars.toggle(),
    });
    this.status = element("span", "ls-status", { role: "status", "aria-live": "polite" });
    this.stars = new StarControl((look, settled) => this.starred(look, settled));
    this.filter = new Filter((settled) => this.filtered(settled), () => this.hideFilter());
    this.named = true;
    this.density = null; // whether lines of density are drawn; null: where points hide each other
    this.hand = new Hand(this);
    this.toolbar = new Toolbar(actionsOf(this), { stars: this.stars.root });
    this.toolbar.press("names", true);
    this.toolbar.root.addEventListener("click", ({ pointerType, target }) => {
      const { title, dataset } = target.closest("button") ?? {};
      if (pointerType !== "touch") return;
      if (TOOLS[dataset?.tool]) this.touch(dataset.tool);
      else if (title) this.tellHow(title); // where nothing hovers
    });
    this.legend.root.append(this.hand.strip);
    this.grid = element("div", "ls-grid");
    this.grid.addEventListener("pointerenter", ({ pointerType }) => this.hand.teach(pointerType));
    this.hint = element("div", "ls-hint", { hidden: "" });
    const frame = element("div", "ls-frame", {}, this.grid, this.legend.all, this.hint, this.hand.fewer, this.filter.root);
    this.caption = element("div", "ls-caption");
    const foot = element("figcaption", "ls-foot", {}, this.filter.mark, this.caption);
    this.tip = new Tip(() => this.header.mute && this.panes.forEach((pane) => pane.redraw()));
    const selection = element("span", "ls-selection", {}, this.status, this.toolbar.buttons.clear);
    const bar = element("div", "ls-bar", {}, this.legend.root, element("div", "ls-side", {}, this.hand.spoken, selection, this.toolbar.root));
    this.root = element("figure", "ls-root", { tabindex: 0, role: "figure" }, bar, frame, foot, this.tip.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.room = new Room(this.root, this.grid, foot);
    parent.append(this.root);
  }

  tellHow(text = "Click a map to zoom with the wheel, or hold Ctrl", time = Math.max(1500, 60 * text.length)) {
    this.hint.textContent = text;
    this.hint.hidden = false;
    clearTimeout(this.hintTimer);
    this.hintTimer = setTimeout(() => (this.hint.hidden = true), time);
  }

  update({ header, take }) {
    const past = this.header;
    const fresh = (name) => {
      const digest = header.arrays[name]?.[2];
      const changed = this.digests[name] !== digest;
      this.digests[name] = digest;
      return changed;
    };
    this.header = header;
    this.hand.unwatch ??= this.place.watchSliders?.(this.hand);
    this.unanswered = this.unanswered.filter((event) => event.serial > header.answered);
    this.root.setAttribute("aria-label", header.alt);
    this.caption.textContent = header.caption;
    this.room.set(header.fill, header.height, this.place);
    if (past?.tool !== header.tool) this.setTool(header.tool);
    const [solid, wasSolid] = [header, past].map((one) => one?.panes.some((pane) => pane.dimensions === 3) ?? false);
    this.toolbar.buttons.turn.hidden = !solid;
    this.toolbar.buttons.density.hidden = solid;
    if (solid !== wasSolid) this.setTool(solid ? "turn" : header.tool);
    if (solid && !wasSolid) this.tellHow("Drag a map to turn it");
    this.toolbar.buttons.stars.hidden = !header.arrays.anchors[1];
    const settled = !this.unanswered.some((event) => event.kind === "stars");
    if (settled && JSON.stringify(past?.stars) !== JSON.stringify(header.stars)) this.stars.show(header.stars);
    this.legend.showStars(header.arrays.anchors[1] > 0, this.stars.look.shown);
    if (past?.linkZoom !== header.linkZoom) this.setLinked(header.linkZoom);

    const other = fresh("ids"); // other rows: what was selected among the old ones means nothing now
    if (other) {
      [this.ids, this.unanswered] = [new TextColumn(take("ids")), []];
      clearTimeout(this.clickTimer); // the click was on an old row
    }
    this.sameRows = !other;
    if (fresh("cells")) this.cells = header.sheet ? take("cells") : null;
    this.tip.serve(header.files, header.sheet, this.place.load);
    if (fresh("prominence") || other) this.prominence = header.arrays.prominence ? take("prominence") : Uint32Array.from({ length: header.n }, (_, row) => row);
    const again = this.setTheme() || other;
    const hiding = !this.unanswered.some((event) => event.kind === "hidden");
    const look = { again, hiding, theme: this.theme, dark: this.root.dataset.theme === "dark" };
    const [repainted, rehidden] = this.colorings.update(header, past, { fresh, take, ...look });
    this.root.dataset.colorings = header.colorings.length;
    if (repainted) this.legend.draw(this.colorings.list);
    const refiltered = this.takeFilter(header, past, fresh, take) || (repainted && this.filter.out);
    if (refiltered) for (const coloring of this.colorings.list) coloring.keep(this.filter.out);
    const regrouped = [fresh("clusters0"), fresh("clusters1"), other].some(Boolean);
    if (regrouped) this.clusters = header.clusters.map((_, level) => take(`clusters${level}`));
    const recolored = repainted || rehidden || regrouped || refiltered;
    this.follow(header, past);

    while (this.panes.length > header.panes.length) this.panes.pop().dispose();
    const born = header.panes.length - this.panes.length;
    if (other || born < 0) this.hovered(-1);
    while (this.panes.length < header.panes.length) this.panes.push(this.newPane());
    this.root.dataset.panes = this.panes.length;
    const columns = Math.min(header.columns, this.panes.length);
    this.root.dataset.columns = columns;
    for (const [name, most] of [["--ls-columns", columns], ["--ls-narrow-columns", 2]]) this.root.style.setProperty(name, Math.min(columns, most));
    const [others, { released }] = [fresh("anchors"), this.hand];
    // Maps may come while an anchor is dragged, as of a job that is done: then the drag has ended.
    const ended = released || this.hand.held;
    const reanchored = others || recolored || born || ended;
    if (reanchored) this.anchors = take("anchors");
    let [undressed, mapped] = [false, false]; // whether a pane has rows without flags, and another map
    const models = header.edges?.length;
    this.panes.forEach((pane, i) => {
      pane.setTitle(header.panes[i]);
      pane.edges.set(models ? header.edges[i % models] : [], header.trails?.[i] ?? []);
      pane.plot.dataset.old = header.panes[i].old;
      const moved = fresh(`pane${i}`) || i >= this.panes.length - born || this.hand.moved(pane);
      const wasDense = pane.dense;
      if (moved) pane.setPositions(take(`pane${i}`, header.panes[i].quantised ? Uint16Array : Float32Array), header.panes[i].dimensions);
      undressed ||= moved && (wasDense || pane.dense);
      mapped ||= moved;
      pane.coloring = this.colorings.list[header.panes[i].coloring];
      if (moved || recolored) pane.regroup = true;
      if (recolored || born || moved) pane.paint();
      if (!reanchored && pane.stars.look === this.stars.look) return;
      this.setStars(pane, this.anchors, header);
      pane.redraw();
    });
    if (ended) this.hand.done();
    else if (mapped) this.hand.offer(false); // it was about other maps
    // Python's selection is law, unless it is older than a brush that Python has not answered yet.
    const law = header.arrays.selected && !this.unanswered.some((event) => event.kind === "select");
    const rows = law ? rowsIn(take("selected"), header.n) : other ? new Uint32Array(0) : this.rows;
    const same = rows.length === this.rows?.length && rows.every((row, i) => row === this.rows[i]);
    const joined = ["edges", "trails"].some((name) => JSON.stringify(past?.[name]) !== JSON.stringify(header[name]));
    if (!same || born || recolored || undressed || joined) this.select(rows);
    else if (reanchored) this.dimStars();
    this.awaited = new Set(this.panes.filter((pane) => pane.frame));
    this.drawn();
  }

  /* The columns to filter by and what is kept of them; true if other rows are out. */
  takeFilter(header, past, fresh, take) {
    this.toolbar.buttons.filter.hidden = !header.filters && !header.facets.length;
    const codes = [fresh("facetRows"), ...header.facets.map((_, i) => fresh(`facet${i}`))];
    const unheard = this.unanswered.some((event) => event.kind === "filter");
    const said = (one) => JSON.stringify([one?.facets, one?.filter, one?.n]);
    if (!codes.some(Boolean) && (said(past) === said(header) || unheard)) return false;
    const before = this.filter.out;
    const drawn = header.arrays.facetRows ? take("facetRows") : null;
    this.filter.set(header.facets, header.facets.map((_, i) => take(`facet${i}`, Uint8Array)), unheard ? this.filter.conditions : header.filter, drawn, header.n, header.filterNote);
    this.toolbar.count("filter", this.filter.met.size);
    if (!header.facets.length || !past?.facets.length) this.showFilter(header.facets.length > 0 && (openFilters.has(location.pathname) || (!past && header.filter.length > 0)));
    return Boolean(before || this.filter.out);
  }

  askFilter() {
    openFilters.add(location.pathname);
    this.tell("facets", true);
  }

  showFilter(shown) {
    if (this.header.facets.length) openFilters[shown ? "add" : "delete"](location.pathname);
    this.filter.show(shown);
    this.root.dataset.filter = shown;
    this.toolbar.press("filter", shown);
    this.room.fit();
  }

  /* Close the filter and keep its conditions. The panes still receive the keys. */
  hideFilter() {
    const focused = this.filter.root.contains(document.activeElement);
    this.showFilter(false);
    if (focused) this.toolbar.buttons.filter.focus();
  }

  /* Filter the rows here at once, and tell Python when the user stops dragging. */
  filtered(settled) {
    for (const coloring of this.colorings.list) coloring.keep(this.filter.out);
    for (const pane of this.panes) {
      pane.regroup = true;
      pane.paint();
      this.setStars(pane, this.anchors);
    }
    this.select(this.rows);
    this.toolbar.count("filter", this.filter.met.size);
    if (!settled) return;
    this.room.fit();
    this.tell("filter", this.filter.conditions);
  }

  /* Take names and turn from Python, unless it has not answered a change that was made here. */
  follow(header, past) {
    const news = (kind) => JSON.stringify(past?.[kind]) !== JSON.stringify(header[kind]) && !this.unanswered.some((event) => event.kind === kind);
    if (news("named")) this.setNamed(header.named);
    if (news("density")) this.setDensity(header.density ?? null);
    if (header.turn && news("turn")) this.turned(header.turn);
  }

  newPane() {
    const pane = new Pane(this);
    pane.turn = this.panes[0]?.turn ?? this.header.turn ?? FACING;
    if (this.linked && this.panes.length) pane.setView(this.panes[0].view);
    this.grid.append(pane.root);
    return pane;
  }

  /* Set the theme to that of the header or, if it names none, of the page; true if it changed. */
  setTheme() {
    const theme = this.header.themes[(this.header.dark ?? isDark(this.root, this.place.background)) ? 1 : 0];
    if (JSON.stringify(theme) === JSON.stringify(this.theme)) return false;
    this.theme = theme;
    this.surface = rgb(theme.surface).map((value) => value / 255);
    wear(this.root, theme);
    return true;
  }

  /* Show or hide classes, here at once and then in Python. */
  hide(change) {
    change();
    this.panes.forEach((pane) => (pane.regroup = true));
    this.select(this.rows);
    this.tell("hidden", this.colorings.hidden());
  }

  /* Show these rows in every pane; selected rows and named categories are drawn last, so they lie on top. */
  select(rows) {
    const { n } = this.header;
    this.rows = rows;
    const [flags, hidden] = this.colorings.flags(rows, n);
    const orders = [];
    const orderOf = (coloring) => (orders[coloring] ??= paintingOrder(flags[coloring], this.colorings.list[coloring].depths));
    this.brush = { brushed: rows.length > NAMED_SELECTED ? 1 : rows.length && FEW_BRUSHED, lift: rows.length ? clamp(1 - (4 * rows.length) / n, 0, 1) : 0 }; // a small selection is drawn larger and stronger than a large one
    this.chosen = this.chosenOf(rows, flags[0]);
    this.panes.forEach((pane, i) => {
      const { coloring } = this.header.panes[i];
      pane.setFlags(flags[coloring], rows, () => orderOf(coloring));
    });
    this.legend.show(this.colorings.list, hidden);
    this.dimStars();
    this.awaited = new Set(this.panes);
    this.toolbar.buttons.clear.hidden = !rows.length;
    this.status.textContent = rows.length ? `${rows.length.toLocaleString()} selected` : "";
    this.root.classList.toggle("ls-brushed", rows.length > NAMED_SELECTED);
    this.toolbar.buttons.chosen.disabled = !rows.length;
  }

  /* The rows to name: those from which edges lead, then the most prominent of the selected ones. */
  chosenOf(rows, flags) {
    const sources = this.panes[0]?.edges.sources.filter((row) => !this.colorings.hides(row)) ?? [];
    return [...new Set([...sources, ...mostProminent(this.prominence, rows.length, flags)])];
  }

  dimStars() {
    for (const pane of this.panes) pane.stars.dim((row) => (pane.flags[row] & SELECTED) > 0);
  }

  // What panes report.

  /* `polygon`: the drawn edge, in units of the pane, for tests and benchmarks. */
  brushed(rows, add, polygon = null) {
    const { out } = this.filter;
    if (out) rows = rows.filter((row) => !out[row]);
    if (polygon && !rows.length) {
      if (this.hint.hidden) this.tellHow("No row lies inside: draw around some"); // after why a star cannot be dragged
      return; // a drag that failed clears no selection
    }
    rows = add ? joined(this.rows, rows, this.header.n) : Uint32Array.from(rows);
    if (!rows.length && !this.rows.length) return;
    mark("linked_scatter:brushed", polygon);
    this.select(rows);
    this.tell("select", rowsAsBits(rows, this.header.n), "bits");
  }

  setStars(pane, rows, header = this.header) {
    pane.stars.set(rows, header, this.stars.look, (row) => pane.coloring.colorOf(row), (row) => (header.mute ? this.wordsOf(row) : this.idOf(row)), this.hand.put);
  }

  starred(look, settled) {
    for (const pane of this.panes) {
      pane.stars.setLook(look);
      pane.redraw();
    }
    this.root.dataset.stars = look.shown;
    this.legend.showStars(true, look.shown);
    if (!settled) return;
    this.unanswered = this.unanswered.filter((event) => event.kind !== "stars");
    this.report({ kind: "stars", ...look });
  }

  turned(turn) {
    for (const pane of this.panes) pane.setTurn(turn);
  }

  /* Report the turn to Python when it has ended. */
  settled() {
    const { turn, solid } = this.panes[0];
    if (!solid || JSON.stringify(turn) === JSON.stringify(this.header.turn)) return;
    this.tell("turn", [...turn]);
  }

  /* Report a value to Python. It replaces unanswered values of the same kind. */
  tell(kind, value, name = kind) {
    this.unanswered = this.unanswered.filter((event) => event.kind !== kind);
    this.report({ kind, [name]: value });
  }

  clicked(row) {
    clearTimeout(this.clickTimer); // a second click makes it a double click, which is no click on a point
    if (row >= 0) this.clickTimer = setTimeout(() => this.report({ kind: "click", row }), 220);
  }

  /* By keyboard: point at the next row in a direction, and select it. */
  walk(across, down) {
    const pane = this.hoverPane ?? this.panes[0];
    const from = this.hoverRow >= 0 ? this.hoverRow : pane.nearestTo(pane.width / 2, pane.height / 2);
    const row = this.hoverRow >= 0 ? pane.nearestTowards(from, across, down, () => false) : from;
    if (row < 0) return;
    this.hovered(row, pane);
    this.hand.spoken.textContent = this.idOf(row);
  }

  pick() {
    if (!(this.hoverRow >= 0) || this.root.getRootNode().activeElement !== this.root) return false;
    this.clicked(this.hoverRow);
  }

  doubleClicked(pane) {
    clearTimeout(this.clickTimer);
    if (!DRAWING.has(this.tool)) this.home(pane);
    else this.brushed([], false);
  }

  report(event) {
    this.serial = Math.max(Date.now(), this.serial + 1, this.header.answered + 1);
    // A new list each time: a notebook's model sends nothing where it is given the list that it has.
    this.unanswered = [...this.unanswered, { ...event, serial: this.serial, version: this.header.version }];
    this.place.send(this.unanswered);
  }

  idOf(row) {
    return this.ids.at(row);
  }

  /* A row's text where it has one and it is loaded, else its id. */
  wordsOf(row) {
    return this.tip.texts?.texts?.at(row) || this.idOf(row);
  }

  /* What names a row on the maps: its id or, if the ids are plain numbers, its text or its class; "" if it has neither. */
  nameOf(row, pane = this.panes[0]) {
    if (!this.header.mute) return this.idOf(row);
    return this.tip.texts?.texts?.at(row) || (this.header.namedByClass && pane.coloring.say(row)) || "";
  }

  /* The number of an anchor among all anchors, including those that are not drawn; 0 for other rows. */
  numberOf(row) {
    return this.header.numbers[this.anchors.indexOf(row)] ?? 0;
  }

  hovered(row, pane) {
    if (row === this.hoverRow) return;
    [this.hoverRow, this.hoverPane] = [row, pane];
    if (row >= 0 && this.hand.held?.kind === PROBE) this.hand.moveTo(row);
    this.panes.forEach((each) => each.setRing(row));
    if (row < 0) return this.tip.hide();
    const [category, number] = [pane.coloring.say(row), this.numberOf(row)];
    const drags = number > 0 && !this.hand.held && this.hand.drags(pane);
    this.tip.show(row, this.cells?.[row], { id: this.idOf(row), category, color: pane.coloring.colorOf(row), anchor: number, drags, under: pane.under(row) });
    this.tip.place(pane.pixel(row), pane.plot, this.root);
  }

  /* A finger is on this row: say which row it is, beside the point, with a way to its neighbours. */
  tapped(row, pane) {
    this.hovered(-1, pane);
    this.hovered(row, pane);
    const inspector = this.place.inspector;
    if (inspector?.()) this.tip.offer("See its neighbours", () => inspector()?.scrollIntoView({ block: "start", behavior: "smooth" }));
    this.tip.place(pane.pixel(row), pane.plot, this.root);
  }

  viewed(pane) {
    if (this.linked) for (const other of this.panes) if (other !== pane) other.setView(pane.view);
  }

  drawn(pane) {
    this.awaited.delete(pane);
    if (this.awaited.size) return;
    const drawn = this.panes.map((_, i) => this.digests[`pane${i}`]).join("-");
    if (this.root.dataset.drawn !== drawn) mark("linked_scatter:drawn");
    this.root.dataset.drawn = drawn;
    this.root.dataset.selected = this.rows.length;
    this.root.dataset.anchors = this.anchors.length;
    this.root.dataset.hidden = this.legend.hidden;
    this.root.dataset.pictures = this.panes.map((pane) => pane.picture).join(" ");
    this.toolbar.press("density", this.panes.some(({ contours }) => contours.shown));
    if (!this.hand.held) for (const pane of this.panes) pane.feel();
    this.root.dataset.views = JSON.stringify(this.panes.map(({ view }) => [view.x, view.y, view.zoom]));
  }

  // What the toolbar and the keyboard do.

  setTool(tool) {
    this.tool = this.root.dataset.tool = tool;
    const used = !matchMedia("(pointer: coarse)").matches || this.root.dataset.touch;
    for (const name of Object.keys(TOOLS)) this.toolbar.press(name, used && name === tool);
  }

  /* A tool is tapped: one finger uses it from now on; tapped again, one finger scrolls the page again. */
  touch(tool) {
    const { dataset } = this.root;
    const chosen = dataset.touch !== tool;
    dataset.touch = chosen ? tool : "";
    this.setTool(tool);
    this.tellHow(chosen ? "One finger uses this tool; tap it again to scroll" : "One finger scrolls the page");
  }

  setLinked(linked) {
    this.linked = linked;
    this.toolbar.press("link", linked);
    if (linked && this.panes.length) this.viewed(this.panes.find((pane) => pane.view.zoom !== 1) ?? this.panes[0]);
  }

  home(pane) {
    for (const each of pane && !this.linked ? [pane] : this.panes) each.setView(HOME);
    if (pane) return;
    this.turned(FACING);
    this.settled();
  }

  setNamed(named) {
    this.named = named;
    this.toolbar.press("names", named);
    for (const pane of this.panes) pane.redraw();
  }

  setDensity(density) {
    this.density = density;
    for (const pane of this.panes) pane.redraw();
  }

  zoomToSelection() {
    if (!this.rows.length) return;
    const rows = this.rows.filter((row) => !this.colorings.hides(row));
    if (rows.length) for (const pane of this.linked ? this.panes.slice(0, 1) : this.panes) pane.zoomTo(rows);
    this.viewed(this.panes[0]);
  }

  key(event) {
    if (!this.toolbar.key(event)) return;
    event.preventDefault();
    event.stopPropagation(); // or the page would take the key for one of its own
  }

  dispose() {
    clearTimeout(this.clickTimer);
    this.hand.dispose();
    this.room.dispose();
    this.tip.dispose();
    this.panes.forEach((pane) => pane.dispose());
    this.root.remove();
  }
}
