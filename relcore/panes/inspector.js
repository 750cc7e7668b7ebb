/* Inspector: the selected rows beside the panes: one with all that is known of it, several as a list in which a click picks one. */

const MOST_LISTED = 300;

class Inspector {
  /* `pick(row)` hears a click; `describe(row)` gives { id, text, category, color, note, anchor }. */
  constructor(pick, describe) {
    Object.assign(this, { pick, describe, rows: [] });
    this.title = element("h2", "", { tabindex: -1 });
    this.copy = element("button", "ls-copy", { type: "button" }, "Copy ids");
    this.copy.addEventListener("click", () => this.copied());
    this.list = element("div", "ls-chosen-list");
    const heading = element("header", "", {}, this.title, this.copy);
    this.root = element("aside", "ls-inspector", { "aria-label": "Selected rows" }, heading, this.list);
  }

  show(rows) {
    this.rows = rows;
    const n = rows.length;
    this.title.textContent = n ? `${n.toLocaleString()} ${n === 1 ? "row" : "rows"} selected` : "No row selected";
    this.copy.hidden = !n;
    this.copy.textContent = "Copy ids";
    if (!n) return this.list.replaceChildren(element("p", "", {}, "Click a point, or draw around some."));
    if (n === 1) return this.list.replaceChildren(this.one(this.describe(rows[0])));
    const listed = Array.from(rows.slice(0, MOST_LISTED), (row) => this.entry(row));
    if (n > MOST_LISTED) listed.push(element("p", "", {}, `and ${(n - MOST_LISTED).toLocaleString()} more`));
    this.list.replaceChildren(...listed);
  }

  entry(row) {
    const { id, color } = this.describe(row);
    const button = element("button", "ls-entry", { type: "button" }, element("i", "ls-dot", { style: `background:${color}` }), element("span", "", {}, id));
    button.addEventListener("click", () => this.pick(row));
    return button;
  }

  one({ id, text, category, color, note, anchor }) {
    const facts = [["Text", text], ["Colour", category], ["Note", note], ["Anchor", anchor || undefined]].filter(([, value]) => value !== undefined);
    const lines = facts.flatMap(([name, value]) => {
      const dot = name === "Colour" ? [element("i", "ls-dot", { style: `background:${color}` }), " "] : [];
      return [element("dt", "", {}, name), element("dd", "", {}, ...dot, String(value))];
    });
    return element("div", "", {}, element("strong", "ls-one", {}, id), element("dl", "ls-facts", {}, ...lines));
  }

  async copied() {
    try {
      await navigator.clipboard.writeText(Array.from(this.rows, (row) => this.describe(row).id).join("\n"));
      this.copy.textContent = "Copied";
    } catch {
      this.copy.textContent = "The browser allows no copy";
    }
  }
}
