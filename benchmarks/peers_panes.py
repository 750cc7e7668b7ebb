"""``python -m benchmarks.peers_panes``: our panes, jupyter-scatter and Embedding Atlas, into
benchmarks/peers.md.

All are widgets in one JupyterLab and one real Chromium, with the same points. The peers are installed into an
environment of their own the first time, which takes minutes and some 1.5 GB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from benchmarks.__main__ import _processor
from benchmarks.app_in_chromium import FLAGS, find_chromium
from benchmarks.peers_frames import Frames
from benchmarks.peers_home import (
    environment,
    interpreter,
    jupyterlab,
    own_memory,
    server,
    version_of,
    write_notebook,
)
from benchmarks.peers_home import free_port as port_of
from benchmarks.peers_note import write_section

TITLE = "Panes"
SIZES = (10_000, 100_000, 1_000_000)
HEIGHT = 480
TOLD = "selected in the kernel"
POINTS = """
import numpy as np
rng = np.random.default_rng(0)
xy = ((3 * rng.normal(size=(12, 2)))[rng.integers(0, 12, {n})] + rng.normal(size=({n}, 2))).astype(np.float32)
"""
OURS = """
from relcore.charts.scene import Pane, Scene
from relcore.panes.widget import PanesWidget
ids, none = np.array(list(map(str, range({n}))), dtype=object), np.full({n}, -1)
def shown(n_panes):
    scene = Scene(tuple(Pane(f"map {{number}}", xy) for number in range(n_panes)), ids, none)
    return PanesWidget(ids, lambda anchors: (scene, np.arange({n})), height={height})
"""
SCATTER = """
import jscatter, pandas as pd
frame = pd.DataFrame(xy, columns=["x", "y"])
def shown():
    scatter = jscatter.Scatter(data=frame, x="x", y="y", height={height})
    scatter.mouse(mode="lasso")
    return scatter
