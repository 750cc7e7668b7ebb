"""The look of the maps on the screen is in the recipe of their figure, and the figure that it draws is the
screen's.
"""

import dataclasses
import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.figures import Panes
from relcore.compare.scene import FACING, MapLook
from relcore.figures.style import LIGHT
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import ViewSpec
from relcore.tasks.recipe import recipe_of


@pytest.fixture
def recipe(tmp_path, rng):
    """Two spaces of 120 rows with a table of metadata: three genres and a year."""
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


def test_a_recipe_without_a_look_has_none_of_it(recipe):
    assert "look" not in recipe.to_json()
    assert recipe_of(json.loads(json.dumps(recipe.to_json()))) == recipe


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


def test_both_renderers_have_the_names_the_hidden_classes_and_the_bar(recipe):
    shown = dataclasses.replace(recipe, look=MapLook(hidden=("b",), second="column:year")).draw()
    figure = shown.interactive(LIGHT)
    assert {trace.name for trace in figure.data if trace.showlegend} == {"a", "c"}
    assert "Right: year" in [
        trace.marker.colorbar.title.text for trace in figure.data if trace.marker.showscale
    ]
    texts = " ".join(note.text for note in figure.layout.annotations)
    assert texts.count("<b>a</b>") == 4  # classes at the left, and their names as clusters at the right
    assert "<b>b</b>" not in texts
    without = dataclasses.replace(recipe, look=MapLook(named=False)).draw()
    assert b"<b>a</b>" not in without.bytes("html")


def test_the_turn_is_the_camera_of_three_dimensions(recipe):
    solid = dataclasses.replace(recipe, reduction=ReductionSpec(fit="first", n_components=3))
    turn = (0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    facing = dataclasses.replace(solid, look=MapLook()).draw().interactive(LIGHT).layout.scene.camera
    turned = dataclasses.replace(solid, look=MapLook(turn=turn)).draw().interactive(LIGHT).layout.scene.camera
    assert (facing.eye.z > 0, facing.up.y, facing.projection.type) == (True, 1, "orthographic")
    assert (turned.eye.x > 0, turned.eye.z, turned.up.z) == (True, 0, 1)
    assert solid.draw().interactive(LIGHT).layout.scene.camera.eye.x is None


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"second": "colour"}, "look: second: expected one of pivots, labels"),
        ({"second_panes": "left"}, "look: second_panes: expected one of right, lower"),
        ({"turn": (1.0, 2.0)}, "look: turn: expected the 9 numbers of a rotation"),
        ({"turn": (2.0, *FACING[1:])}, "look: turn: expected the 9 numbers of a rotation"),
    ],
)
def test_a_wrong_look_is_refused(wrong, match):
    with pytest.raises(SpaceError, match=match):
        MapLook(**wrong)


def test_lower_panes_are_the_third_and_the_fourth_and_the_right_ones_the_even():
    assert MapLook(second="labels").panes(4) == (1, 3)
    assert MapLook(second="labels").panes(2) == (1,)
    assert MapLook(second="labels", second_panes="lower").panes(4) == (2, 3)
    assert MapLook(second="labels", second_panes="lower").panes(2) == ()
    assert MapLook().panes(4) == ()


def test_unlabelled_texts_name_the_clusters_of_the_figure(recipe):
    bare = tuple((name, value) for name, value in recipe.source.options if name != "label_column")
    bare += (("ignore", '["genre"]'),)
    ends = [dataclasses.replace(end, options=bare) for end in (recipe.source, recipe.target)]
    assert load(ends[0]).labels is None
    view = ViewSpec((), everything=True, color_by="column:year")
    plain = dataclasses.replace(recipe, source=ends[0], target=ends[1], view=view, look=MapLook())
    texts = " ".join(note.text for note in plain.draw().interactive(LIGHT).layout.annotations)
    assert all(theme in texts for theme in ("river", "engine", "violin"))
