/* Payloads of a component in Streamlit: large arrays come as files, which the browser loads once. */

const arrivals = new WeakMap(); // for each parent, its latest payload and, by digest, the arrays that came as files

async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.blob();
}

/* Draw a payload as soon as its files are here, unless a newer payload has come. */
function arrived(parent, payload, show) {
  const { header, take } = payload;
  if (!arrivals.has(parent)) arrivals.set(parent, { files: new Map() });
  const arrival = Object.assign(arrivals.get(parent), { payload });
  const digest = (name) => header.arrays[name][2];
  for (const name of header.carried) arrival.files.set(digest(name), take(name, Uint8Array).buffer);
  const names = Object.keys(header.elsewhere);
  const draw = () => {
    if (arrival.payload !== payload) return;
    arrival.files = new Map(names.map((name) => [digest(name), arrival.files.get(digest(name))])); // drops files that are no longer needed
    const taken = (name, kind = COLUMNS[name] ?? Float32Array) => new kind(arrival.files.get(digest(name)).slice(0));
    show({ header, take: (name, kind) => (header.elsewhere[name] ? taken(name, kind) : take(name, kind)) });
    sayFailure(parent, "");
  };
  const missing = names.filter((name) => !arrival.files.has(digest(name)));
  if (!missing.length) return draw();
  const loading = missing.map(async (name) => arrival.files.set(digest(name), await (await load(header.elsewhere[name])).arrayBuffer()));
  const failed = (sentence) => (error) => {
    if (arrival.payload !== payload) return; // a newer payload has come, and the server may have removed these files
    console.error(error);
    sayFailure(parent, `${sentence} (${error.message})`);
  };
  const late = "The maps could not be loaded from the server. Check that it is running, and reload the page.";
  Promise.all(loading).then(draw, failed(late)).catch(failed("The maps could not be drawn. Reload the page."));
}

/* A call of a component that is not on screen any more is forgotten. */
function forget(parent) {
  arrivals.get(parent).payload = null;
}
