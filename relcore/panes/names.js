/* Names: ids of rows and names of groups, written on a pane where there is room. First the selected rows, then the groups, then single
   rows: none on the whole map, more with each step of zooming in. A name that would touch another one is left out. */

const NAME_LETTERS = 30;
const NAMED_SELECTED = 24; // rings and names of a selection; more would hide what they point at
const COVERED = 0.25; // of the rows of a group that its name may cover: none of up to three
const FEW = 3; // no name covers a row of a group of so few
const [DOT, LOOKED_UNDER] = [4, 80]; // half the side of a row that a name must not cover, in pixels; rows of a group that are looked at
const RING = 7; // its radius
const NAMED_HEAPS = 40; // numbers of rows on one spot
const NAMED_ROWS = 60; // names of single rows at most, however far one zooms in
const FINER = 2; // an enlargement from which the finer clusters are named
const NAMES_A_DOUBLING = 14; // as many more names each time the view is half as wide
const ROWS_FOR_MIDDLES = 100000; // of more rows every second, third, … is looked at: the middle of a group moves by less than its name is wide
const LOOKED_AT = 20000; // most prominent rows that are looked at for names where too many are in view for all
const FONTS = { heap: "italic 500 10.5px", row: "500 11.5px", group: "650 13px", chosen: "650 12px" };
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

/* Boxes [left, top, right, bottom] that none may touch, by the squares of 64 pixels that they lie in. */
class Boxes {
  constructor(boxes) {
    this.squares = new Map();
    for (const box of boxes) this.add(box);
  }

  squaresOf([left, top, right, bottom]) {
    const found = [];
    for (let x = left >> 6; x <= right >> 6; x++) for (let y = top >> 6; y <= bottom >> 6; y++) found.push(4096 * y + x);
    return found;
  }

  add(box) {
    for (const square of this.squaresOf(box)) this.squares.set(square, [...(this.squares.get(square) ?? []), box]);
  }

  touches(one) {
    return this.squaresOf(one).some((square) => this.squares.get(square)?.some((box) => meet(one, box)));
  }

  touched(one) {
    return new Set(this.squaresOf(one).flatMap((square) => (this.squares.get(square) ?? []).filter((box) => meet(one, box)))).size;
  }
}

const meet = ([left, top, right, bottom], box) => left < box[2] && right > box[0] && top < box[3] && bottom > box[1];

/* The places where a name of this width may stand, best first, as shifts of its left end to the right and downwards. */
function placesOf(kind, wide) {
  if (kind === "group") return [0, 16, -16, 32, -32, 48, -48].flatMap((down) => [-wide / 2, 8, -8 - wide].map((right) => [right, down])).sort((a, b) => weight(a, wide) - weight(b, wide));
  const gap = kind === "chosen" ? 12 : 8; // a chosen row has a ring
  const near = [[gap, 0], [-gap - wide, 0], [-wide / 2, -gap - 8], [-wide / 2, gap + 8], [gap, -16], [gap, 16], [-gap - wide, -16], [-gap - wide, 16]];
  return kind === "chosen" ? [...near, ...[28, -28, 46, -46, 64, -64].flatMap((down) => [[gap + 16, down], [-gap - 16 - wide, down]])] : near; // far ones get a line
}

const weight = ([right, down], wide) => Math.abs(down) + Math.abs(right + wide / 2) / 2;

/* A name of at most this number of letters, none cut in half, as an emoji takes two places of a string. Paths and addresses, which have no
   spaces, differ at their ends: they lose their middle. */
function shortened(name, letters = NAME_LETTERS) {
  if (name.length <= letters) return name;
  const signs = [...name];
  if (signs.length <= letters) return name;
  const end = name.includes(" ") ? 0 : letters >> 1;
  return `${signs.slice(0, letters - 1 - end).join("")}…${signs.slice(signs.length - end).join("")}`;
}

/* The row nearest to the middle of each group. The middle is the median of each coordinate, so that a single distant row does not shift it.
   `groupOf`: row → number of a group, or -1. */
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
    const looked = Uint32Array.from(sampled(rows.length, Math.min(rows.length, LOOKED_UNDER)), (place) => rows[place]);
    found.push({ group, row: best, count: rows.length, rows: looked });
  }
  return found.sort((a, b) => b.count - a.count);
}

/* The value that would be at this place if the values were sorted (quickselect, Hoare 1961). This reorders `values`. */
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

/* [group, its rows] for every group of n rows; if n is very large, only some of the rows are used. */
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

