"""``python -m benchmarks.live``: how long a dragged anchor takes until the maps of both models, and their
scores, have followed; with ``--slider``, how long the recovered rows of Invert take to follow δ; with
``--try-it``, a typed letter and a moving stroke to all answers; with ``--panes``, four panes over many rows.

In a real Chromium: from the movement of the pointer until the data of both panes are there ("data"), until
both are drawn ("drawn"), and, of the last movement before a rest, until all of very many rows are there
("whole") and drawn ("settled"), and until scores are. ``--server`` measures without a browser: a moved anchor to
both maps as float16, and all scores, on the chosen device. Each line is a name and a value. ``--panes``
measures seconds from opening to the first picture and to rest, of a lasso and of one more anchor, and the
server's memory. A browser needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relcore import LatentSpace, bundled_results, match
from relcore.base.environment import device_in_words, resolve
from relcore.catalog.catalog import SpaceSpec, encoding_spec
from relcore.catalog.encodings import encode, encoding_key
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.compare.live import LiveComparison
from relcore.compare.live_rows import LiveFrame, LiveRows
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import TfidfSvd
from relcore.maps.pane_maps import OWN, pca_pair
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.runs.store import Store
from relcore.spaces.matching import Match
from tests.browser.chromium import FLAGS, REST, SETTLED, find_chromium, serve

SIZES = (20_000, 100), (250_000, 128)
ON_A_GPU = (1_000_000, 384)
ANCHORS = (2, 8, 300)
MOVES = 200
LEVEL = 1000
CLASSES = 10
SHOWN = (
    "drawn => { const root = document.querySelector('.ls-root'); return root?.dataset.drawn &&"
    " root.dataset.drawn !== drawn; }"
)
PATH = [(0.2, 0.2), (0.7, 0.2), (0.7, 0.7), (0.2, 0.7)]  # about half of the rows
MOST = 600_000  # milliseconds until a step counts as failed
SLIDERS = "/invert?inverse=forward,pruned,8,0.5,1.0,0&anchors=random,300,0"  # δ by hand
FOUR_PANES = "/explore?panes=absolute,relative"  # of each space


def resident(pid: int) -> float:
    """Megabytes that a process and its descendants have in memory."""
    children: dict[int, list[int]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children[parent].append(int(status.parent.name))
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting += children[one]
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--server", action="store_true", help="without a browser, on the chosen device")
    parser.add_argument("--slider", action="store_true", help="δ of Invert instead of a dragged anchor")
    parser.add_argument("--try-it", action="store_true", help="a typed sentence and a stroke on Stitch")
    parser.add_argument("--panes", action="store_true", help="four panes instead of a dragged anchor")
    parser.add_argument("--tries", type=int, default=20, help="anchors that are added with --panes")
    parser.add_argument("--rows", type=int, help="with --width: this size instead of the usual ones")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--moves", type=int, default=MOVES)
    options = parser.parse_args()
    on_a_gpu = resolve().startswith("cuda")
    if options.rows:
        sizes = [(options.rows, options.width)]
    else:
        sizes = [*SIZES, *[ON_A_GPU] * on_a_gpu]
    print("device", device_in_words(), flush=True)
    if options.try_it:
        try_it(options.moves // 6)
        return 0
    for n, d in sizes:
        if options.panes:
            asyncio.run(big(n, d, options.tries))
        elif options.server:
            server(made_up(n, d), options.moves)
        else:
            in_a_browser(n, d, options.moves, options.slider)
    return 0


# Reading a pixel waits until the drawing is finished.
HEARD = """() => {
  window.heard = [];
  const read = (canvas) => {
    const gl = canvas.getContext("webgl2");
    gl ? gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)) : canvas.getContext("2d").getImageData(0, 0, 1, 1);
  };
  document.querySelector(".ls-root").addEventListener("ls-hand", ({ detail: { what, serial, time } }) => {
    if (what === "drawn" || what === "settled") document.querySelectorAll(".ls-points").forEach(read);
    heard.push({ what, serial, time: what === "drawn" || what === "settled" ? performance.now() : time });
  });
}"""


def in_a_browser(n: int, d: int, moves: int, slider: bool) -> None:
    """A star dragged around the middle of a pane, or δ of Invert along its slider, one event of the pointer a
    frame.
    """
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        process, url = serve(f"{folder}/store", *write_spaces(Path(folder), n, d))
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            page = browser.new_page(viewport={"width": 1360, "height": 900})
            page.set_default_timeout(MOST)
            page.goto(url + (SLIDERS if slider else "/explore?panes=relative&all=1&anchors=random,8,0"))
            page.wait_for_selector(".ls-root[data-drawn]")
            page.evaluate(SETTLED)
            page.evaluate(HEARD)
            place = (slider_path if slider else star_path)(page)
            page.mouse.down()
            before = resident(process.pid)
            for move in range(moves + 20):
                page.mouse.move(*place(move))
                page.evaluate("() => new Promise(requestAnimationFrame)")
                if move % 40 == 39:
                    page.evaluate("() => new Promise((done) => setTimeout(done, 1000))")
            heard = page.evaluate("heard")
            page.mouse.up()
            page.evaluate(SETTLED)
            after = resident(process.pid)
        finally:
            browser.close()
            process.terminate()
            process.wait()
    name = f"{n}x{d}_{'slider' if slider else 'browser'}"
    asked = {one["serial"]: one["time"] for one in heard if one["what"] == "asked"}
    for what in ("data", "drawn", "whole", "settled", "scores"):
        known = [one["time"] - asked[one["serial"]] for one in heard if one["what"] == what]
        if what in ("data", "drawn"):
            known = known[2:]
        if known:
            spread(f"{name}_{what}_ms", known)
        say(f"{name}_{what}_answers", len(known))
    say(f"{name}_moves", moves + 20)
    say(f"{name}_server_mb_before", before)
    say(f"{name}_server_mb_after", after)


def star_path(page: Any) -> Callable[[int], tuple[float, float]]:
    """The pointer on the first star; where it is after each movement."""
    plot = page.locator(".ls-plot").first.bounding_box()
    star = page.locator(".ls-plot").first.locator(".ls-star").first.bounding_box()
    page.mouse.move(star["x"] + star["width"] / 2, star["y"] + star["height"] / 2)
    page.wait_for_selector(".ls-on-star")

    def place(move: int) -> tuple[float, float]:
        angle = move / 9
        across = 0.5 + 0.3 * np.cos(angle)
        down = 0.5 + 0.3 * np.sin(1.3 * angle)
        return plot["x"] + across * plot["width"], plot["y"] + down * plot["height"]

    return place


def slider_path(page: Any) -> Callable[[int], tuple[float, float]]:
    """The pointer on the slider of δ; where it is after each movement, between .1 and .8."""
    value = page.locator(".st-key-invert-delta [data-testid='stSliderThumbValue']")
    slider = value.locator("../..").bounding_box()
    thumb = value.locator("..").bounding_box()
    middle = thumb["y"] + thumb["height"] / 2
    page.mouse.move(thumb["x"] + thumb["width"] / 2, middle)
    return lambda move: (slider["x"] + (0.45 + 0.35 * np.sin(move / 9)) * slider["width"], middle)


# Measures the time from the last event of a kind to the next change of the table of answers.
ANSWERED = """kind => {
  document.addEventListener(kind, () => ([window.asked, window.answered] = [performance.now(), 0]), true);
  new MutationObserver((changes) => {
    const inTable = ({ target }) => (target.closest ? target : target.parentElement)?.closest(".stHtml, [data-testid=stHtml]")?.querySelector(".relscope-answers");
    if (window.asked && !window.answered && changes.some(inTable)) window.answered = performance.now();
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
SENTENCES = (
    "the match was won in the last set",
    "a star collapses under its own weight",
    "he wrote poems about the sea",
    "the king died without an heir",
    "cells divide and grow",
    "the river floods every spring",
    "an engine of four cylinders",
    "they voted against the law",
    "the planet has two moons",
    "bread is baked at night",
)


def try_it(times: int) -> None:
    """On Stitch: a typed letter to all answers of LSA, MiniLM and two pooled word models, and a movement of
    a stroke to all answers of four networks of digits, each by six methods.
    """
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as store, sync_playwright() as playwright:
        for what, kind, ask, specs in (
            ("typed", "input", typed, sentence_encoders(store)),
            ("stroke", "pointermove", stroked, ()),
        ):
            process, url = serve(store, specs=specs)
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
            try:
                page = browser.new_page(viewport={"width": 1360, "height": 1400})
                page.set_default_timeout(60_000)
                page.goto(f"{url}/stitch")
                page.evaluate(SETTLED)
                page.get_by_text("Try it:").first.click()
                page.wait_for_selector(".st-key-stitch-try-text, canvas.pad, .st-key-stitch-try-way")
                page.evaluate(SETTLED)
                page.evaluate(ANSWERED, kind)
                took = [ask(page, number) for number in range(times + 2)][2:]
                known = [one for one in took if one is not None]
                spread(f"{what}_to_all_answers_ms", known)
                say(f"{what}_answers", len(known))
            finally:
                browser.close()
                process.terminate()
                process.wait()


def sentence_encoders(store: str) -> list[SpaceSpec]:
    """The encodings of 960 sentences that come with Relscope, and one by LSA."""
    example = EXAMPLES["sentences"]
    lsa = TfidfSvd(300)
    (space,) = encode(example.dataset, lsa, Store(store))
    key = encoding_key(load_dataset(example.dataset).digest, lsa)
    specs, _ = example_spaces("sentences", bundled_results())
    return [*specs, encoding_spec(example.dataset, lsa, "", key, space.name)]


def typed(page: Any, number: int) -> float | None:
    box = page.get_by_label("A sentence")
    box.fill(f"{SENTENCES[number % len(SENTENCES)]}, {number}")
    page.evaluate(SETTLED)
    box.press("End")
    return answered(page, lambda: box.press("s"))


def stroked(page: Any, number: int) -> float | None:
    if not page.locator("canvas.pad").count():
        page.get_by_text("Draw", exact=True).click()
        page.evaluate(SETTLED)
    pad = page.locator("canvas.pad").bounding_box()
    rng = np.random.default_rng(number)
    places = pad["width"] * rng.uniform(0.2, 0.8, (3, 2)) + (pad["x"], pad["y"])
    if number % 4 == 0:
        page.get_by_role("button", name="Clear").click()
        page.evaluate(SETTLED)
        page.mouse.move(*places[0])
        page.mouse.down()
        page.mouse.move(*places[1], steps=4)
        page.mouse.up()  # the first stroke is a run of the page, which offers the channel
        page.evaluate(SETTLED)
    page.mouse.move(*places[1])
    page.mouse.down()
    page.evaluate(SETTLED)
    took = answered(page, lambda: page.mouse.move(*places[2]))
    page.mouse.up()
    page.evaluate(SETTLED)
    return took


def answered(page: Any, act: Callable[[], Any]) -> float | None:
    """Milliseconds from the act until the table of answers has changed; None where it stays as it is."""
    page.evaluate("[window.asked, window.answered] = [0, 0]")
    act()
    page.evaluate(SETTLED)
    asked, answered_at = page.evaluate("[window.asked, window.answered]")
    if answered_at:
        return answered_at - asked
    return None


def made_up(n: int, d: int) -> Match:
    """Two models of the same n rows: 48 hidden numbers of each, mixed by two matrices, with noise."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((n, 48), dtype=np.float32)
    sides = []
    for name in ("one", "other"):
        rows = hidden @ rng.standard_normal((48, d), dtype=np.float32)
        rows += 3 * rng.standard_normal((n, d), dtype=np.float32)
        sides.append(LatentSpace(rows, np.arange(n).astype(str), name=name))
    return match(*sides)


def server(pair: Match, moves: int) -> None:
    """A moved anchor to both maps as float16, and to all scores, of 300 and of 2,000 queries."""
    rows = np.arange(len(pair))
    rng = np.random.default_rng(1)
    size = f"{len(pair)}x{pair.source.dimension}"
    apart = ReductionSpec()
    reference = pca_pair(pair, rows, OWN, (), ProjectionSpec(), apart)[0][0]
    began = time.perf_counter()
    held = LiveRows(pair, rows, reference=reference)
    say(f"{size}_rows_to_device_s", time.perf_counter() - began)
    for k in ANCHORS:
        anchors = rng.choice(len(pair), k, replace=False).tolist()
        live = LiveComparison(held, anchors)

        def moved(live: LiveComparison = live, anchors: list[int] = anchors) -> None:
            anchors[rng.integers(len(anchors))] = int(rng.integers(len(rows)))
            live.set_anchors(list(dict.fromkeys(anchors)))

        def framed(live: LiveComparison = live, moved: Callable[[], None] = moved) -> LiveFrame:
            moved()
            return live.frame()

        name = f"{size}_anchors_{k}"
        spread(f"{name}_picture_ms", timed(framed, moves))
        for n_queries in (300, 2000):
            work = lambda live=live, n=n_queries: live.scores(n_queries=n)  # noqa: E731
            spread(f"{name}_scores_of_{n_queries}_queries_ms", timed(work, 9))
        say(f"{name}_bytes_a_frame", sum(map(len, live.frame().maps)))
    before = memory()
    for _ in range(LEVEL):
        framed()
    say(f"{size}_memory_mb_before_{LEVEL}_drags", before)
    say(f"{size}_memory_mb_after_{LEVEL}_drags", memory())


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each call after two that are not counted; the results are on the host."""
    work(), work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - began))
    return found


def memory() -> float:
    """The memory in megabytes: of torch on the GPU or, without a GPU, of this process."""
    if resolve().startswith("cuda"):
        import torch

        return torch.cuda.memory_allocated() / 1e6
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * 4096 / 1e6


def spread(name: str, values: Sequence[float]) -> None:
    say(f"{name}_median", float(np.median(values)))
    say(f"{name}_p95", float(np.quantile(values, 0.95)))


def say(name: str, value: float) -> None:
    print(name, f"{value:.4g}", flush=True)


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
    ids = [f"row {row}" for row in range(n)]
    names = [f"class {label}" for label in labels]
    paths = []
    for side, matrix in (("first", first), ("second", second)):
        paths.append(str(folder / f"{side}.npz"))
        np.savez(paths[-1], vectors=matrix, ids=ids, labels=names)
    return paths


def free_ids(n: int, tries: int) -> list[str]:
    """Ids of the made-up spaces that are no anchors when the app opens."""
    from relcore import LatentSpace, select_anchors

    ids = [f"row {row}" for row in range(n)]
    there = set(select_anchors(LatentSpace(np.ones((n, 1), np.float32), ids), 300, "random", random_state=0))
    return [ids[row] for row in np.random.default_rng(1).permutation(n) if ids[row] not in there][:tries]


async def timed_in(page: Any, act: Awaitable, seen: str = "", argument: Any = None) -> tuple[float, float]:
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
    seconds = await timed_in(page, page.goto(url + FOUR_PANES, wait_until="commit"), SHOWN, "")
    if (panes := await page.locator(".ls-plot").count()) != 4:
        raise SystemExit(
            f"expected four panes, got {panes}; is the address {FOUR_PANES} still that of Explore?"
        )
    return page, seconds


async def add_anchors(page: Any, ids: list[str]) -> list[tuple[float, float]]:
    """Each of the ids added on Explore's tab of anchors, one after the other."""
    await page.get_by_role("tab", name="Anchors").click()
    await page.evaluate(SETTLED)
    box = page.locator(".st-key-anchors-search input")
    found = []
    for one in ids:
        drawn = await page.get_attribute(".ls-root", "data-drawn")
        await box.fill(one)
        found.append(await timed_in(page, box.press("Enter"), SHOWN, drawn))
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
    return await timed_in(page, page.mouse.up(), changed, before)


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
    """Print both times of each try, sorted, and their 95th percentiles."""
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


if __name__ == "__main__":
    raise SystemExit(main())
