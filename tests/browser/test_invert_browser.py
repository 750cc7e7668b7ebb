"""The Invert page in a real browser: a brush on one pane selects in the other, a click on a cell sets δ
and ω.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.panes import ROOT, at_rest, drag

MAIN = Path(__file__).parents[2] / "app" / "main.py"


@pytest.fixture(scope="module")
def url(serve, tmp_path_factory):
    return serve(MAIN, env={"RELSCOPE_STORE": str(tmp_path_factory.mktemp("store"))})


@pytest.fixture
def invert(page, url):
    page.goto(f"{url}/invert")
    page.locator("caption", has_text="Recovered to true").wait_for()
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    return page


def test_a_brush_on_the_original_selects_in_the_recovered(invert):
    copies = "() => [...document.querySelectorAll('.ls-points')].map(canvas => canvas.toDataURL())"
    before = invert.evaluate(copies)
    drag(invert, 0, [(0.4, 0.4), (0.6, 0.4), (0.6, 0.6), (0.4, 0.6)])
    invert.wait_for_function("root => document.querySelector(root).dataset.selected !== '0'", arg=ROOT)
    invert.locator(".relscope-word", has_text="selected").wait_for()
    selected = int(invert.get_attribute(ROOT, "data-selected"))
    assert 0 < selected < 20_000
    assert invert.locator(".relscope-word").inner_text() == f"{selected:,} selected"
    after = invert.evaluate(copies)
    assert len(after) == 2
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_a_click_on_a_cell_sets_delta_and_omega(invert):
    invert.get_by_role("tab", name="δ × ω").click()
    start = invert.get_by_role("button", name="Invert by")
    cells = invert.locator(".js-plotly-plot").first.locator(".heatmaplayer image").first
    start.or_(cells).first.wait_for()
    if start.is_visible():
        start.click()
    at_rest(invert, ".js-plotly-plot .heatmaplayer image")
    box = cells.bounding_box()
    invert.mouse.click(
        box["x"] + 3.5 / 10 * box["width"], box["y"] + 4.5 / 5 * box["height"]
    )  # the fourth δ, the fifth ω
    value = '([label, value]) => document.querySelector(`input[aria-label="${label}"]`)?.value === value'
    invert.wait_for_function(value, arg=["Distance δ", "0.50"])
    invert.wait_for_function(value, arg=["Prunings ω", "16"])
