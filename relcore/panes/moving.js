/* Moving: what a pane of points shows while its view moves and no graphics card draws it: its last whole picture, stretched to where it belongs,
   and over it a sample of the points. At rest all points are drawn again. A frame of all 50,000 points in four panes takes a tenth of a
   second. A solid has no density, and no picture that could be stretched while it turns. So only a sample of very many rows is drawn, and a
   larger sample at rest. */

const MOST_MOVING = { plane: 3000, solid: 10000 }; // points of a sample; panes of up to twice as many draw all of them
const MOST_OF_A_SOLID = { software: 30000, card: 300000 }; // points of a solid at rest, without and with a graphics card
const STRETCHED_MOST = 2.5; // how far a picture is stretched or shrunk before a whole one is drawn while the view still moves

class Moving {
  constructor(pane) {
    Object.assign(this, { pane, at: -Infinity, whole: null, drawn: null, image: element("canvas") });
  }

  /* How many points are drawn in the frame that began at `time`: all, or a sample; the picture under a sample is laid here. */
  most(time) {
    const { pane, drawn } = this;
    const look = JSON.stringify([pane.view, pane.solid && pane.turn]);
    if (this.look && this.look !== look) this.at = time;
    this.look = look;
    clearTimeout(this.timer);
    const most = MOST_MOVING[pane.solid ? "solid" : "plane"];
    const many = pane.points.inSoftware && !pane.dense && pane.units.length > 4 * most; // two numbers a row
    if (!many || time - this.at >= REST) return this.all();
    this.timer = setTimeout(() => pane.redraw(), REST);
    if (drawn?.size === this.size) this.take(drawn);
    if (this.whole?.turn !== pane.turn) this.whole = null;
    if (!this.whole && !pane.solid) return this.all();
    const stretch = this.whole ? Math.abs(Math.log(pane.view.zoom / this.whole.zoom)) : 0;
    if (stretch > Math.log(STRETCHED_MOST) && pane.owner.turns.take(this, time)) return this.all();
    this.drawn = null;
    this.sampled = true;
    if (this.whole) this.lay();
    else pane.density.style.visibility = "hidden"; // a solid that was zoomed turns now: what was laid shows another side
    return most;
  }

  /* The size of the canvas. A change of size erases it. */
  get size() {
    return `${this.pane.canvas.width} × ${this.pane.canvas.height}`;
  }

  all() {
    const { pane } = this;
    pane.owner.turns.leave(this);
    if (this.sampled && !pane.dense) pane.density.style.visibility = "hidden";
    this.sampled = false;
    this.whole = null;
    this.drawn = pane.dense ? null : { corners: [...pane.unit(0, 0), ...pane.unit(pane.width, pane.height)], zoom: pane.view.zoom, turn: pane.turn, size: this.size };
    return pane.solid ? MOST_OF_A_SOLID[pane.points.inSoftware ? "software" : "card"] : Infinity;
  }

  /* Places or looks of rows have changed, so no earlier picture may be drawn under them. */
  forget() {
    this.whole = this.drawn = null;
  }

  /* Keep the whole picture that is on the canvas. */
  take(drawn) {
    const { canvas } = this.pane;
    Object.assign(this.image, { width: canvas.width, height: canvas.height });
    this.image.getContext("2d").drawImage(canvas, 0, 0);
    this.whole = drawn;
  }

  lay() {
    const { pane, image } = this;
    const { density, canvas } = pane;
    if (density.width !== canvas.width || density.height !== canvas.height) Object.assign(density, { width: canvas.width, height: canvas.height });
    const [left, top, right, bottom] = this.whole.corners;
    const [x, y] = pane.place(left, top, canvas.width, canvas.height);
    const [endX, endY] = pane.place(right, bottom, canvas.width, canvas.height);
    const context = density.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, x, y, endX - x, endY - y);
    density.style.visibility = "";
  }

  /* The text in the corner of a pane at rest: how many points of a solid are drawn, or "" if all are. */
  get told() {
    const { solid, points } = this.pane;
    const n = points.content.order?.length ?? 0;
    const most = MOST_OF_A_SOLID[points.inSoftware ? "software" : "card"];
    return solid && n > most ? `${most.toLocaleString()} of ${n.toLocaleString()} rows drawn; every row can be selected` : "";
  }

  dispose() {
    clearTimeout(this.timer);
    this.pane.owner.turns.leave(this);
  }
}
