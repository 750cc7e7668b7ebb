/* Hand: moves an anchor to other rows, by the pointer or the arrow keys, or tries a row as one more anchor, or moves a slider of the page.
   While it moves, the panes whose maps depend on it get new places by a channel beside the page. The release is one event, and in Python
   one step of undo. Without a channel only the star moves, and the maps follow the release.

   What happens is reported by events "ls-hand" of the root, { what, serial, time }, for those who check or measure: "asked" has the time of the
   movement. */

const RESTED = 50; // milliseconds without a movement after the last picture, after which all points are drawn and scores are asked for
const MOST_FOLLOWING = { software: 3000, card: 60000 }; // points that are drawn while the hand moves
const FEWEST_FOLLOWING = 1000; // where a picture takes longer than SLOW milliseconds, the least number of rows
const SLOW = 30;
const GRASP = 40; // pixels from a star within which the story takes it
const SYMBOL = 5; // the same where stars are many
const BESIDE = 11; // and where they are few
const CROWD = 40; // stars
const TOLD = 6000; // milliseconds for which a movement is reported
const [MOVE, PROBE, SCORE, SLIDE] = [0, 1, 2, 3]; // what the channel is asked for, see `read_request` and `SlidAnswers` in Python
const FEW_STARS = 20; // of which one that nobody has dragged is explained
const TAUGHT = 4000; // milliseconds for which it is
const OFFERED = 15000; // milliseconds for which fewer anchors are offered
const HEAD = 8; // bytes of an answer before its numbers: serial and kind
const HALVES = new Float32Array(65536); // what each float16 is; filled when it is first needed

function halves() {
  if (!HALVES[1]) {
    for (let bits = 1; bits < 65536; bits++) {
      const [sign, exponent, digits] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
      HALVES[bits] = exponent === 31 ? 0 : sign * (exponent ? 2 ** (exponent - 15) * (1 + digits / 1024) : 2 ** -14 * (digits / 1024));
    }
  }
  return HALVES;
}

/* The parts of an answer in bytes about this number of models, see `LiveAnswers.answer` in Python: maps as [x, y, x, y, …]. */
function decoded(answer, panes, models) {
  const [serial, kind] = new Int32Array(answer, 0, 2);
  if (kind === SCORE) return { serial, kind, scores: new Float32Array(answer, HEAD, 4) };
  const [k, m] = new Int32Array(answer, HEAD, 2);
  const near = Array.from({ length: models }, (_, side) => new Int32Array(answer, HEAD + 8 + 4 * k * side, k));
  const similar = new Float32Array(answer, HEAD + 8 + 4 * k * models, models);
  const [known, first] = [halves(), HEAD + 8 + 4 * (k + 1) * models];
  const maps = Array.from({ length: panes ?? 0 }, (_, i) => {
    const [places, map] = [new Uint16Array(answer, first + 4 * m * i, 2 * m), new Float32Array(2 * m)];
    for (let j = 0; j < m; j++) {
      map[2 * j] = known[places[j]];
      map[2 * j + 1] = known[places[m + j]];
    }
    return map;
  });
  return { serial, kind, near, similar, maps };
}

/* `share` as words quote it, `number` as tables show it. */
const percent = (share) => (share >= 0.0095 || !share ? `${Math.round(100 * share)} %` : `${(100 * share).toPrecision(1)} %`);
const decimals = (number, digits = 3) => (Number.isNaN(number) ? "–" : number.toFixed(digits).replace(/^(-?)0/, "$1").replace("-", "−"));

/* The places of `most` of n rows at equal steps; see `sampled_places` in Python. */
const sampled = (n, most) => Array.from({ length: most }, (_, i) => Math.floor((i * n) / most));

/* Near: rings about the rows that are nearest to an anchor which moves, strong where they are so in all models. */
class Near {
  constructor() {
    this.root = element("g", "ls-near");
    this.rows = [];
  }

  set(rows, inAll) {
    this.rows = rows;
    const [shared, rings] = [new Set(inAll), this.root.children];
    while (rings.length > rows.length) this.root.lastChild.remove();
    while (rings.length < rows.length) this.root.append(element("circle", "", { r: 6 }));
    rows.forEach((row, i) => change(rings[i], "class", shared.has(row) ? "ls-shared" : ""));
  }

