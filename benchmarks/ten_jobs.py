"""``python -m benchmarks.ten_jobs``: ten jobs of a new user, each with its clicks, its seconds and a picture.

Each begins at the home page of an app that is up, in a browser session of its own. A click is a press of a
button, a tab, a link or an option; typing a word, dropping files and choosing them in the system's dialog are
none. Needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.app_in_chromium import FLAGS, find_chromium, serve
from benchmarks.browser_sessions import SETTLED

PANES = ".ls-root[data-drawn]"


@dataclass
class User:
    """A browser page, and how often it was clicked."""

    page: Any
    folder: Path
    clicks: int = 0

    def click(self, found: Any) -> None:
        found.click()
        self.clicks += 1

    def go(self, title: str) -> None:
        self.click(self.page.get_by_test_id("stTopNavLink").get_by_text(title, exact=True))

    def tab(self, title: str) -> None:
        self.click(self.page.get_by_role("tab", name=title, exact=True))

    def see(self, text: str) -> None:
        self.page.get_by_text(text).filter(visible=True).first.wait_for()

    def picture(self, n: int = 1) -> None:
        """Wait for the n-th Plotly figure."""
        self.page.locator(".js-plotly-plot .main-svg").nth(2 * (n - 1)).wait_for()


def see_what_two_embeddings_share(user: User) -> None:
    user.page.wait_for_selector(PANES)
    user.see("Mean reciprocal rank")


def compare_my_own_files(user: User) -> None:
    rng = np.random.default_rng(0)
    words = [f"item {row}" for row in range(2000)]
    vectors = rng.normal(size=(2000, 64)).astype(np.float32)
    rotation = np.linalg.qr(rng.normal(size=(64, 64)))[0]
    np.savez(user.folder / "old.npz", vectors=vectors, ids=words)
    np.savez(user.folder / "new.npz", vectors=(vectors @ rotation).astype(np.float32), ids=words)
    user.go("Spaces")
    if not user.page.locator("input[type=file]").filter(visible=True).count():
        user.page.evaluate(SETTLED)
        user.tab("Load a file")
    user.page.evaluate(SETTLED)
    user.page.locator("[data-testid=stMain] input[type=file]").first.set_input_files(
        [user.folder / "old.npz", user.folder / "new.npz"]
    )
    user.click(user.page.get_by_role("button", name="Load and compare"))
    user.see("the same 2,000 rows")


def find_a_word_and_its_neighbours(user: User) -> None:
    user.page.wait_for_selector(PANES)
    search = user.page.get_by_placeholder("Search 20,000 rows")
    search.fill("river")
    user.click(user.page.get_by_text("river", exact=True).filter(visible=True).first)
    user.see("3,589 times in the corpus")


def choose_other_anchors(user: User) -> None:
    user.page.wait_for_selector(PANES)
    user.click(user.page.get_by_test_id("stSidebar").get_by_role("combobox", name="Strategy").first)
    drawn = user.page.get_attribute(".ls-root", "data-drawn")
    user.click(user.page.get_by_role("option", name="most-frequent"))
    user.page.wait_for_function(
        "drawn => document.querySelector('.ls-root')?.dataset.drawn !== drawn", arg=drawn
    )


def find_wrong_pairs(user: User) -> None:
    user.go("Anchors")
    user.page.wait_for_selector(PANES)
    user.tab("Audit")
    user.see("held-out rows")


def see_where_they_differ(user: User) -> None:
    user.page.wait_for_selector(PANES)
    user.tab("Classes and clusters")
    user.picture()


def stitch_two_networks(user: User) -> None:
    user.go("Stitch")
    user.see("stitched pairs")
    user.picture()


def invert_a_relative_space(user: User) -> None:
    user.go("Invert")
    user.see("Recovered to true")
    user.page.wait_for_selector(PANES)


def find_anchors_from_few_pairs(user: User) -> None:
    user.go("Bootstrap")
    user.see("hidden anchors found")


def change_the_embedding_model(user: User) -> None:
    user.go("Migrate")
    user.picture()


JOBS: tuple[Callable[[User], None], ...] = (
    see_what_two_embeddings_share,
    compare_my_own_files,
    find_a_word_and_its_neighbours,
    choose_other_anchors,
    find_wrong_pairs,
    see_where_they_differ,
    stitch_two_networks,
    invert_a_relative_space,
    find_anchors_from_few_pairs,
    change_the_embedding_model,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ten_jobs", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="put a picture of each result here")
    parser.add_argument("--only", help="jobs whose name contains this")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    print("| job | clicks | seconds |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as store, sync_playwright() as playwright:
        process, url = serve(store)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            for number, job in enumerate(JOBS, 1):
                if options.only and options.only not in job.__name__:
                    continue
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                user = User(context.new_page(), Path(store))
                user.page.set_default_timeout(60_000)
                user.page.goto(url)
                if number > 1:  # the first one waits for the home page itself
                    user.page.wait_for_selector(PANES)
                    user.page.evaluate(SETTLED)
                began = time.perf_counter()
                try:
                    job(user)
                    seconds = f"{time.perf_counter() - began:.1f}"
                except Exception as error:  # the other jobs continue
                    seconds = f"failed: {str(error).splitlines()[0]}"
                print(f"| {job.__name__.replace('_', ' ')} | {user.clicks} | {seconds} |", flush=True)
                if options.pictures:
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    user.page.screenshot(path=options.pictures / f"{number:02}-{job.__name__}.png")
                context.close()
        finally:
            browser.close()
            process.terminate()
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
