/* Discs: the points of a pane without a graphics card, to the same look as `Points`. The page works out the pixels itself: WebGL in software
   takes three to five times as long, in a process of its own for which the page has to wait. */

let ink = new Float32Array(0); // red, green and blue (0 … 255) times the opacity, and the opacity of each pixel; of the pane that is drawn

class Discs {
  constructor(canvas) {
    Object.assign(this, { canvas, content: {}, few: null, shown: "", inSoftware: true });
    this.pen = canvas.getContext("2d");
    if (!this.pen) throw new Error("This browser offers no canvas for the panes; close other pages, or use another browser.");
  }

  /* As of `Points`. */
  upload(name, array) {
    this.content[name] = array;
    this.shown = "";
    if (name === "order") this.few = null;
  }

  resize(width, height) {
    Object.assign(this.canvas, { width, height });
    this.shown = "";
  }

  /* The rows to draw, at most `most`, last on top. */
  choose(most) {
    const { order, flags } = this.content;
    if (order.length <= most) return order;
    if (this.few?.most !== most) {
      const rows = thinned(order, flags, most);
      this.few = { most, rows, n: rows.length };
    }
    return this.few.rows;
  }

  draw(look) {
    const { canvas, content } = this;
    const wanted = JSON.stringify(look);
    if (!content.order || this.shown === wanted) return;
    this.shown = wanted;
    const { width, height } = canvas;
    const rows = this.choose(look.most ?? Infinity);
    if (look.sketched) return this.sketch(rows, look, width, height);
    if (ink.length < 4 * width * height) ink = new Float32Array(4 * width * height);
    else ink.fill(0, 0, 4 * width * height);
    drop(rows, content, look, opacitiesOf(look, content.order.length, rows.length), width, height);
    this.paper(width, height).data.fill(0);
    for (let line = 0; line < height; line++) dry(this.image.data, 4 * line * width, 4 * (line + 1) * width);
    this.pen.putImageData(this.image, 0, 0);
  }

  /* The image is reused, because a new one for each frame would cost time to allocate and to collect. */
  paper(width, height) {
    if (this.image?.width !== width || this.image.height !== height) this.image = this.pen.createImageData(width, height);
    return this.image;
  }

  /* A picture for a moment, while an anchor moves: discs of one size, stamped on the colour of the surface. It takes a quarter of the time. */
  sketch(rows, look, width, height) {
    const image = this.paper(width, height);
    stamp(image.data, rows, this.content, look, opacitiesOf(look, this.content.order.length, rows.length), width, height);
    this.pen.putImageData(image, 0, 0);
  }

  dispose() {
    this.resize(0, 0);
  }
}

/* Ink for a disc at each of the rows. Browsers make this code fast within milliseconds, as long as it makes no objects. */
function drop(rows, { position, color, flags, depth }, look, opacities, width, height) {
  const { scale, offset, sizes, surface, ratio, lift, brushed } = look;
  const [across, up] = [(scale[0] * width) / 2, (scale[1] * height) / 2]; // pixels of a unit
  const [left, middle] = [((1 + offset[0]) * width) / 2 - 0.5, ((1 - offset[1]) * height) / 2 - 0.5];
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    const selected = flags[row] & 1;
    const other = flags[row] >> 1 ? 1 : 0;
    const near = depth ? depth[row] : 0;
    const diameter = ratio * sizes[other] * (1 + 0.35 * lift * selected) * (1 + 0.3 * near);
    const opacity = lit(near ? opacities[other] * clamp(1 + 0.45 * near, 0.35, 1) : opacities[other], selected, lift, brushed);
    const rim = 0.75 * smooth(4.5, 6.5, diameter / ratio);
    const x = left + across * position[2 * row];
    const y = middle - up * position[2 * row + 1];
    disc(x, y, diameter / 2, opacity, color[3 * row], color[3 * row + 1], color[3 * row + 2], rim, ratio, surface, width, height);
  }
}

const STAMPS = 4; // stamps across and down a pixel, for centres between pixels

/* How much a disc covers of each pixel of a square, for `STAMPS`² places of its centre in the middle pixel. */
function stampsOf(radius) {
  const half = Math.ceil(radius + 1);
  const side = 2 * half + 1;
  const covers = new Float32Array(STAMPS * STAMPS * side * side);
  for (let i = 0; i < covers.length; i++) {
    const [column, line, across, down] = [i % side, Math.floor(i / side) % side, Math.floor(i / side / side) % STAMPS, Math.floor(i / side / side / STAMPS)];
    covers[i] = clamp(radius + 0.5 - Math.hypot(column - half - across / STAMPS, line - half - down / STAMPS), 0, 1);
  }
  return { covers, half, side };
}

