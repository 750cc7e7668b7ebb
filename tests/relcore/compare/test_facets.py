"""Facets: columns by which the rows of a pair are filtered, in Python and in the panes' script alike."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.base.records import from_json, to_json
from relcore.compare.columns import facets_of, filter_columns, kept_rows, of_rows
from relcore.compare.scene import MapLook, with_look
from relcore.figures.scene import BINS, Condition, Pane, Scene, passing
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

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
def pair():
    ids = [f"r{row}" for row in range(N)]
    first, second = (LatentSpace(RNG.normal(size=(N, d)), ids, name=f"{d} wide") for d in (4, 6))
    return match(first, second)


def test_columns_become_classes_or_bins_and_free_text_is_left_out(pair):
    columns = filter_columns(pair, list(TABLE))
    assert columns == [*(f"column:{name}" for name in TABLE), "source norm", "target norm"]
    facets = {facet.column: facet for facet in facets_of(pair, columns, cells)}
    assert list(facets) == ["column:year", "column:genre", "source norm", "target norm"]
    assert facets["column:genre"].names == ("folk", "jazz", "rock")
    year = facets["column:year"]
    assert (year.codes[:5] == 255).all()
    assert len(year.edges) == BINS + 1
    known = np.isfinite(YEARS)
    assert (np.diff(year.codes[known][np.argsort(YEARS[known])].astype(int)) >= 0).all()


def test_a_filter_keeps_the_rows_that_meet_all_conditions(pair):
    (year,) = facets_of(pair, ["column:year"], cells)
    low = year.edges[10]
    conditions = (Condition("column:genre", ("jazz", "")), Condition("column:year", low=low))
    facets, kept = kept_rows(pair, conditions, cells)
    wanted = np.isin(GENRES, ["jazz", ""]) & (low <= YEARS)
    np.testing.assert_array_equal(kept, wanted)
    some = np.arange(0, N, 3)
    np.testing.assert_array_equal(passing(of_rows(facets, some), conditions, len(some)), wanted[some])
    assert kept_rows(pair, ())[1].all()
    with pytest.raises(SpaceError, match="clear the filter"):
        kept_rows(pair, (Condition("column:title", ("title 1",)),), cells)


def test_conditions_are_settings_and_say_what_they_keep():
    look = MapLook(filter=(Condition("column:year", low=1950.5), Condition("labels", ("a", ""))))
    assert from_json(MapLook, json.loads(json.dumps(to_json(look))), "look") == look
    assert list(map(str, look.filter)) == ["year from 1950", "labels: a, other"]
    assert str(Condition("counts", low=1, high=3)) == "count from 1 to 3"
    for wrong in ({"column": ""}, {"column": "year", "low": float("nan")}, {"column": "year", "high": "9"}):
        with pytest.raises(SpaceError, match="filter"):
            Condition(**wrong)


def test_rows_outside_the_filter_lose_their_class_and_their_name(pair):
    facets, kept = kept_rows(pair, (Condition("column:genre", ("jazz",)),), cells)
    scene = Scene(
        (Pane("a", RNG.normal(size=(N, 2))),), pair.ids, np.arange(N) % 2, ("even", "odd"), caption="c"
    )
    shown = with_look(scene, MapLook(filter=(Condition("column:genre", ("jazz",)),)), None, None, facets)
    np.testing.assert_array_equal(shown.coloring().categories, np.where(kept, np.arange(N) % 2, -1))
    assert shown.table()["in the filter"].sum() == kept.sum()
    assert f"{kept.sum()} rows in colour by the filter (genre: jazz)" in shown.caption
    assert "in the filter" not in replace(shown, filter=()).table()
