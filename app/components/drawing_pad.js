/* A canvas for drawing. During a stroke, the picture goes to the channel of the answers. Without a channel, it goes to Python as a data URI,
   and the next one follows when Python has answered the last. At the end of a stroke, Python always gets the picture; after clearing, "". */

const pads = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let pad = pads.get(parentElement);
  if (!pad) pads.set(parentElement, (pad = new Pad(parentElement, data)));
  pad.send = (picture) => setStateValue("picture", picture);
  pad.answered(data.answered);
}

class Pad {
  constructor(parent, { label, size, before }) {
    this.canvas = document.createElement("canvas");
    Object.assign(this.canvas, { width: size, height: size, className: "pad", tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    const clear = document.createElement("button");
    Object.assign(clear, { type: "button", className: "clear", textContent: "Clear" });
    clear.addEventListener("click", () => (this.blank(), this.send("")));
    const root = document.createElement("div");
    root.className = "root";
    this.hint = document.createElement("span");
    Object.assign(this.hint, { className: "hint", textContent: "Draw here" });
    root.append(this.canvas, this.hint, clear);
    parent.append(root);
    this.context = this.canvas.getContext("2d");
    this.width = size / 11; // about the thickness of the strokes in the scans
    this.blank();
    if (before) this.restore(before);
    this.last = null;
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.last && this.line(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => this.end());
  }

  blank() {
    this.context.fillStyle = "#000";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.hint.hidden = false;
  }

  /* Show a picture that was drawn on another pad. */
  restore(picture) {
    const image = new Image();
    image.onload = () => this.last || this.context.drawImage(image, 0, 0, this.canvas.width, this.canvas.height);
    image.src = picture;
    this.hint.hidden = true;
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  begin(event) {
    if (event.button) return;
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.hint.hidden = true;
    this.last = this.place(event);
    this.line(event); // a dot is a stroke, too
  }

  line(event) {
    const next = this.place(event);
    Object.assign(this.context, { strokeStyle: "#fff", lineWidth: this.width, lineCap: "round", lineJoin: "round" });
    this.context.beginPath();
    this.context.moveTo(...this.last);
    this.context.lineTo(...next);
    this.context.stroke();
    this.last = next;
    this.changed = true;
    this.ask();
  }

  end() {
    if (!this.last) return;
    [this.last, this.changed, this.waiting] = [null, true, false];
    this.ask();
  }

  ask() {
    if (!this.changed) return;
    const detail = () => this.canvas.toDataURL("image/png");
    const event = new CustomEvent("relscope-drawn", { bubbles: true, composed: true, cancelable: true, detail });
    const taken = this.last && !this.canvas.dispatchEvent(event);
    if (taken || !this.waiting) this.changed = false;
    if (taken || this.waiting) return;
    this.waiting = true;
    this.send(detail());
  }

  /* Called when Python has answered `number` pictures. */
  answered(number) {
    if (number === this.number) return;
    [this.number, this.waiting] = [number, false];
    this.ask();
  }
}