function stamp(data, rows, { position, color, flags }, { scale, offset, sizes, surface, ratio, lift, brushed }, opacities, width, height) {
  const [red, green, blue] = surface.map((value) => Math.round(255 * value));
  new Uint32Array(data.buffer).fill(new Uint32Array(Uint8Array.of(red, green, blue, 255).buffer)[0]);
  const [across, up] = [(scale[0] * width) / 2, (scale[1] * height) / 2];
  const [left, middle] = [((1 + offset[0]) * width) / 2 - 0.5, ((1 - offset[1]) * height) / 2 - 0.5];
  const stamps = sizes.map((size) => stampsOf((ratio * size) / 2));
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    const other = flags[row] >> 1 ? 1 : 0;
    const { covers, half, side } = stamps[other];
    const opacity = lit(opacities[other], flags[row] & 1, lift, brushed);
    const x = left + across * position[2 * row];
    const y = middle - up * position[2 * row + 1];
    const column = Math.floor(x);
    const line = Math.floor(y);
    if (!(column >= half && line >= half && column + half < width && line + half < height)) continue; // cut by the edge
    let from = (Math.floor(STAMPS * (y - line)) * STAMPS + Math.floor(STAMPS * (x - column))) * side * side;
    const [r, g, b] = [color[3 * row], color[3 * row + 1], color[3 * row + 2]];
    for (let down = line - half; down <= line + half; down++) {
      for (let at = 4 * (down * width + column - half), end = at + 4 * side; at < end; at += 4) {
        const cover = covers[from++];
        if (!cover) continue;
        const alpha = cover * opacity;
        data[at] += alpha * (r - data[at]);
        data[at + 1] += alpha * (g - data[at + 1]);
        data[at + 2] += alpha * (b - data[at + 2]);
      }
    }
  }
}

/* Draw one disc around the point (x, y), in pixels. A pixel at its edge is covered in part. Large discs have a `rim` of the surface's colour. */
function disc(x, y, radius, opacity, red, green, blue, rim, ratio, surface, width, height) {
  const reach = radius + 0.5;
  const first = Math.max(0, Math.ceil(x - reach));
  const last = Math.min(width - 1, Math.floor(x + reach));
  const bottom = Math.min(height - 1, Math.floor(y + reach));
  const far = reach * reach; // squared distances: from here on nothing is covered,
  const near = radius > 0.5 ? (radius - 0.5) * (radius - 0.5) : 0; // and up to here all of a pixel
  for (let line = Math.max(0, Math.ceil(y - reach)); line <= bottom; line++) {
    const up = (line - y) * (line - y);
    for (let column = first, at = 4 * (line * width + first); column <= last; column++, at += 4) {
      const away = (column - x) * (column - x) + up;
      if (away >= far) continue;
      const alpha = away <= near ? opacity : opacity * (reach - Math.sqrt(away));
      const kept = 1 - alpha;
      if (rim) {
        const edge = rim * (1 - smooth(0.6 * ratio, 1.2 * ratio, radius - Math.sqrt(away)));
        ink[at] = ink[at] * kept + alpha * (red + edge * (255 * surface[0] - red));
        ink[at + 1] = ink[at + 1] * kept + alpha * (green + edge * (255 * surface[1] - green));
        ink[at + 2] = ink[at + 2] * kept + alpha * (blue + edge * (255 * surface[2] - blue));
      } else {
        ink[at] = ink[at] * kept + alpha * red;
        ink[at + 1] = ink[at + 1] * kept + alpha * green;
        ink[at + 2] = ink[at + 2] * kept + alpha * blue;
      }
      ink[at + 3] = ink[at + 3] * kept + alpha;
    }
  }
}

/* The ink of a line of pixels as the colours of an image: Uint8ClampedArray (4 × pixels), not times the opacity. */
function dry(colors, start, end) {
  for (let at = start; at < end; at += 4) {
    const alpha = ink[at + 3];
    if (!alpha) continue;
    colors[at] = ink[at] / alpha;
    colors[at + 1] = ink[at + 1] / alpha;
    colors[at + 2] = ink[at + 2] / alpha;
    colors[at + 3] = 255 * alpha;
  }
}

/* The opacity of a row while rows are selected. `brushed`, 0 … 1, says how strongly the selection shows. */
function lit(opacity, selected, lift, brushed) {
  return opacity + brushed * (selected ? (0.3 + 0.7 * lift) * (1 - opacity) : (PALE - 1) * opacity);
}

function smooth(low, high, value) {
  const share = clamp((value - low) / (high - low), 0, 1);
  return share * share * (3 - 2 * share);
}

let software = null;

/* Whether WebGL is missing or runs in software. A test or a benchmark may choose: `relscopePoints` is "webgl" or "page". */
function isWithoutCard() {
  if (globalThis.relscopePoints) return globalThis.relscopePoints === "page";
  if (software === null) {
    const gl = document.createElement("canvas").getContext("webgl2");
    software = !gl || runsInSoftware(gl);
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return software;
}

/* The object that draws the points of a canvas. A browser limits the number of WebGL contexts, so it may offer no further one. */
function pointsOn(canvas) {
  return isWithoutCard() || !canvas.getContext("webgl2", CONTEXT) ? new Discs(canvas) : new Points(canvas);
}
