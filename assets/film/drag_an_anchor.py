"""``python assets/film/drag_an_anchor.py``: a film of an anchor that is dragged in Explore, into this folder.

It is an animated WebP. A frame is taken once the maps and the scores have answered a movement, so the film
does not depend on the speed of the machine. The path of the pointer is closed, so the film repeats without a
jump.
Needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.browser.chromium import FLAGS, SETTLED, find_chromium, serve  # noqa: E402
from tests.browser.panes import at_rest  # noqa: E402

ADDRESS = "explore?panes=absolute,relative&anchors=random,8,0&nearest=100"
# of the window, in pixels of CSS; pixels of the film for each
SIZE = (1270, 1100)
SCALE = 1.25
MARGIN = 8
DRAGGED = 2  # the number of a star
STEPS = 72  # of the pointer, each a frame
FARTHEST = 0.32  # from the middle of the map, a share of its width and height
HELD = 8  # frames that show the first picture, before the pointer moves
A_FRAME = 80  # milliseconds
ANSWERED = "!document.querySelector('.ls-live.ls-old')"
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Hide the tools and the class of other words, and show the scores in place of the tools.
LOOK = """
.ls-root :is(.ls-toolbar, .ls-caption) { visibility: hidden }
.ls-root .ls-legends { position: static }
.ls-root .ls-legends > * { visibility: visible !important }
.ls-root .ls-bar { position: relative }
.ls-root .ls-live { left: auto; right: 0; font-size: 12px }
.ls-root .ls-chip[data-class="0.5"] { display: none }
"""
# A screenshot has no pointer.
ARROW = "M3 1 3 18 7.4 14 10.4 21 13.4 19.7 10.4 13 16.4 13Z"
POINTER = """arrow => {
  const hand = document.createElement("div");
  hand.style = "position:fixed;z-index:99999;pointer-events:none;width:22px;height:22px;margin:-4px 0 0 -5px";
  const shape = `<path d="${arrow}" fill="#111" stroke="#fff" stroke-width="1.4"/>`;
  hand.innerHTML = `<svg viewBox="0 0 22 22">${shape}</svg>`;
  document.body.append(hand);
  window.addEventListener("pointermove", ({ clientX, clientY }) => {
    [hand.style.left, hand.style.top] = [`${clientX + 4}px`, `${clientY + 3}px`];
  }, true);
}"""


def path(start: tuple[float, float], box: dict[str, float]) -> Iterator[tuple[float, float]]:
    """Points of a closed path from the star around the middle of a map."""
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    away = (start[0] - middle[0], start[1] - middle[1])
    angle = math.atan2(away[1] / box["height"], away[0] / box["width"])
    radius = math.hypot(away[1] / box["height"], away[0] / box["width"])
    for step in range(1, STEPS + 1):
        share = step / STEPS
        around = angle + 2 * math.pi * share
        far = radius + (FARTHEST - radius) * math.sin(math.pi * share) ** 0.5
        x = far * math.cos(around)
        y = far * math.sin(around)
        yield middle[0] + x * box["width"], middle[1] + y * box["height"]


def frames(page: Any, address: str) -> list[Image.Image]:
    """The panes of Explore: before an anchor moves, and after each movement."""
    page.set_default_timeout(30_000)
    page.goto(address)
    page.wait_for_selector(".ls-root[data-drawn]")
    page.evaluate(SETTLED)
    page.add_style_tag(content=LOOK)
    page.evaluate(POINTER, ARROW)
    at_rest(page, ".ls-star")
    plot = page.locator(".ls-plot").first
    star = plot.locator(".ls-star").nth(DRAGGED - 1)
    while not page.locator(
        ".ls-on-star"
    ).count():  # the page may move, and says late that anchors can be dragged
        seen = star.bounding_box()
        start = (seen["x"] + seen["width"] / 2, seen["y"] + seen["height"] / 2)
        page.mouse.move(2, 2)
        page.mouse.move(*start)
        page.evaluate(TWO_FRAMES)
    box, grid = (page.locator(name).bounding_box() for name in (".ls-root", ".ls-grid"))
    height = grid["y"] + grid["height"] - box["y"]
    clip = {
        "x": box["x"] - MARGIN,
        "y": box["y"] - MARGIN,
        "width": box["width"] + 2 * MARGIN,
        "height": height + 2 * MARGIN,
    }
    taken = []

    def take() -> None:
        page.wait_for_function(ANSWERED)
        page.evaluate(TWO_FRAMES)
        shot = Image.open(io.BytesIO(page.screenshot(clip=clip)))
        taken.append(shot.convert("RGB"))

    page.wait_for_selector(".ls-tip:not([hidden])")
    take()
    page.mouse.down()
    for point in path(start, plot.bounding_box()):
        page.mouse.move(*point)
        take()
    page.mouse.up()
    return taken[:1] * HELD + taken[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=Path, metavar="FOLDER", help="write each frame as PNG, too")
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as store, sync_playwright() as playwright:
        process, url = serve(store)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            window = {"width": SIZE[0], "height": SIZE[1]}
            page = browser.new_page(viewport=window, device_scale_factor=SCALE, color_scheme="light")
            first, *others = taken = frames(page, f"{url}/{ADDRESS}")
        finally:
            browser.close()
            process.terminate()
    if chosen.frames:
        chosen.frames.mkdir(parents=True, exist_ok=True)
        for number, frame in enumerate(taken):
            frame.save(chosen.frames / f"{number:03}.png")
    film = HERE / "drag_an_anchor.webp"
    first.save(film, save_all=True, append_images=others, duration=A_FRAME, loop=0, quality=70, method=4)
    print(f"{film}: {len(taken)} frames of {first.size}, {film.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