  place(pixel) {
    this.rows.forEach((row, i) => {
      const [x, y] = pixel(row);
      this.root.children[i].setAttribute("cx", x.toFixed(1));
      this.root.children[i].setAttribute("cy", y.toFixed(1));
    });
  }
}

let taught = false; // whether this page has said that stars can be dragged, or one was

class Hand {
  constructor(owner) {
    Object.assign(this, { owner, held: null, saved: new Map(), serial: 0, dropped: 0, channel: null });
    this.strip = element("span", "ls-live", { "aria-hidden": "true" });
    this.spoken = element("span", "ls-spoken", { role: "status", "aria-live": "polite" });
    this.spread = element("button", "ls-chip", { type: "button", "aria-label": "Use fewer anchors" });
    this.spread.addEventListener("click", () => {
      this.offer(false);
      this.owner.report({ kind: "spread" });
    });
    const close = element("button", "ls-chip", { type: "button", title: "Close", "aria-label": "Keep all anchors" }, "×");
    close.addEventListener("click", () => this.offer(false));
    this.fewer = element("span", "ls-fewer", { hidden: "" }, this.spread, close);
    this.key = (event) => this.probe(event);
    for (const kind of ["keydown", "keyup"]) document.addEventListener(kind, this.key);
  }

  get live() {
    const live = this.owner.header?.live;
    return live?.panes ? live : null;
  }

  /* A star cannot be dragged here: say why. */
  refuse() {
    const why = this.owner.header?.live?.refused;
    if (!why) return;
    this.owner.tellHow(why);
    this.spoken.textContent = why;
  }

  /* The anchor whose star is at a place of a pane, or at most `finger` pixels from there, and can be dragged, or -1. */
  starAt(pane, x, y, finger = 0) {
    return this.drags(pane) ? this.starUnder(pane, x, y, finger) : -1;
  }

  /* Whether stars of a pane can be dragged. */
  drags({ solid, stars }) {
    return this.live !== null && !solid && stars.shown;
  }

  /* Say once that stars can be dragged, beside few of them. */
  teach(pointerType) {
    const { owner } = this;
    const few = Math.max(owner.anchors.length, this.live?.many ?? 0) <= FEW_STARS;
    if (taught || !few || owner.header.worded || !owner.panes.some((pane) => this.drags(pane))) return;
    taught = true;
    owner.tellHow(pointerType === "touch" ? HOLD_A_STAR : DRAG_A_STAR, TAUGHT);
  }

