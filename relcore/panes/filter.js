/* Filter: chips of classes and ranges of numbers over small histograms, each of the rows that all other conditions keep. Rows that do not
   meet all conditions are grey. Class and bin of each row came once; so a filter needs no answer from Python. */

const NO_CODE = 255; // of a row without a number or a class

class Filter {
  /* `changed(settled)`: the kept rows changed; settled once a range is no longer dragged. `closed()`: the user closes the filter. */
  constructor(changed, closed) {
    Object.assign(this, { changed, facets: [], met: new Map(), out: null, kept: 0, told: "" });
    this.say = element("span", "ls-kept", { role: "status", "aria-live": "polite", title: "Each number and bar counts the rows that all other conditions keep." });
    this.clear = element("button", "ls-link", { type: "button", "aria-label": "Clear the filters" }, "Clear");
    this.clear.addEventListener("click", () => (this.met.clear(), this.apply(true)));
    const close = element("button", "ls-close", { type: "button", "aria-label": "Close the filter", title: "Close (F); the filter stays" }, "×");
    close.addEventListener("click", closed);
    this.list = element("div", "ls-facets");
    // Where there is no room for all columns, this chooses the one that is shown.
    this.which = element("select", "ls-which", { "aria-label": "Column to filter by" });
    this.which.addEventListener("change", () => this.turnTo(Number(this.which.value)));
    this.which.addEventListener("keydown", (event) => event.key === "Escape" || event.stopPropagation());
    // While the filter is closed, this line says that it holds.
    this.marked = element("span");
    const ends = element("button", "ls-link", { type: "button" }, "Clear filter");
    ends.addEventListener("click", () => this.clear.click());
    this.mark = element("div", "ls-filtered", { hidden: "", role: "status" }, this.marked, ends);
    this.root = element("section", "ls-filter", { hidden: "", "aria-label": "Filter" }, element("div", "ls-filter-head", {}, element("strong", "", {}, "Filter"), this.which, this.clear, close), this.say, this.list);
  }

  /* `facets`: { column, title, names, edges, lows, highs }, `codes` of all rows for each, and `conditions` as Python has them. `drawn`: the
     numbers of the n drawn rows among all rows; null if all are drawn. `note` ends the line. */
  set(facets, codes, conditions, drawn, n, note = "") {
    const shape = JSON.stringify(facets);
    Object.assign(this, { codes, drawn, note, all: codes[0]?.length ?? n, settled: true });
    this.totals = codes.map(countsOf);
    if (shape !== this.told) {
      [this.told, this.facets] = [shape, facets];
      this.views = facets.map((facet, i) => (facet.names.length ? this.chips(facet, i) : this.range(facet, i)));
      this.list.replaceChildren(...this.views.map(({ root }) => root));
      this.which.replaceChildren(...facets.map(({ title }, i) => element("option", "", { value: i }, title)));
      this.root.classList.toggle("ls-several", facets.length > 1);
      this.turnTo(0);
    }
    this.met = new Map();
    for (const one of conditions) {
      const i = facets.findIndex(({ column }) => column === one.column);
      if (i >= 0) this.met.set(i, codesOf(facets[i], one));
    }
    this.count();
  }

  /* The conditions as Python reads them. */
  get conditions() {
    return [...this.met].map(([i, met]) => {
      const { column, names, edges } = this.facets[i];
      if (names.length) return { column, classes: [...names.filter((_, code) => met[code]), ...(met[NO_CODE] ? [""] : [])], low: null, high: null };
      const [from, to] = [met.indexOf(1), met.lastIndexOf(1)];
      return { column, classes: [], low: from ? edges[from] : null, high: to < edges.length - 2 ? edges[to + 1] : null };
    });
  }

  turnTo(number) {
    this.views.forEach(({ root }, i) => root.classList.toggle("ls-turned-to", i === number));
  }

  apply(settled) {
    this.settled = false; // Python may draw further rows
    this.count();
    this.changed(settled);
  }

  /* Which rows are out, and for each facet the rows of each code that the other conditions keep. */
  count() {
    const { all, codes, drawn, met } = this;
    const active = [...met.keys()];
    const fails = new Uint8Array(all);
    const failing = new Uint8Array(all);
    for (const i of active) {
      const [own, table] = [codes[i], met.get(i)];
      for (let row = 0; row < all; row++) {
        if (table[own[row]]) continue;
        fails[row]++;
        failing[row] = i;
      }
    }
    this.out = !active.length ? null : drawn ? Uint8Array.from(drawn, (row) => fails[row]) : fails;
    const kept = passingIn(fails);
    this.kept = this.out ? passingIn(this.out) : 0;
    this.views?.forEach((view, i) => {
      const counts = new Uint32Array(256);
      const own = codes[i];
      for (let row = 0; row < all; row++) if (!fails[row] || (fails[row] === 1 && failing[row] === i)) counts[own[row]]++;
      view.show(counts, met.get(i), this.totals[i]);
    });
    const some = this.settled && this.kept < kept && `${this.kept.toLocaleString()} of them`; // of many, not all are drawn
    const passed = `${kept.toLocaleString()} of ${all.toLocaleString()} rows`;
    this.say.textContent = !this.out ? `Counted: ${all.toLocaleString()} rows.` : some ? `${passed} pass, ${some} drawn.` : `${passed} pass; the others are grey.`;
    this.clear.hidden = !this.out;
    this.marked.textContent = `Filter: ${passed} ${some ? `pass, ${some} drawn in colour` : "in colour, the others grey"}${this.note && `; ${this.note}`}`;
    this.show(!this.root.hidden);
  }

