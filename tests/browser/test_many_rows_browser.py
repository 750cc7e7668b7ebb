import numpy as np
import pytest

from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene
from relcore.panes.payload import POSITION_STEPS, quantise
from tests.browser.panes import (
    CLASSES,
    ROOT,
    at_rest,
    chip,
    clouds,
    content,
    drag,
    draw,
    events,
    inside,
    keys,
    lasso,
    picture,
    pixels,
    scene,
    views,
    wait_for,
    zoom,
)

N = 80_000  # just above the number from which panes are drawn as density
SHARE = 0.8


@pytest.fixture(scope="module")
def many():
    return scene(N, classed=SHARE)


@pytest.fixture(scope="module")
def rows():
    classes, coordinates = clouds(N, SHARE)
    return classes, [quantise(cloud) for cloud in coordinates]


@pytest.fixture
def page(panes):
    return panes


@pytest.fixture
def dense(page, many):
    draw(page, many)
    shows(page, "density density density density")
    return page


def shows(page, pictures):
    wait_for(page, "pictures", pictures)


def density(page, pane):
    return picture(page, ".ls-density", pane)


def test_a_density_shows_where_rows_are_in_which_colours(dense, rows, many):
    page = dense
    (_, steps) = rows
    shown = density(page, 2)
    height, width, _ = shown.shape
    x, y = ((steps[2].T / POSITION_STEPS * 2 - 1) / 1.08 + 1) / 2  # the view of a pane has a margin
    counts, _, _ = np.histogram2d(1 - y, x, bins=(height // 8, width // 8), range=((0, 1), (0, 1)))
    cut = shown[: height // 8 * 8, : width // 8 * 8, 3]
    blocks = cut.reshape(height // 8, 8, width // 8, 8).mean(axis=(1, 3))
    assert np.corrcoef(np.log1p(counts).ravel(), blocks.ravel())[0, 1] > 0.9
    light = density(page, 0)
    colours = np.unique(light[..., :3].reshape(-1, 3) // 32, axis=0)
    assert len(colours) > 12  # mixtures of six colours and grey
    assert f"{N:,} rows" in page.locator(".ls-density-key").first.inner_text()
    assert f"{N:,} rows" in page.locator(".ls-pane").first.get_attribute("aria-label")
    page.emulate_media(color_scheme="dark")
    draw(page, many)
    wait_for(page, "theme", "dark")
    at_rest(page)
    dark = density(page, 0)
    strongest = (dark[..., 3] > 250) & (light[..., 3] > 250)
    assert strongest.sum() > 50  # full bins turn towards the text's colour
    assert dark[strongest][:, :3].mean() > light[strongest][:, :3].mean() + 30


def test_zooming_in_makes_a_new_density_and_then_points(dense, rows):
    page = dense
    (_, steps) = rows
    before = density(page, 0)
    page.locator(ROOT).focus()
    zoom(page, 0, clicks=1)
    shows(page, "density density density density")
    assert not np.array_equal(density(page, 0), before)
    zoom(page, 0, clicks=10)
    shows(page, "points density density density")
    assert page.evaluate("getComputedStyle(document.querySelector('.ls-density')).visibility") == "hidden"
    x, y, closer = views(page)[0]
    units = steps[0] / POSITION_STEPS * 2 - 1
    in_view = (np.abs(units - [x, y]) <= 1.08 / closer).all(axis=1).sum()
    shown = int(page.locator(".ls-density-key").first.inner_text().split(" ")[0].replace(",", ""))
    assert in_view <= shown <= 1.5 * in_view + 500  # counted by cells
    page.keyboard.press("0")
    shows(page, "density density density density")
    assert np.array_equal(density(page, 0), before)
    keys(page, *"+" * 30)
    page.wait_for_function("scatter.panes.every((pane) => pane.view.zoom === 100)")
    width = page.locator(".ls-plot").first.bounding_box()["width"]
    assert 100 * width / 1.08 / POSITION_STEPS / 2 < 0.6  # pixels of half a step


def test_brushes_over_a_density_are_right_to_the_row(dense, rows):
    page = dense
    (_, steps) = rows
    before = [density(page, i) for i in range(4)]
    for number, pane in enumerate((0, 3), start=1):
        drag(page, pane, [(0.3, 0.35), (0.62, 0.2), (0.7, 0.8), (0.45, 0.55), (0.28, 0.83)])
        selected = events(page, number)[-1]["rows"]
        assert selected == inside(page, steps[pane])
        assert 5_000 < len(selected) < N
    wait_for(page, "selected", len(selected))
    assert all(not np.array_equal(density(page, i), before[i]) for i in range(4))
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 1, [(0.2, 0.2), (0.5, 0.6)])
    first = inside(page, steps[1])
    page.keyboard.down("Shift")
    drag(page, 2, [(0.5, 0.3), (0.9, 0.9)])
    page.keyboard.up("Shift")
    _, _, box, both = (event["rows"] for event in events(page, 4))
    assert box == first
    assert both == np.union1d(first, inside(page, steps[2])).tolist()


def test_a_hidden_class_is_neither_drawn_nor_selected(dense, rows):
    page = dense
    (classes, steps) = rows
    before = density(page, 0)
    animals, _ = chip(page, "animals")
    animals.click()
    wait_for(page, "hidden", (classes == CLASSES.index("animals")).sum())
    assert not np.array_equal(density(page, 0), before)
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.1, 0.1), (0.9, 0.9)])
    expected = [
        row for row in inside(page, steps[0]) if CLASSES[classes[row]] != "animals" or classes[row] < 0
    ]
    assert events(page, 2)[1]["rows"] == expected
    animals.click()
    events(page, 3)
    animals.dblclick()
    shows(page, "points points points points")


# Two panes of points drawn in software: a sample while the view moves, all points at rest.


@pytest.fixture
def shown(page):
    page.set_viewport_size({"width": 900, "height": 600})

    def open_panes(n):
        rng = np.random.default_rng(0)
        panes = tuple(Pane(name, rng.normal(size=(n, 2)).astype(np.float32)) for name in "ab")
        ids = np.array([f"r{row}" for row in range(n)], dtype=object)
        drawn = Scene(panes, ids, rng.integers(-1, 4, n), ("a", "b", "c", "d"), anchors=np.array([3, 5]))
        draw(page, drawn, link_zoom=True, height=400)
        shows(page, "points points")
        page.evaluate("scatter.setTool('lasso')")
        return content(drawn, link_zoom=True, height=400)

    return open_panes


def hold(page):
    page.evaluate("window.usual = setTimeout; window.setTimeout = () => 0")


def release(page):
    page.evaluate(
        "window.setTimeout = usual; for (const pane of scatter.panes) setTimeout(() => pane.redraw(), 200)"
    )


COVERED = "getComputedStyle(scatter.panes[0].density).visibility"


def test_a_sample_moves_and_all_points_come_to_rest(page, shown):
    payload = shown(9000)
    hold(page)
    zoom(page, 0, 3)
    shows(page, "sampled sampled")
    assert page.evaluate("scatter.panes.map((pane) => pane.points.few.n)") == [3000, 3000]
    assert page.evaluate(COVERED) == "visible"
    release(page)
    shows(page, "points points")
    assert page.evaluate(COVERED) == "hidden"
    rested = [pixels(page, pane) for pane in (0, 1)]
    view = page.evaluate("scatter.panes[0].view")
    assert view["zoom"] > 1.5
    page.evaluate(
        "([content, view]) => { again(content); for (const pane of scatter.panes) pane.view = view; }",
        [payload, view],
    )
    shows(page, "points points")
    assert [pixels(page, pane) for pane in (0, 1)] == rested
    marks = "name => performance.getEntriesByName(`linked_scatter:${name}`).length"
    assert page.evaluate(marks, "drawn") == 1  # only the latest mark is kept


def test_a_lasso_takes_rows_that_the_sample_leaves_out(page, shown):
    shown(9000)
    hold(page)
    zoom(page, 0, 2)
    shows(page, "sampled sampled")
    lasso(page)
    units = np.reshape(page.evaluate("[...scatter.panes[0].units]"), (-1, 2))
    expected = inside(page, (units + 1) * POSITION_STEPS / 2)
    assert len(expected) > 2000  # of which a sample of a third shows some 700
    assert page.evaluate("[...scatter.rows]") == expected


# After what was asked for is drawn.
FRAME = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
ZOOM = "for (const pane of scatter.panes) pane.setView({ x: 0, y: 0, zoom: pane.view.zoom * 1.2 })"
PICTURES = "scatter.panes.map((pane) => pane.picture)"


def after_two_frames(page, first, second, value):
    """Do `first`, have it drawn, do `second` in a later frame, have it drawn, and give the value."""
    return page.evaluate(f"async () => {{ {first}; {FRAME} {second}; {FRAME} return {value}; }}")


@pytest.mark.parametrize(
    "change",
    [
        "scatter.select(Uint32Array.of(1, 2))",
        "for (const pane of scatter.panes) pane.setPositions(other.slice(), 2)",
    ],
)
def test_no_other_picture_lies_under_a_sample(page, shown, change):
    shown(9000)
    hold(page)
    page.evaluate("window.other = Float32Array.from(scatter.panes[0].units).reverse()")
    assert after_two_frames(page, ZOOM, ZOOM, PICTURES) == ["sampled", "sampled"]
    assert after_two_frames(page, ZOOM, f"{ZOOM}; {change}", PICTURES) == ["points", "points"]


def test_a_screen_of_finer_pixels_is_drawn_for_at_once(page, shown):
    shown(100)
    page.evaluate("host.style.width = '850px'")
    session = page.context.new_cdp_session(page)
    for ratio in (2, 1):
        # Chromium reports a new ratio only together with a new size of the window. The panes keep their size, so
        # the size alone would not draw them again.
        metrics = {"width": 900 + ratio, "height": 600, "deviceScaleFactor": ratio, "mobile": False}
        session.send("Emulation.setDeviceMetricsOverride", metrics)
        drawn = "width => scatter.panes.every((pane) => Math.abs(pane.canvas.width - width) <= 2)"
        width = page.evaluate("scatter.panes[0].canvas.clientWidth")
        page.wait_for_function(drawn, arg=ratio * width, timeout=10_000)
    page.set_viewport_size({"width": 900, "height": 601})  # ends the emulation
