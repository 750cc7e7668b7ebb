/* Height: gives the panes the height that is left between their top and the lower edge of the window, so that none is below the fold. */

const LEAST = 340; // pixels for two rows of panes; in a lower window the page scrolls
const LEAST_NARROW = 400; // where a pane is narrower than it is high
const LEAST_ALONE = 280; // for each of two panes below one another

/* Call `act` whenever the device pixel ratio changes, for example on another screen. Returns a function that stops this. */
function watchRatio(act) {
  let query;
  const changed = () => {
    watch();
    act();
  };
  const watch = () => {
    query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    query.addEventListener("change", changed, { once: true });
  };
  watch();
  return () => query.removeEventListener("change", changed);
}

class Room {
  constructor(root, grid, foot) {
    Object.assign(this, { root, grid, foot });
    this.fit = () => this.measure();
    addEventListener("resize", this.fit);
    this.observer = new ResizeObserver(this.fit); // what stands above may come later, or grow
  }

  /* `fill`: true to take all the height that is left, or the height of a map as a share of its width. Without `fill`, the panes are `height`
     high. */
  set(fill, height, home) {
    this.observer.disconnect();
    this.fill = fill;
    this.home = home;
    if (!fill) return this.take(height);
    this.observer.observe(this.home.content?.(this.root) ?? document.body);
    this.measure();
  }

  measure() {
    if (!this.fill || !this.root.isConnected) return;
    const { gridTemplateRows, gridTemplateColumns, rowGap } = getComputedStyle(this.grid);
    const lines = gridTemplateRows.split(" ").length; // of a narrow page more than rows of models
    if (this.fill !== true) {
      const [pane] = this.grid.children;
      if (!pane) return; // the observer calls again when there are panes
      const { offsetWidth, offsetHeight } = pane.querySelector(".ls-plot");
      const high = pane.offsetHeight - offsetHeight + this.fill * offsetWidth;
      return this.take(Math.round(lines * high + (lines - 1) * (parseFloat(rowGap) || 0)));
    }
    const scroller = this.home.scroller?.(this.root) ?? document.scrollingElement;
    const scrolled = scroller === document.scrollingElement ? 0 : scroller.scrollTop; // that one moves with its content
    const top = this.grid.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scrolled;
    const below = this.foot.offsetHeight;
    const kept = parseFloat(getComputedStyle(this.root).getPropertyValue("--ls-below")) || 0; // for what the home shows under them
    const alone = lines > 1 && !gridTemplateColumns.includes(" ");
    const least = alone ? LEAST_ALONE * lines : ((this.root.clientWidth < 620 ? LEAST_NARROW : LEAST) * Math.max(lines, 2)) / 2;
    this.take(Math.max(least, Math.floor(scroller.clientHeight - top - below - kept - 8)));
  }

  take(height) {
    if (height !== this.height) this.root.style.setProperty("--ls-height", `${(this.height = height)}px`);
  }

  dispose() {
    removeEventListener("resize", this.fit);
    this.observer.disconnect();
  }
}
