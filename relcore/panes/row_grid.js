/* RowGrid: the rows of a pane sorted into 256 × 256 cells of its full range, so that what looks at a part of the picture touches the rows
   of that part only. Places are whole steps, 0 … 65,535 from the left and from below, as Python packs them: a step is a 65,535th of the
   range, and its upper byte is the cell. */

const STEPS = 65535; // of an axis
const CELLS = 256; // of an axis, each 256 steps wide

const stepOf = (unit) => ((unit + 1) * STEPS) / 2;

/* Steps (2n, x and y in turn) in units of the full range, -1 … 1. */
function unitsOf(steps) {
  const units = new Float32Array(steps.length);
  for (let i = 0; i < steps.length; i++) units[i] = (2 * steps[i]) / STEPS - 1;
  return units;
}

/* Units of the full range as steps. */
const stepsOf = (units) => Uint16Array.from(units, (unit) => clamp(Math.round(stepOf(unit)), 0, STEPS));

class RowGrid {
  /* `steps`: Uint16Array (2n), x and y in turn. `rows` are the rows cell after cell, `packed` their places, x in the lower half of 32 bits;
     `starts[cell]` says where a cell begins. */
  constructor(steps) {
    const n = steps.length / 2;
    const starts = new Uint32Array(CELLS * CELLS + 1);
    const cellOf = (row) => ((steps[2 * row + 1] >> 8) << 8) | (steps[2 * row] >> 8);
    for (let row = 0; row < n; row++) starts[cellOf(row) + 1]++;
    for (let cell = 0; cell < CELLS * CELLS; cell++) starts[cell + 1] += starts[cell];
    const ends = starts.slice();
    [this.starts, this.rows, this.packed] = [starts, new Uint32Array(n), new Uint32Array(n)];
    for (let row = 0; row < n; row++) {
      const place = ends[cellOf(row)]++;
      this.rows[place] = row;
      this.packed[place] = steps[2 * row] | (steps[2 * row + 1] << 16);
    }
  }

  /* Calls `take(first, end)` for the places of the rows of each line of cells that the rectangle [left, low, right, high] of steps
     touches; a place is an index of `rows` and `packed`. */
  eachRun([left, low, right, high], take) {
    if (right < 0 || high < 0 || left > STEPS || low > STEPS) return;
    const cell = (step) => Math.floor(clamp(step, 0, STEPS) / CELLS);
    const [first, last] = [cell(left), cell(right)];
    for (let line = cell(low); line <= cell(high); line++) {
      const [start, end] = [this.starts[line * CELLS + first], this.starts[line * CELLS + last + 1]];
      if (end > start) take(start, end);
    }
  }

  /* The number of rows in the cells that a rectangle of steps touches. */
  count(rectangle) {
    let found = 0;
    this.eachRun(rectangle, (start, end) => (found += end - start));
    return found;
  }

  /* The rows in a rectangle of steps, of those places that `takes` takes. */
  rowsIn(rectangle, takes) {
    const [left, low, right, high] = rectangle;
    const found = new Uint32Array(this.count(rectangle));
    let size = 0;
    this.eachRun(rectangle, (start, end) => {
      for (let place = start; place < end; place++) {
        const [x, y] = [this.packed[place] & 0xffff, this.packed[place] >>> 16];
        if (x >= left && x <= right && y >= low && y <= high && takes(place)) found[size++] = this.rows[place];
      }
    });
    return found.subarray(0, size);
  }

  /* The row nearest to a place, of those that `takes` takes, or -1; `acrossPixels` and `upPixels` are the pixels of a step. */
  nearest(x, y, acrossPixels, upPixels, reach, takes) {
    let [best, nearest] = [-1, reach * reach];
    const [dx, dy] = [reach / acrossPixels, reach / upPixels];
    this.eachRun([x - dx, y - dy, x + dx, y + dy], (start, end) => {
      for (let place = start; place < end; place++) {
        const across = ((this.packed[place] & 0xffff) - x) * acrossPixels;
        const up = ((this.packed[place] >>> 16) - y) * upPixels;
        const distance = across * across + up * up;
        if (distance < nearest && takes(this.rows[place])) [best, nearest] = [this.rows[place], distance];
      }
    });
    return best;
  }

  /* The rows within a polygon of steps, by the even-odd rule: [1 for each row within, their number]. A cell that no edge passes is within
     or without as a whole; only rows of the other cells are tested one by one. */
  within(polygon, takes) {
    const inside = new Uint8Array(this.rows.length);
    let found = 0;
    const add = (row) => {
      if (!takes(row)) return;
      inside[row] = 1;
      found++;
    };
    const passed = cellsOfEdges(polygon);
    for (const [line, columns] of passed) {
      const start = line * CELLS;
      const [first, last] = [Math.min(...columns), Math.max(...columns)];
      let whole = false; // cells between two that an edge passes are alike
      for (let column = first, known = false; column <= last; column++) {
        const [from, to] = [this.starts[start + column], this.starts[start + column + 1]];
        if (columns.has(column)) {
          known = false;
          for (let place = from; place < to; place++) {
            if (isWithin(this.packed[place] & 0xffff, this.packed[place] >>> 16, polygon)) add(this.rows[place]);
          }
          continue;
        }
        if (!known) [known, whole] = [true, isWithin((column + 0.5) * CELLS, (line + 0.5) * CELLS, polygon)];
        if (whole) for (let place = from; place < to; place++) add(this.rows[place]);
      }
    }
    return [inside, found];
  }
}

/* Line of cells → columns of the cells that an edge of the polygon passes; one more cell at each side, as rounding must not cost a row. */
function cellsOfEdges(polygon) {
  const lines = new Map();
  const cell = (step) => clamp(Math.floor(step / CELLS), -1, CELLS);
  polygon.forEach(([x1, y1], i) => {
    const [x0, y0] = polygon[(i + polygon.length - 1) % polygon.length];
    const [low, high] = [Math.min(y0, y1), Math.max(y0, y1)];
    for (let line = Math.max(cell(low), 0); line <= Math.min(cell(high), CELLS - 1); line++) {
      const at = (y) => (y1 === y0 ? x0 : x0 + ((clamp(y, low, high) - y0) * (x1 - x0)) / (y1 - y0));
      const ends = y1 === y0 ? [x0, x1] : [at(line * CELLS), at((line + 1) * CELLS)];
      const columns = lines.get(line) ?? lines.set(line, new Set()).get(line);
      const [first, last] = [cell(Math.min(...ends) - 1), cell(Math.max(...ends) + 1)];
      for (let column = first; column <= last; column++) columns.add(clamp(column, 0, CELLS - 1));
    }
  });
  return lines;
}

/* Whether a point is within a polygon of [x, y], by the even-odd rule. */
function isWithin(x, y, polygon) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [[xi, yi], [xj, yj]] = [polygon[i], polygon[j]];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}
