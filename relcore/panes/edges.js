/* Edges: lines from some rows to their neighbours in the model of a pane, strong to those that share a feature with them. */

class Edges {
  constructor() {
    this.others = element("path");
    this.shared = element("path", "ls-shared");
    this.root = element("g", "ls-edges", {}, this.others, this.shared);
    this.listed = [];
  }

  /* `listed`: [row, neighbour, whether they share the feature] */
  set(listed) {
    this.listed = listed;
  }

  /* The rows from which lines lead. */
  get sources() {
    return [...new Set(this.listed.map(([row]) => row))];
  }

  /* `pixel`: where a row is; null for one that is hidden. */
  place(pixel) {
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
  }
}
