"""The exported page of the panes in a real Chromium, opened from the disk: no server answers, and nothing
is asked.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from relcore.charts.scene import Pane, Scene
from relcore.figures.style import DARK
from relcore.panes.page import scene_exportable
from tests.browser.panes import ROOT, at_rest, drag, pixels, views, zoom

N = 400


def made_up():
    """Two panes of the same rows, the second one turned; texts, notes, two classes and rows of none."""
    rng = np.random.default_rng(0)
    cloud = rng.uniform(-1, 1, size=(N, 2))
    cloud[np.abs(cloud) < 0.02] = 0.02  # none where the edge of a box may be a pixel off
    cloud[:4] = [[-1, -1], [1, 1], [-1, 1], [1, -1]]  # so that the middle of the pane is 0
    panes = Pane("first", cloud), Pane("second", cloud[:, ::-1])
    ids = np.array([f"row {i} <b>é</b>" for i in range(N)], dtype=object)
    texts = np.array([f"The text of row {i}." for i in range(N)], dtype=object)
    notes = np.array([f"{i} times" for i in range(N)], dtype=object)
    classes = np.arange(N) % 3 - 1
    return Scene(
        panes,
        ids,
        classes,
        ("even", "odd"),
        anchors=np.array([7, 9]),
        texts=texts,
        notes=notes,
        caption="Made up.",
    )


@pytest.fixture
def opened(page, tmp_path):
    """``opened(scene, theme=…) -> page`` once it is drawn; whatever it asks for but itself fails the test."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    def open_page(scene, **settings):
        path = tmp_path / "panes.html"
        path.write_bytes(scene_exportable(scene).bytes("html", **settings))
        page.goto(path.as_uri())
        page.wait_for_selector(f"{ROOT}[data-drawn]")
        return page

    yield open_page
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def selected(page, n):
    page.wait_for_selector(f"{ROOT}[data-selected='{n}']")


def test_a_brush_selects_in_all_panes_and_the_inspector_lists_the_rows(opened):
    scene = made_up()
    page = opened(scene)
    before = [pixels(page, pane) for pane in range(2)]
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.002, 0.002), (0.5, 0.998)])
    expected = np.flatnonzero(scene.panes[0].coordinates[:, 0] < 0)
    selected(page, len(expected))
    assert page.locator(".ls-entry").all_inner_texts() == [str(scene.ids[row]) for row in expected]
    assert all(pixels(page, pane) != before[pane] for pane in range(2))
    page.keyboard.down("Shift")
    drag(page, 1, [(0.002, 0.002), (0.998, 0.998)])
    page.keyboard.up("Shift")
    selected(page, N)
    assert "and 100 more" in page.inner_text(".ls-inspector")
    page.locator(ROOT).focus()
    page.keyboard.press("Escape")
    selected(page, 0)
    assert "No row selected" in page.inner_text(".ls-inspector")


def test_a_click_shows_all_that_is_known_of_a_row(opened):
    page = opened(made_up())
    box = page.locator(".ls-plot").nth(1).locator(".ls-star").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    selected(page, 1)
    told = page.inner_text(".ls-inspector")
    assert "row 7 <b>é</b>" in told
    assert re.search(r"The text of row 7\.\s+Colour\s+even\s+Note\s+7 times\s+Anchor\s+1", told)
    page.mouse.move(2, 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(".ls-tip:not([hidden])")
    assert "The text of row 7." in page.inner_text(".ls-tip")


def test_a_row_of_the_list_can_be_picked_and_hidden_classes_stay_hidden(opened):
    page = opened(made_up())
    page.locator(".ls-chip", has_text="odd").click()
    page.wait_for_selector(f"{ROOT}[data-hidden='133']")
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.002, 0.002), (0.998, 0.998)])
    selected(page, N - 133)
    page.locator(".ls-entry").nth(1).press("Enter")
    selected(page, 1)
    assert page.evaluate("document.activeElement.textContent") == "1 row selected"
    assert "row 1 " in page.inner_text(".ls-one")
    assert page.get_attribute(ROOT, "data-hidden") == "133"


def test_zooms_can_be_linked_and_last_through_a_selection(opened):
    page = opened(made_up())
    page.click(f"{ROOT} [data-tool=link]")
    zoom(page, 0, clicks=3)
    zoomed = views(page)
    assert zoomed[0] == zoomed[1]
    assert zoomed[0][2] > 1.5
    drag(page, 1, [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7)])
    page.wait_for_selector(".ls-entry")
    assert views(page) == zoomed


