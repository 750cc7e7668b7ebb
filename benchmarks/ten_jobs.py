"""``python -m benchmarks.ten_jobs``: jobs of a new user, each with its clicks and seconds, and what each place shows at first.

Each job begins at Start of an app that is up, in a browser session of its own. A click is a press of a button, a
tab, a link or an option; typing, drawing, dropping files and keys are none. `--places` times the first picture of
each place on a first visit, the median of five, and counts the controls that are in sight at 1440 × 900 (a group of
choices, and the tools of the panes, are one each) and the tabs. Needs Playwright and a Chromium
(RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.app_in_chromium import FLAGS, SETTLED, find_chromium, serve

PANES = ".ls-root[data-drawn]"
PICTURES = {
    "": ".maps circle",
    "explore": PANES,
    "connect": ".js-plotly-plot .main-svg",
    "migrate": ".js-plotly-plot .main-svg",
    "research": ".js-plotly-plot .main-svg",
    "data": "[data-testid=stFileUploader], [data-testid=stDataFrame]",
}
CONTROLS = """() => {
  const kinds = ['stButton', 'stDownloadButton', 'stSelectbox', 'stMultiSelect', 'stTextInput', 'stNumberInput',
    'stRadio', 'stButtonGroup', 'stCheckbox', 'stSlider', 'stFileUploader', 'stPopover', 'stTextArea', 'stPageLink'];
  const found = [...document.querySelectorAll(kinds.map((kind) => `[data-testid=${kind}]`).join() +
    ', details summary, .ls-toolbar, .st-key-inspector-search input')];
  return found.filter((one) => {
    const box = one.getBoundingClientRect();
    return one.checkVisibility({ visibilityProperty: true }) && box.width > 1 && box.top < innerHeight && box.bottom > 0 &&
      !found.some((other) => other !== one && other.contains(one));
  }).length;
}"""
DIGITS = 40  # pictures of each class in the archive


@dataclass
class User:
    """A browser page, and how often it was clicked."""

    page: Any
    folder: Path
    clicks: int = 0

    def click(self, found: Any) -> None:
        found.filter(visible=True).first.click()
        self.clicks += 1

    def button(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name))

    def go(self, title: str) -> None:
        self.click(self.page.get_by_test_id("stTopNavLink").get_by_text(title, exact=True))

    def tab(self, title: str) -> None:
        self.click(self.page.get_by_role("tab", name=title, exact=True))

    def see(self, text: str) -> None:
        self.page.get_by_text(text).filter(visible=True).first.wait_for()

    def drop(self, *names: str) -> None:
        self.page.locator("[data-testid=stMain] input[type=file]").first.set_input_files(
            [self.folder / name for name in names]
        )

    def rest(self) -> None:
        self.page.evaluate(SETTLED)

    def panes(self) -> None:
        self.page.wait_for_selector(PANES)

    def picture(self, n: int = 1) -> None:
        """Wait for the n-th Plotly figure."""
        self.page.locator(".js-plotly-plot .main-svg").nth(2 * (n - 1)).wait_for()


def see_what_two_embeddings_share(user: User) -> None:
    user.see("of 20,000 words are their own nearest")


def compare_my_own_files(user: User) -> None:
    user.button("Open your data")
    user.rest()
    user.drop("old.npz", "new.npz")
    user.button("Load and compare")
    user.panes()
    user.see("2,000 rows in both")


def find_a_word_and_its_neighbours(user: User) -> None:
    user.go("Explore")
    user.page.get_by_placeholder("Search 20,000").fill("river")
    user.click(user.page.get_by_text("river", exact=True))
    user.see("3,589 times in the corpus")


def choose_other_anchors(user: User) -> None:
    user.go("Explore")
    user.panes()
    user.button("300 anchors")
    user.click(user.page.get_by_role("combobox", name="Strategy"))
    user.click(user.page.get_by_role("option", name="most-frequent"))
    user.see("300 anchors")


def find_wrong_pairs(user: User) -> None:
    user.go("Explore")
    user.tab("Anchors")
    user.click(user.page.get_by_text("Are there wrong pairs among them?"))
    user.see("suspect")


def see_where_they_differ(user: User) -> None:
    user.go("Explore")
    user.tab("Where they differ")
    user.picture()


def stitch_two_networks(user: User) -> None:
    user.go("Connect")
    user.see("pairs by method")
    user.picture()


def invert_a_relative_space(user: User) -> None:
    user.go("Connect")
    user.tab("Invert")
    user.panes()


def find_anchors_from_few_pairs(user: User) -> None:
    user.go("Connect")
    user.tab("Link")
    user.see("hidden anchors found")


def change_the_embedding_model(user: User) -> None:
    user.go("Migrate")
    user.picture()


def compare_encoders_on_my_sentences(user: User) -> None:
    user.button("Open your data")
    user.rest()
    user.click(user.page.get_by_text("Texts", exact=True))
    user.rest()
    user.drop("sentences.csv")
    user.button("Encode and compare")
    user.panes()
    user.see("240 rows in both")


def compare_encoders_on_my_pictures(user: User) -> None:
    user.button("Open your data")
    user.rest()
    user.click(user.page.get_by_text("Pictures", exact=True))
    user.rest()
    user.drop("pictures.zip")
    user.button("Encode and compare")
    user.panes()
    user.see(f"{10 * DIGITS} rows in both")


def open_a_table_in_cp1252(user: User) -> None:
    user.button("Open your data")
    user.rest()
    user.drop("old.csv", "new.csv")
    user.button("Load and compare")
    user.panes()
    user.see("300 rows in both")


def follow_a_shared_link(user: User) -> None:
    address = user.page.url.rstrip("/")
    user.page.goto(f"{address}/anchors?k=7&panes=absolute,relative&anchors=k-means,50,0")
    user.panes()
    user.see("50 anchors")


def make_the_anchors_worse_and_better(user: User) -> None:
    user.go("Explore")
    user.panes()
    user.rest()
    before = shown_score(user)
    box = user.page.locator(".ls-plot").first.bounding_box()
    corners = [(0.05, 0.05), (0.35, 0.05), (0.35, 0.3), (0.05, 0.3), (0.05, 0.05)]
    user.page.mouse.move(box["x"] + corners[0][0] * box["width"], box["y"] + corners[0][1] * box["height"])
    user.page.mouse.down()
    for x, y in corners[1:]:
        user.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=8)
    user.page.mouse.up()
    user.button("Use only these as anchors")
    user.page.wait_for_function(f"({SHOWN_SCORE})() < {before}")
    user.rest()
    user.page.keyboard.press("Control+z")
    user.page.wait_for_function(f"({SHOWN_SCORE})() === {before}")
    effect = user.page.locator(".st-key-effect").bounding_box()
    assert effect["y"] + effect["height"] <= 900, "the score and the panes are in sight together"


SHOWN_SCORE = "() => Number(document.querySelector('.st-key-effect [data-testid=stMetricValue]')?.innerText)"


def shown_score(user: User) -> float:
    return user.page.evaluate(f"({SHOWN_SCORE})()")


def migrate_without_judgements(user: User) -> None:
    user.button("Open your data")
    user.rest()
    user.drop("old.npz", "new.npz")
    user.button("Load and compare")
    user.panes()
    user.go("Migrate")
    user.see("No verdict")


def hold_a_lecture_by_keyboard(user: User) -> None:
    user.page.goto(f"{user.page.url.split('?')[0]}?step=1")
    for number in range(1, 6):
        user.page.locator("h3.relscope-step").get_by_text(f"{number} ·").wait_for()
        user.rest()
        user.page.keyboard.press("ArrowRight")
    user.page.locator("h3.relscope-step").get_by_text("6 ·").wait_for()


def switch_on_a_phone(user: User) -> None:
    user.page.set_viewport_size({"width": 390, "height": 844})
    user.page.goto(f"{user.page.url.split('?')[0]}explore")
    user.panes()
    user.rest()
    user.click(user.page.get_by_test_id("stRadioOption").filter(has_text="Relative to anchors"))
    user.page.locator(".ls-title").filter(has_text="relative").first.wait_for()
    wide = "document.querySelector('[data-testid=stMain]').scrollWidth"
    assert user.page.evaluate(wide) <= 390, "nothing is wider than the screen"


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
    compare_encoders_on_my_sentences,
    compare_encoders_on_my_pictures,
    open_a_table_in_cp1252,
    follow_a_shared_link,
    make_the_anchors_worse_and_better,
    migrate_without_judgements,
    hold_a_lecture_by_keyboard,
    switch_on_a_phone,
)


def make_files(folder: Path) -> None:
    """What the jobs drop: two files of vectors, two tables in cp1252, sentences with a topic, digits by class."""
    from PIL import Image
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2000, 64)).astype(np.float32)
    rotated = (vectors @ np.linalg.qr(rng.normal(size=(64, 64)))[0]).astype(np.float32)
    words = [f"item {row}" for row in range(2000)]
    for name, rows in (("old", vectors), ("new", rotated)):
        np.savez(folder / f"{name}.npz", vectors=rows, ids=words)
        lines = (
            f"café {row};" + ";".join(f"{x:.4f}".replace(".", ",") for x in rows[row, :8])
            for row in range(300)
        )
        head = "Wörter;" + ";".join(f"x{number}" for number in range(8))
        (folder / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n", encoding="cp1252")
    topics = {
        "sea": "harbour ship wave sail",
        "field": "horse wheat plough barn",
        "town": "street tower shop",
    }
    lines = ["id,sentence,topic"]
    for row in range(240):
        topic = list(topics)[row % 3]
        chosen = rng.choice(topics[topic].split(), 2)
        lines.append(f"s{row},The {chosen[0]} number {row} is near the {chosen[1]} of the {topic},{topic}")
    (folder / "sentences.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    digits = load_digits()
    with zipfile.ZipFile(folder / "pictures.zip", "w") as archive:
        for number in range(10):
            for row in np.flatnonzero(digits.target == number)[:DIGITS]:
                content = BytesIO()
                Image.fromarray((digits.images[row] * 15).astype(np.uint8)).save(content, "PNG")
                archive.writestr(f"pictures/{number}/{row}.png", content.getvalue())


def time_jobs(browser: Any, url: str, folder: Path, only: str | None, pictures: Path | None) -> None:
    print("| job | clicks | seconds |\n|---|---:|---:|")
    for number, job in enumerate(JOBS, 1):
        if only and only not in job.__name__:
            continue
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        user = User(context.new_page(), folder)
        user.page.set_default_timeout(60_000)
        user.page.goto(url)
        if number > 1:  # the first one waits for the home page itself
            user.see("Open your data")
            user.rest()
        began = time.perf_counter()
        try:
            job(user)
            seconds = f"{time.perf_counter() - began:.1f}"
        except Exception as error:  # the other jobs are timed all the same
            seconds = f"failed: {' '.join(str(error).split())[:160]}"
        print(f"| {job.__name__.replace('_', ' ')} | {user.clicks} | {seconds} |", flush=True)
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            user.page.screenshot(path=pictures / f"{number:02}-{job.__name__}.png")
        context.close()


def time_places(browser: Any, url: str) -> None:
    print("| place | first picture, s | controls in sight | tabs |\n|---|---:|---:|---:|")
    for name, picture in PICTURES.items():
        seconds = []
        for _ in range(5):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            page.set_default_timeout(60_000)
            began = time.perf_counter()
            page.goto(f"{url}/{name}", wait_until="commit")
            page.locator(picture).filter(visible=True).first.wait_for()
            seconds.append(time.perf_counter() - began)
            page.evaluate(SETTLED)
            controls = page.evaluate(CONTROLS)
            tabs = page.get_by_role("tab").filter(visible=True).count()
            context.close()
        print(
            f"| {name or 'start'} | {statistics.median(seconds):.1f} | {controls} | {tabs} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ten_jobs", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="put a picture of each result here")
    parser.add_argument("--only", help="jobs whose name contains this")
    parser.add_argument("--places", action="store_true", help="time and count what each place shows at first")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        make_files(Path(folder))
        process, url = serve(f"{folder}/store")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            if options.places:
                time_places(browser, url)
            else:
                time_jobs(browser, url, Path(folder), options.only, options.pictures)
        finally:
            browser.close()
            process.terminate()
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
