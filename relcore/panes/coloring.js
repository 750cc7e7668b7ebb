/* Coloring: the colours of the rows in some of the panes, by category or by the steps of a scale, and which classes are hidden. A class is a
   category, or a part of the colour bar; the last class is that of the rows without a category. */

class Coloring {
  constructor() {
    this.away = new Set();
  }

  /* `told`: { title, side, tokens, labels, stepsAClass, ticks, colors: [light, dark], ramp, pointSize, otherSize, hidden }. */
  set(told, categories, values, n) {
    Object.assign(this, { told, own: categories, categories, values, n });
    this.counts = new Uint32Array(told.labels.length);
    for (let row = 0; row < n; row++) this.counts[this.classOf(row)]++;
    this.mixed = this.counts.at(-1) > 0 && this.counts.at(-1) < n;
    this.keep(null);
  }

  /* Rows that a filter leaves out are drawn as those without a category. */
  keep(out) {
    const { told, n } = this;
    this.categories = out ? this.own.map((category, row) => (out[row] ? NONE : category)) : this.own;
    this.bytes = null;
    let others = 0;
    for (let row = 0; row < n; row++) if (this.categories[row] === NONE) others++;
    const other = others && (others < n || out) ? [told.otherSize * 0.85, opacity(others) * 0.6] : [told.otherSize, opacity(others)];
    this.style = { sizes: [told.pointSize, other[0]], alphas: [opacity(n - others), other[1]] };
  }

  classOf(row) {
    const category = this.own[row];
    return category === NONE ? this.told.labels.length - 1 : Math.floor(category / this.told.stepsAClass);
  }

  paint(theme, dark) {
    this.palette = this.told.colors[dark ? 1 : 0];
    this.neutral = theme.neutral;
    this.bytes = null;
  }

  /* The colours of the rows, (3n) bytes. */
  get colors() {
    if (this.bytes) return this.bytes;
    const table = [...this.palette, this.neutral].map(rgb);
    this.bytes = new Uint8Array(3 * this.n);
    for (let row = 0; row < this.n; row++) this.bytes.set(table[Math.min(this.categories[row], table.length - 1)], 3 * row);
    return this.bytes;
  }

  /* The depth of each row, if classes have an order of their own: the later ones lie on top. */
  get depths() {
    const { ramp, ticks, labels } = this.told;
    return ramp && !ticks ? Float32Array.from(this.categories, (category) => (3.5 * category) / labels.length - 1.75) : null;
  }

  colorOf(row) {
    return this.palette[this.categories[row]] ?? this.neutral;
  }

  /* The colour of a class. For a part of the colour bar, it is the colour in its middle. */
  colorOfClass(number) {
    return this.palette[Math.floor((number + 0.5) * this.told.stepsAClass)] ?? this.neutral;
  }

  /* The text that a hover shows for a row. */
  say(row) {
    if (this.own[row] === NONE) return undefined;
    if (!this.told.ticks) return this.told.labels[this.classOf(row)];
    return `${this.told.title} ${spelled(this.values[row])}`;
  }

  hides(row) {
    return this.away.size > 0 && this.away.has(this.told.tokens[this.classOf(row)]);
  }

  /* Flag the rows that are hidden. */
  flagHidden(flags) {
    if (!this.away.size) return;
    const hidden = this.told.tokens.map((token) => this.away.has(token));
    for (let row = 0; row < this.n; row++) if (hidden[this.classOf(row)]) flags[row] = HIDDEN;
  }

  rowsOf(number) {
    const rows = [];
    for (let row = 0; row < this.n; row++) if (this.classOf(row) === number) rows.push(row);
    return rows;
  }

  toggle(number) {
    const token = this.told.tokens[number];
    if (!this.away.delete(token)) this.away.add(token);
  }

  /* Hide all other classes, or show them if they are hidden already. */
  isolate(number) {
    const others = this.present().filter((one) => one !== number).map((one) => this.told.tokens[one]);
    const alone = !this.away.has(this.told.tokens[number]) && others.every((token) => this.away.has(token));
    this.away = new Set(alone ? [] : others);
  }

  /* The classes that have rows. */
  present() {
    return this.told.tokens.map((_, number) => number).filter((number) => this.counts[number]);
  }
}

function spelled(value) {
  const rounded = Number(value.toPrecision(4));
  return (Math.abs(rounded) < 10000 ? String(rounded) : rounded.toLocaleString("en")).replace("-", "−").replace(/^(−?)0\./, "$1.");
}

/* Colorings: one for all panes, or one for each side. */
class Colorings {
  constructor() {
    this.list = [new Coloring()];
  }

  /* Take what is new in a payload: [whether colours changed, whether other classes are hidden]. With `hiding`, Python decides which classes are
     hidden. */
  update(header, past, { fresh, take, again, hiding, theme, dark }) {
    const said = (one) => JSON.stringify(one?.colorings.map((told) => ({ ...told, hidden: 0 })));
    const arrays = header.colorings.map((_, i) => [`categories${i}`, `values${i}`].map(fresh).some(Boolean)).some(Boolean);
    const changed = again || arrays || said(past) !== said(header);
    if (changed) {
      this.list = header.colorings.map((told, i) => {
        const coloring = this.list[i] ?? new Coloring();
        coloring.set(told, take(`categories${i}`), header.arrays[`values${i}`] && take(`values${i}`), header.n);
        coloring.paint(theme, dark);
        return coloring;
      });
    }
    const moved = hiding && JSON.stringify(this.hidden()) !== JSON.stringify(header.colorings.map(({ hidden }) => hidden));
    if (moved) this.list.forEach((one, i) => (one.away = new Set(header.colorings[i].hidden)));
    return [changed, moved];
  }

  hidden() {
    return this.list.map(({ away }) => [...away]);
  }

  hides(row) {
    return this.list.some((coloring) => coloring.hides(row));
  }

  showAll() {
    for (const { away } of this.list) away.clear();
  }

  /* The flags of the n rows for each colouring, and how many are hidden. */
  flags(rows, n) {
    const away = new Uint8Array(n);
    for (const coloring of this.list) coloring.flagHidden(away);
    const hidden = away.reduce((sum, flag) => sum + (flag ? 1 : 0), 0);
    const flags = this.list.map((coloring) => {
      const own = away.slice();
      for (let row = 0; row < n; row++) if (coloring.categories[row] === NONE) own[row] |= OTHER;
      for (const row of rows) own[row] |= SELECTED;
      return own;
    });
    return [flags, hidden];
  }
}
