"""``python -m benchmarks.big_panes``: four panes over many rows, in a real browser on a real server.

Prints the seconds from opening to the first picture and to rest, of a lasso and of one more anchor, and the
server's memory. Needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser.chromium import FLAGS, REST, SETTLED, find_chromium, resident, serve

CLASSES = 10
SHOWN = (
    "drawn => { const root = document.querySelector('.ls-root'); return root?.dataset.drawn &&"
    " root.dataset.drawn !== drawn; }"
)
PATH = [(0.2, 0.2), (0.7, 0.2), (0.7, 0.7), (0.2, 0.7)]  # about half of the rows
MOST = 600_000  # milliseconds until a step counts as failed
FOUR_PANES = "/explore?panes=absolute,relative"  # of each space


def write_spaces(folder: Path, n: int, width: int) -> list[str]:
    """Two made-up spaces with ten classes, the second a noisy rotation of the first; the same every time."""
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=n)
    first = (
        rng.standard_normal((n, width), dtype=np.float32)
        + 2 * rng.standard_normal((CLASSES, width), dtype=np.float32)[labels]
    )
    rotation = np.linalg.qr(rng.standard_normal((width, width)))[0].astype(np.float32)
    second = first @ rotation + rng.standard_normal((n, width), dtype=np.float32) / 2
    ids, names = [f"row {row}" for row in range(n)], [f"class {label}" for label in labels]
    paths = []
    for side, matrix in (("first", first), ("second", second)):
        paths.append(str(folder / f"{side}.npz"))
        np.savez(paths[-1], vectors=matrix, ids=ids, labels=names)
    return paths


def free_ids(n: int, tries: int) -> list[str]:
    """Rows of the made-up spaces that the app does not open with as anchors: to add one of these changes
    nothing.
    """
    from relcore import LatentSpace, select_anchors

    ids = [f"row {row}" for row in range(n)]
    there = set(select_anchors(LatentSpace(np.ones((n, 1), np.float32), ids), 300, "random", random_state=0))
    return [ids[row] for row in np.random.default_rng(1).permutation(n) if ids[row] not in there][:tries]


async def timed(page: Any, act: Awaitable, seen: str = "", argument: Any = None) -> tuple[float, float]:
    """Seconds from the act until `seen` holds in the page, and until the page is at rest."""
    began = time.perf_counter()
    await act
    if seen:
        await page.wait_for_function(seen, arg=argument, timeout=MOST, polling=25)
    shown = time.perf_counter() - began
    await page.evaluate(SETTLED)
    return shown, time.perf_counter() - began - REST


async def opened(browser: Any, url: str) -> tuple[Any, tuple[float, float]]:
    context = await browser.new_context(viewport={"width": 1360, "height": 900})
    page = await context.new_page()
    page.set_default_timeout(MOST)
    seconds = await timed(page, page.goto(url + FOUR_PANES, wait_until="commit"), SHOWN, "")
    if (panes := await page.locator(".ls-plot").count()) != 4:
        raise SystemExit(
            f"expected four panes, got {panes}; is the address {FOUR_PANES} still that of Explore?"
        )
    return page, seconds


async def add_anchors(page: Any, ids: list[str]) -> list[tuple[float, float]]:
    """Each of the ids added on Explore's tab of anchors, one after the other."""
    await page.get_by_role("tab", name="Anchors").click()
    await page.evaluate(SETTLED)
    box, found = page.locator(".st-key-anchors-search input"), []
    for one in ids:
        drawn = await page.get_attribute(".ls-root", "data-drawn")
        await box.fill(one)
        found.append(await timed(page, box.press("Enter"), SHOWN, drawn))
    return found


async def lasso(page: Any, pane: int) -> tuple[float, float]:
    """Half of the rows: seconds from the release of the mouse until all panes show it, and until the page
    is at rest.
    """
    box = await page.locator(".ls-plot").nth(pane).bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in PATH]
    before = await page.evaluate("document.querySelector('.ls-root').dataset.selected")
    await page.mouse.move(*points[0])
    await page.mouse.down()
    for point in points[1:]:
        await page.mouse.move(*point, steps=4)
    changed = "before => document.querySelector('.ls-root').dataset.selected !== before"
    return await timed(page, page.mouse.up(), changed, before)


async def big(n: int, width: int, tries: int) -> None:
    """The made-up spaces, opened for the first time by a server that is up."""
    from playwright.async_api import async_playwright

    with tempfile.TemporaryDirectory() as folder:
        process, url = serve(f"{folder}/store", *write_spaces(Path(folder), n, width))
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
                page, opening = await opened(browser, url)
                told("opening", [opening])
                print(f"server after opening: {resident(process.pid):,.0f} MB", flush=True)
                told("lasso over half of the rows", [await lasso(page, pane % 4) for pane in range(4)])
                told("one more anchor", await add_anchors(page, free_ids(n, tries)))
                print(
                    f"server at the end: {resident(process.pid):,.0f} MB, at most"
                    f" {peak(process.pid):,.0f} MB",
                    flush=True,
                )
                await browser.close()
        finally:
            process.kill()


def told(what: str, found: list[tuple[float, float]]) -> None:
    """Both seconds of each try, sorted, and their 95th percentiles."""
    for name, seconds in zip(("shown", "at rest"), np.array(found).T, strict=True):
        every = " ".join(f"{one:.2f}" for one in np.sort(seconds))
        print(
            f"{what}, {name}: median {np.median(seconds):.2f} s, 19 of 20 within"
            f" {np.quantile(seconds, 0.95):.2f} s; {every}"
        )
    print(end="", flush=True)


def peak(pid: int) -> float:
    """Megabytes that a process has had in memory at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.big_panes", description=__doc__)
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--tries", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(big(options.rows, options.width, options.tries))


if __name__ == "__main__":
    main()
