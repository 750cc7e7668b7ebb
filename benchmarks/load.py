"""``python -m benchmarks.load``: many browser sessions on one app at once, then many changes of anchors in one session.

Each of the sessions uploads spaces of its own, whose ids bear its mark, and then draws lassos, changes anchors and opens pages
at random. Every message that the server sends it is searched for the marks of the others. What is measured, and the memory of
the server's processes every two seconds, goes to benchmarks/load.md. Needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "load.md"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader"]
ROWS, DIMENSION = 2000, 50
EVERY = 2.0  # seconds between two looks at the memory
WARM_UP = 60.0  # seconds of a phase until its caches are filled
PAGES = ("Anchors", "Spaces", "Stitch", "Invert", "Bootstrap", "Studies", "Papers", "Compare")
REST = 0.25  # seconds without change after which a page counts as at rest; not counted in what an action takes
IDLE = "!document.querySelector('[data-testid=stStatusWidget]') && !document.querySelector('[data-stale=true]')"
SETTLED = f"""() => new Promise(done => {{
  let since = performance.now();
  const look = () => {{
    if (!({IDLE})) since = performance.now();
    performance.now() - since > {REST * 1000} ? done(true) : setTimeout(look, 25);
  }};
  look();
}})"""


@dataclass
class Measured:
    """Seconds of each kind of action; what went wrong; the memory of the server in megabytes over time."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)

    async def action(self, kind: str, act: Awaitable, page: Any) -> None:
        """Do it, and wait until the page is at rest."""
        began = time.perf_counter()
        await act
        await page.evaluate(SETTLED)
        self.seconds[kind].append(time.perf_counter() - began - REST)
        for said in await page.locator("[data-testid=stException], [data-testid=stAlertContentError]").all_inner_texts():
            self.faults.append(f"{kind}: {said[:200]}")


class Session:
    """One browser session with files of its own."""

    def __init__(self, number: int, page: Any, measured: Measured, folder: Path) -> None:
        self.page, self.measured, self.folder = page, measured, folder
        self.mark = f"of{number}session"
        self.random = random.Random(number)
        self.own_seen = 0  # messages with its own mark: without any, the search would be blind
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: measured.faults.append(f"script of the page: {error}"))
        page.on("websocket", lambda socket: socket.on("framereceived", self._search))

    def _search(self, frame: bytes | str) -> None:
        marks = {mark.decode() for mark in re.findall(rb"of\d+session", frame if isinstance(frame, bytes) else frame.encode())}
        self.own_seen += self.mark in marks
        if others := marks - {self.mark}:
            self.measured.faults.append(f"{self.mark} was sent what belongs to {', '.join(sorted(others))}")

    async def begin(self, url: str) -> None:
        """Upload two spaces and compare them."""
        page = self.page
        await page.goto(url)
        await page.wait_for_selector(".ls-root[data-drawn]")
        await self.open_page("Spaces")
        await page.get_by_role("tab", name="Load a file").click()
        rng = np.random.default_rng(int(re.sub(r"\D", "", self.mark)))
        vectors = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
        rotation = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
        for side, matrix in (("source", vectors), ("target", vectors @ rotation)):
            name = f"{self.mark}-{side}"
            path = self.folder / f"{name}.npz"
            np.savez(path, vectors=matrix.astype(np.float32), ids=[f"{self.mark}-{row}" for row in range(ROWS)])
            await self._upload(path)
            await page.locator("[data-testid=stDataFrame]").first.wait_for()
            await page.evaluate(SETTLED)
        for side in ("Source", "Target"):
            box = page.get_by_test_id("stSidebar").get_by_role("combobox", name=re.compile(side)).first
            await box.click()
            await page.get_by_role("option", name=f"{self.mark}-{side.lower()}", exact=True).click()
            await page.evaluate(SETTLED)
        await self.open_page("Compare")

    async def _upload(self, path: Path) -> None:
        """Choose the file and load it; a choice in the middle of a run of the page can be lost, so it is made again."""
        from playwright.async_api import TimeoutError as TookTooLong

        load = self.page.get_by_role("button", name=re.compile(f"Load {path.stem}")).last
        for left in (2, 1, 0):
            await self.page.locator("input[type=file]").last.set_input_files(path)
            try:
                await load.click(timeout=30_000)
                break
            except TookTooLong:
                if not left:
                    raise

    async def open_page(self, title: str) -> None:
        await self.page.get_by_test_id("stTopNavLink").get_by_text(title, exact=True).click()
        await self.page.evaluate(SETTLED)

    async def lasso(self) -> None:
        box = await self.page.locator(".ls-plot").nth(self.random.randrange(2)).bounding_box()
        x, y = (self.random.uniform(0.1, 0.6) for _ in range(2))
        path = [(x, y), (x + 0.3, y), (x + 0.3, y + 0.3), (x, y + 0.3)]
        points = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in path]
        await self.page.mouse.move(*points[0])
        await self.page.mouse.down()
        for point in points[1:]:
            await self.page.mouse.move(*point, steps=4)
        await self.page.mouse.up()

    async def change_anchor(self) -> None:
        """Add or remove the inspected row, or those of the lasso, by the first button that offers it."""
        offers = re.compile(r"^((Add as|Remove) anchor|(Add|Remove) [\d,]+ anchors)")
        buttons = self.page.get_by_test_id("stMain").get_by_role("button", name=offers).filter(visible=True)
        enabled = [button for button in await buttons.all() if await button.is_enabled()]
        await (self.random.choice(enabled) if enabled else self.page.locator(".st-key-inspector-clear button")).click()

    async def act(self) -> None:
        """One action at random; a page that is opened is left again, so that the next lasso finds its panes."""
        kind = self.random.choice(("lasso", "lasso", "anchor", "page"))
        if kind == "lasso":
            await self.measured.action("lasso", self.lasso(), self.page)
        elif kind == "anchor":
            await self.measured.action("anchor", self.change_anchor(), self.page)
        else:
            title = self.random.choice(PAGES[:-1])
            await self.measured.action(f"page {title}", self.open_page(title), self.page)
            await self.measured.action("page Compare", self.open_page("Compare"), self.page)
            await self.page.wait_for_selector(".ls-root[data-drawn]")


