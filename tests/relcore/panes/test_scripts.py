"""The logic of the panes' scripts, run in Node: the payload, the grid of rows, bins and colours, legend, names,
tip and columns of text.
"""

import json
import shutil
import subprocess
from dataclasses import asdict

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

from relcore import LatentSpace, ProjectionSpec, match
from relcore.compare.live import LiveComparison
from relcore.compare.live_channel import page_units
from relcore.compare.live_rows import LiveRows
from relcore.figures.colorings import Condition, Facet, Pane, passing
from relcore.figures.map_names import BINS
from relcore.figures.scene import Scene
from relcore.maps.pane_maps import TWO, pca_pair
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.page import part, script
from relcore.panes.payload import POSITION_STEPS, ids_digest, pack_rows, payload_of

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no Node found: install nodejs")
TYPES = {"uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "float32": "Float32Array"}
COLORS = [[0, 114, 178], [213, 94, 0]]


def run(expression, **values):
    """The value of a JavaScript expression that uses names of the scripts; a promise is awaited. Arrays keep
    their type."""
    names = []
    for name, value in values.items():
        kind = None
        if isinstance(value, np.ndarray):
            kind = TYPES.get(value.dtype.name)
        text = json.dumps(value.tolist() if isinstance(value, np.ndarray) else value)
        names.append(f"const {name} = {f'{kind}.from({text})' if kind else text};")
    done = "(value) => process.stdout.write(JSON.stringify(value ?? null))"
    program = (
        f"{script(part('follower.js') + chr(10).join(names))}\nPromise.resolve({expression}).then({done});"
    )
    ran = subprocess.run(
        [NODE, "--input-type=module", "-"], input=program, capture_output=True, text=True, encoding="utf-8"
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def places(n=20_000, seed=0):
    """Steps of rows in crowds, on the edges of cells, in the corners, and many in one place."""
    rng = np.random.default_rng(seed)
    steps = np.clip(rng.normal(30_000, [9_000, 15_000], size=(n, 2)), 0, POSITION_STEPS).astype(np.uint16)
    steps[: n // 4] = steps[: n // 4] // 256 * 256
    steps[:4] = [[0, 0], [0, POSITION_STEPS], [POSITION_STEPS, 0], [POSITION_STEPS, POSITION_STEPS]]
    steps[-n // 10 :] = [777, 40_000]
    return steps


def test_a_payload_is_unpacked_as_it_was_packed():
    rng = np.random.default_rng(0)
    n = 11
    cloud = rng.normal(size=(n, 2)).astype(np.float32)
    texts = "", "a", "é", "日本", "\U0001f600\U0001f600", "a\x1fb", "\x1f", "\n", "\0", " ", ""
    ids = np.array(texts, dtype=object)
    scene = Scene((Pane("first", cloud),), ids, np.arange(n) % 3 - 1, ("a", "b"), anchors=np.array([2, 5]))
    payload = payload_of(scene, version=ids_digest(scene), selected=[1, 8, 10])
    header, pane, anchors, categories, selected, read = run(
        "(({ header, take }) => [header.n, ...['pane0', 'anchors', 'categories0'].map((name) => [...take(name)]),"
        " [...rowsIn(take('selected'), header.n)],"
        " ((ids) => Array.from({ length: header.n + 1 }, (_, row) => ids.at(row) ?? null))"
        "(new TextColumn(take('ids')))])"
        "(unpack(bytes))",
        bytes=np.frombuffer(payload.to_bytes(), np.uint8),
    )
    assert (header, anchors, selected) == (n, [2, 5], [1, 8, 10])
    assert read == [*(text.replace("\x1f", "␟") for text in texts), None]
    np.testing.assert_array_equal(np.float32(pane), cloud.ravel())
    assert categories == [0xFFFF, 0, 1] * 3 + [0xFFFF, 0]


def test_rows_travel_as_the_bits_that_python_reads():
    rng = np.random.default_rng(1)
    n = 20_003
    first, second = (np.sort(rng.choice(n, size, replace=False)) for size in (500, 9000))
    bits, both = run(
        "[[...Uint8Array.from(atob(rowsAsBits(first, n)), (one) => one.charCodeAt(0))],"
        " [...joined(first, second, n)]]",
        first=first.tolist(),
        second=second.tolist(),
        n=n,
    )
    assert bytes(bits) == pack_rows(first, n)
    np.testing.assert_array_equal(both, np.union1d(first, second))


def even_odd(points, polygon):
    inside = np.zeros(len(points), dtype=bool)
    x, y = points.T
    for (x0, y0), (x1, y1) in zip(np.roll(polygon, 1, axis=0), polygon, strict=True):
        crossed = (y1 > y) != (y0 > y)
        if y0 != y1:
            inside ^= crossed & (x < (x0 - x1) * (y - y1) / (y0 - y1) + x1)
    return inside


rng = np.random.default_rng(3)
BOX = np.array([2_559.5, 51_199.5])
POLYGONS = {
    "a triangle": [[5_000.3, 4_000.7], [60_000.1, 20_000.9], [22_222.2, 64_000.4]],
    "itself crossed": (rng.random((40, 2)) * POSITION_STEPS).tolist(),
    "beyond the picture": [[-3e4, -9.5], [4e4, -8e4], [99_000.5, 45_000.5], [2e4, 9e4]],
    "a box along cells": [[x, y] for x, y in zip(BOX[[0, 1, 1, 0]], BOX[[0, 0, 1, 1]], strict=True)],
    "two points": [[100.5, 100.5], [65_000.5, 65_100.5]],
}


def test_lasso_has_rows_that_matplotlib_finds_within():
    steps = places()
    answers = run(
        "((grid) => polygons.map((polygon) => [...grid.within(polygon, () => true)]"
        ".map((one) => one.length ? [...one] : one)))(new RowGrid(steps))",
        steps=steps.ravel(),
        polygons=list(POLYGONS.values()),
    )
    for (name, polygon), (inside, n) in zip(POLYGONS.items(), answers, strict=True):
        expected = even_odd(steps.astype(float), np.array(polygon))
        np.testing.assert_array_equal(np.array(inside, dtype=bool), expected, err_msg=name)
        assert n == expected.sum()
        if name != "itself crossed":  # Matplotlib fills what is wound around twice
            np.testing.assert_array_equal(expected, Polygon(polygon).contains_points(steps))


def test_the_nearest_row_is_the_nearest_of_all():
    steps = places(4000)
    pointers = np.random.default_rng(5).uniform(-300, POSITION_STEPS + 300, size=(200, 2))
    nearest = run(
        "((grid) => pointers.map(([x, y]) => grid.nearest(x, y, 0.01, 0.005, 9, (row) => row % 2 === 1)))"
        "(new RowGrid(steps))",
        steps=steps.ravel(),
        pointers=pointers,
    )
    odd = np.arange(1, len(steps), 2)
    for pointer, row in zip(pointers, nearest, strict=True):
        distances = np.hypot(*((steps[odd] - pointer) * [0.01, 0.005]).T)
        if distances.min() > 9:
            assert row == -1
        else:
            assert np.hypot(*((steps[row] - pointer) * [0.01, 0.005])) == pytest.approx(distances.min())
            assert row % 2 == 1
    assert len(set(nearest)) > 20


AWAY = 0x8000
LIT = 0x4000
RECTANGLE = [10_000.25, 20_000.25, 50_000.25, 60_000.25]


def counted(steps, looks, brushed=False):
    """Sums (17, 31, layer, count and colours), pixels (17, 31, 4) and the count of the strongest bins."""
    density = run(
        """((density) => {
          const grid = new RowGrid(steps);
          const looked = looks.map((_, place) => looks[grid.rows[place]]);
          density.count(grid, rectangle, 31, 17, looked, tintsOf(colors.flat()));
          const pixels = new Uint8ClampedArray(4 * 31 * 17);
          density.paint(pixels, [0, 0, 0], brushed);
          return { sums: [...density.sums], pixels: [...pixels], top: density.top };
        })(new Density())""",
        steps=steps.ravel(),
        looks=looks.astype(np.uint16),
        rectangle=RECTANGLE,
        colors=COLORS,
        brushed=brushed,
    )
    sums = np.array(density["sums"])
    pixels = np.array(density["pixels"])
    return sums.reshape(17, 31, 2, 4), pixels.reshape(17, 31, 4), density["top"]


def test_bins_count_the_rows_in_view_as_numpy_does():
    steps = places()
    rows = np.arange(len(steps))
    sums, _, _ = counted(steps, np.where(rows % 5 == 0, AWAY, 0) + np.where(rows % 3 == 0, LIT, 0) + rows % 2)
    left, low, right, high = RECTANGLE
    for layer, chosen in enumerate((rows % 3 > 0, rows % 3 == 0)):
        x, y = steps[chosen & (rows % 5 > 0)].T
        expected, _, _ = np.histogram2d(y, x, bins=(17, 31), range=((low, high), (left, right)))
        np.testing.assert_array_equal(sums[::-1, :, layer, 0], expected)
    assert sums[..., 0].sum() > 1000


def test_bin_of_three_million_rows_has_their_colour():
    assert run("""(() => {
      const [n, density, pixels] = [3_000_000, new Density(), new Uint8ClampedArray(4 * 9)];
      const grid = new RowGrid(new Uint16Array(2 * n).fill(30_000));
      density.count(grid, [0, 0, STEPS, STEPS], 3, 3, new Uint16Array(n), tintsOf([250, 240, 230]));
      density.paint(pixels, [250, 240, 230], false);
      return [...pixels].slice(4 * 4, 4 * 5);
    })()""") == [250, 240, 230, 255]


def test_lines_of_density_hold_their_shares_of_rows():
    rng = np.random.default_rng(0)
    columns = 120
    lines = 100
    units = (rng.normal(size=(20_000, 2)) * [0.3, 0.2] + [0.1, -0.2]).astype(np.float32)
    units[:500] = [0.9, 0.9]  # hidden, they draw no line
    bins, levels, points = run(
        "(() => { const bins = binned(units, (row) => row < 500, [-1, -1, 1, 1], columns, lines);"
        " const dense = smoothed(bins, columns, lines), levels = levelsOf(dense);"
        " return [[...bins], levels, outline(dense, columns, lines, levels[1]).map(([x, y]) => [x, y])]; })()",
        units=units.ravel(),
        columns=columns,
        lines=lines,
    )
    expected = np.histogram2d(-units[500:, 1], units[500:, 0], (lines, columns), [[-1, 1], [-1, 1]])[0]
    assert np.abs(np.array(bins) - expected.ravel()).sum() <= 4  # rows on the edge of two bins
    assert levels == sorted(levels, reverse=True)
    # Half of a Gaussian lies within √(2 ln 2) = 1.18 standard deviations.
    x, y = (np.array(points).T + 0.5) * [[2 / columns], [2 / lines]] - 1
    away = np.hypot((x - 0.1) / 0.3, (-y + 0.2) / 0.2)
    assert np.abs(away - 1.18).mean() < 0.12  # the mean over five bins widens it by 2 to 6 %


def test_rows_are_crowded_where_they_share_their_bins_and_heaped_on_one_spot():
    places = np.random.default_rng(1).uniform(size=(2, 5000))
    bins = [np.histogram2d(*places, side)[0].ravel().astype(np.float32) for side in (300, 30)]
    units = np.random.default_rng(2).uniform(-1, 1, size=(400, 2)).astype(np.float32)
    units[[7, 90, 311]], units[[5, 6]] = units[0], units[1]
    found, least, heaps = run(
        "[[wide, narrow, new Float32Array(9)].map(crowding), CROWDED, heapsOf(units)]",
        wide=bins[0],
        narrow=bins[1],
        units=units.ravel(),
    )
    assert found == pytest.approx([(one**2).sum() / one.sum() for one in bins] + [0])
    assert found[0] < least <= found[1]
    assert heaps == [[0, 7, 90, 311], [1, 5, 6]]


def test_group_is_named_at_row_nearest_to_its_median():
    points = np.random.default_rng(2).normal(size=(999, 2)).astype(np.float32)
    groups = np.arange(999) % 4 - 1
    named = run("middles(points, 2, (row) => groups[row])", points=points.ravel(), groups=groups.tolist())
    assert sorted(one["group"] for one in named) == [0, 1, 2]
    for one in named:
        members = np.flatnonzero(groups == one["group"])
        middle = np.sort(points[members], axis=0)[len(members) // 2]
        distances = ((points[members] - middle) ** 2).sum(axis=1)
        assert (one["count"], one["row"]) == (len(members), members[distances.argmin()])


def test_every_half_is_read_as_numpy_reads_it():
    bits = np.arange(65536, dtype=np.uint16)
    known = bits.view("<f2").astype(np.float64)
    read = np.array(run("Array.from(halves())"))
    np.testing.assert_array_equal(read, np.where(np.isfinite(known), known, 0))


def test_stamped_discs_look_like_those_that_are_drawn_at_rest():
    """On the colour of the surface; a stamp's centre is up to a quarter of a pixel away."""
    rng = np.random.default_rng(0)
    n = 60
    side = 80
    look = {"scale": [0.9, 0.9], "offset": [0, 0], "sizes": [6, 4], "surface": [1, 1, 1], "ratio": 1}
    found = run(
        "(() => { const content = { position, color, flags }; ink = new Float32Array(4 * side * side);"
        " drop(rows, content, look, [0.8, 0.5], side, side); const drawn = new Uint8ClampedArray(ink.length);"
        " dry(drawn, 0, ink.length); const stamped = new Uint8ClampedArray(ink.length);"
        " stamp(stamped, rows, content, look, [0.8, 0.5], side, side); return [[...drawn], [...stamped]]; })()",
        position=rng.uniform(-0.9, 0.9, 2 * n).astype(np.float32),
        color=rng.integers(0, 255, 3 * n).astype(np.uint8),
        flags=np.array([0, 2] * (n // 2), dtype=np.uint8),
        rows=np.arange(n, dtype=np.uint32),
        look={**look, "lift": 0, "brushed": False},
        side=side,
    )
    drawn, stamped = (np.array(one, dtype=np.float64).reshape(side, side, 4) for one in found)
    shown = drawn[..., :3] * drawn[..., 3:] / 255 + 255 - drawn[..., 3:]
    assert (stamped[..., 3] == 255).all()
    covered = drawn[..., 3] > 0
    assert np.abs(shown - stamped[..., :3])[covered].mean() < 25
    assert np.abs(shown - stamped[..., :3])[~covered].mean() < 1
    assert np.abs(shown - 255)[covered].mean() > 50  # without discs


@pytest.mark.parametrize("drawn", [None, [3, 7, 450]], ids=["all rows", "some rows"])
def test_filter_keeps_rows_that_python_keeps_and_counts_by_other_conditions(drawn):
    rng = np.random.default_rng(3)
    n = 500
    classes = Facet("genre", "genre", rng.choice([0, 1, 2, 255], n).astype(np.uint8), ("a", "b", "c"))
    edges = tuple(np.linspace(0, 1, BINS + 1).tolist())
    number = Facet("year", "year", rng.integers(0, BINS, n).astype(np.uint8), (), edges)
    conditions = Condition("genre", ("b", "")), Condition("year", low=edges[4], high=edges[20])
    names = "column", "names", "edges"
    header = [
        {name: getattr(one, name) for name in names} | {"lows": [], "highs": []} for one in (classes, number)
    ]
    out, counts, back, said = run(
        "((filter) => { const seen = []; filter.views = [0, 1].map((i) => ({ show: (counts) => (seen[i] = [...counts]) }));"
        " filter.set(facets, [genre, year], conditions, drawn, drawn?.length ?? genre.length); return [[...filter.out], seen, filter.conditions, filter.say.textContent]; })"
        "(Object.assign(Object.create(Filter.prototype),"
        " { told: JSON.stringify(facets), facets, met: new Map(), say: {}, clear: {}, marked: {}, mark: {}, root: {} }))",
        facets=header,
        drawn=drawn,
        genre=classes.codes,
        year=number.codes,
        conditions=[asdict(one) for one in conditions],
    )
    kept = passing((classes, number), conditions, n)
    np.testing.assert_array_equal(np.array(out) == 0, kept[list(drawn or range(n))])
    assert said.startswith(f"{kept.sum()} of 500 rows pass")
    assert ("of them drawn" in said) == bool(drawn)
    inside = number.meets(conditions[1])
    chosen = classes.meets(conditions[0])
    np.testing.assert_array_equal(counts[0], np.bincount(classes.codes[inside], minlength=256))
    np.testing.assert_array_equal(counts[1], np.bincount(number.codes[chosen], minlength=256))
    assert [Condition(**one | {"classes": tuple(one["classes"])}) for one in back] == list(conditions)


@pytest.mark.parametrize(
    ("above", "below", "told"),
    [
        (False, False, "mostly .1 to 2"),
        (True, False, ".1 or more"),
        (False, True, "2 or less"),
        (True, True, ".1 to 2"),
    ],
)
def test_a_range_of_a_filter_is_told_in_words(above, below, told):
    assert run("rangeInWords('.1', '2', above, below)", above=above, below=below) == told


def test_file_follows_anchor_as_server_does():
    rng = np.random.default_rng(0)
    n = 120
    anchors = [3, 20, 41, 77, 100]
    rows = rng.normal(size=(n, 9)) * np.arange(9, 0, -1)
    ids = [f"r{row}" for row in range(n)]
    noisy = (LatentSpace(rows[:, ::-1] + rng.normal(size=rows.shape), ids) for _ in range(2))
    pair = match(LatentSpace(rows, ids), *noisy)
    reduction = ReductionSpec(fit="apart")
    representations = ("relative", TWO)
    maps = pca_pair(pair, np.arange(n), "relative", tuple(pair.ids[anchors]), ProjectionSpec(), reduction)[0]
    live = LiveComparison(
        LiveRows(pair, np.arange(n), reference=maps[0]), anchors, None, reduction, representations
    )
    about, units = page_units(pair, np.arange(n), representations, 5, ProjectionSpec(), reduction)
    moved = [60, *anchors[1:]]
    live.set_anchors(moved)
    frame = live.frame(row=60)
    scores = live.scores(n_queries=None)
    found = run(
        "(() => { const arrays = { units0, units1, units2 };"
        " const follower = new Follower({ n, live }, (name) => arrays[name] ?? pane); follower.maps(anchors);"
        " return [follower.maps(moved).map((map) => [...unitsOfMap(map)]),"
        " [0, 1, 2].map((side) => follower.near(side, 60)), follower.scores(moved)]; })()",
        **{f"units{side}": one.astype("<f2").view("<u2").ravel() for side, one in enumerate(units)},
        pane=maps[0].ravel(),
        n=n,
        live=dict(about),
        anchors=anchors,
        moved=moved,
    )
    for one, other in zip(found[0], frame.maps, strict=True):
        expected = np.frombuffer(other, "<f2").reshape(2, n).T
        np.testing.assert_allclose(np.reshape(one, (n, 2)), expected, atol=4e-3)
    assert found[1] == frame.near.tolist()
    np.testing.assert_allclose(found[2], scores[:3], atol=0.02)  # a rank or two turns with float16
