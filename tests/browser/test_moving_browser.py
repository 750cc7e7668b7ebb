"""Panes of points drawn in software: a sample while the view moves, all points at rest, selections of all
rows at any time.
"""

import base64

import numpy as np
import pytest

from relcore.charts.scene import Pane, Scene
from relcore.panes.page import script, style
from relcore.panes.payload import ids_digest, payload_of
from tests.browser.panes import ROOT, drag, pixels, zoom

HOME = (
    "{ send() {}, load: () => Promise.reject(), background: '#fff', scroller: () => null, content: () =>"
    " null }"
)


@pytest.fixture
def shown(page):
    """``shown(n, dimensions)``: two panes of n rows; the page then has `scatter` and `again`, which draws
    them afresh.
    """

    def draw(n, dimensions=2):
        rng = np.random.default_rng(0)
        panes = tuple(
            Pane(name, rng.normal(size=(n, dimensions)).astype(np.float32)) for name in ("first", "second")
        )
        ids = np.array([f"r{row}" for row in range(n)], dtype=object)
        scene = Scene(panes, ids, rng.integers(-1, 4, n), ("a", "b", "c", "d"), anchors=np.array([3, 5]))
        settings = {"linkZoom": True, "height": 400, "fill": False, "dark": False, "tool": "lasso"}
        content = base64.b64encode(
            payload_of(scene, version=ids_digest(scene), settings=settings).to_bytes()
        ).decode()
        page.set_content(
            f"<style>{style()}</style><div id='host' style='width:900px'></div><script"
            f" type='module'>{script('')}\nconst bytes = Uint8Array.from(atob('{content}'), (letter) =>"
            " letter.charCodeAt(0));\nwindow.again = () => { remove(host); window.scatter = render(host,"
            f" unpack(bytes), {HOME}); }};\nagain();</script>"
        )
        shows(page, "points points")
        page.evaluate("scatter.setTool('lasso')")
        return panes

    return draw


def shows(page, pictures):
    page.wait_for_selector(f"{ROOT}[data-drawn][data-pictures='{pictures}']")


def hold(page):
    """Let no view come to rest."""
    page.evaluate("window.usual = setTimeout; window.setTimeout = () => 0")


def release(page):
    page.evaluate(
        "window.setTimeout = usual; for (const pane of scatter.panes) setTimeout(() => pane.redraw(), 200)"
    )


def selected(page):
    return page.evaluate("[...scatter.rows]")


def test_a_sample_moves_over_the_last_picture_and_all_points_come_to_rest(page, shown):
    shown(9000)
    hold(page)
    zoom(page, 0, 3)
    shows(page, "sampled sampled")
    assert page.evaluate("scatter.panes.map((pane) => pane.points.few.n)") == [3000, 3000]
    covered = "getComputedStyle(scatter.panes[0].density).visibility"
    assert page.evaluate(covered) == "visible"
    release(page)
    shows(page, "points points")
    assert page.evaluate(covered) == "hidden"
    rested = [pixels(page, pane) for pane in (0, 1)]
    view = page.evaluate("scatter.panes[0].view")
    assert view["zoom"] > 1.5
    page.evaluate("view => { again(); for (const pane of scatter.panes) pane.view = view; }", view)
    shows(page, "points points")
    assert [pixels(page, pane) for pane in (0, 1)] == rested


def test_few_rows_are_all_drawn_while_the_view_moves(page, shown):
    shown(6000)
    hold(page)
    zoom(page, 0, 2)
    assert page.get_attribute(ROOT, "data-pictures") == "points points"


def test_a_lasso_takes_rows_that_the_sample_leaves_out(page, shown):
    shown(9000)
    hold(page)
    zoom(page, 0, 2)
    shows(page, "sampled sampled")
    drag(page, 0, [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7)])
    page.wait_for_selector(f"{ROOT}:not([data-selected='0'])")
    polygon, units = page.evaluate(
        "[performance.getEntriesByName('linked_scatter:brushed').at(-1).detail, [...scatter.panes[0].units]]"
    )
    (left, low), (right, high) = np.min(polygon, axis=0), np.max(polygon, axis=0)
    x, y = np.array(units).reshape(-1, 2).T
    expected = np.flatnonzero((x >= left) & (x <= right) & (y >= low) & (y <= high))
    assert len(expected) > 2000  # of which a sample of a third shows some 700
    assert selected(page) == expected.tolist()


def test_of_a_large_solid_a_sample_is_drawn_and_every_row_can_be_selected(page, shown):
    shown(40_000, 3)
    assert (
        page.inner_text(".ls-density-key >> nth=0")
        == "30,000 of 40,000 rows drawn; every row can be selected"
    )
    drag(page, 0, [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99)])
    page.wait_for_selector(f"{ROOT}[data-selected='40000']")


