/* A click on a link to #what-… shows this entry of the glossary in a card beside the link. The card is a popover of the browser, so it lies
   above the page, and Escape or a click elsewhere closes it. */

const cards = new WeakMap();
const GAP = 8; // pixels between the word and its card, and around it

export default function ({ parentElement }) {
  cards.get(parentElement)?.abort();
  const listening = new AbortController();
  cards.set(parentElement, listening);
  const { signal } = listening;
  const page = parentElement.ownerDocument;
  const card = parentElement.querySelector(".relscope-glossary");
  let word = null; // the link that opened the card
  const open = (event) => {
    const link = event.target.closest?.('a[href^="#what-"]');
    if (!link) return;
    event.preventDefault(); // adds no entry to the browser's history, and does not choose a card that contains the link
    event.stopPropagation();
    if (!card.contains(link)) word = link;
    show(card, link.getAttribute("href").slice("#what-".length), word);
  };
  page.addEventListener("click", open, { capture: true, signal });
  card.querySelector("button").addEventListener("click", () => card.hidePopover(), { signal });
  card.addEventListener("toggle", ({ newState }) => newState === "closed" && word?.focus({ preventScroll: true }), { signal });
  page.addEventListener("scroll", (event) => !card.contains(event.target) && card.hidePopover(), { capture: true, signal });
  return () => listening.abort();
}

function show(card, term, word) {
  const all = term === "all";
  card.classList.toggle("relscope-all", all);
  for (const entry of card.querySelectorAll("[data-term]")) entry.hidden = !all && entry.dataset.term !== term;
  const title = card.querySelector(`#relscope-term-${CSS.escape(term)}`);
  card.setAttribute("aria-labelledby", title.id);
  card.showPopover();
  card.scrollTop = 0;
  place(card, word);
  title.focus({ preventScroll: true });
}

/* Place the card below the word or, if there is no room, above it. Keep it within the window. */
function place(card, word) {
  const { left, top, bottom } = word?.getBoundingClientRect() ?? { left: 0, top: 0, bottom: 0 };
  const { offsetWidth: width, offsetHeight: height } = card;
  const within = (value, most) => Math.max(GAP, Math.min(value, most - GAP));
  const below = bottom + GAP + height <= innerHeight || top < height + GAP;
  card.style.left = `${within(left, innerWidth - width)}px`;
  card.style.top = `${within(below ? bottom + GAP : top - GAP - height, innerHeight - height)}px`;
}
