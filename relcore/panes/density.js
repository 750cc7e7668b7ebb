/* Density: how many rows lie in each bin of a part of the picture, and in which colours; as an image of one pixel per bin. */

const BIN = 1.5; // pixels of a bin's side
const [FAINTEST, FADED] = [0.3, 0.28]; // opacity of a bin of one row; of rows that are not selected beside those that are
const [AWAY, LIT, COLOR] = [0x8000, 0x4000, 0x3fff]; // of the look of a row: hidden, selected, the number of its colour
const SHADED = 0.3; // how far the fullest bins turn towards the text's colour, so that strong colours keep steps
const TOP = 0.995; // the share of the filled bins that get no more than the full colour: a few crowded ones must not dim all others
const COUNTED = 4095; // rows of a bin up to which bins are counted by their number of rows

/* Sums over bins, kept for the next picture: for each bin and layer the number of rows and, of their colours in linear light, red, green
   and blue. Layer 0 has the rows that are not selected, layer 1 the others. */
class Density {
  constructor() {
    this.sums = new Float64Array(0); // 32 bits would run over at two million rows in a bin
  }

  /* Count the rows of a grid in a rectangle of steps. `looks` (n) in the order of the grid: the number of the row's colour in `tints` (3 per
     colour), plus LIT if it is selected, plus AWAY if it is hidden. */
  count(grid, rectangle, columns, lines, looks, tints) {
    const [left, low, right, high] = rectangle;
    const size = 8 * columns * lines;
    if (this.sums.length < size) this.sums = new Float64Array(size);
    else this.sums.fill(0, 0, size);
    Object.assign(this, { columns, lines });
    const { sums } = this;
    const { packed } = grid;
    const [across, up] = [columns / (right - left), -lines / (high - low)];
    const [originX, originY] = [1 - left * across, 1 - high * up]; // 1 more, as | 0 rounds towards zero and a bin left of the first must not count
    grid.eachRun(rectangle, (start, end) => {
      for (let place = start; place < end; place++) {
        const look = looks[place];
        if (look >= AWAY) continue;
        const step = packed[place];
        const column = (((step & 0xffff) * across + originX) | 0) - 1;
        const line = (((step >>> 16) * up + originY) | 0) - 1;
        if (column >>> 0 >= columns || line >>> 0 >= lines) continue;
        const bin = ((line * columns + column) << 3) | ((look & LIT) >> 12);
        const tint = 3 * (look & COLOR);
        sums[bin]++;
        sums[bin + 1] += tints[tint];
        sums[bin + 2] += tints[tint + 1];
        sums[bin + 3] += tints[tint + 2];
      }
    });
    this.top = this.fullest();
  }

  /* The number of rows that gets the full colour, at least 4. */
  fullest() {
    const { sums } = this;
    const bins = new Uint32Array(COUNTED + 1); // by the number of rows
    let [filled, most] = [0, 4];
    for (let bin = 0; bin < 8 * this.columns * this.lines; bin += 8) {
      const rows = sums[bin] + sums[bin + 4];
      if (!rows) continue;
      filled++;
      if (rows > most) most = rows;
      bins[rows < COUNTED ? rows : COUNTED]++;
    }
    let top = 1;
    for (let below = bins[1]; below < TOP * filled && top < COUNTED; ) below += bins[++top];
    return top === COUNTED ? most : Math.max(top, 4);
  }

  /* Paint the bins into `pixels` (4 per bin). `ink`: [red, green, blue], 0 … 255, of the text; `brushed`, 0 to 1: how pale the rows of layer 0 are. */
  paint(pixels, ink, brushed) {
    const { sums } = this;
    const strengths = Float32Array.from({ length: this.top + 1 }, (_, rows) => Math.log1p(rows) / Math.log1p(this.top));
    const [inkRed, inkGreen, inkBlue] = ink;
    for (let bin = 0, pixel = 0; pixel < pixels.length; bin += 8, pixel += 4) {
      let red = 0;
      let green = 0;
      let blue = 0;
      let alpha = 0;
      for (let layer = bin; layer < bin + 8; layer += 4) {
        const rows = sums[layer];
        if (!rows) continue;
        const strength = rows < this.top ? strengths[rows] : 1;
        const shade = strength > 0.6 ? SHADED * (2.5 * strength - 1.5) : 0;
        const cover = (FAINTEST + (1 - FAINTEST) * strength) * (layer === bin ? 1 - brushed * (1 - FADED) : 1);
        const under = alpha * (1 - cover);
        const over = (1 - shade) * cover;
        alpha = under + cover;
        red = (red * under + Math.sqrt(sums[layer + 1] / rows) * over + shade * inkRed * cover) / alpha;
        green = (green * under + Math.sqrt(sums[layer + 2] / rows) * over + shade * inkGreen * cover) / alpha;
        blue = (blue * under + Math.sqrt(sums[layer + 3] / rows) * over + shade * inkBlue * cover) / alpha;
      }
      if (!alpha) continue; // as it is in new pixels
      pixels[pixel] = red;
      pixels[pixel + 1] = green;
      pixels[pixel + 2] = blue;
      pixels[pixel + 3] = 255 * alpha;
    }
  }
}

/* Channels of colours, 0 … 255, in linear light (gamma 2): a mean of them is as bright as the colours that it averages. */
function tintsOf(channels) {
  return Int32Array.from(channels, (value) => value * value);
}
