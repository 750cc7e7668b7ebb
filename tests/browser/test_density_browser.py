"""Panes of very many rows in a real Chromium: density, points after zooming in, and selections right to
the row.
"""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Polygon
from PIL import Image

from relcore.panes.payload import POSITION_STEPS, quantised
from tests.browser.made_up import NAMES, made_up
from tests.browser.panes import ROOT, at_rest, drag, pixels, views, zoom

DEMO = Path(__file__).parent / "demo_linked_scatter.py"
N, NAMED = 80_000, 0.8  # just above the number from which panes are drawn as density


@pytest.fixture(scope="module")
def rows():
    """Categories, and the steps of the rows in the four panes."""
    _, categories, clouds = made_up(N, NAMED)
    return categories, [quantised(cloud) for cloud in clouds]


@pytest.fixture
def demo(page, serve):
    page.goto(f"{serve(DEMO)}/?n={N}&named={NAMED}&callback=1")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    shows(page, ["density"] * 4)
    return page


def shows(page, pictures):
    page.wait_for_selector(f"{ROOT}[data-pictures='{' '.join(pictures)}']")


def heard(page):
    return json.loads(page.locator("[data-testid=stCode] code").inner_text())


def events(page, count):
    page.wait_for_function(
        "count => JSON.parse(document.querySelector('[data-testid=stCode] code')?.innerText ||"
        " '{}').events?.length >= count",
        arg=count,
    )
    return heard(page)["events"]


def density(page, pane):
    """The red, green, blue and alpha of the density of a pane, (lines, columns, 4)."""
    url = page.evaluate("pane => document.querySelectorAll('.ls-density')[pane].toDataURL()", pane)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))).convert("RGBA"))


def steps_of(page):
    """The polygon that selected last, in steps, from the units in which the panes report it."""
    polygon = page.evaluate("performance.getEntriesByName('linked_scatter:brushed').at(-1).detail")
    return (np.array(polygon) + 1) * POSITION_STEPS / 2


def selected(page, count):
    """What Python heard last: the number of rows, their sum, and the first five of them."""
    *_, (kind, n, first) = events(page, count)
    assert kind == "select"
    return n, heard(page)["sum"], first