async def many_sessions(browser: Any, url: str, measured: Measured, n: int, seconds: float) -> None:
    """All of them begin, and then act side by side until the time is up."""
    with tempfile.TemporaryDirectory() as folder:
        contexts = [await browser.new_context(viewport={"width": 1360, "height": 900}) for _ in range(n)]
        sessions = [Session(i, await one.new_page(), measured, Path(folder)) for i, one in enumerate(contexts)]
        await asyncio.gather(*(session.begin(url) for session in sessions))
        until = time.monotonic() + seconds

        async def go_on(session: Session) -> None:
            while time.monotonic() < until:
                await session.act()

        measured.memory.clear()  # from here on: the sessions are there
        outcomes = await asyncio.gather(*map(go_on, sessions), return_exceptions=True)
        measured.faults += [f"{type(one).__name__}: {one}" for one in outcomes if one]
        measured.faults += [f"{one.mark} was never sent its own rows" for one in sessions if not one.own_seen]
        for context in contexts:
            await context.close()


async def many_anchors(browser: Any, url: str, measured: Measured, n: int) -> None:
    """One session on the bundled words that adds an anchor n times."""
    from relcore import load_words, match, select_anchors

    shared = match(load_words("word2vec-novels"), load_words("fasttext-novels")).source
    there = set(select_anchors(shared, 300, "random", random_state=0))  # with which the app opens
    words = [one for one in shared.ids.tolist() if one.isalpha() and one not in there]
    picked = random.Random(0).sample(words, n)
    context = await browser.new_context(viewport={"width": 1360, "height": 900})
    page = await context.new_page()
    session = Session(0, page, measured, Path())
    await page.goto(url)
    await page.wait_for_selector(".ls-root[data-drawn]")
    await session.open_page("Anchors")
    await page.wait_for_selector(".ls-root[data-drawn]")
    box = page.get_by_placeholder("river, mountain, sea")

    async def add(word: str) -> None:
        drawn = await page.get_attribute(".ls-root", "data-drawn")
        await box.fill(word)
        await box.press("Enter")
        changed = "drawn => document.querySelector('.ls-root')?.dataset.drawn !== drawn"
        await page.wait_for_function(changed, arg=drawn, timeout=10_000)

    measured.memory.clear()
    for word in picked:
        await measured.action("anchor", add(word), page)
    await context.close()