  starUnder(pane, x, y, finger = 0) {
    const { stars } = pane;
    if (!stars.shown || !pane.flags) return -1;
    const reach = this.owner.header.worded ? GRASP : Math.max(stars.rows.length > CROWD ? SYMBOL : BESIDE, stars.reach, finger);
    let [best, nearest] = [-1, reach * reach];
    for (const row of stars.rows) {
      const [px, py] = pane.pixel(row);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance <= nearest && !pane.hides(row)) [best, nearest] = [row, distance];
    }
    return best;
  }

  /* Have the channel open before the first movement: the server prepares the rows. */
  ready() {
    const { live } = this;
    if (!live || this.channel?.name === live.name || this.refused === live.name) return;
    this.channel?.close();
    const channel = this.owner.place.open?.(live, (answer) => this.channel === channel && this.answered(answer), () => this.lost(channel));
    this.channel = channel ? Object.assign(channel, { name: live.name }) : null;
    [this.waiting, this.next] = [null, false];
  }

  lost(channel) {
    if (this.channel !== channel) return;
    this.refused = channel.name; // asked again with the next anchors
    this.channel = null;
    [this.waiting, this.next] = [null, false];
    this.tell("lost");
  }

  /* With `still` the pane keeps its map until the release, so that nothing moves under the pointer; the other panes follow. */
  take(pane, row, kind = MOVE, still = false) {
    this.ready();
    this.tellNoMore();
    taught = true;
    this.held = { pane, row, to: row, kind, still: still && this.live?.panes.length > 1 ? pane : null, taken: -1 };
    this.offer(false);
    this.owner.root.classList.add("ls-moving");
  }

  /* Show the offer of fewer anchors for a while, or hide it. */
  offer(shown) {
    const { many, spread } = this.live ?? {};
    this.fewer.hidden = !(shown && many);
    clearTimeout(this.offered);
    if (this.fewer.hidden) return;
    this.spread.replaceChildren(`One of ${many} anchors hardly changes the maps.`, element("u", "", {}, `Use ${spread} anchors instead`));
    this.spread.setAttribute("aria-label", `Use ${spread} anchors instead of ${many}`);
    this.offered = setTimeout(() => this.offer(false), OFFERED);
  }

  /* Move the anchor to another row, unless that row is an anchor already. */
  moveTo(row) {
    const { held, owner } = this;
    if (!held || row < 0) return;
    held.taken = row !== held.row && owner.anchors.includes(row) ? row : -1;
    if (row === held.to || held.taken >= 0) return;
    held.to = row;
    this.moves();
  }

  /* A slider of the page has moved to a position, whose text is `text`. `before` is the text of the position from which it started; the page's
     maps still show that one. */
  slide(row, position, text, before) {
    if (this.held?.kind !== SLIDE || this.held.row !== row) {
      this.cancel();
      this.ready();
      this.held = { kind: SLIDE, row, before };
    }
    const to = Math.round(1000 * position);
    if (to === this.held.to) return;
    Object.assign(this.held, { to, text });
    this.moves();
  }

  /* Ask for what follows from the movement. */
  moves() {
    this.movedAt = performance.now();
    this.resting = false;
    this.restSoon();
    this.ask();
    // With a channel, the star is drawn with the answer, which comes within a frame. Drawing the star alone would keep the page too busy to
    // receive it.
    if (!this.channel || !this.saved.size) this.show();
  }

  show() {
    if (this.held.kind !== SLIDE) {
      this.showStars();
      this.owner.place.found?.();
    }
    this.strip.textContent = this.said();
    this.strip.classList.add("ls-old");
  }

  said() {
    const { row, to, kind, text } = this.held;
    if (kind === SLIDE) return `${this.live.sliders[row].label} ${text}`;
    const number = this.owner.numberOf(row);
    return kind === PROBE ? `With “${shortened(this.owner.wordsOf(to))}” as one more anchor` : `★${number} → “${shortened(this.owner.wordsOf(to))}”`;
  }

  showStars() {
    const { held, owner } = this;
    const rows = held.kind === PROBE ? [...owner.anchors, held.to] : Array.from(owner.anchors, (row) => (row === held.row ? held.to : row));
    for (const pane of owner.panes) {
      owner.setStars(pane, Uint32Array.from(rows));
      pane.setRing(held.to);
      pane.redraw();
    }
  }

  /* How many points are drawn while the hand moves: fewer once a picture took long. */
  get most() {
    const { points } = this.owner.panes[0];
    return this.fewest ?? MOST_FOLLOWING[points.inSoftware ? "software" : "card"];
  }

  /* Ask for the maps with the anchor where it is now, of many rows for those that are drawn meanwhile. One question at a time: a movement
     before its answer waits, and takes the place of one that waits. */
  ask() {
    if (!this.channel) return;
    if (this.waiting) {
      this.dropped += this.next;
      this.next = true;
      return;
    }
    const [{ row, to, kind }, { n }] = [this.held, this.owner.header];
    const most = n > this.most ? this.most : 0; // only those that are drawn
    const more = most && kind !== SLIDE ? [...this.owner.anchors, to] : [];
    this.waiting = { rows: most ? [...sampled(n, most), ...more] : null };
    this.send(kind, row, to, most, ...more);
  }

  send(kind, row = 0, to = 0, most = 0, ...more) {
    const watched = this.owner.place.watched?.() ?? -1;
    this.channel.send(Int32Array.of(++this.serial, kind, Math.max(row, 0), Math.max(to, 0), watched, most, ...more));
    this.tell("asked", this.serial, this.movedAt);
    return this.serial;
  }

  answered(answer) {
    const { serial, kind, scores } = answer instanceof ArrayBuffer ? (answer = decoded(answer, this.live?.panes.length, this.owner.header.columns)) : answer;
    if (kind === SCORE) {
      if (this.held && this.resting && serial === this.scoring) this.score(scores);
      return;
    }
    if (serial === this.whole) {
      if (this.held && this.resting) this.follow(answer, null);
      return;
    }
    const rows = this.waiting?.rows;
    this.waiting = null;
    if (!this.held) return;
    this.follow(answer, rows);
    if (this.next) {
      this.next = false;
      this.ask();
    }
  }

  /* Show the maps of an answer, of all rows or of those asked for, and what is near. */
  follow({ serial, near, similar, maps }, asked) {
    const { owner, held } = this;
    Object.assign(this, { shown: serial, came: performance.now() });
    this.tell(this.resting ? "whole" : "data", serial);
    if (!this.resting) this.show(); // else the scores stand there
    this.live.panes.forEach((number, i) => {
      const pane = owner.panes[number];
      if (pane === held.still) return;
      if (!this.saved.has(pane)) this.saved.set(pane, { units: pane.units, dense: pane.dense });
      const before = this.saved.get(pane).units;
      let units = maps[i];
      if (asked) {
        units = pane.units === before ? before.slice() : pane.units;
        asked.forEach((row, j) => ([units[2 * row], units[2 * row + 1]] = [maps[i][2 * j], maps[i][2 * j + 1]]));
      }
      pane.follow(units, this.resting ? 0 : this.most, asked);
      if (this.resting) pane.settle();
    });
    const shared = near.reduce((rows, others) => rows.filter((row) => others.includes(row)));
    owner.panes.forEach((pane, i) => {
      pane.near.set(near[i % near.length], shared);
      pane.near.place((row) => pane.pixel(row));
    });
    if (held.kind !== SLIDE) owner.place.moved?.(owner.anchors.indexOf(held.row), similar, owner.idOf(held.to));
    this.awaited = new Set(this.live.panes.map((number) => owner.panes[number]).filter((pane) => pane !== held.still));
  }

  /* A pane is drawn. */
  drawn(pane) {
    if (!this.awaited?.delete(pane) || this.awaited.size) return;
    this.tell(this.resting ? "settled" : "drawn", this.shown);
    if (!this.held || this.resting) return;
    if (performance.now() - this.came > SLOW && pane.points.inSoftware) this.fewest = Math.max(FEWEST_FOLLOWING, Math.round(this.most / 1.5));
    this.restSoon();
  }

  restSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), RESTED);
  }

  /* The hand rests: the scores, and all points, of very many rows after the scores. */
  rest() {
    if (!this.held || this.resting) return;
    if (this.waiting) return void (this.show(), this.restSoon());
    if (this.held.kind === SLIDE && this.held.text === this.held.before) return this.cancel(); // not when it passes: all points are drawn
    this.resting = true;
    if (this.channel) this.scoring = this.send(SCORE);
    for (const pane of this.saved.keys()) if (!pane.sampled) pane.settle();
  }

  score([share, rank, cka, classes = NaN]) {
    const { kind, row, to } = this.held;
    const near = Number.isNaN(share) ? "" : ` · ${percent(share)} nearest to the same row in the other model`;
    const scores = kind === SLIDE ? `mean cosine ${decimals(share)} · colours follow the release` : `MRR ${decimals(rank)} · CKA ${decimals(cka)}${Number.isNaN(classes) ? "" : ` · class agreement ${decimals(classes)}`}${this.scored}`;
    this.strip.textContent = [`${this.said()}${kind === SLIDE ? "" : near}`, ...(this.owner.header.worded ? [] : [scores])].join(" · "); // the story knows no MRR yet
    this.strip.classList.remove("ls-old");
    this.held.share = share;
    if (kind !== SLIDE) this.owner.place.found?.(share);
    this.tell("scores", this.scoring);
    // All rows come last: they take long to draw, and the hand may move on.
    if ([...this.saved.keys()].some((pane) => pane.sampled)) this.timer = setTimeout(() => this.channel && (this.whole = this.send(kind, row, to)), 2 * RESTED);
  }

  /* The names of the two models that are scored, if there are more than two; otherwise "". */
  get scored() {
    const { columns, panes } = this.owner.header;
    const names = panes.slice(0, 2).map(({ title }) => title.slice(0, title.lastIndexOf(" · ")));
    return columns > 2 ? ` (${names.join(" and ")})` : "";
  }

  /* The anchor stays where it is now, or is back where it was. */
  release() {
    const { held, owner } = this;
    if (!held) return;
    const stays = held.taken >= 0 || held.to === held.row;
    if (held.kind === MOVE && stays) owner.tellHow(`The star stays: ${held.taken >= 0 ? `“${shortened(owner.idOf(held.taken))}” is an anchor already` : "drop it nearer to another point"}`);
    if (held.kind !== MOVE || stays) return this.cancel();
    const number = owner.numberOf(held.row);
    const [from, to] = [owner.wordsOf(held.row), owner.wordsOf(held.to)];
    const share = held.share >= 0 ? ` ${percent(held.share)} of the rows are their own nearest neighbour in the other model${this.scored}.` : "";
    this.told = `★${number}: “${shortened(from)}” → “${shortened(to)}”`;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tellNoMore(), TOLD);
    this.spoken.textContent = `Anchor ${number} moved from “${from}” to “${to}”.${share}`;
    for (const pane of this.saved.keys()) if (!pane.sampled) pane.settle();
    this.let();
    this.offer(true);
    this.put = held.to; // its star stays marked
    this.released = true; // the places of these panes are those of the channel until Python has answered
    owner.report({ kind: "anchor", row: held.row, to: held.to });
  }

  cancel() {
    const { held, owner } = this;
    if (!held) return;
    this.let();
    for (const [pane, { units, dense }] of this.saved) pane.back(units, dense);
    this.saved.clear();
    for (const pane of owner.panes) {
      owner.setStars(pane, owner.anchors);
      pane.setRing(-1);
      pane.redraw();
    }
    this.strip.textContent = "";
    owner.place.found?.(null);
    owner.place.moved?.(-1);
  }

  let() {
    clearTimeout(this.timer);
    this.held = null;
    this.next = false;
    this.owner.root.classList.remove("ls-moving");
    this.owner.hovered(-1);
    for (const pane of this.owner.panes) {
      pane.setRing(-1);
      pane.near.set([], []);
    }
  }

  /* Whether this pane still shows places from the channel. If so, those of a new payload replace them, even if the payload did not change. */
  moved(pane) {
    return this.saved.has(pane);
  }

  /* A new payload was drawn. */
  done() {
    if (this.held) this.let();
    this.saved.clear();
    this.strip.textContent = this.told ?? "";
    this.released = false;
    if (!this.live?.many) this.offer(false);
  }

  tellNoMore() {
    this.told = "";
    if (!this.held) this.strip.textContent = "";
  }

  // By keyboard.

  /* Choose the next anchor, or the one before. */
  choose(by) {
    const { owner } = this;
    const { anchors } = owner;
    if (!this.live) this.refuse();
    if (!this.live || !anchors.length) return false;
    this.cancel();
    this.number = ((this.number ?? (by > 0 ? -1 : 0)) + by + anchors.length) % anchors.length;
    const pane = owner.panes[this.live.panes[0] ?? 0];
    this.take(pane, anchors[this.number]);
    owner.hovered(anchors[this.number], pane);
    this.spoken.textContent = `Anchor ${owner.numberOf(anchors[this.number])}, “${owner.idOf(anchors[this.number])}”: arrow keys move it, Enter keeps, Escape returns.`;
    this.strip.textContent = `★${owner.numberOf(anchors[this.number])} “${shortened(owner.wordsOf(anchors[this.number]))}”: arrow keys, Enter, Escape`;
  }

  /* Move the anchor to the nearest row in a direction, across and down the screen. */
  step(across, down) {
    if (!this.held) return false;
    const { pane, to } = this.held;
    const row = pane.nearestTowards(to, across, down, (other) => this.owner.anchors.includes(other));
    if (row < 0) return void (this.spoken.textContent = "No row lies in this direction.");
    this.moveTo(row);
    this.owner.hovered(row, pane);
  }

  /* While Q is held the row under the pointer is one more anchor. */
  probe({ type, key, target, repeat, ctrlKey, metaKey, altKey }) {
    if (key !== "q" && key !== "Q") return;
    if (type === "keyup") return this.held?.kind === PROBE && this.cancel();
    const { hoverRow, hoverPane } = this.owner;
    if (repeat || this.held || !this.live || !this.owner.anchors.length || !(hoverRow >= 0) || ctrlKey || metaKey || altKey || target.closest?.("input, textarea, [contenteditable]")) return;
    this.take(hoverPane, -1, PROBE);
    this.moveTo(hoverRow);
  }

  tell(what, serial = this.serial, time = performance.now()) {
    this.owner.root.dispatchEvent(new CustomEvent("ls-hand", { detail: { what, serial, time } }));
  }

  dispose() {
    for (const timer of [this.timer, this.offered, this.telling]) clearTimeout(timer);
    this.unwatch?.();
    for (const kind of ["keydown", "keyup"]) document.removeEventListener(kind, this.key);
    this.channel?.close();
  }
}
