"""The parts of a pane of very many rows, run alone in the browser: its grid of rows, and its counts and
colours.
"""

import json

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

from relcore.panes.page import script
from relcore.panes.payload import POSITION_STEPS

COLORS = [[0, 114, 178], [213, 94, 0]]


@pytest.fixture
def run(page):
    """``run("expression of what the scripts define", **values)``; arrays of uint16 arrive as such."""

    def evaluate(expression, **values):
        parts = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in values.items()}
        typed = [
            name for name, one in values.items() if isinstance(one, np.ndarray) and one.dtype == np.uint16
        ]
        names = "".join(
            f"const {name} = {'Uint16Array.from' if name in typed else ''}(given.{name});\n"
            for name in values
        )
        return page.evaluate(f"given => {{ {script(names)}\nreturn ({expression}); }}", parts)

    return evaluate


def places(n=20_000, seed=0):
    """Steps of rows in crowds, on the edges of cells, in the corners, and many in one place."""
    rng = np.random.default_rng(seed)
    steps = np.clip(rng.normal(30_000, [9_000, 15_000], size=(n, 2)), 0, POSITION_STEPS).astype(np.uint16)
    steps[: n // 4] = steps[: n // 4] // 256 * 256
    steps[:4] = [[0, 0], [0, POSITION_STEPS], [POSITION_STEPS, 0], [POSITION_STEPS, POSITION_STEPS]]
    steps[-n // 10 :] = [777, 40_000]
    return steps


rng = np.random.default_rng(3)
POLYGONS = {
    "a triangle": [[5_000.3, 4_000.7], [60_000.1, 20_000.9], [22_222.2, 64_000.4]],
    "itself crossed": (rng.random((40, 2)) * POSITION_STEPS).tolist(),
    "within one cell": [[30_000.1, 30_000.2], [30_090.3, 30_010.4], [30_050.5, 30_120.6]],
    "beyond the picture": [
        [-30_000.5, -9.5],
        [40_000.5, -80_000.5],
        [99_000.5, 45_000.5],
        [20_000.5, 90_000.5],
    ],
    "everything": [[-9.5, -9.5], [70_000.5, -9.5], [70_000.5, 70_000.5], [-9.5, 70_000.5]],
    "a box along cells": [[2_559.5, 2_559.5], [51_199.5, 2_559.5], [51_199.5, 51_199.5], [2_559.5, 51_199.5]],
    "a sliver": [[100.5, 100.5], [65_000.5, 65_100.5], [65_000.5, 65_099.5]],
    "two points": [[100.5, 100.5], [65_000.5, 65_100.5]],
    "nowhere near": [[-900.5, -900.5], [-100.5, -900.5], [-100.5, -100.5]],
}


@pytest.mark.parametrize("name", POLYGONS)
def test_a_lasso_has_the_rows_that_matplotlib_finds_within(run, name):
    steps, polygon = places(), POLYGONS[name]
    inside, found = run(
        "[...new RowGrid(steps).within(polygon, () => true)].map((one) => one.length ? [...one] : one)",
        steps=steps.ravel(),
        polygon=polygon,
    )
    expected = even_odd(steps.astype(float), np.array(polygon))
    np.testing.assert_array_equal(np.array(inside, dtype=bool), expected)
    assert found == expected.sum()
    if name != "itself crossed":  # Matplotlib fills what is wound around twice
        np.testing.assert_array_equal(expected, Polygon(polygon).contains_points(steps))


def test_a_name_is_cut_between_its_signs(run):
    assert run("shortened(name)", name="🙂" * 40) == "🙂" * 14 + "…" + "🙂" * 15
    assert run("shortened(name)", name="🙂" * 30) == "🙂" * 30
    assert run("shortened(name)", name="a " + "🙂" * 40) == "a " + "🙂" * 27 + "…"


# What a tip is served, one after another; each load waits until the test says what comes of it.
SERVED = """(() => {
  let made = 0;
  const known = URL.createObjectURL;
  URL.createObjectURL = (blob) => (made++, known(blob));
  const [tip, loads] = [new Tip(), []];
  const load = (address) => new Promise((come, fail) => loads.push({ address, come: () => come(new Blob()), fail }));
  const serve = (sheet) => tip.serve({ sheet }, {}, load);
  const asked = () => loads.map((one) => one.address);
  return (ACTS).then((told) => [told, asked(), made]);
})()"""


def test_pictures_that_come_too_late_are_not_kept(run):
    acts = (
        "(async () => { serve('a'); serve('b'); loads[0].come(); loads[1].come(); await null; await null;"
        " return 0; })()"
    )
    assert run(SERVED.replace("ACTS", acts)) == [0, ["a", "b"], 1]


def test_pictures_that_could_not_be_had_are_asked_for_with_the_next_payload(run):
    acts = (
        "(async () => { serve('a'); loads[0].fail(); for (let i = 0; i < 9; i++) await null; serve('a');"
        " return 0; })()"
    )
    assert run(SERVED.replace("ACTS", acts)) == [0, ["a", "a"], 0]


def even_odd(points, polygon):
    """Rays to the right cross the edges an odd number of times."""
    inside = np.zeros(len(points), dtype=bool)
    x, y = points.T
    for (x0, y0), (x1, y1) in zip(np.roll(polygon, 1, axis=0), polygon, strict=True):
        crossed = (y1 > y) != (y0 > y)
        if y0 != y1:
            inside ^= crossed & (x < (x0 - x1) * (y - y1) / (y0 - y1) + x1)
    return inside


def test_a_lasso_leaves_out_rows_that_are_not_to_be_taken(run):
    steps = places()
    _, found = run(
        "new RowGrid(steps).within(polygon, (row) => row % 3 === 0)",
        steps=steps.ravel(),
        polygon=POLYGONS["everything"],
    )
    assert found == len(range(0, len(steps), 3))


def test_the_nearest_row_is_the_nearest_of_all(run):
    steps = places(4000)
    pointers = np.random.default_rng(5).uniform(-300, POSITION_STEPS + 300, size=(200, 2))
    expression = "pointers.map(([x, y]) => grid.nearest(x, y, 0.01, 0.005, 9, (row) => row % 2 === 1))"
    found = run(f"((grid) => {expression})(new RowGrid(steps))", steps=steps.ravel(), pointers=pointers)
    odd = np.arange(1, len(steps), 2)
    for pointer, row in zip(pointers, found, strict=True):
        distances = np.hypot(*((steps[odd] - pointer) * [0.01, 0.005]).T)
        if distances.min() > 9:
            assert row == -1
        else:
            assert np.hypot(*((steps[row] - pointer) * [0.01, 0.005])) == pytest.approx(distances.min())
            assert row % 2 == 1
    assert len(set(found)) > 20


COUNTED = """((density) => {
  const grid = new RowGrid(steps);
  density.count(grid, rectangle, 31, 17, looks.map((_, place) => looks[grid.rows[place]]), tintsOf(colors.flat()));
  const pixels = new Uint8ClampedArray(4 * 31 * 17);
  density.paint(pixels, [0, 0, 0], brushed);
  return { sums: [...density.sums], pixels: [...pixels], top: density.top };
})(new Density())"""


def counted(run, steps, looks, rectangle, brushed=False):
    found = run(
        COUNTED,
        steps=steps.ravel(),
        looks=looks.astype(np.uint16),
        rectangle=rectangle,
        colors=COLORS,
        brushed=brushed,
    )
    return (
        np.array(found["sums"]).reshape(17, 31, 2, 4),
        np.array(found["pixels"]).reshape(17, 31, 4),
        found["top"],
    )


AWAY, LIT = 0x8000, 0x4000
RECTANGLE = [10_000.25, 20_000.25, 50_000.25, 60_000.25]


def test_bins_count_the_rows_in_view_as_numpy_does(run):
    steps = places()
    rows = np.arange(len(steps))
    looks = np.where(rows % 5 == 0, AWAY, 0) + np.where(rows % 3 == 0, LIT, 0) + rows % 2
    sums, _, _ = counted(run, steps, looks, RECTANGLE)
    left, low, right, high = RECTANGLE
    for layer, chosen in enumerate((rows % 3 > 0, rows % 3 == 0)):
        x, y = steps[chosen & (rows % 5 > 0)].T
        expected, _, _ = np.histogram2d(y, x, bins=(17, 31), range=((low, high), (left, right)))
        np.testing.assert_array_equal(sums[::-1, :, layer, 0], expected)
    assert sums[..., 0].sum() > 1000


def test_a_bin_has_the_colour_of_its_rows_and_a_mixture_is_between(run):
    steps = places()
    left, _, right, _ = RECTANGLE
    in_left_third = steps[:, 0] < left + (right - left) / 3
    rows = np.arange(len(steps))
    sums, pixels, _ = counted(run, steps, np.where(in_left_third, 0, rows % 2), RECTANGLE)
    filled = sums[..., 0, 0] > 0
    faint = filled & (sums[..., 0, 0] == 1)
    assert (pixels[~filled] == 0).all()
    assert (pixels[filled, 3] > 60).all()
    pure = faint[:, :10]
    np.testing.assert_allclose(pixels[:, :10, :3][pure], np.tile(COLORS[0], (pure.sum(), 1)), atol=4)
    mixed = filled[:, 11:] & (sums[:, 11:, 0, 0] > 20)
    reds = pixels[:, 11:, 0][mixed]
    assert ((reds > COLORS[0][0]) & (reds < COLORS[1][0])).all()
    assert mixed.sum() > 20


def test_a_bin_of_three_million_rows_has_their_colour(run):
    shown = """(() => {
      const [n, density, pixels] = [3_000_000, new Density(), new Uint8ClampedArray(4 * 9)];
      const grid = new RowGrid(new Uint16Array(2 * n).fill(30_000));
      density.count(grid, [0, 0, STEPS, STEPS], 3, 3, new Uint16Array(n), tintsOf([250, 240, 230]));
      density.paint(pixels, [250, 240, 230], false);
      return [...pixels].slice(4 * 4, 4 * 5);
    })()"""
    assert run(shown) == [250, 240, 230, 255]


def test_more_rows_are_stronger_and_rows_not_selected_are_pale_beside_selected_ones(run):
    steps = places()
    sums, pixels, top = counted(run, steps, np.zeros(len(steps)), RECTANGLE)
    counts, alphas = sums[..., 0, 0].ravel(), pixels[..., 3].ravel()
    order = np.argsort(counts, kind="stable")
    assert (np.diff(alphas[order]) >= 0).all()
    assert alphas[counts >= top].min() == 255
    assert (counts[counts > 0] > top).mean() < 0.02
    _, pale, _ = counted(run, steps, np.zeros(len(steps)), RECTANGLE, brushed=True)
    assert (pale[..., 3].ravel()[counts > 0] < 0.35 * alphas[counts > 0]).all()
    _, lit, _ = counted(run, steps, np.full(len(steps), LIT), RECTANGLE, brushed=True)
    np.testing.assert_array_equal(lit, pixels)


def test_texts_are_found_one_by_one(run):
    texts = ["first", "", "an é and a 中", "last"]
    joined = list("\x1f".join(texts).encode())
    assert (
        run("[0, 1, 2, 3].map((row) => new TextColumn(Uint8Array.from(bytes)).at(row))", bytes=joined)
        == texts
    )
    assert run("new TextColumn(Uint8Array.from(bytes)).at(4) ?? null", bytes=joined) is None
    assert json.dumps(run("new TextColumn(new Uint8Array(0)).at(0)")) == '""'
