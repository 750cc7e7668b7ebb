/* The answers on Stitch while the user types or draws. Each change goes to the server through the channel, and the table that comes back is
   shown. The page runs only when the user pauses. */

const TAGS = new Set(["b", "br", "caption", "p", "small", "span", "table", "tbody", "td", "th", "thead", "tr"]);
const ATTRIBUTES = new Set(["class", "role", "scope", "style", "tabindex"]);
const followers = new WeakMap();

/* A second protection behind `plain_html` in Python: remove elements and attributes that a table of answers never has. */
function harmless(answers) {
  for (const element of answers.querySelectorAll("*")) {
    if (!TAGS.has(element.localName)) element.remove();
    for (const { name } of [...element.attributes]) if (!ATTRIBUTES.has(name)) element.removeAttribute(name);
  }
  return answers.childNodes;
}

export default function ({ data, parentElement }) {
  const before = followers.get(parentElement);
  if (before?.name !== data.name) {
    before?.end();
    followers.set(parentElement, follow(data));
  }
  return () => parentElement.isConnected || followers.get(parentElement).end();
}

function follow({ address, name, text, answers }) {
  const shown = (bytes) => {
    const made = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "text/html").querySelector(`.${answers}`);
    if (made) document.querySelector(`.${answers}`)?.replaceChildren(...harmless(made)); // if not, the item cannot be encoded
  };
  let live = true;
  const channel = open({ address, name }, shown, () => (live = false));
  const send = (item) => channel.send(new TextEncoder().encode(item));
  const typed = ({ target }) => target.closest?.(`.${text}`) && target.value.trim() && send(target.value);
  const drawn = (event) => {
    if (!live) return;
    event.preventDefault(); // tells the pad not to send the drawing to Python
    send(event.detail());
  };
  document.addEventListener("input", typed);
  document.addEventListener("relscope-drawn", drawn);
  const end = () => {
    document.removeEventListener("input", typed);
    document.removeEventListener("relscope-drawn", drawn);
    channel.close();
  };
  return { name, end };
}
