/* Rows in lists of neighbours are buttons. A click on a row goes to Python. The lists are HTML of the page, and one listener serves them all. */

const links = new WeakMap();

export default function ({ parentElement, setTriggerValue }) {
  const page = parentElement.ownerDocument;
  links.get(parentElement)?.abort();
  const listening = new AbortController();
  links.set(parentElement, listening);
  const pick = (event) => {
    const row = event.target.closest?.("[data-row]");
    const list = row?.closest("[data-pair]");
    if (!list) return;
    event.preventDefault();
    setTriggerValue("picked", { row: Number(row.dataset.row), pair: list.dataset.pair });
  };
  page.addEventListener("click", pick, { signal: listening.signal });
  return () => listening.abort();
}
