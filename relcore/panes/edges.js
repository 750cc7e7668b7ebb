/* Edges: lines from some rows to their neighbours in the model of a pane, strong to those that share a feature with them; and trails, lines
   from some rows to the places that they have in another pane. */

const TRAIL_END = 4; // pixels: radius of the ring at the end of a trail

class Edges {
  constructor() {
    this.others = element("path");
    this.shared = element("path", "ls-shared");
    this.trail = element("path", "ls-trail");
    this.root = element("g", "ls-edges", {}, this.others, this.shared, this.trail);
    this.listed = [];
    this.trails = [];
  }

  /* `listed`: [row, neighbour, whether they share the feature]; `trails`: [row, x, y], in units of the pane */
  set(listed, trails = []) {
    [this.listed, this.trails] = [listed, trails];
  }

  /* The rows from which lines lead. */
  get sources() {
    return [...new Set([...this.listed, ...this.trails].map(([row]) => row))];
  }

  /* `pixel`: where a row is; null for one that is hidden. `at`: where a place in units is. */
  place(pixel, at) {
    const drawn = { others: "", shared: "" };
    for (const [row, neighbour, isShared] of this.listed) {
      const from = pixel(row);
      const to = pixel(neighbour);
      if (!from || !to) continue;
      const [x, y, toX, toY] = [...from, ...to].map((one) => one.toFixed(1));
      drawn[isShared ? "shared" : "others"] += `M${x} ${y}L${toX} ${toY}`;
    }
    change(this.others, "d", drawn.others);
    change(this.shared, "d", drawn.shared);
    change(this.trail, "d", this.trails.map(([row, x, y]) => this.trailOf(pixel(row), at(x, y))).join(""));
  }

  /* The line from a row to the ring around its other place. */
  trailOf(from, [toX, toY]) {
    if (!from) return "";
    const [x, y] = from;
    const far = Math.hypot(toX - x, toY - y);
    const [r, share] = [TRAIL_END, far > TRAIL_END ? 1 - TRAIL_END / far : 0];
    const line = `M${x.toFixed(1)} ${y.toFixed(1)}L${(x + share * (toX - x)).toFixed(1)} ${(y + share * (toY - y)).toFixed(1)}`;
    return `${line}M${(toX - r).toFixed(1)} ${toY.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  }
}
