/* A search box with a list of matches below it. After a short pause, the typed text goes to Python, which answers with a few matches. */

const boxes = new WeakMap();
const PAUSE = 120; // milliseconds without a key press after which the text is sent

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  let box = boxes.get(parentElement);
  if (!box) boxes.set(parentElement, (box = new SearchBox(parentElement)));
  box.ask = (query) => setStateValue("query", query);
  box.pick = (id, query) => setTriggerValue("picked", { id, query });
  box.update(data);
}

function node(tag, className, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

class SearchBox {
  constructor(parent) {
    const id = `rs-${Math.random().toString(36).slice(2)}`;
    this.input = node("input", "rs-input", "", { type: "search", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-controls": id });
    this.input.setAttribute("aria-expanded", "false");
    this.list = node("ul", "rs-list", "", { id, role: "listbox" });
    this.told = node("p", "rs-told", "", { role: "status" });
    this.root = node("div", "rs-root");
    this.root.append(this.input, this.list, this.told);
    parent.append(this.root);
    this.at = 0;
    this.open(false);
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.entered = null;
      this.timer = setTimeout(() => this.ask(this.input.value), PAUSE);
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("focus", () => this.matches?.length && this.input.value && this.open(true));
    this.input.addEventListener("blur", () => this.open(false));
  }

  update({ label, placeholder, query, matches, told }) {
    this.input.setAttribute("aria-label", label);
    this.input.placeholder = placeholder;
    if (query !== this.input.value) return; // this answers an earlier text
    this.matches = matches;
    this.answered = query;
    this.at = 0;
    this.list.replaceChildren(
      ...matches.map(({ id, name, note }, i) => {
        const entry = node("li", "rs-match", "", { role: "option" });
        entry.append(node("b", "", name), node("span", "", note));
        entry.addEventListener("pointerdown", (event) => (event.preventDefault(), this.choose(i)));
        entry.title = id;
        return entry;
      }),
    );
    this.told.textContent = told;
    this.mark();
    this.open(Boolean(query) && this.root.getRootNode().activeElement === this.input);
    if (this.entered === query) this.choose(0); // the user pressed Enter before this answer came
  }

  mark() {
    [...this.list.children].forEach((entry, i) => entry.setAttribute("aria-selected", i === this.at));
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  open(shown) {
    const listed = shown && this.matches?.length > 0;
    this.list.hidden = !listed;
    this.told.hidden = !(shown && this.told.textContent);
    this.input.setAttribute("aria-expanded", String(listed));
  }

  choose(i) {
    const match = this.matches?.[i];
    if (!match) return;
    clearTimeout(this.timer);
    this.entered = null;
    this.pick(match.id, this.input.value);
    [this.input.value, this.matches] = ["", []]; // the result is shown below, so the box is free for the next search
    this.ask("");
    this.open(false);
  }

  key(event) {
    event.stopPropagation(); // so that Streamlit does not treat the key as a shortcut
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && this.matches?.length) {
      this.at = (this.at + steps[event.key] + this.matches.length) % this.matches.length;
      this.mark();
    } else if (event.key === "Enter") {
      if (this.answered === this.input.value) this.choose(this.at);
      else {
        clearTimeout(this.timer);
        this.ask((this.entered = this.input.value));
      }
    } else if (event.key === "Escape") this.open(false);
    else return;
    event.preventDefault();
  }
}
