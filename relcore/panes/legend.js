/* Legend: the classes of each colouring on one line, so that no number of classes moves the panes; those without room there are behind a
   button with their number. A click shows or hides a class, a double click shows it alone, Shift and a click adds its rows to the selection.
   With the keyboard: Enter, I and Shift+Enter. */

const CHIP_LETTERS = 40; // the title says the whole name
const MOST_CHIPS = 200; // classes of a legend; of more, their number is shown
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

  draw(colorings) {
    const { activeElement } = this.lists.getRootNode(); // a notebook may show the panes in a shadow tree
    const focus = this.lists.contains(activeElement) ? activeElement.dataset.class : null;
    this.lists.replaceChildren(...colorings.map((coloring, i) => this.list(coloring, i)));
    if (focus) this.lists.querySelector(`[data-class="${focus}"]`)?.focus();
    this.show(colorings);
  }

  list(coloring, i) {
    const { told } = coloring;
    const name = [told.side, told.title].filter(Boolean).join(": ");
    const label = `${name || "Categories"}: click to show or hide, double click to show one alone, Shift and click to select`;
    const root = element("div", "ls-legend", { role: "group", "aria-label": label, "data-coloring": i });
    if (name && (told.side || told.ticks)) root.append(element("span", "ls-more", {}, name));
    const none = told.labels.length - 1;
    if (told.ticks) root.append(this.bar(coloring, i));
    const named = told.ticks ? [] : coloring.present().filter((number) => number !== none);
    root.append(...named.slice(0, MOST_CHIPS).map((number) => this.chip(coloring, i, number)));
    if (named.length > MOST_CHIPS) root.append(element("span", "ls-more", {}, `and ${named.length - MOST_CHIPS} more`));
    if (coloring.mixed) root.append(this.chip(coloring, i, none));
    return this.line(root);
  }

  /* A legend of one line, and the button that shows the classes without room on it. */
  line(root) {
    const rest = element("button", "ls-rest", { type: "button", "aria-expanded": false });
    const whole = element("div", "ls-line", {}, root, rest);
    const fit = () => {
      const [first, ...others] = root.children;
      const open = whole.classList.contains("ls-open");
      const below = () => others.filter((one) => one.offsetTop > first.offsetTop + 12);
      rest.style.position = "absolute"; // not hidden, or it would lose the focus
      rest.hidden = !open && !below().length;
      rest.style.position = "";
      const over = below();
      for (const one of others) one.classList.toggle("ls-over", !open && over.includes(one));
      rest.textContent = open ? "×" : `+${over.length}`;
      rest.setAttribute("aria-label", open ? "Show one line of classes" : `Show ${over.length} more classes`);
    };
    const open = (wanted) => {
      rest.setAttribute("aria-expanded", wanted);
      whole.classList.toggle("ls-open", wanted);
      fit();
    };
    rest.addEventListener("click", () => open(!whole.classList.contains("ls-open")));
    whole.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !whole.classList.contains("ls-open")) return;
      event.stopPropagation();
      open(false);
      rest.focus();
    });
    new ResizeObserver(fit).observe(whole);
    return whole;
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
