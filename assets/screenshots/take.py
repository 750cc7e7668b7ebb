"""``python assets/screenshots/take.py``: pictures of every place, from a first start, into this folder or
another one.

Without arguments, those of the README. ``--all FOLDER`` takes every place in three sizes, light and dark, to
be looked at. Needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.browser.chromium import FLAGS, SETTLED, find_chromium, serve  # noqa: E402
from tests.installed.test_notebook import KERNEL_IDLE, serve_lab  # noqa: E402

SIZES = {"1440x900": (1440, 900), "1280x720": (1280, 720), "390x844": (390, 844)}
DRAWN = "!document.querySelector('[data-testid=stSkeleton]') && !document.querySelector('[data-stale=true]')"
SCHEMES = ("light", "dark")
SCENES = {
    "start": "",
    "explore": "explore?panes=own",
    "connect": "connect",
    "migrate": "migrate",
    "research": "research",
    "data": "data",
    "invert": "invert",
    "link": "bootstrap",  # the former address, which opens the tab
    "papers": "papers",
    "universe": "translate",  # the former address of its methods, which opens the tab
}


def take(browser: Any, url: str, scene: str, size: tuple[int, int], scheme: str, path: Path) -> None:
    """One place, in a session of its own, at rest."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{url}/{SCENES[scene]}")
    page.wait_for_selector("[data-testid=stMainBlockContainer] >> visible=true")
    page.evaluate(SETTLED)
    if scene in ("explore", "invert"):
        page.wait_for_selector(".ls-root[data-drawn]")
    page.wait_for_function(DRAWN)
    page.mouse.move(0, 0)
    page.screenshot(path=path)
    context.close()


def take_digits(browser: Any, url: str, path: Path) -> None:
    """Explore with two networks of the digits, the cursor on a point."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{url}/stitch?panes=absolute,relative")
    page.get_by_role("button", name="Method details").click()
    page.get_by_role("button", name="Add to the session").click()
    page.evaluate(SETTLED)
    page.keyboard.press("Escape")
    page.get_by_test_id("stTopNavLink").get_by_text("Explore", exact=True).click()
    page.wait_for_selector(".ls-root[data-drawn]")
    for side, name in (("source", "MLP"), ("target", "CNN")):
        page.evaluate(SETTLED)
        page.locator(f".st-key-choose-{side} input").first.click()
        page.get_by_role("option", name=re.compile(rf"^{name}")).first.click()
    page.evaluate(SETTLED)
    page.wait_for_function(DRAWN)
    box = page.locator(".ls-plot").first.bounding_box()
    for step in range(200):  # from the middle outwards until the cursor meets a point
        page.mouse.move(box["x"] + box["width"] * (0.5 - 0.002 * step), box["y"] + box["height"] * 0.5)
        if page.locator(".ls-tip:not([hidden])").count():
            break
    page.wait_for_function("[...document.querySelectorAll('.ls-tip img')].every(one => one.complete)")
    page.screenshot(path=path)
    context.close()


def take_notebook(browser: Any, path: Path) -> None:
    """The example notebook in JupyterLab, with the words of one class selected."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shutil.copy(HERE.parent / "notebook" / "compare_two_spaces.ipynb", home)
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
        process, url = serve_lab(sys.executable, home, environment)
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 1080}, color_scheme="light")
            page.set_default_timeout(120_000)
            page.goto(f"{url}/lab/tree/compare_two_spaces.ipynb")
            page.get_by_text(KERNEL_IDLE).wait_for()
            for command in ("application:toggle-left-area", "notebook:run-all-cells"):
                page.evaluate("command => window.jupyterapp.commands.execute(command)", command)
            page.wait_for_selector(".ls-root[data-drawn]")
            page.locator(".ls-root").focus()
            page.keyboard.press("Escape")  # what the example has selected
            page.wait_for_selector(".ls-root[data-selected='0']")
            page.locator(".ls-chip", has_text="wine").click(modifiers=["Shift"])
            page.wait_for_selector(".ls-root[data-selected]:not([data-selected='0'])")
            page.mouse.move(0, 0)
            page.screenshot(path=path)
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--all", type=Path, metavar="FOLDER", help="every place, size and scheme, into this folder"
    )
    parser.add_argument(
        "--scenes", nargs="+", default=list(SCENES), choices=SCENES, help="with --all: only these"
    )
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as store, sync_playwright() as playwright:
        process, url = serve(store)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            if chosen.all:
                chosen.all.mkdir(parents=True, exist_ok=True)
                for scene, size, scheme in product(chosen.scenes, SIZES, SCHEMES):
                    take(
                        browser, url, scene, SIZES[size], scheme, chosen.all / f"{scene}-{size}-{scheme}.png"
                    )
                    print(scene, size, scheme, flush=True)
            else:
                for scene in SCENES:
                    take(browser, url, scene, SIZES["1440x900"], "light", HERE / f"{scene}-light.png")
                take_digits(browser, url, HERE / "digits-light.png")
                take_notebook(browser, HERE / "notebook-light.png")
        finally:
            browser.close()
            process.terminate()


if __name__ == "__main__":
    main()