  show(shown) {
    this.root.hidden = !shown;
    this.mark.hidden = shown || !this.out;
  }

  frame(facet, words, ...children) {
    return element("div", "ls-facet", { role: "group", "aria-label": facet.title, "data-column": facet.column }, element("div", "ls-facet-head", {}, element("b", "", { title: facet.title }, facet.title), words), ...children);
  }

  chips(facet, i) {
    const codes = [...facet.names.keys(), NO_CODE];
    const nodes = codes.map((code) => {
      const count = element("small");
      const node = element("button", "ls-chip", { type: "button" }, element("span", "", {}, shortened(facet.names[code] ?? "other", 24)), count);
      node.addEventListener("click", () => {
        const met = this.met.get(i) ?? new Uint8Array(256);
        met[code] ^= 1;
        if (met.some(Boolean)) this.met.set(i, met);
        else this.met.delete(i);
        this.apply(true);
      });
      return { node, count };
    });
    const show = (counts, met, totals) =>
      nodes.forEach(({ node, count }, place) => {
        const code = codes[place];
        const chosen = Boolean(met?.[code]);
        count.textContent = counts[code].toLocaleString();
        node.setAttribute("aria-pressed", chosen);
        node.hidden = !totals[code] && !chosen;
        node.disabled = !counts[code] && !chosen;
      });
    return { root: this.frame(facet, "", element("div", "ls-choices", {}, ...nodes.map(({ node }) => node))), show };
  }

  range(facet, i) {
    const last = facet.edges.length - 2;
    const bars = facet.edges.slice(1).map(() => element("i"));
    const words = element("span", "ls-span");
    const slider = (name, value) => element("input", "", { type: "range", min: 0, max: last, value, "aria-label": `${facet.title}, ${name}` });
    const [low, high] = [slider("from", 0), slider("to", last)];
    const moved = (settled, held) => {
      if (Number(low.value) > Number(high.value)) (held === low ? high : low).value = held.value;
      const [from, to] = [Number(low.value), Number(high.value)];
      if (from === 0 && to === last) this.met.delete(i);
      else this.met.set(i, Uint8Array.from({ length: 256 }, (_, code) => Number(code >= from && code <= to)));
      this.apply(settled);
    };
    for (const one of [low, high]) {
      one.addEventListener("input", () => moved(false, one));
      one.addEventListener("change", () => moved(true, one));
      one.addEventListener("keydown", (event) => event.key === "Escape" || event.stopPropagation()); // arrows turn the maps elsewhere
    }
    const show = (counts, met) => {
      const most = Math.max(1, ...counts.subarray(0, last + 1));
      bars.forEach((bar, code) => {
        bar.style.height = `${Math.ceil((100 * counts[code]) / most)}%`;
        bar.className = met && !met[code] ? "ls-outside" : "";
      });
      const [from, to] = met ? [met.indexOf(1), met.lastIndexOf(1)] : [0, last];
      [low.value, high.value] = [from, Math.min(to, last)];
      const ends = [facet.lows[from], facet.highs[Math.min(to, last)]];
      words.textContent = rangeInWords(...ends, from > 0, to < last);
      [low, high].forEach((one, end) => one.setAttribute("aria-valuetext", ends[end]));
    };
    return { root: this.frame(facet, words, element("div", "ls-bars", { "aria-hidden": "true" }, ...bars), element("div", "ls-ends", {}, low, high)), show };
  }
}

/* How many rows have each code. */
function countsOf(codes) {
  const counts = new Uint32Array(256);
  for (const code of codes) counts[code]++;
  return counts;
}

/* How many rows fail no condition. */
function passingIn(fails) {
  let kept = 0;
  for (const failed of fails) if (!failed) kept++;
  return kept;
}

/* A range of numbers. A bar at an end of the scale also counts the rows beyond it, so a range that reaches there has no bound. */
function rangeInWords(low, high, isAbove, isBelow) {
  if (isAbove && isBelow) return `${low} to ${high}`;
  if (isAbove) return `${low} or more`;
  if (isBelow) return `${high} or less`;
  return `mostly ${low} to ${high}`;
}

/* Which codes of a facet meet a condition, as `Facet.meets` in Python. */
function codesOf({ column, names, edges }, { classes, low, high }) {
  const met = new Uint8Array(256);
  if (column === "selected rows") return met.fill(1, 0, 1); // by their ids, which Python keeps
  names.forEach((name, code) => (met[code] = Number(classes.includes(name))));
  if (names.length) met[NO_CODE] = Number(classes.includes(""));
  else for (let code = 0; code < edges.length - 1; code++) met[code] = Number(edges[code + 1] > (low ?? -Infinity) && edges[code] < (high ?? Infinity));
  return met;
}
