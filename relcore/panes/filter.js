/* Filter: chips of classes and ranges of numbers over small histograms, each of the rows that all other conditions keep. Rows that do not
   meet all conditions are grey. Class and bin of each row came once; so a filter needs no answer from Python. */

const NO_CODE = 255; // of a row without a number or a class

class Filter {
  /* `changed(settled)`: the kept rows changed; settled once a range is no longer dragged. `closed()`: the user closes the filter. */
  constructor(changed, closed) {
    Object.assign(this, { changed, facets: [], met: new Map(), out: null, told: "" });
    this.say = element("span", "ls-kept", { role: "status", "aria-live": "polite", title: "The bars count the drawn rows. A filter holds for all rows, also in Scores." });
    this.clear = element("button", "ls-link", { type: "button", "aria-label": "Clear the filters" }, "Clear");
    this.clear.addEventListener("click", () => (this.met.clear(), this.apply(true)));
    const close = element("button", "ls-close", { type: "button", "aria-label": "Close the filter", title: "Close (F); the filter stays" }, "×");
    close.addEventListener("click", closed);
    this.list = element("div", "ls-facets");
    // While the filter is closed, this line says that it holds.
    this.marked = element("span");
    const ends = element("button", "ls-link", { type: "button" }, "Clear filter");
    ends.addEventListener("click", () => this.clear.click());
    this.mark = element("div", "ls-filtered", { hidden: "", role: "status" }, this.marked, ends);
    this.root = element("section", "ls-filter", { hidden: "", "aria-label": "Filter" }, element("div", "ls-filter-head", {}, element("strong", "", {}, "Filter"), this.clear, close), this.say, this.list);
  }

  /* `facets`: { column, title, names, edges, lows, highs }, `codes` of the n rows for each, and `conditions` as Python has them. `passing`: how
     many of all rows meet these conditions, and how many rows there are; null if only the drawn rows are known. `note` ends the line. */
  set(facets, codes, conditions, n, passing = null, note = "") {
    const shape = JSON.stringify(facets);
    this.passing = passing;
    this.note = note;
    this.codes = codes;
    this.n = n;
    if (shape !== this.told) {
      [this.told, this.facets] = [shape, facets];
      this.views = facets.map((facet, i) => (facet.names.length ? this.chips(facet, i) : this.range(facet, i)));
      this.list.replaceChildren(...this.views.map(({ root }) => root));
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

  apply(settled) {
    this.passing = null; // it was about other conditions
    this.count();
    this.changed(settled);
  }

  /* Which rows are out, and for each facet the rows of each code that the other conditions keep. */
  count() {
    const { n, codes, met } = this;
    const active = [...met.keys()];
    const fails = new Uint8Array(n);
    const failing = new Uint8Array(n);
    for (const i of active) {
      const [own, table] = [codes[i], met.get(i)];
      for (let row = 0; row < n; row++) {
        if (table[own[row]]) continue;
        fails[row]++;
        failing[row] = i;
      }
    }
    this.out = active.length ? fails : null;
    let kept = n;
    if (this.out) for (let row = 0; row < n; row++) if (fails[row]) kept--;
    this.views?.forEach((view, i) => {
      const counts = new Uint32Array(256);
      const own = codes[i];
      for (let row = 0; row < n; row++) if (!fails[row] || (fails[row] === 1 && failing[row] === i)) counts[own[row]]++;
      view.show(counts, met.get(i));
    });
    this.say.textContent = this.out ? `${kept.toLocaleString()} of ${n.toLocaleString()} drawn rows pass; the others are grey.` : `Counts: ${n.toLocaleString()} drawn rows. Filters apply to all.`;
    this.clear.hidden = !this.out;
    const [passed, all] = this.passing ?? [kept, n];
    const rows = this.passing ? "rows" : "drawn rows";
    this.marked.textContent = `Filter: ${passed.toLocaleString()} of ${all.toLocaleString()} ${rows} in colour, the others grey${this.note && `; ${this.note}`}`;
    this.show(!this.root.hidden);
  }

  show(shown) {
    this.root.hidden = !shown;
    this.mark.hidden = shown || !this.out;
  }

  frame(facet, ...children) {
    return element("div", "ls-facet", { role: "group", "aria-label": facet.title, "data-column": facet.column }, element("b", "", { title: facet.title }, facet.title), ...children);
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
    const show = (counts, met) =>
      nodes.forEach(({ node, count }, place) => {
        count.textContent = counts[codes[place]].toLocaleString();
        node.setAttribute("aria-pressed", String(Boolean(met?.[codes[place]])));
        node.hidden = codes[place] === NO_CODE && !counts[NO_CODE] && !met?.[NO_CODE];
      });
    return { root: this.frame(facet, element("div", "ls-choices", {}, ...nodes.map(({ node }) => node))), show };
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

/* A range of numbers. A bar at an end of the scale also counts the rows beyond it, so a range that reaches there has no bound. */
function rangeInWords(low, high, isAbove, isBelow) {
  if (isAbove && isBelow) return `${low} to ${high}`;
  if (isAbove) return `${low} or more`;
  if (isBelow) return `${high} or less`;
  return `all; most from ${low} to ${high}`;
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
