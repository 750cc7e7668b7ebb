"""The look of the maps on the screen is in the recipe of their figure, and the figure that it draws is the
screen's.
"""

import dataclasses
import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import recipe_of
from relcore.compare.scene import MapLook, Panes
from relcore.maps.pane_maps import ViewSpec
from relcore.maps.reduction import ReductionSpec


@pytest.fixture
def recipe(tmp_path, rng):
    vectors = rng.normal(size=(120, 5)) + np.repeat(np.eye(3, 5) * 9, 40, axis=0)
    np.save(tmp_path / "a.npy", vectors)
    np.save(tmp_path / "b.npy", vectors + 0.1 * rng.normal(size=vectors.shape))
    lines = [
        f"r{i},{'abc'[i // 40]},{1900 + i},text of the {('river', 'engine', 'violin')[i // 40]}"
        for i in range(120)
    ]
    (tmp_path / "meta.csv").write_text("\n".join(["code,genre,year,text", *lines]) + "\n")
    columns = {
        "metadata": str(tmp_path / "meta.csv"),
        "id_column": "code",
        "text_column": "text",
        "label_column": "genre",
    }
    ends = [
        SpaceSpec("file", str(tmp_path / f"{name}.npy"), options=tuple(sorted(columns.items())))
        for name in "ab"
    ]
    view = ViewSpec((), everything=True, color_by="labels")
    return Panes(*ends, ("r0", "r50", "r100"), view=view, reduction=ReductionSpec(fit="first"))


def test_a_look_travels_in_the_recipe_and_hidden_rows_are_not_drawn(recipe):
    look = MapLook(hidden=("b",), second="column:year", second_hidden=("1/8",))
    looking = dataclasses.replace(recipe, look=look)
    again = recipe_of(json.loads(json.dumps(looking.to_json())))
    assert again == looking
    table = again.draw().table()
    assert set(table.category) == {"a", "c"}
    assert table.year.min() > 1910
    assert len(table) < 80
    assert table.equals(looking.draw().table())


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"second": "colour"}, "look: second: expected one of pivots, labels"),
        ({"turn": (1.0, 2.0)}, "look: turn: expected the 9 numbers of a rotation"),
    ],
)
def test_a_wrong_look_is_refused(wrong, match):
    with pytest.raises(SpaceError, match=match):
        MapLook(**wrong)
