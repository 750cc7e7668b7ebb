/* Rows in lists of neighbours are buttons: a click on one goes to Python. The lists are HTML of the page; one listener serves all of them. */

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
