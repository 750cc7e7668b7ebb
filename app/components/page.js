/* What Streamlit leaves undone around a page. */

const HERE = ["localhost", "127.0.0.1", "[::1]"];

let again = () => {}; // runs the page
let away = false; // whether the server is

function tellOfServer() {
  if (away && !document.querySelector("[data-testid=stDialog]")) {
    away = false;
    again(); // a server that is back restores the session in a run, and says so
  }
  const dialog = [...document.querySelectorAll("[data-testid=stDialog] section")].find((one) => /is not responding/.test(one.textContent));
  if (!dialog) return;
  away = true;
  const [title, text] = [dialog.querySelector("h2"), dialog.querySelector("h2 + div")];
  title.textContent = HERE.includes(location.hostname) ? "Relscope was stopped" : "Relscope does not answer";
  text.textContent = "Start it again with “make app” or “relscope app”. Your session is saved, and this page comes back by itself.";
}

export default function ({ setTriggerValue }) {
  again = () => setTriggerValue("back", true);
  // Menus and tooltips stand outside of the app's element, which alone knows whether it is dark.
  document.documentElement.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
  if (Object.hasOwn(history, "pushState")) return;
  // Where the server does not answer, Streamlit asks whether the internet is there.
  new MutationObserver(tellOfServer).observe(document.body, { childList: true });
  // A slider of the story that was moved by the pointer gives the arrow keys back; by Tab it keeps them.
  document.addEventListener("pointerup", () =>
    setTimeout(() => document.querySelector(".st-key-story input[type=range]:focus")?.blur()),
  );
  // On a narrow screen the menu of the places lies over the page: Escape and the choice of a place close it.
  const close = () => innerWidth < 769 && document.querySelector("[data-testid=stSidebarCollapseButton] [aria-expanded=true]")?.click();
  document.addEventListener("keydown", ({ key }) => key === "Escape" && close());
  document.addEventListener("click", ({ target }) => target.closest?.("[data-testid=stSidebarNavLink]") && setTimeout(close, 300));
  // A press outside of an open menu closes it, and Streamlit drops the click; closed before the press, a link is followed.
  document.addEventListener("pointerdown", ({ target }) => {
    if (!document.querySelector("[data-testid=stPopoverBody]") || !target.closest?.("a[data-testid$=NavLink]")) return;
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  }, true);
  // Each change of the address's settings adds an entry to the history, so that "back" would do nothing at first.
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, address) => {
    const same = new URL(address ?? location, location).pathname === location.pathname;
    if (same) history.replaceState(state, unused, address);
    else push(state, unused, address);
  };
}
