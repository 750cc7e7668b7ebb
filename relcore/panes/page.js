/* The panes in an exported page. There is no Python process, so this script answers their events. */

async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/* For each kind of event, the parts of the header that it changes. */
const LOOKS = {
  stars: (header, { size, opacity, shown }) => ({ stars: { size, opacity, shown } }),
  hidden: (header, { hidden }) => ({ colorings: header.colorings.map((one, i) => ({ ...one, hidden: hidden[i] })) }),
  named: (header, { named }) => ({ named }),
  turn: (header, { turn }) => ({ turn }),
};

async function open(main) {
  const { header: first, take } = await unpacked("relscope-panes");
  const column = (name) => first.files[name] && new TextColumn(take(name, Uint8Array));
  const [host, texts, notes] = [element("div", "ls-page-panes"), column("texts"), column("notes")];
  let [header, selected, scatter] = [first, rowsAsBits(rowsIn(take("selected"), first.n), first.n), null];
  const bits = () => Uint8Array.from(atob(selected), (letter) => letter.charCodeAt(0));
  let follower = null;
  let changed = {}; // arrays of an anchor that was moved
  const taken = (name, kind) => (changed[name] ? changed[name].slice() : take(name, kind));
  const home = {
    open: (_, answered) => followHere((follower ??= new Follower(first, take)), () => Array.from(scatter.anchors), answered),
    background: first.themes[first.dark ? 1 : 0].surface,
    load: async (name) => new Blob([take(name, Uint8Array)]),
    send: (events) => {
      for (const event of events) {
        if (event.kind === "select") selected = event.bits;
        else if (event.kind === "click") selected = rowsAsBits([event.row], first.n);
        else if (event.kind === "anchor") move(event);
        else header = { ...header, ...LOOKS[event.kind](header, event) };
        header = { ...header, answered: event.serial };
      }
      draw();
    },
  };
  /* Replace the row of an anchor by another row, and compute the maps again. */
  const move = ({ row, to, serial }) => {
    changed = { anchors: Uint32Array.from(taken("anchors"), (one) => (one === row ? to : one)) };
    follower ??= new Follower(first, take);
    follower.maps(Array.from(changed.anchors)).forEach((map, i) => (changed[`pane${first.live.panes[i]}`] = map));
    const arrays = Object.keys(changed).map((name) => [name, [...first.arrays[name].slice(0, 2), `${name} ${serial}`]]);
    header = { ...header, arrays: { ...first.arrays, ...Object.fromEntries(arrays) } };
  };
  const pick = (row) => {
    selected = rowsAsBits([row], first.n);
    draw();
    inspector.title.focus(); // the button that was pressed is gone
  };
  const describe = (row) => {
    const [coloring] = scatter.colorings.list;
    const anchor = scatter.anchors.indexOf(row) + 1;
    return { id: scatter.idOf(row), text: texts?.at(row), note: notes?.at(row), category: coloring.say(row), color: coloring.colorOf(row), anchor };
  };
  const inspector = new Inspector(pick, describe);
  const draw = () => {
    const arrays = { ...header.arrays, selected: [0, (first.n + 7) >> 3, selected] };
    scatter = render(host, { header: { ...header, arrays }, take: (name, kind) => (name === "selected" ? bits() : taken(name, kind)) }, home);
    inspector.show(scatter.rows);
  };
  main.replaceChildren(host, inspector.root);
  draw();
}

const main = document.querySelector("main");
open(main).catch((error) => {
  console.error(error);
  main.replaceChildren();
  sayFailure(main, `The panes could not be drawn: the file may be cut short, or the browser too old. Export the page again, or open it in another browser. (${error.message})`);
});
