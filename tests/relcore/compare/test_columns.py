"""Columns of rows as colours, filters and looks, in Python and in recipes."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import recipe_of
from relcore.compare.agreement import neighbour_agreement
from relcore.compare.columns import values_of, with_color_column, with_tags
from relcore.compare.filters import facets_of, filter_columns, kept_rows, of_rows, undrawn
from relcore.compare.pictures import Panes
from relcore.compare.scene import MapLook, with_look
from relcore.figures.colorings import KEPT, Condition, Facet, Pane, passing
from relcore.figures.map_names import BINS
from relcore.figures.paper import panes_figure
from relcore.figures.scene import Scene, filter_note
from relcore.figures.style import LIGHT, Style
from relcore.maps.pane_maps import View, ViewSpec
from relcore.maps.principal_axes import ReductionSpec
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace


@pytest.fixture
def pair(rng, make_space):
    X = rng.normal(size=(80, 4))
    source = make_space(X, name="s", counts=np.arange(80))
    return match(source, make_space(2 * X + 0.5 * rng.normal(size=X.shape), name="t"))


def test_numbers_are_scale_and_few_whole_numbers_or_texts_are_classes(pair):
    view = View(np.arange(80), np.zeros(80, int), ("a",))

    def coloured(values):
        if isinstance(values, pd.Series):
            column = values
        else:
            column = pd.Series(values, index=pair.ids)
        return with_color_column(pair, view, ViewSpec(color_by="column:n"), {"n": column}.get)

    years = pd.Series(np.arange(1900, 1980), index=pair.ids)
    by_year = coloured(years)
    assert (by_year.scale.title, by_year.category_names) == ("n", ())
    np.testing.assert_array_equal(by_year.values, years)
    shuffled = years.sample(frac=1, random_state=0)[:40]
    np.testing.assert_array_equal(coloured(shuffled).categories >= 0, np.isin(pair.ids, shuffled.index))
    assert coloured(np.arange(80) % 5).category_names == tuple("01234")
    classes = coloured(["7", "ten", None] * 26 + ["7", "ten"])
    assert (classes.category_names, classes.categories[:3].tolist()) == (("7", "ten"), [0, 1, -1])


def test_values_are_those_of_spaces_and_of_agreement(pair):
    rows = np.array([3, 40, 79])
    np.testing.assert_array_equal(values_of(pair, "counts", rows), rows)
    np.testing.assert_allclose(
        values_of(pair, "target norm", rows), np.linalg.norm(pair.target.vectors[rows], axis=1), rtol=1e-6
    )
    overlap = neighbour_agreement(pair, rows).set_index("row").overlap
    np.testing.assert_array_equal(values_of(pair, "agreement", rows), overlap[rows])


N = 200
RNG = np.random.default_rng(0)
YEARS = RNG.integers(1900, 2020, N).astype(float)
YEARS[:5] = np.nan
GENRES = np.array(["jazz", "rock", "folk", ""])[RNG.integers(0, 4, N)]
TABLE = {
    "year": list(YEARS),
    "genre": list(GENRES),
    "title": [f"title {row}" for row in range(N)],
    "same": ["x"] * N,
}


def cells(name):
    return pd.Series(TABLE[name], index=pd.Index([f"r{row}" for row in range(N)], dtype=object), dtype=object)


@pytest.fixture(scope="module")
def pair_of_two_widths():
    ids = [f"r{row}" for row in range(N)]
    first, second = (LatentSpace(RNG.normal(size=(N, d)), ids, name=f"{d} wide") for d in (4, 6))
    return match(first, second)


def test_columns_become_classes_or_bins_and_free_text_is_left_out(pair_of_two_widths):
    columns = filter_columns(pair_of_two_widths, list(TABLE))
    assert columns == [*(f"column:{name}" for name in TABLE), "source norm", "target norm"]
    facets = {facet.column: facet for facet in facets_of(pair_of_two_widths, columns, cells)}
    assert list(facets) == ["column:year", "column:genre", "source norm", "target norm"]
    assert facets["column:genre"].names == ("folk", "jazz", "rock")
    year = facets["column:year"]
    assert (year.codes[:5] == 255).all()
    assert len(year.edges) == BINS + 1
    known = np.isfinite(YEARS)
    assert (np.diff(year.codes[known][np.argsort(YEARS[known])].astype(int)) >= 0).all()


def test_a_column_that_few_rows_have_is_a_facet(pair_of_two_widths):
    tagged = with_tags(
        cells, (("seen", ("r3", "r7")), ("odd", ("r7", "gone"))), pair_of_two_widths.source.index
    )
    seen, both = facets_of(pair_of_two_widths, ["column:seen", "column:tag"], tagged)
    assert (seen.names, both.names) == (("seen",), ("seen", "seen + odd"))
    assert np.flatnonzero(seen.meets(Condition("column:seen", ("seen",)))).tolist() == [3, 7]
    assert seen.meets(Condition("column:seen", ("",))).sum() == N - 2
    assert np.flatnonzero(both.meets(Condition("column:tag", ("seen + odd",)))).tolist() == [7]
    assert tagged("year").equals(cells("year"))


def test_filter_keeps_rows_that_meet_all_conditions(pair_of_two_widths):
    (year,) = facets_of(pair_of_two_widths, ["column:year"], cells)
    low = year.edges[10]
    conditions = (Condition("column:genre", ("jazz", "")), Condition("column:year", low=low))
    facets, kept = kept_rows(pair_of_two_widths, conditions, cells)
    wanted = np.isin(GENRES, ["jazz", ""]) & (low <= YEARS)
    np.testing.assert_array_equal(kept, wanted)
    some = np.arange(0, N, 3)
    np.testing.assert_array_equal(passing(of_rows(facets, some), conditions, len(some)), wanted[some])
    assert kept_rows(pair_of_two_widths, ())[1].all()
    with pytest.raises(SpaceError, match="clear the filter"):
        kept_rows(pair_of_two_widths, (Condition("column:title", ("title 1",)),), cells)


def test_rows_outside_filter_lose_their_class_and_their_name(pair_of_two_widths):
    jazz = (Condition("column:genre", ("jazz",)),)
    facets, kept = kept_rows(pair_of_two_widths, jazz, cells)
    pane = Pane("a", RNG.normal(size=(N, 2)))
    scene = Scene((pane,), pair_of_two_widths.ids, np.arange(N) % 2, ("even", "odd"), caption="c")
    shown = with_look(scene, MapLook(filter=jazz), None, None, facets)
    np.testing.assert_array_equal(shown.coloring().categories, np.where(kept, np.arange(N) % 2, -1))
    assert shown.table()["in the filter"].sum() == kept.sum()
    assert f"{kept.sum()} rows in colour by the filter (genre: jazz)" in shown.caption
    (note,) = filter_note(shown)
    assert note == f"Filter: {kept.sum()} of {N} rows in colour (genre: jazz)"
    assert note in [text.get_text() for text in panes_figure(shown, Style()).texts]
    assert not filter_note(scene)
    assert "in the filter" not in replace(shown, filter=()).table()


def test_rows_without_a_class_that_pass_a_filter_have_a_class_of_their_own():
    facet = Facet("labels", "labels", np.array([0, 1, 0, 1, 0], dtype=np.uint8), ("a", "b"))
    coordinates = RNG.normal(size=(4, 2))
    only_a = (Condition("labels", ("a",)),)
    ids = np.array(["r0", "r1", "r2", "r4"])
    scene = Scene((Pane("a", coordinates),), ids, np.array([0, 1, -1, -1]), ("near x", "near y"))
    shown = with_look(scene, MapLook(filter=only_a), None, None, (facet,), np.array([0, 1, 2, 4]))
    coloring = shown.coloring()
    assert coloring.categories.tolist() == [0, -1, 2, 2]
    assert coloring.names == ("near x", "near y", KEPT)
    assert coloring.palette(LIGHT)[2] == LIGHT.text
    assert "3 rows in colour by the filter" in shown.caption


def test_rows_that_pass_a_filter_are_drawn_and_many_of_them_are_sampled():
    kept = np.zeros(20_000, dtype=bool)
    kept[:40] = True
    assert undrawn(kept, np.arange(2, 100)).tolist() == [0, 1]
    some = undrawn(~kept, np.arange(100))
    assert len(some) == 5000
    assert some.min() >= 100


def test_a_range_of_whole_numbers_is_told_in_whole_numbers():
    whole = Facet(
        "counts", "count", np.zeros(3, dtype=np.uint8), edges=(1.0, 970.5, 980.0, 1200.5), whole=True
    )
    assert whole.bounds() == (["1", "971", "980"], ["970", "979", "1200"])
    halves = replace(whole, whole=False)
    assert halves.bounds() == (["1", "970.5", "980"], ["970.5", "980", "1200"])
    conditions = [{"low": 970.5, "high": 980.0}, {"low": 970.5}, {"high": 980.0}, {"low": 1300.0}]
    texts = [whole.in_words(Condition(whole.column, **one)) for one in conditions]
    of = f"{whole.title}:"
    assert texts == [f"{of} 971 to 979", f"{of} 971 or more", f"{of} 979 or less", f"{of} no number"]


def test_a_facet_knows_whether_its_numbers_are_whole(pair_of_two_widths):
    year, norm = facets_of(pair_of_two_widths, ("column:year", "source norm"), cells)
    assert (year.whole, norm.whole) == (True, False)


@pytest.fixture
def recipe(tmp_path, rng):
    vectors = rng.normal(size=(120, 5)) + np.repeat(np.eye(3, 5) * 9, 40, axis=0)
    np.save(tmp_path / "a.npy", vectors)
    np.save(tmp_path / "b.npy", vectors + 0.1 * rng.normal(size=vectors.shape))
    lines = [f"r{i},{'abc'[i // 40]},{1900 + i}" for i in range(120)]
    (tmp_path / "meta.csv").write_text("\n".join(["code,genre,year", *lines]) + "\n")
    columns = ("id_column", "code"), ("label_column", "genre"), ("metadata", str(tmp_path / "meta.csv"))
    ends = [SpaceSpec("file", str(tmp_path / f"{name}.npy"), options=columns) for name in "ab"]
    view = ViewSpec((), everything=True, color_by="labels")
    return Panes(*ends, ("r0", "r50", "r100"), view=view, reduction=ReductionSpec(fit="first"))


@pytest.mark.filterwarnings("ignore:meta.csv is joined")
def test_the_table_of_a_figure_has_labels_and_each_tag_under_its_own_name(recipe):
    tags = (("odd", ("r3", "r5")), ("late", ("r5",)))
    by_label = dataclasses.replace(recipe, tags=tags).draw().table()
    of_rows = by_label.category.tolist()
    for column in ("odd", "tag", "year"):
        view = dataclasses.replace(recipe.view, color_by=f"column:{column}")
        table = dataclasses.replace(recipe, tags=tags, view=view).draw().table().set_index("id")
        assert "category" not in table
        assert table.label.tolist() == of_rows
        assert table.index[table.odd].tolist() == ["r3", "r5"]
        assert table.index[table.late].tolist() == ["r5"]
        assert column in table


@pytest.mark.filterwarnings("ignore:meta.csv is joined")
def test_look_travels_in_recipe_and_hidden_rows_are_not_drawn(recipe):
    look = MapLook(hidden=("b",), second="column:year", second_hidden=("1/8",))
    looking = dataclasses.replace(recipe, look=look)
    again = recipe_of(json.loads(json.dumps(looking.to_json())))
    assert again == looking
    table = again.draw().table()
    assert set(table.category) == {"a", "c"}
    assert table.year.min() > 1910
    assert len(table) < 80
    assert table.equals(looking.draw().table())