def test_on_a_phone_every_tool_is_in_sight_whatever_is_selected(opened):
    page = opened(made_up())
    page.set_viewport_size({"width": 390, "height": 844})
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.002, 0.002), (0.998, 0.998)])
    selected(page, N)
    page.wait_for_function("document.querySelector('.ls-status').textContent === '400 of 400 selected'")
    boxes = [
        one.bounding_box()
        for one in page.locator(".ls-toolbar > .ls-button, .ls-segments .ls-button, .ls-status").all()
    ]
    shown = [box for box in boxes if box]
    assert len(shown) == 11
    assert min(box["x"] for box in shown) >= 0
    assert max(box["x"] + box["width"] for box in shown) <= 390


def test_the_panes_fit_the_window_and_keep_their_height_where_the_page_scrolls(opened):
    page = opened(made_up())
    at_rest(page)
    assert page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
    page.set_viewport_size({"width": 700, "height": 900})
    at_rest(page)
    page.locator(ROOT).focus()
    page.locator(".ls-legend [data-class]").first.click(modifiers=["Shift"])
    at_rest(page)
    before = page.locator(".ls-grid").bounding_box()["height"]
    page.evaluate("scrollTo(0, 300)")
    assert page.evaluate("scrollY") == 300
    page.evaluate("dispatchEvent(new Event('resize'))")
    at_rest(page)
    assert page.locator(".ls-grid").bounding_box()["height"] == before


def test_numbers_of_anchors_at_the_edges_stay_within_their_pane(opened):
    page = opened(
        replace(made_up(), anchors=np.arange(12))
    )  # the first four in the corners, with numbers of one and two digits
    page.set_viewport_size({"width": 390, "height": 844})
    at_rest(page)
    pane = page.locator(".ls-plot").first.bounding_box()
    for number in page.locator(".ls-plot").first.locator(".ls-number").all():
        box = number.bounding_box()
        assert pane["x"] <= box["x"]
        assert box["x"] + box["width"] <= pane["x"] + pane["width"]
        assert pane["y"] - 4 <= box["y"]  # the box of a text has room above its digits
        assert box["y"] + box["height"] <= pane["y"] + pane["height"] + 4


def test_the_name_of_a_class_of_one_row_does_not_cover_it(opened):
    cloud = np.array([[-1, -1], [1, 1], [-0.4, 0.3], [0.4, -0.3]])
    ids = np.array(["p", "q", "r", "s"], dtype=object)
    page = opened(
        Scene((Pane("first", cloud),), ids, np.arange(4), ("one", "two", "three", "four"), named=True)
    )
    plot = page.locator(".ls-plot").bounding_box()
    for row, name in ((2, "three"), (3, "four")):
        box = page.locator(".ls-name-group", has_text=name).bounding_box()
        y = plot["y"] + (1 - cloud[row, 1] / 1.08) / 2 * plot["height"]  # a margin of 8 %
        assert not box["y"] <= y <= box["y"] + box["height"]
        assert abs(box["y"] + box["height"] / 2 - y) < 40


def test_long_ids_without_spaces_are_named_by_both_ends(opened):
    made = made_up()
    ids = np.array([f"https://example.org/a/long/path/{i:05}.png" for i in range(N)], dtype=object)
    page = opened(replace(made, ids=ids))
    box = page.locator(".ls-plot").nth(0).locator(".ls-star").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    selected(page, 1)
    page.locator(".ls-name", has_text="https://exampl…/path/00007.png").first.wait_for()


def test_a_page_is_dark_where_its_theme_is(opened):
    page = opened(made_up(), theme=DARK)
    assert page.get_attribute(ROOT, "data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb({}, {}, {})".format(
        *(int(DARK.surface[i : i + 2], 16) for i in (1, 3, 5))
    )


def test_a_page_that_cannot_draw_says_what_to_do(page, tmp_path):
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    (tmp_path / "panes.html").write_bytes(scene_exportable(made_up()).bytes("html"))
    page.goto((tmp_path / "panes.html").as_uri())
    assert "use another browser" in page.get_by_role("alert").inner_text()


def test_a_page_cut_short_says_what_to_do(page, tmp_path):
    content = scene_exportable(made_up()).bytes("html").decode()
    start = content.index('id="relscope-panes">') + len('id="relscope-panes">')
    path = tmp_path / "panes.html"
    path.write_text(content[: start + 400] + content[content.index("</script>", start) :], encoding="utf-8")
    page.goto(path.as_uri())
    page.get_by_role("alert").filter(has_text="Export the page again").wait_for(timeout=10_000)