def test_a_density_shows_where_the_rows_are_and_in_which_colours(demo, rows):
    _, steps = rows
    picture = density(demo, 2)
    height, width, _ = picture.shape
    x, y = ((steps[2].T / POSITION_STEPS * 2 - 1) / 1.08 + 1) / 2  # the view of a pane has a margin
    counts, _, _ = np.histogram2d(1 - y, x, bins=(height // 8, width // 8), range=((0, 1), (0, 1)))
    blocks = (
        picture[: height // 8 * 8, : width // 8 * 8, 3]
        .reshape(height // 8, 8, width // 8, 8)
        .mean(axis=(1, 3))
    )
    assert np.corrcoef(np.log1p(counts).ravel(), blocks.ravel())[0, 1] > 0.9
    blues = density(demo, 0)[..., :3].reshape(-1, 3)
    assert len(np.unique(blues // 32, axis=0)) > 12  # mixtures of six colours and grey
    assert f"Density of {N:,} rows" in demo.locator(".ls-density-key").first.inner_text()
    assert f"density of {N:,} rows" in demo.locator(".ls-pane").first.get_attribute("aria-label")


def test_zooming_in_makes_a_new_density_and_then_points(demo, rows):
    before = density(demo, 0)
    demo.locator(ROOT).focus()
    zoom(demo, 0, clicks=1)
    shows(demo, ["density"] * 4)
    assert not np.array_equal(density(demo, 0), before)
    assert np.array_equal(density(demo, 0).shape, before.shape)
    zoom(demo, 0, clicks=10)
    shows(demo, ["points", "density", "density", "density"])
    assert demo.evaluate("getComputedStyle(document.querySelector('.ls-density')).visibility") == "hidden"
    points = pixels(demo, 0)
    key = demo.locator(".ls-density-key").first.inner_text()
    _, steps = rows
    x, y, closer = views(demo)[0]
    half = 1.08 / closer
    units = steps[0] / POSITION_STEPS * 2 - 1
    in_view = (np.abs(units - [x, y]) <= half).all(axis=1).sum()
    told = int(key.split(" ")[0].replace(",", ""))
    assert in_view <= told <= 1.5 * in_view + 500  # counted by cells
    demo.keyboard.press("0")
    shows(demo, ["density"] * 4)
    assert np.array_equal(density(demo, 0), before)
    assert pixels(demo, 0) != points


@pytest.mark.parametrize("pane", [0, 3])
def test_a_lasso_over_a_density_is_right_to_the_row(demo, rows, pane):
    _, steps = rows
    before = [density(demo, i) for i in range(4)]
    drag(demo, pane, [(0.3, 0.35), (0.62, 0.2), (0.7, 0.8), (0.45, 0.55), (0.28, 0.83)])
    n, total, first = selected(demo, 1)
    expected = np.flatnonzero(Polygon(steps_of(demo)).contains_points(steps[pane]))
    assert (n, total, first) == (len(expected), expected.sum(), expected[:5].tolist())
    assert 5_000 < n < N
    at_rest(demo)
    assert all(not np.array_equal(density(demo, i), before[i]) for i in range(4))
    assert demo.get_attribute(ROOT, "data-selected") == str(n)


def test_a_box_is_right_to_the_row_and_shift_adds_to_it(demo, rows):
    _, steps = rows
    demo.click(f"{ROOT} [data-tool=box]")
    drag(demo, 1, [(0.2, 0.2), (0.5, 0.6)])
    first = np.flatnonzero(Polygon(steps_of(demo)).contains_points(steps[1]))
    assert selected(demo, 1)[:2] == (len(first), first.sum())
    demo.keyboard.down("Shift")
    drag(demo, 2, [(0.5, 0.3), (0.9, 0.9)])
    demo.keyboard.up("Shift")
    both = np.union1d(first, np.flatnonzero(Polygon(steps_of(demo)).contains_points(steps[2])))
    assert selected(demo, 2)[:2] == (len(both), both.sum())


def test_a_lasso_on_points_takes_the_rows_in_view(demo, rows):
    _, steps = rows
    demo.locator(ROOT).focus()
    zoom(demo, 0, clicks=10)
    demo.wait_for_selector(f"{ROOT}[data-pictures^=points]")
    drag(demo, 0, [(0.2, 0.2), (0.8, 0.25), (0.6, 0.85)])
    n, total, _ = selected(demo, 1)
    expected = np.flatnonzero(Polygon(steps_of(demo)).contains_points(steps[0]))
    assert (n, total) == (len(expected), expected.sum())
    assert 0 < n < 20_000


def test_a_hidden_class_is_neither_drawn_nor_selected_and_a_class_alone_becomes_points(demo, rows):
    categories, steps = rows
    before = density(demo, 0)
    animals = demo.locator(".ls-chip", has_text="animals")
    animals.click()
    assert events(demo, 1)[0] == ["hidden", [["animals"]]]
    demo.wait_for_function("document.querySelector('.ls-root').dataset.hidden !== '0'")
    assert not np.array_equal(density(demo, 0), before)
    demo.click(f"{ROOT} [data-tool=box]")
    drag(demo, 0, [(0.1, 0.1), (0.9, 0.9)])
    n, total, _ = selected(demo, 2)
    within = Polygon(steps_of(demo)).contains_points(steps[0])
    expected = np.flatnonzero(within & (categories != NAMES.index("animals")))
    assert (n, total) == (len(expected), expected.sum())
    animals.click()
    events(demo, 3)
    animals.dblclick()
    shows(demo, ["points"] * 4)
    assert (
        f"{(categories == NAMES.index('animals')).sum():,} rows as points"
        in demo.locator(".ls-density-key").first.inner_text()
    )


def test_hover_and_click_find_the_nearest_row_in_a_density(demo, rows):
    _, steps = rows
    plot = demo.locator(".ls-plot").nth(3).bounding_box()
    x, y = plot["width"] * 0.55, plot["height"] * 0.75
    demo.mouse.move(plot["x"] + x, plot["y"] + y)
    demo.wait_for_selector(".ls-tip:not([hidden])")
    places = ((steps[3] / POSITION_STEPS * 2 - 1) / 1.08 * [1, -1] + 1) / 2 * [plot["width"], plot["height"]]
    distances = np.hypot(*(places - [x, y]).T)
    row = int(demo.inner_text(".ls-tip strong").removeprefix("word "))
    assert distances[row] <= distances.min() + 0.6  # the pane is not laid out on whole pixels
    demo.mouse.click(plot["x"] + x, plot["y"] + y)
    assert events(demo, 1) == [["click", 1, [row]]]


def test_a_small_selection_is_drawn_as_points_on_the_density(demo):
    blank = pixels(demo, 1)
    demo.get_by_text("Highlight ten").click()
    demo.wait_for_selector(f"{ROOT}[data-selected='10']")
    shows(demo, ["density"] * 4)
    assert pixels(demo, 1) != blank
    assert demo.locator(".ls-plot").nth(1).locator(".ls-names .ls-ring").count() == 10
    demo.locator(ROOT).focus()
    demo.keyboard.press("Escape")
    demo.wait_for_selector(f"{ROOT}[data-selected='0']")
    assert pixels(demo, 1) == blank


def test_zoom_ends_where_the_rounding_of_places_would_be_seen(demo):
    demo.locator(ROOT).focus()
    for _ in range(30):
        demo.keyboard.press("+")
    demo.wait_for_function(
        "JSON.parse(document.querySelector('.ls-root').dataset.views).every(([, , zoom]) => zoom === 100)"
    )
    width = demo.locator(".ls-plot").first.bounding_box()["width"]
    assert 100 * width / 1.08 / POSITION_STEPS / 2 < 0.6  # pixels of half a step


def test_a_dark_page_has_its_own_density(page, serve):
    page.emulate_media(color_scheme="dark")
    page.goto(f"{serve(DEMO)}/?n={N}&named={NAMED}")
    page.wait_for_selector(f"{ROOT}[data-drawn][data-theme=dark]")
    shows(page, ["density"] * 4)
    dark = density(page, 0)
    page.emulate_media(color_scheme="light")
    page.wait_for_selector(f"{ROOT}[data-theme=light]")
    shows(page, ["density"] * 4)
    at_rest(page)
    light = density(page, 0)
    strongest = (dark[..., 3] > 250) & (light[..., 3] > 250)
    assert strongest.sum() > 50
    assert (
        dark[strongest][:, :3].mean() > light[strongest][:, :3].mean() + 30
    )  # full bins turn towards the text's colour
