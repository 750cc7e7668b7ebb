/* Gestures: a drag draws the edge of a selection, moves or turns the picture, as the tool says; a click without one is on a row. The
   wheel belongs to the page until a click on the panes, and a finger until a tool is tapped: a page with maps can be scrolled past them. A
   finger that rests on a star lifts it, and two fingers zoom and move the map. */

const CLOSER = 1.6; // by how much a tap on a button of a map enlarges it
const [LIFTED_AFTER, FINGER] = [400, 22]; // milliseconds that a finger rests on a star to lift it, and how near in pixels
const [DRAG_A_STAR, HOLD_A_STAR] = ["Drag a star ★ to another point", "Hold a star ★, then drag it to another point"];
const [CLOSED, WIDE] = [15, 40]; // pixels: how near to its begin a loop ends, and how far from there it has been

/* A drag from one of many stars around some points and back moves no star: it is a lasso. */
function isLoop(path) {
  const [[startX, startY], away] = [path[0], ([x, y]) => Math.hypot(x - startX, y - startY)];
  return away(path.at(-1)) < CLOSED && Math.max(...path.map(away)) > WIDE;
}

/* What one finger can do here, for one that slid over a map without a tool. */
function fingerHint({ hand, header }) {
  if (header.worded) return HOLD_A_STAR;
  return hand.live ? "Hold a star ★ to drag it, or tap a tool to select rows" : "Tap a tool above to select rows";
}

/* Buttons on a map for a finger, which has no wheel. The style sheet shows them where the pointer is a finger. */
function zoomButtons(pane) {
  const button = (name, label, act) => {
    const icon = element("svg", "", { viewBox: "0 0 20 20", "aria-hidden": "true" }, element("path", "", { d: ICONS[name] }));
    const node = element("button", "", { type: "button", title: label, "aria-label": label }, icon);
    node.addEventListener("click", act);
    return node;
  };
  const zoom = (factor) => {
    pane.owner.hovered(-1, pane); // its tip would stay where the row was
    pane.zoomAt(pane.width / 2, pane.height / 2, factor);
  };
  return element(
    "div",
    "ls-zoom",
    { role: "group", "aria-label": "Zoom" },
    button("closer", "Zoom in", () => zoom(CLOSER)),
    button("farther", "Zoom out", () => zoom(1 / CLOSER)),
    button("home", "Show everything", () => pane.owner.home(pane)),
  );
}

/* Two fingers on a pane: the map follows them. */
class Pinch {
  constructor(pane) {
    this.pane = pane;
    this.fingers = new Map();
  }

  get held() {
    return this.fingers.size === 2;
  }

  put(finger, place) {
    this.fingers.set(finger, place);
    if (!this.held) return;
    this.last = this.measured();
    this.pane.owner.hovered(-1, this.pane);
  }

  lift(finger) {
    this.fingers.delete(finger);
  }

  /* A finger moves; true if there are two. */
  move(finger, place) {
    if (!this.fingers.has(finger)) return false;
    this.fingers.set(finger, place);
    if (!this.held) return false;
    const { pane, last } = this;
    const now = this.measured();
    const [across, up] = pane.scales(pane.width, pane.height);
    const { view } = pane;
    const right = now.middle[0] - last.middle[0];
    const down = now.middle[1] - last.middle[1];
    pane.setView({ ...view, x: view.x - (2 * right) / (pane.width * across), y: view.y + (2 * down) / (pane.height * up) });
    pane.zoomAt(...now.middle, now.apart / last.apart);
    this.last = now;
    return true;
  }

  measured() {
    const [[x, y], [otherX, otherY]] = this.fingers.values();
    return { middle: [(x + otherX) / 2, (y + otherY) / 2], apart: Math.max(1, Math.hypot(x - otherX, y - otherY)) };
  }
}

