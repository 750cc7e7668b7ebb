/* Stars: the anchors of a pane, above its points, and the control of their look. Hundreds of stars must not cover the data: they get
   smaller and their outline thinner with their number, the user sets size and opacity, and one key hides them. */

const CORNERS = Array.from({ length: 10 }, (_, i) => {
  const [radius, angle] = [i % 2 ? 0.42 : 1, (Math.PI * (i - 2.5)) / 5];
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
});
const [LETTER_WIDTH, NUMBER_HEIGHT] = [7, 9]; // in pixels
// Stars have no transforms: with 1,200 transforms, Chromium took 30 ms for the layers of each frame, whatever on the page changed.
const star = (x, y, radius) => CORNERS.map(([a, b]) => `${(x + radius * a).toFixed(1)},${(y + radius * b).toFixed(1)}`).join(" ");

/* Set an attribute only if its value changes, because the browser would paint the node again. */
const change = (node, name, value) => node.getAttribute(name) === value || node.setAttribute(name, value);

class Stars {
  constructor() {
    this.rows = [];
    this.shapes = element("g");
    this.numbers = element("g");
    this.root = element("g", "ls-stars", {}, this.shapes, this.numbers);
  }

  /* A star has its number, and in the story also its name. If many anchors are not drawn, it has only its name, as numbers would have gaps. */
  set(rows, { starSize, starOpacity, numbered, numbers, worded }, look, colorOf, nameOf, moved) {
    this.rows = rows;
    // Stars that are there are kept: one anchor more is one star more, not hundreds of new ones.
    const stars = this.shapes.children;
    while (stars.length > rows.length) this.shapes.lastChild.remove();
    while (stars.length < rows.length) {
      this.shapes.append(element("g", "ls-star", {}, element("polygon", "ls-halo"), element("polygon", "ls-body")));
    }
    rows.forEach((row, i) => {
      change(stars[i].lastChild, "fill", colorOf(row));
      stars[i].classList.toggle("ls-moved", row === moved);
    });
    const gaps = !worded && numbers.some((number) => number > 2 * rows.length);
    const told = Array.from(numbered ? rows : [], (row, i) => [...(gaps ? [] : [numbers[i] ?? i + 1]), ...(worded || gaps ? [shortened(nameOf(row), 14)] : [])].join(" "));
    const texts = this.numbers.children;
    while (texts.length > told.length) this.numbers.lastChild.remove();
    while (texts.length < told.length) this.numbers.append(element("text", "ls-number", {}, ""));
    told.forEach((text, i) => texts[i].textContent === text || (texts[i].textContent = text));
    [this.numbered, this.named, this.worded] = [numbered, gaps, worded || gaps];
    this.usual = { diameter: starSize, opacity: starOpacity };
    this.setLook(look);
  }

  setLook(look) {
    this.look = look;
    const { size, opacity, shown } = look;
    const diameter = this.usual.diameter * size;
    this.shown = shown;
    this.reach = shown ? diameter / 2 : 0;
    this.root.style.display = shown ? "" : "none";
    this.root.style.opacity = this.usual.opacity * opacity;
    const widths = { outline: clamp(diameter / 13, 0.4, 1.15), halo: clamp(diameter / 2.5, 1.2, 6.5) };
    for (const [name, value] of Object.entries(widths)) this.shapes.style.setProperty(`--ls-${name}`, value);
    this.diameter = diameter;
  }

  /* Beside a selection only its own stars stay strong. */
  dim(isChosen) {
    for (let i = 0; i < this.rows.length; i++) this.shapes.children[i].classList.toggle("ls-chosen", isChosen(this.rows[i]));
  }

  /* `pixel`: where a row is; null for one that is hidden. A number stands at the upper right of its star. If there is no room, because of an
     edge of the pane, another star or another number, it stands at another side. `boxes`: where names must not lie. */
  place(pixel, width, type = 1) {
    [this.boxes, this.told] = [[], new Set()];
    if (!this.shown) return;
    const [shapes, numbers, diameter, { reach }] = [this.shapes.children, this.numbers.children, this.diameter, this];
    const places = Array.from(this.rows, (row) => pixel(row));
    const bodies = places.map((place) => place && [place[0] - reach, place[1] - reach, place[0] + reach, place[1] + reach]);
    const [beside, above, high] = [diameter * 0.55, diameter * 0.28, NUMBER_HEIGHT * type];
    places.forEach((place, i) => {
      for (const one of [shapes[i], numbers[i]]) if (one) change(one, "visibility", place ? "visible" : "hidden");
      if (!place) return;
      const points = star(...place, diameter / 2);
      for (const polygon of shapes[i].children) change(polygon, "points", points);
      if (!numbers[i]) return;
      const [[x, y], wide] = [place, LETTER_WIDTH * type * numbers[i].textContent.length];
      const sides = [[0, 0], [1, 0], [0, 1], [1, 1]].map(([left, below]) => {
        const [from, base] = [left ? x - beside - wide : x + beside, below ? y + above + high : y - above];
        return { left, base, box: [from, base - high, from + wide, base + 2] };
      });
      const within = sides.filter(({ box }) => box[0] >= 0 && box[1] >= 0 && box[2] <= width);
      const isFree = ({ box }) => !this.boxes.some((one) => meet(one, box)) && !bodies.some((one, j) => one && j !== i && meet(one, box));
      const free = within.find(isFree);
      if (!free && this.named) return change(numbers[i], "visibility", "hidden");
      const { left, base, box } = free ?? within[0] ?? sides[0];
      const placed = { x: (left ? x - beside : x + beside).toFixed(1), y: base.toFixed(1), "text-anchor": left ? "end" : "start" };
      for (const [name, value] of Object.entries(placed)) change(numbers[i], name, value);
      this.boxes.push(box);
      if (this.worded) this.told.add(this.rows[i]);
    });
    this.boxes.push(...bodies.filter(Boolean));
  }
}

/* StarControl: sliders for size and opacity, and whether anchors are shown; `changed(look, settled)` hears each movement. */
class StarControl {
  constructor(changed) {
    this.look = { size: 1, opacity: 1, shown: true };
    const slider = (name, label, min, max) => {
      const input = element("input", "", { type: "range", min, max, step: 0.05, "aria-label": `${label} of the anchors` });
      for (const kind of ["input", "change"]) {
        input.addEventListener(kind, () => {
          this.look = { ...this.look, [name]: Number(input.value), shown: true };
          this.show();
          changed(this.look, kind === "change");
        });
      }
      this[name] = input;
      return element("label", "ls-slider", {}, label, input);
    };
    this.shown = element("input", "", { type: "checkbox" });
    this.shown.addEventListener("change", () => this.toggle());
    this.toggle = () => {
      this.look = { ...this.look, shown: !this.look.shown };
      this.show();
      changed(this.look, true);
    };
    const sliders = [slider("size", "Size", 0.3, 2), slider("opacity", "Opacity", 0.1, 1)];
    this.root = element("div", "ls-popover", { hidden: "", tabindex: -1, role: "group", "aria-label": "Look of the anchors" });
    this.root.append(element("label", "ls-check", {}, this.shown, "Show anchors (A)"), ...sliders);
  }

  show(look = this.look) {
    this.look = look;
    this.shown.checked = look.shown;
    this.size.value = look.size;
    this.opacity.value = look.opacity;
  }
}
