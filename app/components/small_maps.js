/* Small maps of the same rows, side by side. A row under the pointer gets a ring and its name in every map of the page. */

const SVG = "http://www.w3.org/2000/svg";
const STAR = "M0-1 .27-.37 .95-.31 .43.14 .59.81 0 .45-.59.81-.43.14-.95-.31-.27-.37Z";
const [CLUMP, FAN] = [250, 360]; // thousandths of a map's width; rows are one spot if all are nearer to their middle than CLUMP
const drawn = new WeakMap();

export default function ({ data, parentElement }) {
  let maps = drawn.get(parentElement);
  if (!maps || maps.shape !== shapeOf(data)) {
    maps?.end();
    drawn.set(parentElement, (maps = new Maps(parentElement, data)));
  }
  maps.show(data);
  return () => (maps.end(), drawn.delete(parentElement));
}

const shapeOf = ({ maps, names }) => `${maps.length} ${names.join(" ")}`;

function make(name, parent, attributes = {}) {
  const element = name[0] === name[0].toUpperCase() ? document.createElement(name) : document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

class Maps {
  constructor(parent, data) {
    this.shape = shapeOf(data);
    this.root = make("DIV", parent, { class: "maps" });
    this.maps = data.maps.map(() => this.frame(data));
    this.point = (event) => this.ring(event.detail);
    document.addEventListener("relscope-row", this.point);
    this.sizes = new ResizeObserver(() => this.size());
    this.sizes.observe(this.root);
  }

  frame({ names, labelled, starred }) {
    const figure = make("FIGURE", this.root);
    const title = make("FIGCAPTION", figure);
    const box = make("DIV", figure, { class: "box" });
    const svg = make("svg", box, { viewBox: "0 0 1000 1000", role: "img" });
    const axes = make("path", svg, { class: "axes", d: "M-9999 0H9999M0-9999V9999" });
    const stars = new Set(starred);
    const points = names.map((_, row) => (stars.has(row) ? make("path", svg, { class: "star", d: STAR }) : make("circle", svg)));
    for (const row of starred) svg.append(points[row]); // stars lie over the other points
    const labels = labelled.map((row) => Object.assign(make("SPAN", box, { class: "label" }), { textContent: names[row] }));
    const tip = make("SPAN", box, { class: "tip" });
    const leaders = make("path", svg, { class: "leaders" });
    const ring = make("circle", svg, { class: "ring", r: 0 });
    svg.addEventListener("pointermove", (event) => this.hover(event, svg));
    svg.addEventListener("pointerleave", () => this.tell(null));
    return { title, box, svg, axes, points, labels, leaders, tip, ring };
  }

  show(data) {
    this.data = data;
    this.maps.forEach((map, number) => {
      const { title, alt, xy, origin } = data.maps[number];
      map.title.textContent = title;
      map.svg.setAttribute("aria-label", alt);
      this.move(map.axes, origin, 0);
      map.points.forEach((point, row) => {
        point.style.fill = data.colors[row];
        this.move(point, xy, row);
      });
      map.labels.forEach((label, place) => this.put(label, xy, data.labelled[place]));
    });
    this.size();
    this.maps.forEach((map, number) => this.fan(map, data.maps[number].xy) || this.apart(map.labels, map.box));
  }

  move(element, xy, row) {
    element.style.setProperty("--x", `${xy[2 * row]}px`);
    element.style.setProperty("--y", `${xy[2 * row + 1]}px`);
  }

  put(element, xy, row) {
    const half = `${element.offsetWidth / 2 + 4}px`; // keeps names inside of the map
    element.style.left = `clamp(${half}, ${xy[2 * row] / 10}%, calc(100% - ${half}))`;
    element.style.top = `${xy[2 * row + 1] / 10}%`;
  }

  /* If the labelled rows lie in one spot, put their labels around it, with lines to the rows. If they lie apart, return false. */
  fan({ labels, leaders }, xy) {
    const rows = this.data.labelled.map((row) => [xy[2 * row], xy[2 * row + 1]]);
    const [x, y] = [0, 1].map((axis) => rows.reduce((sum, row) => sum + row[axis], 0) / rows.length);
    const clumped = rows.every((row) => Math.hypot(row[0] - x, row[1] - y) < CLUMP);
    const angle = (place) => Math.atan2(rows[place][1] - y, rows[place][0] - x);
    const around = clumped ? [...rows.keys()].sort((one, other) => angle(one) - angle(other)) : [];
    const lines = around.map((place, number) => {
      const turn = angle(around[0]) + (2 * Math.PI * number) / around.length;
      const end = [x + FAN * Math.cos(turn), y + FAN * Math.sin(turn)];
      this.put(labels[place], end, 0);
      return `M${rows[place]}L${end.map(Math.round)}`;
    });
    leaders.setAttribute("d", lines.join(""));
    return clumped;
  }

  /* Move labels down until none covers another one. */
  apart(labels, box) {
    const height = box.clientHeight;
    const free = labels.map((label) => ({ label, width: label.offsetWidth, height: label.offsetHeight, left: label.offsetLeft, top: label.offsetTop }));
    free.sort((one, other) => one.top - other.top);
    free.forEach((one, number) => {
      const begun = one.top;
      for (const other of free.slice(0, number)) {
        const beside = Math.abs(one.left - other.left) >= (one.width + other.width) / 2;
        if (!beside && one.top < other.top + other.height) one.top = other.top + other.height;
      }
      if (one.top > begun && height) one.label.style.top = `${(100 * one.top) / height}%`;
    });
  }

  size() {
    const width = this.maps[0].svg.clientWidth || 300;
    this.root.style.setProperty("--unit", 1000 / width); // map units per pixel
    this.root.style.setProperty("--dot", 1.6 + width / 280);
  }

  hover(event, svg) {
    const box = svg.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * 1000, ((event.clientY - box.top) / box.height) * 1000];
    const { xy } = this.data.maps[this.maps.findIndex((map) => map.svg === svg)];
    let [nearest, least] = [null, (14 * 1000) / box.width];
    for (const row of this.data.names.keys()) {
      const far = Math.hypot(xy[2 * row] - x, xy[2 * row + 1] - y);
      if (far < least) [nearest, least] = [row, far];
    }
    this.tell(nearest === null ? null : this.data.names[nearest]);
  }

  tell(name) {
    if (name !== this.told) document.dispatchEvent(new CustomEvent("relscope-row", { detail: name }));
    this.told = name;
  }

  ring(name) {
    const row = name === null ? -1 : this.data.names.indexOf(name);
    this.maps.forEach(({ ring, tip }, number) => {
      const { xy } = this.data.maps[number];
      for (const element of [ring, tip]) element.classList.toggle("on", row >= 0);
      if (row < 0) return;
      ring.setAttribute("cx", xy[2 * row]);
      ring.setAttribute("cy", xy[2 * row + 1]);
      tip.textContent = name;
      this.put(tip, xy, row);
    });
  }

  end() {
    document.removeEventListener("relscope-row", this.point);
    this.sizes.disconnect();
    this.root.remove();
  }
}
