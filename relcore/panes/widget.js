/* The panes in a notebook, as an anywidget: Jupyter, VS Code and marimo call `render` for each output that shows the widget. Each array of
   the payload is a trait of its own, so that only those that changed travel. */

const OURS = "ls-notebook";
const THEMED = ["class", "style", "data-theme", "data-jp-theme-name", "data-jp-theme-light", "data-vscode-theme-kind"]; // what a notebook changes with its theme

/* The colour behind an element: that of the nearest ancestor that has one, as notebooks leave their outputs transparent. */
function backdrop(element) {
  for (let node = element; node; node = node.parentElement ?? node.getRootNode().host) {
    const { backgroundColor } = getComputedStyle(node);
    if (backgroundColor && painted(backgroundColor)[3]) return backgroundColor;
  }
  return "var(--vscode-editor-background, Canvas)";
}

/* Wait until an element is in the page, or is wanted no more. */
function connected(element, unwanted) {
  return new Promise((done) => {
    const look = () => (element.isConnected || unwanted() ? done() : requestAnimationFrame(look));
    look();
  });
}

export default {
  render({ model, el }) {
    const host = element("div", OURS, { "data-lm-suppress-shortcuts": "true" }); // Jupyter's keys for its cells would act on the panes' keys
    host.addEventListener("mousedown", (event) => event.shiftKey && event.stopPropagation()); // Jupyter would select cells
    el.append(host);
    let [closed, drawing] = [false, false];
    const bytes = (name) => {
      const view = model.get(`_array_${name}`);
      if (!view) throw new Error("Their data is not here: run this cell again.");
      return view instanceof ArrayBuffer ? view.slice(0) : view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
    };
    const home = {
      send: (events) => {
        model.set("_events", events);
        model.save_changes();
      },
      load: async (name) => new Blob([bytes(name)]),
      open: ({ name }, answered) => {
        const hear = (content, [view]) => content.live === name && answered(view.buffer ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : view);
        model.on("msg:custom", hear);
        return { send: (asked) => model.send({ live: name }, undefined, [asked.buffer]), close: () => model.off("msg:custom", hear) };
      },
    };
    const draw = async () => {
      if (drawing) return;
      drawing = true;
      await connected(host, () => closed); // styles are known from then on; and all traits of one message have arrived
      drawing = false;
      if (closed) return;
      const take = (name, kind = COLUMNS[name] ?? Float32Array) => new kind(bytes(name));
      try {
        render(host, { header: model.get("_header"), take }, { ...home, background: backdrop(host) });
      } catch (error) {
        remove(host);
        console.error(error);
        return sayFailure(host, `The panes could not be drawn. ${error.message}`);
      }
      sayFailure(host, "");
    };
    model.on("change:_header", draw);
    const themes = new MutationObserver(draw);
    for (const node of [document.documentElement, document.body]) themes.observe(node, { attributes: true, attributeFilter: THEMED });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    draw();
    return () => {
      closed = true;
      model.off("change:_header", draw);
      themes.disconnect();
      scheme.removeEventListener("change", draw);
      remove(host);
    };
  },
};
