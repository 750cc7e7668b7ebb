"""``python -m benchmarks.panes_in_browser FOLDER``: the linked panes alone in Chromium, 10,000 to 1,000,000
rows in four panes.

Prints a table and saves pictures to the folder. The page draws the points itself unless ``--gpu`` is given.
No server and no Python is in the times: the payload is in the page's memory when the clock starts, and a time
ends two frames after the picture is drawn.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from benchmarks.__main__ import _processor
from benchmarks.app_in_chromium import FLAGS, find_chromium
from relcore.charts.scene import Pane, Scene
from relcore.figures.style import DARK, LIGHT
from relcore.panes.page import script, style
from relcore.panes.payload import ids_digest, payload_of

ROWS = (10_000, 100_000, 250_000, 1_000_000)
STEPS = 50  # turns of the wheel
COLUMNS = (
    "rows",
    "MB sent",
    "first picture, ms",
    "frames a second, zooming",
    "slowest frame, ms",
    "lasso, ms",
    "selected",
    "memory, MB",
)

PAGE = Path(__file__).with_suffix(".html")  # with SCRIPT, STYLE and PAGE_COLOR for what is put in their place


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panes_in_browser", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument(
        "--tries", type=int, default=3, help="number of tries; the best of each column is printed"
    )
    parser.add_argument("--gpu", action="store_true", help="let Chromium use the graphics card")
    parser.add_argument("--dark", action="store_true", help="draw on a dark page")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    how = "the graphics card" if options.gpu else "the page"
    print(f"{_processor()}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; points drawn by {how}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---:|' * len(COLUMNS)}")
    for n in options.rows:
        tries = [measured(n, options) for _ in range(options.tries)]
        best = [
            (max if column == 3 else min)(values) for column, values in enumerate(zip(*tries, strict=True))
        ]
        print(
            "| "
            + " | ".join(
                f"{value:,.1f}" if column in (1, 3) else f"{value:,.0f}" for column, value in enumerate(best)
            )
            + " |",
            flush=True,
        )
    return 0


def measured(n: int, options: argparse.Namespace) -> list[float]:
    """The columns of one row of the table."""
    from playwright.sync_api import sync_playwright

    flags = [
        flag
        for flag in FLAGS
        if not options.gpu or flag not in ("--disable-gpu", "--enable-unsafe-swiftshader")
    ]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_page(Path(folder), n, options.dark)
        server = serve(folder)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(180_000)
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            page.wait_for_function("() => Boolean(window.first)")  # a function as the result would be called
            size, first = page.evaluate("first()")
            page.screenshot(path=options.folder / f"{n}-whole.png")
            frames, slowest = page.evaluate("zoom", [STEPS, STEPS // 2])
            lasso, selected = lassoed(page)
            page.screenshot(path=options.folder / f"{n}-lasso.png")
            heap = page.context.new_cdp_session(page).send("Runtime.getHeapUsage")
            page.locator(".ls-root").press("Escape")
            page.evaluate("zoom", [STEPS // 3, STEPS])
            page.screenshot(path=options.folder / f"{n}-zoomed.png")
        finally:
            browser.close()
            server.shutdown()
    memory = heap["usedSize"] + heap.get("backingStorageSize", 0)
    return [n, size / 1e6, first, frames, slowest, lasso, selected, memory / 1e6]


def lassoed(page) -> list[float]:
    """Milliseconds from the release of the mouse until all panes show the selection, and the number of
    selected rows.
    """
    page.evaluate("void (window.times = lassoed())")
    box = page.locator(".ls-plot").first.bounding_box()
    for i, (x, y) in enumerate([(0.35, 0.35), (0.65, 0.3), (0.6, 0.7), (0.3, 0.65)]):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=1 if i == 0 else 5)
        if i == 0:
            page.mouse.down()
    page.mouse.up()
    return page.evaluate("window.times")


def write_page(folder: Path, n: int, dark: bool) -> None:
    scene = made_up_scene(n)
    payload = payload_of(
        scene,
        version=ids_digest(scene),
        settings={"linkZoom": True, "height": 780, "fill": False, "dark": dark, "tool": "lasso"},
    )
    (folder / "payload.bin").write_bytes(payload.to_bytes())
    page = PAGE.read_text(encoding="utf-8")
    for place, content in (
        ("PAGE_COLOR", DARK.page if dark else LIGHT.page),
        ("STYLE", style()),
        ("SCRIPT", script("")),
    ):
        page = page.replace(place, content)
    (folder / "index.html").write_text(page, encoding="utf-8")


def made_up_scene(n: int) -> Scene:
    """Twelve crowds of different width in each of four panes, and one row in ten of no category."""
    rng = np.random.default_rng(0)
    categories = np.where(rng.random(n) < 0.9, rng.integers(0, 12, n), -1)
    panes = []
    for title in ("Source · absolute", "Target · absolute", "Source · relative", "Target · relative"):
        centres, widths = rng.normal(size=(13, 2)) * 3, rng.uniform(0.3, 1.1, size=(13, 2))
        panes.append(
            Pane(
                title, (centres[categories] + widths[categories] * rng.normal(size=(n, 2))).astype(np.float32)
            )
        )
    return Scene(
        panes=tuple(panes),
        ids=np.array([f"row {i}" for i in range(n)], dtype=object),
        categories=categories,
        category_names=tuple(f"class {i + 1}" for i in range(12)),
        anchors=rng.choice(n, 12, replace=False),
        caption=f"{n:,} made-up rows.",
        named=True,
    )


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        """Requests are not reported."""


def serve(folder: str) -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    sys.exit(main())