"""
BIGGEST = """() => {
  const boxes = [...document.querySelectorAll(".jp-OutputArea canvas")].map((one) => one.getBoundingClientRect());
  const large = boxes.filter((box) => box.width > 100 && box.height > 100);
  const best = large.sort((a, b) => b.width * b.height - a.width * a.height)[0];
  return best && { x: best.x, y: best.y, width: best.width, height: best.height };
}"""


@dataclass(frozen=True)
class Contender:
    """Prepares its points, shows them (timed), and tells how many are selected."""

    name: str
    prepare: str
    show: str
    count: str


OURS_1 = Contender("ours, one pane", OURS, "it = shown(1); it", "len(it.selected_rows)")
OURS_4 = Contender("ours, four linked panes", OURS, "it = shown(4); it", "len(it.selected_rows)")
PEER = Contender("jupyter-scatter, one pane", SCATTER, "it = shown(); it.show()", "len(it.selection())")
CONTENDERS = (OURS_1, PEER, OURS_4)


@dataclass
class Found:
    """Seconds and megabytes of one run; `missing` says what did not happen."""

    first: float = float("nan")
    lasso: float = float("nan")
    memory: dict[str, float] = field(default_factory=dict)
    selected: int = 0
    missing: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers_panes", description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=SIZES)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument(
        "--environment", type=Path, default=cache / "relscope-peers", help="where the peers are installed"
    )
    options = parser.parse_args()
    python = environment(options.environment)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browse = lambda: playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)  # noqa: E731
        with jupyterlab(python, Path(folder)) as (url, _):
            for one in (OURS_1, PEER):  # the first of each reads its files and fills caches
                measured(browse, url, Path(folder), one, min(options.points))
            found = {
                (one, n): measured(browse, url, Path(folder), one, n)
                for n in options.points
                for one in CONTENDERS
            }
        atlas = what_atlas_says(browse, python, Path(folder))
    write_section(TITLE, note(found, options.points, python, load, atlas))


def measured(browse: Callable, url: str, folder: Path, one: Contender, n: int) -> Found:
    """One run in a browser and a kernel of its own."""
    name, found, browser = f"run_{time.time_ns()}", Found(), browse()
    settings = {"n": n, "height": HEIGHT}
    (folder / f"{name}.py").write_text((POINTS + one.prepare).format(**settings))
    write_notebook(
        folder / f"{name}.ipynb",
        f"from {name} import *; print('ready')",
        one.show,
        f"print({one.count}, {TOLD!r})",
    )
    try:
        page = browser.new_context(viewport={"width": 1360, "height": 900}).new_page()
        page.set_default_timeout(150_000)
        page.goto(f"{url}/lab/workspaces/{name}/tree/{name}.ipynb?reset")
        page.get_by_text("| Idle").first.wait_for()
        page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Shift+Enter")
        page.locator(".jp-OutputArea-output", has_text="ready").first.wait_for()
        run(page, found, one)
    except (Error, TimeoutError) as error:
        found.missing = str(error).splitlines()[0]
    finally:
        browser.close()
    print(f"{one.name}, {n:,}: {found}", file=sys.stderr, flush=True)
    return found


def run(page: Page, found: Found, one: Contender) -> None:
    """Show the points, draw a lasso over a quarter of the picture, and ask the kernel how many rows it
    holds.
    """
    before, frames = own_memory(), Frames(page)
    since = time.time()
    page.keyboard.press("Shift+Enter")
    found.first, _ = frames.at_rest(lambda: page.evaluate(BIGGEST), since)
    box = page.evaluate(BIGGEST)
    bottom = min(box["y"] + box["height"], 860)
    x, y = box["x"] + box["width"] / 2, (box["y"] + bottom) / 2
    right, low = x + 0.4 * box["width"], y + 0.4 * (bottom - box["y"])
    page.mouse.move(x, y)
    page.mouse.down()
    for point in ((right, y), (right, low), (x, low), (x, y + 3)):
        page.mouse.move(*point, steps=8)
    since = time.time()
    page.mouse.up()
    _, found.lasso = frames.at_rest(lambda: page.evaluate(BIGGEST), since)
    after = own_memory()
    frames.close()
    found.memory = {name: after[name] - before[name] for name in after}
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").last.click()
    page.keyboard.press("Shift+Enter")
    told = page.locator(".jp-OutputArea-output", has_text=TOLD).last
    told.wait_for()
    found.selected = int(told.inner_text().split()[0])


def what_atlas_says(browse: Callable, python: Path, folder: Path) -> str:
    """Embedding Atlas on 1,000 given points: what its page says where its map would be, or that it draws."""
    import numpy as np
    import pandas as pd

    table = folder / "points.parquet"
    pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 2)), columns=["x", "y"]).to_parquet(table)
    port = port_of()
    command = [
        str(python.with_name("embedding-atlas")),
        str(table),
        "--x",
        "x",
        "--y",
        "y",
        "--disable-projection",
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "--no-auto-port"]
    url, browser = f"http://127.0.0.1:{port}", browse()
    try:
        with server(command, url, cwd=folder):
            page = browser.new_page()
            page.goto(url)
            page.get_by_text("1,000 points").first.wait_for(timeout=90_000)
            page.wait_for_timeout(3000)
            told = page.get_by_text("WebGPU is unavailable")
            return (
                f"its server starts, its table shows the rows, and its map says “{told.first.inner_text()}”"
                if told.count()
                else ("it draws here; this benchmark does not time it yet")
            )
    except (Error, SystemExit) as error:
        return f"it did not come up here ({str(error).splitlines()[0]:.120})"
    finally:
        browser.close()


def note(
    found: dict[tuple[Contender, int], Found], sizes: list[int], python: Path, load: float, atlas: str
) -> str:
    versions = {
        name: version_of(python, name) for name in ("jupyterlab", "jupyter-scatter", "embedding-atlas")
    }
    libraries = ", ".join(f"{name} {one}" for name, one in versions.items())
    lines = [
        (
            f"`python -m benchmarks.peers_panes`, {date.today()}: the same made-up points as widgets in one"
            " JupyterLab, in a real Chromium that draws WebGL by software; each run in a browser and a"
            " kernel of its own, after one that is not counted. First picture: from running the cell, in"
            " which the widget is made, to the first frame with half of what is drawn in the end. Lasso:"
            " from letting go of the mouse to the last change of the picture. Memory: what browser and"
            " kernel have grown by, shared pages counted once. All as ratios to ours with one pane, whose"
            " seconds and MB are in brackets."
        ),
        "",
        (
            f"{_processor()}, load {load:.0f} on {os.cpu_count()} cores before it began; Python"
            f" {interpreter()}, {libraries}."
        ),
        "",
        "| points | | first picture | lasso | browser | kernel | rows selected |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    better = []
    for n in sizes:
        own = found[OURS_1, n]
        lines += [f"| {n:,} | {one.name} | {_cells(found[one, n], own)} |" for one in CONTENDERS]
        better += [f"{what} at {n:,}" for what in _better(found[PEER, n], own)]
    lines += [
        "",
        (
            "What jupyter-scatter does better than ours with one pane:"
            f" {'; '.join(better) or 'nothing measured here'}."
        ),
    ]
    lines += [
        "It draws one map of one table: panes linked by rows come from several widgets that are composed."
    ]
    return "\n".join([*lines, "", f"Embedding Atlas {versions['embedding-atlas']}: {atlas}."])


def _cells(one: Found, own: Found) -> str:
    if one.missing:
        return f"not measured: {one.missing:.80} | | | | "
    pairs = [(one.first, own.first, "s"), (one.lasso, own.lasso, "s")]
    pairs += [(one.memory[name], own.memory.get(name, float("nan")), "MB") for name in ("browser", "python")]
    cells = [
        f"1 ({value:.3g} {unit})" if one is own else f"{value / ours:.2f}" for value, ours, unit in pairs
    ]
    return " | ".join([*cells, f"{one.selected:,}"])


def _better(peer: Found, own: Found) -> list[str]:
    if peer.missing or own.missing:
        return []
    facts = {"first picture": (peer.first, own.first), "lasso": (peer.lasso, own.lasso)}
    facts |= {
        f"memory of the {name}": (peer.memory[key], own.memory[key])
        for name, key in (("browser", "browser"), ("kernel", "python"))
    }
    return [name for name, (theirs, ours) in facts.items() if theirs < ours]


if __name__ == "__main__":
    main()
