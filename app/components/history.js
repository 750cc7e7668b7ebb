/* Streamlit adds an entry to the browser's history for each change of the address's settings, so that "back" would do nothing at first. Here
   each place stands in it once, as it was last seen. */

export default function () {
  if (Object.hasOwn(history, "pushState")) return;
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, address) => {
    const same = new URL(address ?? location, location).pathname === location.pathname;
    if (same) history.replaceState(state, unused, address);
    else push(state, unused, address);
  };
}
