/* Names: ids of rows and names of groups, written on a pane where there is room. First the selected rows, then the groups, then single
   rows: none on the whole map, more with each step of zooming in. A name that would touch another one is left out. */

const NAME_LETTERS = 30;
const NAMED_SELECTED = 24; // rings and names of a selection; more would hide what they point at
const FEW = 3; // of so few rows the name stands above or below the middle one, which it would hide
const NAMED_ROWS = 60; // names of single rows at most, however far one zooms in
const NAMES_A_DOUBLING = 14; // as many more names each time the view is half as wide
const ROWS_FOR_MIDDLES = 100000; // of more rows every second, third, … is looked at: the middle of a group moves by less than its name is wide
const LOOKED_AT = 20000; // most prominent rows that are looked at for names where too many are in view for all
const FONTS = { row: "500 11.5px", group: "650 13px", chosen: "650 12px" };
const widths = new Map();
let ruler = null;

function widthOf(text, kind, family) {
  const font = `${FONTS[kind]} ${family}`;
  const key = `${font}|${text}`;
  if (!widths.has(key)) {
    if (widths.size > 20000) widths.clear();
    ruler ??= document.createElement("canvas").getContext("2d");
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}

const touches = ([left, top, right, bottom], boxes) => boxes.some((box) => left < box[2] && right > box[0] && top < box[3] && bottom > box[1]);

/* A name of at most so many letters, none cut in half, as an emoji takes two places of a string. Paths and addresses, which have no
   spaces, differ at their ends: they lose their middle. */
function shortened(name, letters = NAME_LETTERS) {
  if (name.length <= letters) return name;
  const signs = [...name];
  if (signs.length <= letters) return name;
  const end = name.includes(" ") ? 0 : letters >> 1;
  return `${signs.slice(0, letters - 1 - end).join("")}…${signs.slice(signs.length - end).join("")}`;
}

/* The row nearest to the middle of each group, by the median of each coordinate: one far away does not pull it. `groupOf`: row → number of
   a group, or -1. */
function middles(coordinates, dimensions, groupOf) {
  const found = [];
  for (const [group, rows] of membersOf(coordinates.length / dimensions, groupOf)) {
    const values = new Float32Array(rows.length);
    const middle = [];
    for (let axis = 0; axis < dimensions; axis++) {
      for (let i = 0; i < rows.length; i++) values[i] = coordinates[dimensions * rows[i] + axis];
      middle.push(ranked(values, rows.length >> 1));
    }
    let [best, nearest] = [rows[0], Infinity];
    for (const row of rows) {
      let distance = 0;
      for (let axis = 0; axis < dimensions; axis++) distance += (coordinates[dimensions * row + axis] - middle[axis]) ** 2;
      if (distance < nearest) [best, nearest] = [row, distance];
    }
    found.push({ group, row: best, count: rows.length });
  }
  return found.sort((a, b) => b.count - a.count);
}

/* The value that would stand at this place if they were sorted (quickselect: Hoare 1961), which brings them out of order. */
function ranked(values, place) {
  for (let [low, high] = [0, values.length - 1]; low < high; ) {
    const pivot = values[(low + high) >> 1];
    let [i, j] = [low, high];
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i > j) break;
      const value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
    if (place <= j) high = j;
    else if (place >= i) low = i;
    else break;
  }
  return values[place];
}

/* [group, its rows] of every group, of n rows or of a part of very many. */
function membersOf(n, groupOf) {
  const step = Math.ceil(n / ROWS_FOR_MIDDLES) || 1;
  const groups = new Int32Array(Math.ceil(n / step));
  const counts = [];
  for (let i = 0; i < groups.length; i++) {
    const group = (groups[i] = groupOf(i * step));
    if (group >= 0) counts[group] = (counts[group] || 0) + 1;
  }
  const members = counts.map((count) => new Uint32Array(count));
  for (let i = groups.length - 1; i >= 0; i--) if (groups[i] >= 0) members[groups[i]][--counts[groups[i]]] = i * step;
  return Object.entries(members).map(([group, rows]) => [Number(group), rows]);
}

/* As many of the selected rows as get a name, the most prominent first. */
function mostProminent(prominence, selected, flags) {
  const found = [];
  if (selected) for (const row of prominence) if ((flags[row] & (SELECTED | HIDDEN)) === SELECTED && found.push(row) >= Math.min(selected, NAMED_SELECTED)) break;
  return found;
}

class Names {
  constructor() {
    this.rings = element("g");
    this.texts = element("g");
    this.root = element("g", "ls-names", {}, this.rings, this.texts);
    this.groups = [];
  }

