"""Browser sessions on one app, each with rows of its own, that act at random and search what they are sent
for others' rows.
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROWS, DIMENSION = 2000, 50
PAGES = ("Anchors", "Spaces", "Stitch", "Invert", "Migrate", "Bootstrap", "Studies", "Papers", "Compare")
REST = (
    0.25  # seconds without change after which a page counts as at rest; not counted in what an action takes
)
IDLE = (
    "document.querySelector('[data-test-script-state=notRunning]') &&"
    " !document.querySelector('[data-stale=true]')"
)
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
        for said in await page.locator(
            "[data-testid=stException], [data-testid=stAlertContentError]"
        ).all_inner_texts():
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
        marks = {
            mark.decode()
            for mark in re.findall(rb"of\d+session", frame if isinstance(frame, bytes) else frame.encode())
        }
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
        await page.evaluate(SETTLED)  # an upload into a page that is being drawn again is lost
        rng = np.random.default_rng(int(re.sub(r"\D", "", self.mark)))
        vectors = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
        rotation = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
        paths = []
        for side, matrix in (("source", vectors), ("target", vectors @ rotation)):
            paths.append(self.folder / f"{self.mark}-{side}.npz")
            np.savez(
                paths[-1],
                vectors=matrix.astype(np.float32),
                ids=[f"{self.mark}-{row}" for row in range(ROWS)],
            )
        await page.locator(".st-key-spaces-upload input[type=file]").set_input_files(paths)
        compare = page.get_by_role("button", name="Load and compare").filter(visible=True)
        await compare.wait_for()
        await page.evaluate(SETTLED)
        await compare.click()
        await page.wait_for_function("location.pathname === '/'")  # Compare
        await page.evaluate(SETTLED)
        await page.wait_for_selector(".ls-root[data-drawn]")

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
        """Add or remove the inspected row, or add those of the lasso; to remove many would leave too few
        to invert.
        """
        offers = re.compile(r"^((Add as|Remove) anchor|Add [\d,]+ anchors)")
        buttons = self.page.get_by_test_id("stMain").get_by_role("button", name=offers).filter(visible=True)
        enabled = [button for button in await buttons.all() if await button.is_enabled()]
        await (
            self.random.choice(enabled) if enabled else self.page.locator(".st-key-inspector-clear button")
        ).click()

    async def act(self) -> None:
        """One action at random; a page that is opened is left again, so that the next lasso finds its
        panes.
        """
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
        sessions = [
            Session(i, await one.new_page(), measured, Path(folder)) for i, one in enumerate(contexts)
        ]
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
