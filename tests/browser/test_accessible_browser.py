from __future__ import annotations

from pathlib import Path

import pytest

from app.places import PLACES
from tests.browser.panes import settle

package = pytest.importorskip("axe_playwright_python", reason="axe-core is in axe-playwright-python")
AXE = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
WIDE, PHONE, ZOOMED = (1440, 1000), (390, 844), (720, 450)  # 1,440 × 900 at 200 % is 720 × 450
FAULTS = """() => axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`))"""


def faults(page) -> list[str]:
    """The serious and critical faults of the page as text."""
    settle(page)
    page.evaluate(AXE)
    return page.evaluate(FAULTS)


def opened(browser, url, size, scheme):
    page = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]}).new_page()
    page.set_default_timeout(120_000)
    page.goto(url)
    page.locator(".st-key-history").wait_for()
    settle(page)
    return page


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE, ZOOMED], ids=["wide", "phone", "zoomed"])
def test_axe_finds_no_fault_on_any_tab(browser, app, size, scheme):
    page, found = opened(browser, app, size, scheme), {}
    for name, place in PLACES.items():
        page.goto(f"{app}/{name}")
        page.locator(".st-key-history").wait_for()
        settle(page)
        for tab in place.tabs or ("",):
            if tab:
                page.get_by_role("tab", name=tab).click()
            found[name, tab] = faults(page)
            main = page.get_by_test_id("stMain")
            assert main.evaluate("main => main.scrollWidth <= main.clientWidth"), (name, tab)
    assert {place: told for place, told in found.items() if told} == {}
    page.context.close()


@pytest.mark.slow
def test_the_panes_are_in_sight_at_200_percent(browser, app):
    page = opened(browser, f"{app}/explore", ZOOMED, "light")
    switch = page.locator(".st-key-idea [data-testid=stRadioOption]")
    switch.first.wait_for()  # it comes after the panes
    options = [box.bounding_box() for box in switch.all()]
    assert len({round(box["y"]) for box in options}) == 1, "the switch is one line"
    page.locator(".ls-plot").first.wait_for()
    settle(page)
    assert page.locator(".ls-plot").first.bounding_box()["y"] < ZOOMED[1]
    page.context.close()