def test_a_smaller_solid_is_drawn_whole_and_says_nothing(page, shown):
    shown(20_000, 3)
    assert not page.is_visible(".ls-density-key >> nth=0")


def test_a_sample_keeps_the_selected_rows_and_the_order_of_painting(page):
    order = np.r_[
        np.arange(0, 1000, 2), np.arange(1, 1000, 2)
    ].tolist()  # odd rows are selected and painted last
    taken = "most.map((one) => [...thinned(order, order.map((_, row) => row % 2), one)])"
    few = page.evaluate(f"([order, most]) => {{ {script('')}\nreturn {taken}; }}", [order, [100, 900, 10]])
    for rows, most in zip(few, (100, 900, 10), strict=True):
        assert len(rows) == len(set(rows)) == most
        places = [order.index(row) for row in rows]
        assert places == sorted(places)
        assert sum(row % 2 for row in rows) == most / 2 if most < 900 else 450


FRAME = (  # after what was asked for
    "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
)


def after_two_frames(page, first, second, told):
    """Do `first`, have it drawn, do `second` in a later frame, have it drawn, and give `told`."""
    return page.evaluate(f"async () => {{ {first}; {FRAME} {second}; {FRAME} return {told}; }}")


ZOOM = "for (const pane of scatter.panes) pane.setView({ x: 0, y: 0, zoom: pane.view.zoom * 1.2 })"


@pytest.mark.parametrize(
    "change",
    [
        "scatter.select(Uint32Array.of(1, 2))",
        "for (const pane of scatter.panes) pane.setPositions(other.slice(), 2)",
    ],
)
def test_no_picture_of_other_positions_or_another_selection_lies_under_a_sample(page, shown, change):
    shown(9000)
    hold(page)
    page.evaluate("window.other = Float32Array.from(scatter.panes[0].units).reverse()")
    pictures = "scatter.panes.map((pane) => pane.picture)"
    assert after_two_frames(page, ZOOM, ZOOM, pictures) == ["sampled", "sampled"]
    assert after_two_frames(page, ZOOM, f"{ZOOM}; {change}", pictures) == ["points", "points"]


def test_a_solid_that_turns_after_a_zoom_shows_no_picture_of_another_side(page, shown):
    shown(30_000, 3)
    hold(page)
    told = "[scatter.panes[0].picture, getComputedStyle(scatter.panes[0].density).visibility]"
    assert after_two_frames(page, "", ZOOM, told) == ["sampled", "visible"]
    turn = "scatter.turned([0, 1, 0, -1, 0, 0, 0, 0, 1])"
    assert after_two_frames(page, ZOOM, turn, told) == ["sampled", "hidden"]


def test_a_density_that_comes_while_the_view_moves_is_seen_at_once(page, shown):
    shown(30_000)
    hold(page)
    dense = (
        "{ const [pane] = scatter.panes; const places = Uint16Array.from(pane.units, (unit) => 32767 * (1 +"
        " unit)); pane.setPositions(places, 2); pane.setFlags(pane.flags, scatter.rows); pane.paint(); }"
    )
    told = "[scatter.panes[0].dense.asPoints, getComputedStyle(scatter.panes[0].density).visibility]"
    page.evaluate("for (const pane of scatter.panes) pane.setView({ x: 0, y: 0, zoom: 0.9 })")
    assert after_two_frames(page, ZOOM, dense, told) == [False, "visible"]


def test_a_screen_of_finer_pixels_is_drawn_for_at_once(page, shown):
    shown(100)
    width = page.evaluate("scatter.panes[0].canvas.width")
    session = page.context.new_cdp_session(page)
    for ratio in (2, 1):
        # Chromium's emulation tells of another ratio with another size only; the panes keep theirs, so that
        # does not draw them.
        metrics = {"width": 1360 + ratio, "height": 900, "deviceScaleFactor": ratio, "mobile": False}
        session.send("Emulation.setDeviceMetricsOverride", metrics)
        drawn = "width => scatter.panes.every((pane) => pane.canvas.width === width)"
        page.wait_for_function(drawn, arg=ratio * width, timeout=10_000)


def test_only_the_latest_of_the_marks_for_measurements_is_kept(page, shown):
    shown(100)
    for row in range(3):
        page.evaluate("row => scatter.brushed([row], false, [[row, row]])", row)
    page.evaluate("again()")
    shows(page, "points points")
    marks = "name => performance.getEntriesByName(`linked_scatter:${name}`).map((mark) => mark.detail)"
    assert page.evaluate(marks, "brushed") == [[[2, 2]]]
    assert page.evaluate(marks, "drawn") == [None]
