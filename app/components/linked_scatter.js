/* The panes in Streamlit. Streamlit calls the default export when it mounts the panes, with every new payload and at every change of theme,
   always with the same parent. */

/* While an anchor is dragged, the number in the page's headline follows. It is pale until the score for the latest movement has come. */
const LATEST = 2000; // milliseconds within which Python sends the score after a star was dropped
let pale = 0;

function found(share) {
  clearTimeout(pale);
  const numbers = document.querySelectorAll(".relscope-live");
  const fade = (opacity) => numbers.forEach(({ style }) => (style.opacity = opacity));
  fade(share === undefined ? 0.4 : "");
  if (share === undefined) return void (pale = setTimeout(fade, LATEST, ""));
  for (const number of numbers) {
    number.dataset.before ??= number.textContent;
    const { before } = number.dataset;
    const about = before.startsWith("about ") ? "about " : "";
    number.textContent = share === null || Number.isNaN(share) ? before : `${about}${percent(share)}`;
    if (share === null) delete number.dataset.before;
  }
}

/* The bars of similarity in the inspector also follow the anchor. */
const earlier = new WeakMap(); // for each row of bars, its content before the anchor was dragged
const barsShown = () => document.querySelector(".relscope-bars[data-row]");

function moved(number, similar, id) {
  const shown = barsShown();
  if (!shown) return;
  const rows = shown.querySelectorAll(":scope > div");
  if (number < 0) {
    for (const row of rows) {
      if (earlier.has(row)) row.replaceChildren(...earlier.get(row));
      earlier.delete(row);
    }
    return;
  }
  const row = rows[number];
  if (!row) return;
  if (!earlier.has(row)) earlier.set(row, [...row.childNodes].map((one) => one.cloneNode(true)));
  row.firstChild.textContent = `★${number + 1} ${id}`;
  row.querySelectorAll("em > i").forEach((bar, side) => {
    const share = 50 * clamp(similar[side], -1, 1);
    Object.assign(bar.style, { left: `${50 + Math.min(share, 0)}%`, width: `${Math.abs(share)}%` });
  });
  row.querySelectorAll(":scope > b").forEach((text, side) => (text.textContent = decimals(similar[side], 2)));
}

/* While the pointer moves a slider that the panes follow, tell `hand` its values. Steps by key need nothing here, because they run the page.
   Returns a function that stops this. */
function watchSliders(hand) {
  const number = ({ target }) => hand.live?.sliders?.findIndex(({ key }) => target.closest?.(`.${key}, [class*="${key}-"]`)) ?? -1;
  const near = (event) => number(event) >= 0 && hand.ready(); // lets the server prepare before the slider moves
  const observer = new MutationObserver((changes) => {
    const before = new Map(); // the page may set a text twice in one change
    for (const { target, oldValue } of changes) if (!before.has(target)) before.set(target, oldValue);
    for (const [target, text] of before) {
      if (target.closest("[data-dragging]") && number({ target }) >= 0) hand.slide(number({ target }), Number(target.value), target.ariaValueText, text);
    }
  });
  observer.observe(document.body, { subtree: true, attributeFilter: ["aria-valuetext"], attributeOldValue: true });
  document.addEventListener("pointerover", near);
  return () => {
    observer.disconnect();
    document.removeEventListener("pointerover", near);
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const home = {
    send: (events) => setTriggerValue("events", events),
    load,
    open,
    found,
    moved,
    watchSliders,
    inspector: () => document.querySelector(":is(.relscope-picture, .relscope-text, .relscope-word)"),
    watched: () => Number(barsShown()?.dataset.row ?? -1),
    background: "var(--st-background-color)",
    scroller: (root) => root.closest('[data-testid="stMain"]'),
    content: (root) => root.closest('[data-testid="stMainBlockContainer"]'),
  };
  arrived(parentElement, unpack(data), (payload) => render(parentElement, payload, home));
  return () => {
    if (parentElement.isConnected) return; // a newer call has come, and the panes are still on screen
    forget(parentElement);
    remove(parentElement);
  };
}
