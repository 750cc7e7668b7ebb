/* Stars: the anchors of a pane, above its points, and the control of their look. Hundreds of stars must not cover the data: they get
   smaller and their outline thinner with their number, the user sets size and opacity, and one key hides them. */

const STAR = Array.from({ length: 10 }, (_, i) => {
  const [radius, angle] = [i % 2 ? 0.42 : 1, (Math.PI * (i - 2.5)) / 5];
  return `${(radius * Math.cos(angle)).toFixed(3)},${(radius * Math.sin(angle)).toFixed(3)}`;
}).join(" ");

class Stars {
  constructor() {
    this.rows = [];
    this.shapes = element("g");
    this.numbers = element("g");
    this.root = element("g", "ls-stars", {}, this.shapes, this.numbers);
  }

  set(rows, { starSize, starOpacity, numbered }, look, colorOf) {
    this.rows = rows;
    // Stars that are there are kept: one anchor more is one star more, not hundreds of new ones.
    const stars = this.shapes.children;
    while (stars.length > rows.length) this.shapes.lastChild.remove();
    while (stars.length < rows.length) {
      this.shapes.append(element("g", "ls-star", {}, element("polygon", "ls-halo", { points: STAR }), element("polygon", "ls-body", { points: STAR })));
    }
    for (let i = 0; i < rows.length; i++) stars[i].lastChild.setAttribute("fill", colorOf(rows[i]));
    this.numbers.replaceChildren(...Array.from(numbered ? rows : [], (_, i) => element("text", "ls-number", {}, String(i + 1))));
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
    const widths = { star: diameter / 2, outline: clamp(diameter / 13, 0.4, 1.15), halo: clamp(diameter / 2.5, 1.2, 6.5) };
    for (const [name, value] of Object.entries(widths)) this.shapes.style.setProperty(`--ls-${name}`, value);
    for (const number of this.numbers.children) {
      number.setAttribute("x", diameter * 0.55);
      number.setAttribute("y", -diameter * 0.28);
    }
  }

  /* Beside a selection only its own stars stay strong. */
  dim(chosen) {
    for (let i = 0; i < this.rows.length; i++) this.shapes.children[i].classList.toggle("ls-chosen", chosen.has(this.rows[i]));
  }

  /* Where names must not lie: on stars with numbers. Hundreds without numbers would leave no room. */
  boxes(visible, pixel) {
    if (!this.shown || !this.numbers.children.length) return [];
    return Array.from(this.rows).filter(visible).map(pixel).map(([x, y]) => [x - this.reach, y - this.reach - 5, x + this.reach + 12, y + this.reach]);
  }

  /* `pixel`: where a row is; null for one that is hidden. */
  place(pixel) {
    if (!this.shown) return;
    for (let i = 0; i < this.rows.length; i++) {
      const place = pixel(this.rows[i]);
      for (const { children } of [this.shapes, this.numbers]) {
        children[i]?.setAttribute("visibility", place ? "visible" : "hidden");
        if (place) children[i]?.setAttribute("transform", `translate(${place[0].toFixed(1)} ${place[1].toFixed(1)})`);
      }
    }
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
    this.root = element("div", "ls-popover", { hidden: "", tabindex: -1, "aria-label": "Look of the anchors" });
    this.root.append(element("label", "ls-check", {}, this.shown, "Show anchors (A)"), ...sliders);
  }

  show(look = this.look) {
    this.look = look;
    this.shown.checked = look.shown;
    this.size.value = look.size;
    this.opacity.value = look.opacity;
  }
}