/* The selected rows that get a name, the most prominent first. */
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
    const pixel = (row) => pane.pixel(row, width, height);
    const visible = (row) => !pane.hides(row);
    const { type } = pane;
    const level = Math.min(pane.view.zoom >= FINER ? 1 : 0, owner.clusters.length - 1);
    if (owner.named && (pane.regroup || level !== this.level) && !pane.glide) this.regroup(pane, owner, level);
    const dot = (row) => (([x, y]) => [x - DOT, y - DOT, x + DOT, y + DOT])(pixel(row));
    const few = owner.named ? this.groups.flatMap(({ rows }) => (rows.length <= FEW ? Array.from(rows) : [])) : [];
    const [taken, stars] = [few.map(dot), pane.stars.boxes].map((boxes) => new Boxes(boxes));
    const put = (row, text, kind, color, rows = []) => {
      const [x, y] = pixel(row);
      if (x < 0 || x > width || y < 0 || y > height) return false;
      const wide = type * widthOf(text, kind, font);
      const dots = rows.length > FEW ? Array.from(rows, dot) : [];
      // If hundreds of small stars leave no room, the name of a class is placed where the fewest stars cover it.
      let [best, fewest] = [null, color && !pane.stars.numbered ? Infinity : 1];
      for (const [right, down] of placesOf(kind, wide)) {
        const left = kind === "group" ? clamp(x + right, 4, Math.max(4, width - wide - 4)) : x + right;
        const box = [left - 3, y + down - 8 * type, left + wide + 3, y + down + 8 * type];
        if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height || taken.touches(box)) continue;
        if (dots.length && dots.filter((one) => meet(one, box)).length > COVERED * dots.length) continue;
        const under = fewest > 1 ? stars.touched(box) : Number(stars.touches(box));
        if (under < fewest) [best, fewest] = [box, under];
        if (!under) break;
      }
      if (!best) return false;
      taken.add(best);
      this.write(text, best[0] + 3, best[1] + 12 * type, kind, color);
      const [toX, toY] = [clamp(x, best[0] + 3, best[2] - 3), clamp(y, best[1], best[3])];
      const [far, ring] = [Math.hypot(toX - x, toY - y), kind === "chosen" && this.rings.children[ringed.indexOf(row)]];
      if (ring && far > 20) ring.lastChild.setAttribute("d", `M${x + (RING * (toX - x)) / far} ${y + (RING * (toY - y)) / far}L${toX} ${toY}`);
      return true;
    };
    const ringed = owner.rows.length <= NAMED_SELECTED ? chosen : [];
    while (this.rings.children.length > ringed.length) this.rings.lastChild.remove();
    while (this.rings.children.length < ringed.length) this.rings.append(element("g", "ls-ring", {}, element("circle", "", { r: RING }), element("path")));
    ringed.forEach((row, i) => {
      const [x, y] = pixel(row);
      const [ring, line] = this.rings.children[i].children;
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
      line.removeAttribute("d");
      this.rings.children[i].classList.toggle("ls-dashed", owner.header.single?.includes(row) ?? false);
      taken.add([x - RING, y - RING, x + RING, y + RING]); // or one could not tell whose a name is
    });
    for (const row of chosen) if (!pane.stars.told.has(row)) this.putName(put, pane, owner, row, "chosen");
    if (owner.named) {
      for (const { row, text, color, rows } of this.groups) put(row, shortened(text), "group", color, rows);
      this.placeHeaps(pane, put, visible);
      this.placeRows(pane, owner, put, width, height);
    }
    while (this.texts.children.length > this.used) this.texts.lastChild.remove();
  }

  /* The names of the categories at their middles, then those of the clusters of a level (1 is finer) among the other rows. */
  regroup(pane, owner, level) {
    pane.regroup = false;
    this.level = level;
    const { coloring } = pane;
    const { told } = coloring;
    const [coordinates, dimensions] = pane.solid ? [pane.solid, 3] : [pane.units, 2];
    const found = (groupOf) => middles(coordinates, dimensions, (row) => (pane.hides(row) ? -1 : groupOf(row)));
    const named = told.ramp || told.mute ? [] : found((row) => (coloring.categories[row] === NONE || coloring.categories[row] === told.kept ? -1 : coloring.categories[row]));
    this.groups = named.map(({ group, row, rows }) => ({ row, text: told.labels[group], color: coloring.palette[group], rows }));
    const clusters = owner.clusters[level];
    if (!clusters) return;
    const free = (row) => told.ramp || coloring.categories[row] === NONE;
    const others = found((row) => (free(row) && clusters[row] !== NONE ? clusters[row] : -1));
    this.groups.push(...others.map(({ group, row, rows }) => ({ row, rows, text: owner.header.clusters[level][group] })));
  }

  /* The number of rows on a spot, where there are several. */
  placeHeaps(pane, put, visible) {
    const { units, dense } = pane;
    if (pane.solid || pane.glide || pane.following || dense?.asPoints === false) return;
    if (this.heapsOf !== units) [this.heapsOf, this.heaps] = [units, heapsOf(units)];
    for (const heap of this.heaps.slice(0, NAMED_HEAPS)) {
      const shown = heap.filter(visible);
      if (shown.length > 1) put(shown[0], `${shown.length.toLocaleString()} rows here`, "heap");
    }
  }

  /* Names of rows that have none yet; beside many selected rows only of these, and none of those that the filter dims. */
  placeRows(pane, owner, put, width, height) {
    const named = new Set([...owner.chosen, ...pane.stars.told]);
    const wanted = owner.rows.length > NAMED_SELECTED ? SELECTED : 0;
    const { out } = owner.filter;
    const doublings = Math.log2(Math.max(pane.view.zoom, 1));
    const few = owner.filter.kept <= NAMED_ROWS ? owner.filter.kept : 0; // few rows that pass the filter have names at every zoom
    let left = Math.min(Math.max(few, Math.round(NAMES_A_DOUBLING * doublings)), NAMED_ROWS);
    const [low, high] = [pane.unit(0, height, width, height), pane.unit(width, 0, width, height)];
    const { units } = pane;
    for (const row of pane.dense?.byProminence(owner) ?? owner.prominence) {
      if (left <= 0) return;
      const [x, y] = [units[2 * row], units[2 * row + 1]];
      if (x < low[0] || x > high[0] || y < low[1] || y > high[1] || pane.hides(row)) continue;
      if (named.has(row) || (pane.flags[row] & wanted) !== wanted || out?.[row]) continue;
      if (this.putName(put, pane, owner, row, "row")) left -= 1;
    }
  }

  putName(put, pane, owner, row, kind) {
    const name = owner.nameOf(row, pane);
    return name !== "" && put(row, shortened(name), kind);
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