  /* `owner` knows the selected rows, the ids, which rows are prominent, and whether names are wanted. */
  place(pane, owner, width, height) {
    const [{ font }, chosen] = [owner.theme, owner.chosen];
    this.used = 0;
    this.boxes = [];
    const stars = pane.stars.boxes((row) => !pane.hides(row), (row) => pane.pixel(row, width, height), width);
    const put = (row, text, kind, color, few = false) => {
      const [x, y] = pane.pixel(row, width, height);
      if (x < 0 || x > width || y < 0 || y > height) return false;
      const wide = widthOf(text, kind, font);
      const gap = kind === "chosen" ? 12 : 8; // a chosen row has a ring
      const within = clamp(x - wide / 2, 4, Math.max(4, width - wide - 4));
      const places = kind === "group" ? (few ? [16, -16, 32, -32] : [0, -16, 16, -32, 32]).map((up) => [within, y - up]) : [gap, -gap - wide, -12 - wide].map((right) => [x + right, y]); // the last beside a star of its own
      for (const [left, middle] of places) {
        const box = [left - 3, middle - 8, left + wide + 3, middle + 8];
        if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height || touches(box, this.boxes) || (kind !== "chosen" && touches(box, stars))) continue;
        this.boxes.push(box);
        this.write(text, left, middle + 4, kind, color);
        return true;
      }
      return false;
    };
    const ringed = owner.rows.length <= NAMED_SELECTED ? chosen : [];
    while (this.rings.children.length > ringed.length) this.rings.lastChild.remove();
    while (this.rings.children.length < ringed.length) this.rings.append(element("circle", "ls-ring", { r: 7 }));
    ringed.forEach((row, i) => {
      const [x, y] = pane.pixel(row, width, height);
      this.rings.children[i].setAttribute("cx", x);
      this.rings.children[i].setAttribute("cy", y);
      this.rings.children[i].classList.toggle("ls-dashed", owner.header.single?.includes(row) ?? false);
    });
    for (const row of owner.header.mute ? [] : chosen) put(row, shortened(owner.idOf(row)), "chosen");
    if (owner.named) {
      if (pane.regroup && !pane.glide) this.regroup(pane, owner);
      for (const { row, text, color, few } of this.groups) put(row, shortened(text), "group", color, few);
      if (!chosen.length && !owner.header.mute) this.placeRows(pane, owner, put, width, height);
    }
    while (this.texts.children.length > this.used) this.texts.lastChild.remove();
  }

  /* The names of the categories at their middles, then those of the clusters among the other rows. */
  regroup(pane, owner) {
    pane.regroup = false;
    const { coloring } = pane;
    const { told } = coloring;
    const [coordinates, dimensions] = pane.solid ? [pane.solid, 3] : [pane.units, 2];
    const found = (groupOf) => middles(coordinates, dimensions, (row) => (pane.hides(row) ? -1 : groupOf(row)));
    const named = told.ramp || told.mute ? [] : found((row) => (coloring.categories[row] === NONE ? -1 : coloring.categories[row]));
    this.groups = named.map(({ group, row, count }) => ({ row, text: told.labels[group], color: coloring.palette[group], few: count <= FEW }));
    if (!owner.clusters) return;
    const free = (row) => told.ramp || coloring.categories[row] === NONE;
    const others = found((row) => (free(row) && owner.clusters[row] !== NONE ? owner.clusters[row] : -1));
    this.groups.push(...others.map(({ group, row }) => ({ row, text: owner.header.clusters[group] })));
  }

  placeRows(pane, owner, put, width, height) {
    const doublings = Math.log2(Math.max(pane.view.zoom, 1));
    let left = Math.min(Math.round(NAMES_A_DOUBLING * doublings), NAMED_ROWS);
    const [low, high] = [pane.unit(0, height, width, height), pane.unit(width, 0, width, height)];
    const { units } = pane;
    for (const row of pane.dense?.byProminence(owner) ?? owner.prominence) {
      if (left <= 0) return;
      const [x, y] = [units[2 * row], units[2 * row + 1]];
      if (x < low[0] || x > high[0] || y < low[1] || y > high[1] || pane.hides(row)) continue;
      if (put(row, shortened(owner.idOf(row)), "row")) left -= 1;
    }
  }

  write(text, x, y, kind, color) {
    const node = this.texts.children[this.used] ?? this.texts.appendChild(element("text"));
    this.used += 1;
    if (node.textContent !== text) node.textContent = text;
    node.setAttribute("class", `ls-name ls-name-${kind}`);
    node.setAttribute("x", x.toFixed(1));
    node.setAttribute("y", y.toFixed(1));
    node.style.setProperty("--ls-name", color ?? "var(--ls-text)");
  }
}
