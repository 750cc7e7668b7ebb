/* Theme: light or dark, from Python's palette into the style sheet. */

/* Red, green, blue and alpha, 0 … 255, of any CSS colour, as the browser paints it: the text of a computed colour may be "rgb(…)",
   "color(srgb …)", "oklch(…)" and more. */
function painted(color) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [1, 1];
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = color;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

/* Whether a CSS colour, such as that of the page behind an element, is dark. A separate element resolves var(…). All children of `root` inherit
   its colour, so setting that would compute their styles again, twice, which takes 50 milliseconds with some hundred stars. */
function isDark(root, background) {
  const probe = element("i", "ls-probe", { hidden: "" });
  probe.style.color = background;
  root.append(probe);
  const [r, g, b] = painted(getComputedStyle(probe).color);
  probe.remove();
  return 0.299 * r + 0.587 * g + 0.114 * b < 128;
}

function wear(root, theme) {
  for (const name of ["surface", "text", "muted", "border", "grid", "accent", "font"]) root.style.setProperty(`--ls-${name}`, theme[name]);
  root.dataset.theme = theme.name;
}