/* Hear what the mouse or a finger does on a pane. */
function listenTo(pane) {
  const { plot, owner } = pane;
  const at = (event) => {
    const box = plot.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;
  const pinch = new Pinch(pane);
  /* A second finger ends what the first one began. */
  const dropDrag = () => {
    clearTimeout(drag?.timer);
    if (drag?.tool === "anchor" && drag.moved) owner.hand.cancel();
    drag = null;
    plot.classList.remove("ls-lifted");
    pane.lasso.removeAttribute("d");
  };
  /* A finger has rested: take the star beneath it, or say why it stays. */
  const lift = () => {
    const [place] = drag.path;
    const row = owner.hand.starAt(pane, ...place, FINGER);
    if (row < 0) return owner.hand.starUnder(pane, ...place, FINGER) >= 0 && owner.hand.refuse();
    Object.assign(drag, { tool: "anchor", star: row, moved: true });
    plot.classList.add("ls-lifted");
    owner.hand.take(pane, row, undefined, true);
    owner.hovered(row, pane);
    navigator.vibrate?.(10);
  };
  plot.addEventListener("pointerenter", ({ pointerType }) => plot.classList.toggle("ls-pen", pointerType === "pen"));
  plot.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") pinch.put(event.pointerId, at(event));
    if (pinch.held) {
      plot.setPointerCapture(event.pointerId);
      return dropDrag();
    }
    if (event.button !== 0 || !event.isPrimary) return;
    plot.setPointerCapture(event.pointerId);
    const touch = event.pointerType === "touch";
    const star = touch ? -1 : owner.hand.starAt(pane, ...at(event));
    let { tool } = owner;
    if (star >= 0) tool = "anchor";
    else if (owner.header.worded || (touch && tool !== "turn" && !owner.root.dataset.touch)) tool = "";
    drag = { path: [at(event)], view: pane.view, turn: pane.turn, tool, star, touch, moved: false };
    if (touch) drag.timer = setTimeout(lift, LIFTED_AFTER);
    owner.hovered(-1, pane);
  });
  plot.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (pinch.move(event.pointerId, [x, y])) return;
    if (!drag && event.pointerType === "touch") return;
    if (!drag) return pane.hover(x, y);
    if (!event.isPrimary) return;
    const [[startX, startY], [lastX, lastY]] = [drag.path[0], drag.path.at(-1)];
    const begins = !drag.moved && Math.hypot(x - startX, y - startY) > (drag.touch ? 8 : 4);
    drag.moved ||= begins;
    if (!drag.moved) return;
    clearTimeout(drag.timer);
    if (begins && !drag.touch && !owner.hand.live && owner.hand.starUnder(pane, startX, startY) >= 0) owner.hand.refuse();
    if (begins && !drag.tool && !drag.touch) owner.tellHow(DRAG_A_STAR);
    if (drag.tool === "anchor") {
      if (begins && !drag.touch) owner.hand.take(pane, drag.star, undefined, true);
      drag.path.push([x, y]);
      const row = pane.nearestTo(x, y);
      owner.hand.moveTo(row);
      owner.hovered(row, pane); // its name, before the release
    } else if (drag.tool === "pan") {
      const [across, up] = pane.scales(pane.width, pane.height);
      const [dx, dy] = [(x - startX) / pane.width, (y - startY) / pane.height];
      pane.setView({ ...drag.view, x: drag.view.x - (2 * dx) / across, y: drag.view.y + (2 * dy) / up });
      owner.viewed(pane);
    } else if (drag.tool === "turn") {
      owner.turned(turnedBy(drag.turn, x - startX, y - startY));
    } else if (drag.tool === "box") {
      drag.path = [drag.path[0], [x, startY], [x, y], [startX, y]];
    } else if (Math.hypot(x - lastX, y - lastY) > 3) {
      drag.path.push([x, y]);
    }
    if (DRAWING.has(drag.tool)) pane.lasso.setAttribute("d", `M${drag.path.map((point) => point.map(Math.round).join(" ")).join("L")}Z`);
  });
  const end = (event) => {
    pinch.lift(event.pointerId);
    if (!drag || !event.isPrimary) return;
    const { moved, tool, path, touch } = drag;
    pane.pointer = touch ? undefined : at(event); // a finger leaves nothing behind that hovers
    clearTimeout(drag.timer);
    drag = null;
    plot.classList.remove("ls-lifted");
    pane.lasso.removeAttribute("d");
    if (event.type === "pointercancel") return owner.hand.cancel();
    const looped = !touch && tool === "anchor" && owner.tool === "lasso" && owner.hand.live?.many && isLoop(path);
    if (looped) owner.hand.cancel();
    else if (tool === "anchor" && moved) return owner.hand.release();
    const row = moved ? -1 : pane.rowAt(...at(event));
    if (!moved) owner.clicked(row);
    if (row >= 0 && touch) owner.tapped(row, pane);
    if (!moved) return;
    if (touch && !tool) return owner.tellHow(fingerHint(owner));
    if (tool === "turn") owner.settled();
    else if (looped || DRAWING.has(tool)) {
      const polygon = path.map(([x, y]) => pane.unit(x, y));
      owner.brushed(pane.rowsWithin(polygon), event.shiftKey, polygon);
    }
  };
  plot.addEventListener("pointerup", end);
  plot.addEventListener("pointercancel", end);
  plot.addEventListener("touchmove", (event) => event.cancelable && (drag?.tool === "anchor" || pinch.held) && event.preventDefault(), { passive: false }); // else the page would scroll under a star
  plot.addEventListener("contextmenu", (event) => drag?.touch && event.preventDefault());
  plot.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && pane.hover(-1e4, -1e4)); // a finger leaves with each tap
  plot.addEventListener("dblclick", () => owner.doubleClicked(pane));
  plot.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && !owner.root.matches(":focus-within")) return owner.tellHow();
      event.preventDefault();
      owner.hovered(-1, pane); // another row may be under the pointer now
      pane.zoomAt(...at(event), Math.exp(-clamp(event.deltaY, -120, 120) * (event.ctrlKey ? 0.006 : 0.0025)));
    },
    { passive: false },
  );
}
