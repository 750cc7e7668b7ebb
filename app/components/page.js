/* What Streamlit leaves undone around a page. */

export default function () {
  // Menus and tooltips stand outside of the app's element, which alone knows whether it is dark.
  document.documentElement.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
  if (Object.hasOwn(history, "pushState")) return;
  // A slider of the story that was moved by the pointer gives the arrow keys back; by Tab it keeps them.
  document.addEventListener("pointerup", () =>
    setTimeout(() => document.querySelector(".st-key-story input[type=range]:focus")?.blur()),
  );
  // Each change of the address's settings adds an entry to the history, so that "back" would do nothing at first.
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, address) => {
    const same = new URL(address ?? location, location).pathname === location.pathname;
    if (same) history.replaceState(state, unused, address);
    else push(state, unused, address);
  };
}
