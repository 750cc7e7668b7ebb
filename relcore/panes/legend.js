/* Legend: the classes of each colouring on one line that scrolls, so that no number of classes moves the panes. A click shows or hides a
   class, a double click shows it alone, Shift and a click adds its rows to the selection. With the keyboard: Enter, I and Shift+Enter. */

const CHIP_LETTERS = 40; // the title says the whole name
const DOUBLE_CLICK = 240; // milliseconds that a click waits for a second one

class Legend {
  /* `act`: { toggle, isolate, select }(colouring, class), showAll(), and stars(), which shows or hides the anchors. */
  constructor(act) {
    this.act = act;
    this.lists = element("div", "ls-lists");
    this.star = element("button", "ls-chip", { type: "button", title: "Click to show or hide the anchors (A)", "aria-label": "anchor", hidden: "" }, element("span", "ls-star-key", { "aria-hidden": "true" }, "★"), "anchor");
    this.star.addEventListener("click", () => act.stars());
    this.all = element("button", "ls-all", { type: "button", hidden: "" });
    this.all.addEventListener("click", () => act.showAll());
    this.root = element("div", "ls-legends", {}, this.lists, this.star);
  }

  /* `most`: so many names, and how many more there are. */
  draw(colorings, most) {
    const { activeElement } = this.lists.getRootNode(); // a notebook may show the panes in a shadow tree
    const focus = this.lists.contains(activeElement) ? activeElement.dataset.class : null;
    const scrolled = [...this.lists.children].map((list) => list.scrollLeft);
    this.lists.replaceChildren(...colorings.map((coloring, i) => this.list(coloring, i, most)));
    [...this.lists.children].forEach((list, i) => (list.scrollLeft = scrolled[i] ?? 0));
    if (focus) this.lists.querySelector(`[data-class="${focus}"]`)?.focus();
    this.show(colorings);
  }

  list(coloring, i, most) {
    const { told } = coloring;
    const name = [told.side, told.title].filter(Boolean).join(": ");
    const label = `${name || "Categories"}: click to show or hide, double click to show one alone, Shift and click to select`;
    const root = element("div", "ls-legend", { role: "group", "aria-label": label, "data-coloring": i });
    if (name && (told.side || told.ticks)) root.append(element("span", "ls-more", {}, name));
    const none = told.labels.length - 1;
    if (told.ticks) root.append(this.bar(coloring, i));
    const named = told.ticks ? [] : coloring.present().filter((number) => number !== none);
    root.append(...named.slice(0, most).map((number) => this.chip(coloring, i, number)));
    if (named.length > most) root.append(element("span", "ls-more", {}, `and ${named.length - most} more`));
    if (coloring.mixed) root.append(this.chip(coloring, i, none));
    const cut = () => root.classList.toggle("ls-cut", root.scrollLeft + root.clientWidth < root.scrollWidth - 1);
    root.addEventListener("scroll", cut, { passive: true });
    new ResizeObserver(cut).observe(root);
    root.addEventListener(
      "wheel",
      (event) => {
        if (root.scrollWidth <= root.clientWidth || event.ctrlKey) return;
        event.preventDefault();
        root.scrollLeft += event.deltaY || event.deltaX;
      },
      { passive: false },
    );
    return root;
  }

  chip(coloring, i, number) {
    const node = this.button(coloring, i, number, "ls-chip");
    node.append(element("span", "ls-dot", { style: `background:${coloring.colorOfClass(number)}` }), shortened(coloring.told.labels[number], CHIP_LETTERS));
    return node;
  }

  /* The colour bar: its parts are buttons, its ticks stand beneath. */
  bar(coloring, i) {
    const { ticks, labels } = coloring.told;
    const parts = element("span", "ls-parts", { style: `background:linear-gradient(to right, ${coloring.palette.join(", ")})` });
    parts.append(...labels.slice(0, -1).map((_, number) => this.button(coloring, i, number, "ls-part")));
    const places = ticks.map(([share, text]) => element("span", "", { style: `left:${100 * share}%` }, text));
    return element("span", "ls-scale", {}, parts, element("span", "ls-ticks", { "aria-hidden": "true" }, ...places));
  }

  button(coloring, i, number, className) {
    const { labels, title, ticks } = coloring.told;
    const name = ticks && number < labels.length - 1 ? `${title} ${labels[number]}` : labels[number];
    const points = `${coloring.counts[number].toLocaleString()} points`;
    const how = "Click to show or hide, double click to show alone, Shift and click to select";
    const node = element("button", className, { type: "button", title: `${name}: ${points}. ${how}`, "aria-label": `${name}, ${points}` });
    node.dataset.class = `${i}.${number}`;
    const token = coloring.told.tokens[number];
    const toggle = () => coloring.told.tokens[number] === token && this.act.toggle(coloring, number); // other classes may have come meanwhile
    let waiting = 0;
    node.addEventListener("click", (event) => {
      clearTimeout(waiting);
      if (event.shiftKey) return this.act.select(coloring, number);
      if (event.detail === 0) return this.act.toggle(coloring, number); // the keyboard clicks once
      if (event.detail === 1) waiting = setTimeout(toggle, DOUBLE_CLICK);
      else if (event.detail === 2) this.act.isolate(coloring, number);
    });
    node.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() === "i" && !event.ctrlKey && !event.metaKey && !event.altKey) this.act.isolate(coloring, number);
      else if (event.key === "Enter" && event.shiftKey) this.act.select(coloring, number);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return node;
  }

  /* The entry of the anchors, if there are any, and whether they are shown. */
  showStars(any, shown) {
    this.star.hidden = !any;
    this.star.setAttribute("aria-pressed", shown);
  }

  /* Which classes are shown, and how many rows are not. */
  show(colorings, hidden = 0) {
    for (const node of this.lists.querySelectorAll("[data-class]")) {
      const [i, number] = node.dataset.class.split(".").map(Number);
      const coloring = colorings[i];
      node.setAttribute("aria-pressed", coloring ? !coloring.away.has(coloring.told.tokens[number]) : true);
    }
    this.hidden = hidden;
    this.all.hidden = !hidden;
    if (hidden) this.all.textContent = `${hidden.toLocaleString()} ${hidden === 1 ? "row" : "rows"} hidden · show all`;
  }
}
