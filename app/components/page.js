/* Fixes for the page around the app that Streamlit does not provide. */

const HERE = ["localhost", "127.0.0.1", "[::1]"];

let again = () => {}; // runs the page
let away = false; // whether the server is unreachable

function tellOfServer() {
  if (away && !document.querySelector("[data-testid=stDialog]")) {
    away = false;
    again(); // the server is back: a run restores the session and says so
  }
  const dialog = [...document.querySelectorAll("[data-testid=stDialog] section")].find((one) => /is not responding/.test(one.textContent));
  if (!dialog) return;
  away = true;
  const [title, text] = [dialog.querySelector("h2"), dialog.querySelector("h2 + div")];
  title.textContent = HERE.includes(location.hostname) ? "Relscope was stopped" : "Relscope does not answer";
  text.textContent = "Start it again with “make app” or “relscope app”. Your session is saved, and this page comes back by itself.";
}

const MENU = "[data-testid=stPopoverButton]";
const nameField = () => document.querySelector("[data-testid=stPopoverBody] [class*='-tag-name'] input");

/* The field of a tag's name gets the cursor when its menu opens; the server sends it a moment later. */
function focusNameField({ target }) {
  const button = target.closest?.(`[class*='-tag'] ${MENU}`);
  if (!button || button.ariaExpanded === "true") return;
  const observer = new MutationObserver(() => {
    if (!nameField()) return;
    observer.disconnect();
    nameField().focus();
  });
  observer.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => observer.disconnect(), 5000);
}

/* Enter on the button of the open menu would close it, and the name that was typed would be lost. */
function keepName(event) {
  if (event.key !== "Enter" || !event.target.matches?.(`${MENU}[aria-expanded=true]`) || !nameField()?.value) return;
  event.preventDefault();
  event.stopPropagation();
  nameField().focus();
}

/* The list of the poles would stay open over the answer after a choice. */
function closePoles({ key, target }) {
  const field = document.activeElement;
  const chose = key ? key === "Enter" : target.closest?.("[role=option]");
  if (!chose || !field.closest(".st-key-axis-poles")) return;
  setTimeout(() => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })));
}

/* The part of Migrate that a button opens lies far below. It is opened a moment later, and only then is there room to scroll to its head. */
function scrollToThresholds({ target }) {
  if (!target.closest?.(".st-key-migrate-to-thresholds button")) return;
  const scroll = () => document.querySelector(".st-key-migrate-Similarity-thresholds")?.scrollIntoView({ behavior: "smooth" });
  scroll();
  setTimeout(scroll, 1000);
}

export default function ({ data, setTriggerValue }) {
  again = () => setTriggerValue("back", true);
  // Menus and tooltips lie outside of the app's element, but only this element has the colour scheme, so copy it to the root.
  document.documentElement.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
  if (Object.hasOwn(history, "pushState")) return;
  // Streamlit keeps a chosen theme for one address; keep it for all places.
  const keep = Storage.prototype.setItem;
  Storage.prototype.setItem = function (name, value) {
    keep.call(this, name, value);
    const [, version] = /^stActiveTheme-.*(-v\d+)$/.exec(name) ?? [];
    if (version) for (const place of data) keep.call(this, `stActiveTheme-${new URL(place, location).pathname}${version}`, value);
  };
  // If the server does not answer, Streamlit's dialog asks about the internet connection, so replace its text.
  new MutationObserver(tellOfServer).observe(document.body, { childList: true });
  // After the pointer has moved a slider of the story, the slider loses the focus, so the arrow keys move between steps again. A slider
  // reached by Tab keeps the focus.
  document.addEventListener("pointerup", () =>
    setTimeout(() => document.querySelector(".st-key-story input[type=range]:focus")?.blur()),
  );
  // On a narrow screen, the menu of the places covers the page. Escape and the choice of a place close it.
  const close = () => innerWidth < 769 && document.querySelector("[data-testid=stSidebarCollapseButton] [aria-expanded=true]")?.click();
  document.addEventListener("keydown", ({ key }) => key === "Escape" && close());
  document.addEventListener("click", ({ target }) => target.closest?.("[data-testid=stSidebarNavLink]") && setTimeout(close, 300));
  document.addEventListener("click", focusNameField, true);
  document.addEventListener("click", scrollToThresholds);
  document.addEventListener("keydown", keepName, true);
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, closePoles, true);
  // A press outside of an open menu closes it, and Streamlit then ignores the click. So close the menu before the click: the link works.
  document.addEventListener("pointerdown", ({ target }) => {
    if (!document.querySelector("[data-testid=stPopoverBody]") || !target.closest?.("a[data-testid$=NavLink]")) return;
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  }, true);
  // Streamlit adds an entry to the browser's history at each change of the settings in the address. "Back" would only undo this change.
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, address) => {
    const same = new URL(address ?? location, location).pathname === location.pathname;
    if (same) history.replaceState(state, unused, address);
    else push(state, unused, address);
  };
}
