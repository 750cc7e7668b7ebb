/* Toolbar: the buttons of the panes, their keys, and the list of the keys. */

const ICONS = {
  lasso: "M10 3.2c-4 0-7 2-7 4.7 0 2.1 1.7 3.7 4.3 4.4M10 3.2c4 0 7 2 7 4.7s-3 4.6-7 4.6c-1 0-1.9-.1-2.7-.3M7.3 12.3a1.8 1.8 0 1 1-3 1.5c0-1 .8-1.8 1.8-1.8s1.6 1 1.6 2.2c0 1.5-1 2.8-2.4 3",
  box: "M3.5 3.5h3M8.5 3.5h3M13.5 3.5h3v3M16.5 8.5v3M16.5 13.5v3h-3M11.5 16.5h-3M6.5 16.5h-3v-3M3.5 11.5v-3M3.5 6.5v-3",
  pan: "M10 2.5v15M2.5 10h15M10 2.5 7.8 4.7M10 2.5l2.2 2.2M10 17.5l-2.2-2.2M10 17.5l2.2-2.2M2.5 10l2.2-2.2M2.5 10l2.2 2.2M17.5 10l-2.2-2.2M17.5 10l-2.2 2.2",
  turn: "M10 3a7 7 0 1 0 7 7M17 10l-2.2-2.2M17 10l1.9-2.4M10 3c2.5 0 4 3.1 4 7s-1.5 7-4 7-4-3.1-4-7 1.5-7 4-7",
  stars: "M10 2.8l2.2 4.6 5 .7-3.6 3.5.9 5L10 14.2l-4.5 2.4.9-5L2.8 8.1l5-.7z",
  names: "M3.5 5V3.5h13V5M10 3.5v13M7.5 16.5h5",
  density: "M10 3c5 0 8 3 7.5 7s-3.5 7-8 7-7.5-3-7-7.5S6 3 10 3M10 6c3 0 4.6 2 4.3 4.2S12.5 14 9.7 14 5.5 12.2 5.8 9.5 7.5 6 10 6M10 8.8a1.3 1.3 0 1 0 0 2.6 1.3 1.3 0 0 0 0-2.6",
  filter: "M3 4.5h14l-5.5 6.3v5.2l-3-1.7v-3.5z",
  link: "M8.3 11.7a3.2 3.2 0 0 0 4.6 0l2.7-2.7a3.25 3.25 0 0 0-4.6-4.6l-1 1M11.7 8.3a3.2 3.2 0 0 0-4.6 0L4.4 11a3.25 3.25 0 0 0 4.6 4.6l1-1",
  chosen: "M8.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10M12.2 12.2l4.3 4.3M8.5 7.4a1.1 1.1 0 1 0 0 2.2 1.1 1.1 0 0 0 0-2.2",
  closer: "M10 4v12M4 10h12",
  farther: "M4 10h12",
  home: "M3 7.5V3h4.5M17 7.5V3h-4.5M3 12.5V17h4.5M17 12.5V17h-4.5M7.5 10h5M10 7.5v5",
  clear: "M5 5l10 10M15 5 5 15",
  help: "M7.3 7.6a2.7 2.7 0 1 1 4.1 2.3c-.9.6-1.4 1.1-1.4 2.1M10 15.2v.1",
};
const TOOLS = {
  lasso: "Lasso (L); Shift adds",
  box: "Box (B); Shift adds",
  pan: "Move (P): drag",
  turn: "Turn (T): drag, or the arrow keys",
};
const KEYS = [
  ["L, B, P, T", "lasso, box, move, turn in three dimensions"],
  ["+, −", "zoom; so does the wheel with Ctrl, and alone after a click on a map"],
  ["0", "show everything"],
  ["Z", "zoom to the selection"],
  ["A", "show or hide the anchors"],
  ["N", "show or hide the names"],
  ["D", "lines around the most crowded places"],
  ["F", "filter rows by classes and numbers"],
  ["Drag a star", "move the anchor to another row"],
  ["Arrow keys", "go from row to row of a flat map; Enter selects it"],
  ["S, then arrow keys", "choose an anchor, move it; Enter keeps, Escape returns"],
  ["Hold Q", "try the row under the pointer as a new anchor"],
  ["Shift", "add to the selection"],
  ["In the legend", "click: show or hide; double click or I: only this; Shift+click: select"],
  ["Escape", "close the filter; then clear the selection"],
];