async def watched(pid: int, measured: Measured, work: Awaitable) -> None:
    """Do the work, and look at the memory of the server and its children meanwhile."""
    began = time.monotonic()

    async def look() -> None:
        while True:
            measured.memory.append((time.monotonic() - began, resident(pid)))
            await asyncio.sleep(EVERY)

    looking = asyncio.create_task(look())
    try:
        await work
    finally:
        looking.cancel()


def resident(pid: int) -> float:
    """Megabytes that a process and its descendants have in memory."""
    children: dict[int, list[int]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children[parent].append(int(status.parent.name))
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        waiting += children[one]
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total / 1e6


def serve(store: str) -> tuple[subprocess.Popen, str]:
    """The app with an empty store on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "relcore", "app", "--no-browser", f"--port={port}"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "RELSCOPE_STORE": store}, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
            return process, url
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"the app ended with code {process.returncode} before it was up")


async def phase(url: str, pid: int, work: Callable[[Any, str, Measured], Awaitable]) -> Measured:
    """What one phase measures, in a Chromium of its own."""
    from playwright.async_api import async_playwright

    measured = Measured()
    found = os.environ.get("RELSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=FLAGS)
        await watched(pid, measured, work(browser, url, measured))
        await browser.close()
    return measured


def report(title: str, measured: Measured) -> str:
    """A phase in Markdown: latencies, memory after the warm-up, faults."""
    lines = [f"## {title}\n", "| action | times | median, s | 95 %, s |", "|---|---:|---:|---:|"]
    for kind, seconds in sorted(measured.seconds.items()):
        median, high = np.quantile(seconds, [0.5, 0.95])
        lines.append(f"| {kind} | {len(seconds)} | {median:.2f} | {high:.2f} |")
    times, memory = np.array(measured.memory).T
    lines += ["", "| seconds | " + " | ".join(f"{time:.0f}" for time in np.linspace(times[0], times[-1], 9)) + " |"]
    lines += ["|---|" + "---:|" * 9]
    curve = np.interp(np.linspace(times[0], times[-1], 9), times, memory)
    lines += ["| server, MB | " + " | ".join(f"{value:,.0f}" for value in curve) + " |", ""]
    warm = times - times[0] >= min(WARM_UP, (times[-1] - times[0]) / 2)
    slope = np.polyfit(times[warm] / 60, memory[warm], 1)[0]
    lines.append(
        f"After the warm-up the server's memory changes by {slope:+.1f} MB a minute, from {memory[warm][0]:,.0f} to "
        f"{memory[-1]:,.0f} MB. Faults: {len(measured.faults)}."
    )
    lines += [f"- {fault}" for fault in dict.fromkeys(measured.faults)]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--changes", type=int, default=300, help="of anchors, in one session; 0 for none")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    parts = [
        f"# Load\n\n`python -m benchmarks.load`, {date.today()}, {os.cpu_count()} cores for server and browsers together.\n"
    ]
    faults = []
    with tempfile.TemporaryDirectory() as store:
        process, url = serve(store)
        try:
            n, minutes, changes = options.sessions, options.minutes, options.changes
            several = asyncio.run(phase(url, process.pid, lambda *given: many_sessions(*given, n, minutes * 60)))
            parts.append(report(f"{n} sessions for {minutes:g} minutes, {ROWS:,} × {DIMENSION} rows each", several))
            faults += several.faults
            if changes:
                one = asyncio.run(phase(url, process.pid, lambda *given: many_anchors(*given, changes)))
                parts.append(report(f"{changes} changes of anchors in one session, 20,000 × 300 words", one))
                faults += one.faults
        finally:
            process.terminate()
            process.wait(30)
    print("\n".join(parts))
    if options.save:
        RESULTS.write_text("\n".join(parts))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
