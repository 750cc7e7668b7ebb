/* Pictures of a camera of this machine. The square in the middle of each picture goes to Python as a data URI. The next picture follows when
   Python has answered the last one. Nothing is recorded, and the camera is off until its button is pressed. */

const cameras = new WeakMap();
const PAUSE = 80; // fewest milliseconds between two pictures

export default function ({ data, parentElement, setStateValue }) {
  let camera = cameras.get(parentElement);
  if (!camera) cameras.set(parentElement, (camera = new Camera(parentElement, data)));
  camera.send = (picture) => setStateValue("picture", picture);
  camera.answered(data.answered);
  return () => {
    if (!parentElement.isConnected) camera.stop();
  };
}

class Camera {
  constructor(parent, { label, size }) {
    const made = (tag, given) => Object.assign(document.createElement(tag), given);
    this.video = made("video", { className: "pad", width: size, height: size, muted: true, playsInline: true });
    this.video.setAttribute("aria-label", label);
    this.canvas = made("canvas", { width: size, height: size });
    this.button = made("button", { type: "button", className: "clear", textContent: "Start the camera" });
    this.button.addEventListener("click", () => (this.stream ? this.stop() : this.start()));
    this.told = made("span", { className: "told" });
    this.told.setAttribute("role", "status");
    const root = made("div", { className: "root" });
    root.append(this.video, this.button, this.told);
    parent.append(root);
  }

  async start() {
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch (error) {
      this.told.textContent = `The browser gives no picture of a camera (${error.name}). Allow it in the address bar, or close other programs that use it.`;
      return;
    }
    this.told.textContent = "";
    this.button.textContent = "Stop the camera";
    this.video.srcObject = this.stream;
    await this.video.play();
    this.look();
  }

  stop() {
    clearTimeout(this.timer);
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = this.video.srcObject = null;
    this.button.textContent = "Start the camera";
  }

  look() {
    if (!this.stream) return;
    const { videoWidth, videoHeight } = this.video;
    const side = Math.min(videoWidth, videoHeight);
    const { width } = this.canvas;
    this.canvas.getContext("2d").drawImage(this.video, (videoWidth - side) / 2, (videoHeight - side) / 2, side, side, 0, 0, width, width);
    this.at = performance.now();
    this.send(this.canvas.toDataURL("image/png"));
  }

  /* Called when Python has answered `number` pictures. */
  answered(number) {
    if (number === this.number) return;
    this.number = number;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), Math.max(0, PAUSE - (performance.now() - (this.at ?? 0))));
  }
}