/* What the buttons and keys of a LinkedScatter do, by name. */
function actionsOf(scatter) {
  const zoom = (factor) => scatter.panes.forEach((pane) => pane.setView({ ...pane.view, zoom: pane.view.zoom * factor }));
  const turn = (right, down) => {
    if (!scatter.panes.some((pane) => pane.solid)) return null;
    scatter.turned(turnedBy(scatter.panes[0].turn, right, down));
    scatter.settled();
    return true;
  };
  const arrow = (across, down) => (scatter.hand.held ? scatter.hand.step(across, down) : turn(20 * across, 20 * down) ?? scatter.walk(across, down));
  const tools = Object.keys(TOOLS).map((tool) => [tool, () => scatter.setTool(tool)]);
  return {
    ...Object.fromEntries(tools),
    toggleStars: () => scatter.stars.toggle(),
    names: () => {
      scatter.setNamed(!scatter.named);
      scatter.tell("named", scatter.named);
    },
    density: () => {
      scatter.setDensity(!scatter.panes.some(({ contours }) => contours.shown));
      scatter.tell("density", scatter.density);
    },
    filter: () => (scatter.header.facets.length ? scatter.showFilter(scatter.filter.root.hidden) : scatter.askFilter()),
    link: () => scatter.setLinked(!scatter.linked),
    chosen: () => scatter.zoomToSelection(),
    home: () => scatter.home(),
    clear: () => (scatter.hand.held ? scatter.hand.cancel() : scatter.brushed([], false)),
    back: () => (scatter.filter.root.hidden || scatter.hand.held ? scatter.toolbar.actions.clear() : scatter.hideFilter()),
    closer: () => zoom(1.25),
    farther: () => zoom(0.8),
    ArrowLeft: () => arrow(-1, 0),
    ArrowRight: () => arrow(1, 0),
    ArrowUp: () => arrow(0, -1),
    ArrowDown: () => arrow(0, 1),
    nextStar: () => scatter.hand.choose(1),
    Enter: () => (scatter.hand.held ? scatter.hand.release() : scatter.pick()),
  };
}

class Toolbar {
  /* `actions`: what a button or a key does, by name; `controls`: what opens below a button. */
  constructor(actions, controls) {
    this.actions = actions;
    this.buttons = {};
    this.root = element("div", "ls-toolbar", { role: "toolbar", "aria-label": "Tools of the panes" });
    const lines = KEYS.flatMap(([key, does]) => [element("dt", "", {}, key), element("dd", "", {}, does)]);
    const help = element("div", "ls-popover", { hidden: "", tabindex: -1, role: "group", "aria-label": "Keys" }, element("dl", "ls-keys", {}, ...lines));
    this.popovers = { ...controls, help };
    const button = (name, label, word = "") => {
      const icon = element("svg", "", { viewBox: "0 0 20 20", "aria-hidden": "true" }, element("path", "", { d: ICONS[name] }));
      this.buttons[name] = element("button", "ls-button", { type: "button", title: label, "aria-label": label, "data-tool": name }, icon, word, element("b", "ls-count"));
      this.buttons[name].addEventListener("click", () => (this.popovers[name] ? this.open(name) : actions[name]()));
      return this.buttons[name];
    };
    this.root.append(
      element("span", "ls-segments", {}, ...Object.entries(TOOLS).map(([name, label]) => button(name, label))),
      button("stars", "Size and opacity of the anchors (A hides them)"),
      button("names", "Names on the map (N)"),
      button("density", "Density: lines around the most crowded places (D)", "Density"),
      button("filter", "Filter rows by classes and numbers (F)", "Filter"),
      button("link", "Zoom all panes together"),
      button("chosen", "Zoom to the selection (Z)"),
      button("home", "Show everything (0)"),
      button("help", "Keys"),
      ...Object.values(this.popovers),
    );
    button("clear", "Clear the selection (Escape)"); // stands beside the number of selected rows
    for (const [name, popover] of Object.entries(this.popovers)) {
      this.buttons[name].setAttribute("aria-expanded", false);
      popover.addEventListener("focusout", (event) => {
        if (!popover.contains(event.relatedTarget) && event.relatedTarget !== this.buttons[name]) this.close(name);
      });
    }
  }

  open(name) {
    const popover = this.popovers[name];
    if (!popover.hidden) return this.close(name);
    popover.hidden = false;
    this.buttons[name].setAttribute("aria-expanded", true);
    popover.focus();
  }

  close(name) {
    this.popovers[name].hidden = true;
    this.buttons[name].setAttribute("aria-expanded", false);
  }

  /* A button whose effect lasts while what it opens is closed says how many conditions hold. */
  count(name, n) {
    const button = this.buttons[name];
    const held = button.querySelector(".ls-count");
    if (held.textContent === (n ? String(n) : "")) return;
    held.textContent = n ? String(n) : "";
    button.dataset.held = n;
    const label = button.title.replace(/; .*/, "") + (n ? `; ${n} ${n === 1 ? "condition holds" : "conditions hold"}` : "");
    button.title = label;
    button.setAttribute("aria-label", label);
  }

  press(name, pressed) {
    this.buttons[name].setAttribute("aria-pressed", Boolean(pressed));
  }

  /* What a key does; true if it did something. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "Escape" && Object.keys(this.popovers).some((name) => !this.popovers[name].hidden)) {
      for (const [name, popover] of Object.entries(this.popovers)) {
        const focused = popover.contains(event.target);
        this.close(name);
        if (focused) this.buttons[name].focus(); // or the keys would reach the panes no more
      }
      return true;
    }
    if (event.target.matches?.("input") && event.key.startsWith("Arrow")) return false;
    const keys = { Escape: "back", 0: "home", "+": "closer", "-": "farther", z: "chosen", a: "toggleStars", n: "names", d: "density", f: "filter", s: "nextStar", Enter: "Enter" };
    for (const tool of Object.keys(TOOLS)) keys[tool[0]] = tool;
    const name = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key] ?? (event.key.startsWith("Arrow") ? event.key : undefined);
    if (!name || !this.actions[name] || this.buttons[name]?.hidden) return false;
    return this.actions[name]() !== false;
  }
}
