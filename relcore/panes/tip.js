/* Tip: what a hover says about a row: its picture or its text, its id, and in small print category, note and anchor number.

   Pictures, texts and notes are files that are loaded once; until they are here, or where they cannot be had, the id stands alone. */

const PICTURE = 64; // pixels a side, about: squares of a whole number of pixels where pictures are small
const files = new Map();

function column(address, load) {
  if (!files.has(address)) {
    const loaded = { texts: null };
    files.set(address, loaded);
    loaded.ready = load(address)
      .then((blob) => blob.arrayBuffer())
      .then((buffer) => (loaded.texts = new TextColumn(new Uint8Array(buffer))))
      .catch(() => files.delete(address)); // asked for again with the next payload
  }
  return files.get(address);
}

class Tip {
  /* `arrived` hears that texts or notes have come. */
  constructor(arrived) {
    this.arrived = arrived;
    this.root = element("div", "ls-tip", { hidden: "" });
  }

  /* Take the addresses of the files from the payload, and forget files that it does not name any more. */
  serve({ texts, notes, sheet }, layout, load) {
    for (const one of [this.columns?.texts, this.columns?.notes]) if (one && one !== texts && one !== notes) files.delete(one);
    this.columns = { texts, notes };
    this.texts = texts ? column(texts, load) : null;
    this.notes = notes ? column(notes, load) : null;
    for (const one of [this.texts, this.notes]) if (one && !one.texts) one.ready.then(this.arrived);
    this.layout = layout;
    if (this.sheet?.address === sheet) return;
    this.dispose();
    if (!sheet) return;
    const wanted = (this.sheet = { address: sheet, image: new Image() });
    load(sheet)
      .then((blob) => this.sheet === wanted && (wanted.image.src = URL.createObjectURL(blob))) // another one may be served meanwhile
      .catch(() => this.sheet === wanted && (this.sheet = null)); // asked for again with the next payload
  }

  dispose() {
    if (this.sheet?.image.src) URL.revokeObjectURL(this.sheet.image.src);
    this.sheet = null;
  }

  hide() {
    this.root.hidden = true;
  }

  show(row, cell, { id, category, color, anchor, drags, under }) {
    const [text, note] = [this.texts?.texts?.at(row), this.notes?.texts?.at(row)];
    const dot = category ? [element("i", "ls-dot", { style: `background:${color}` })] : [];
    const named = category && (id === category || (text && id.startsWith(`${category}/`))); // the id says it already
    const star = anchor ? `anchor ${anchor}` : "";
    const facts = [text ? id : "", named ? "" : category, note, star, drags ? "drag to move" : "", under ? `${under.toLocaleString()} more on this spot` : ""].filter(Boolean);
    const words = element("div", "ls-words", {}, element("strong", text ? "ls-text" : "", {}, text || id));
    if (facts.length) words.append(element("span", "", {}, ...dot, facts.join(" · ")));
    this.root.replaceChildren(...this.picture(cell, id), words);
    this.root.hidden = false;
  }

  /* Add a button to what is shown. */
  offer(label, act) {
    const button = element("button", "ls-link", { type: "button" }, label);
    button.addEventListener("click", act);
    this.root.querySelector(".ls-words").append(button);
  }

  picture(cell, id) {
    if (cell === undefined || !this.sheet?.image.naturalWidth) return [];
    const { side, columns, lines, crisp } = this.layout;
    const shown = crisp ? side * Math.max(1, Math.round(PICTURE / side)) : PICTURE;
    const place = [-(cell % columns) * shown, -Math.floor(cell / columns) * shown].map((offset) => `${offset}px`).join(" ");
    const size = `${columns * shown}px ${lines * shown}px`;
    const style = `width:${shown}px;height:${shown}px;background:url("${this.sheet.image.src}") ${place} / ${size} no-repeat`;
    return [element("div", crisp ? "ls-picture ls-crisp" : "ls-picture", { role: "img", "aria-label": `Picture of ${id}`, style })];
  }

  /* Beside the point, within its pane and the window; beneath or above it where there is no room at its sides. The window goes first. */
  place([x, y], plot, root) {
    const [pane, origin, gap] = [plot.getBoundingClientRect(), root.getBoundingClientRect(), 14];
    const [left, right] = [Math.max(pane.left, 0) + 4, Math.min(pane.right, innerWidth) - 4];
    let [top, bottom] = [Math.max(pane.top, 0) + 4, Math.min(pane.bottom, innerHeight) - 4];
    this.root.style.maxWidth = `${Math.min(340, right - left)}px`;
    const [width, height] = [this.root.offsetWidth, this.root.offsetHeight];
    if (bottom - top < height) [top, bottom] = [4, innerHeight - 4]; // of a pane scrolled half away too little is seen
    [x, y] = [pane.left + x, pane.top + y];
    let [tipX, tipY] = [x + gap, clamp(y - height / 2, top, Math.max(top, bottom - height))];
    if (tipX + width > right) tipX = x - gap - width;
    if (tipX < left) {
      tipX = clamp(x - width / 2, left, Math.max(left, right - width));
      tipY = y + gap + height <= bottom ? y + gap : Math.max(top, y - gap - height);
    }
    this.root.style.transform = `translate(${Math.round(tipX - origin.left)}px, ${Math.round(tipY - origin.top)}px)`;
  }
}
