/* Points: one WebGL canvas that draws up to a million discs in one call. Plotly's Scattergl was measured first: with software WebGL it took
   3 to 8 times as long to link 4 × 100,000 points, and its script alone is 4.8 MB to load. */

const FEW_BRUSHED = 0.4; // of the look beside a selection: a few rows have rings and names, so all others can keep their colours
const PALE = 0.4; // share of its opacity that a row keeps beside selected ones: less would make 20,000 grey rows white

const VERTEX = `#version 300 es
in vec2 position; in vec3 color; in float flags, depth;
uniform vec2 scale, offset, sizes, alphas; uniform float brushed, lift, ratio;
out vec4 tint; out float diameter;
void main() {
  float selected = mod(flags, 2.), other = step(2., flags);
  gl_Position = vec4(position * scale + offset, 0., 1.);
  diameter = ratio * mix(sizes.x, sizes.y, other) * (1. + .35 * lift * selected) * (1. + .3 * depth);
  gl_PointSize = diameter + 1.;
  float alpha = mix(alphas.x, alphas.y, other) * clamp(1. + .45 * depth, .35, 1.);
  tint = vec4(color, mix(alpha, mix(alpha * ${PALE}, mix(alpha, 1., .3 + .7 * lift), selected), brushed));
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 tint; in float diameter; uniform vec3 surface; uniform float ratio;
out vec4 pixel;
void main() {
  float inside = .5 * diameter - length(gl_PointCoord - .5) * (diameter + 1.);
  float rim = smoothstep(4.5, 6.5, diameter / ratio) * (1. - smoothstep(.6 * ratio, 1.2 * ratio, inside));
  float alpha = tint.a * clamp(inside + .5, 0., 1.);
  pixel = vec4(mix(tint.rgb, surface, .75 * rim) * alpha, alpha);
}`;

const CONTEXT = { antialias: false, depth: false, premultipliedAlpha: true, preserveDrawingBuffer: true };

function runsInSoftware(gl) {
  const known = gl.getExtension("WEBGL_debug_renderer_info"); // Firefox tells without it
  const name = String(gl.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

/* The opacities of `n` points that stand for `all` points. If the sample is `crowded`, they are more opaque, so that crowds look as they do with
   all points. */
function opacitiesOf({ alphas, crowded = false }, all, n) {
  const crowd = Math.min(all / Math.max(n, 1), 4);
  return crowded && crowd > 1 ? alphas.map((alpha) => 1 - (1 - alpha) ** crowd) : alphas;
}

/* The order of painting of at most `most` rows, always the same ones: of the rows that are not selected every n-th, and of the selected
   ones, which stand last, as many as fit into half the room. */
function thinned(order, flags, most) {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (flags[order[middle]] & SELECTED) high = middle;
    else low = middle + 1;
  }
  const selected = Math.min(order.length - low, Math.max(most >> 1, most - low));
  const few = new Uint32Array(Math.min(low, most - selected) + selected);
  const others = few.length - selected;
  for (let i = 0; i < others; i++) few[i] = order[Math.floor((i * low) / others)];
  for (let i = 0; i < selected; i++) few[others + i] = order[low + Math.floor((i * (order.length - low)) / selected)];
  return few;
}

class Points {
  constructor(canvas) {
    this.canvas = canvas;
    this.content = {};
    this.lost = false; // whether the browser has taken WebGL away, as when too many panes are open
    this.start();
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault(); // so that it can be restored
      this.lost = true;
      this.onchange?.();
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.start();
      for (const [name, array] of Object.entries(this.content)) this.upload(name, array);
      this.lost = false;
      this.onchange?.();
    });
  }

  start() {
    const gl = this.canvas.getContext("webgl2", CONTEXT);
    const program = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(`The panes' shader: ${gl.getProgramInfoLog(program)}`);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.gl = gl;
    this.inSoftware = runsInSoftware(gl);
    this.program = program;
    this.buffers = {};
    this.few = null;
    this.uniforms = {};
    this.shown = "";
  }

  /* position: Float32Array (2n); depth: Float32Array (n), near is positive, 0 unless given; color: Uint8Array (3n); flags: Uint8Array (n), 1 selected, 2 no category; order: Uint32Array, the rows to draw, last on top. */
  upload(name, array) {
    const { gl, program, buffers } = this;
    const target = name === "order" ? gl.ELEMENT_ARRAY_BUFFER : gl.ARRAY_BUFFER;
    this.content[name] = array;
    this.shown = "";
    gl.bindBuffer(target, (buffers[name] ??= gl.createBuffer()));
    gl.bufferData(target, array, gl.DYNAMIC_DRAW);
    if (name === "order") {
      this.few = null;
      return;
    }
    const place = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, { position: 2, depth: 1, color: 3, flags: 1 }[name], array instanceof Float32Array ? gl.FLOAT : gl.UNSIGNED_BYTE, name === "color", 0, 0);
  }

  /* A canvas of another size is empty. */
  resize(width, height) {
    Object.assign(this.canvas, { width, height });
    this.shown = "";
  }

  set(name, ...values) {
    const place = (this.uniforms[name] ??= this.gl.getUniformLocation(this.program, name));
    this.gl[`uniform${values.length}f`](place, ...values);
  }

  /* Have at most `most` of the rows in the order of painting ready, and give their number. */
  choose(most) {
    const { gl, buffers } = this;
    const { order, flags } = this.content;
    if (order.length <= most) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.order);
      return order.length;
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, (buffers.few ??= gl.createBuffer()));
    if (this.few?.most !== most) {
      const rows = thinned(order, flags, most);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, rows, gl.DYNAMIC_DRAW);
      this.few = { most, n: rows.length };
    }
    return this.few.n;
  }

  /* Draw all rows, or a sample of `most`, see `opacitiesOf`. If the canvas already shows this look, as when an anchor is added, nothing is
     drawn. */
  draw(look) {
    const { gl, canvas } = this;
    const wanted = JSON.stringify(look);
    if (gl.isContextLost() || !this.content.order || this.shown === wanted) return;
    this.shown = wanted;
    const { scale, offset, sizes, brushed, lift, surface, ratio, most = Infinity } = look;
    const n = this.choose(most);
    const alphas = opacitiesOf(look, this.content.order.length, n);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.set("scale", ...scale);
    this.set("offset", ...offset);
    this.set("sizes", ...sizes);
    this.set("alphas", ...alphas);
    this.set("surface", ...surface);
    this.set("brushed", Number(brushed));
    this.set("lift", lift);
    this.set("ratio", ratio);
    gl.drawElements(gl.POINTS, n, gl.UNSIGNED_INT, 0);
  }

  dispose() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext(); // a browser allows few contexts, and frees them late
  }
}
