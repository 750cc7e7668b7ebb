"""A recipe goes to JSON and back, finds out whether the data changed, and draws the same scene again."""

import json

import numpy as np
import pytest

from relcore import __version__
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.catalog.task import recipe_of
from relcore.compare.pictures import Panes, exportable
from relcore.compare.scene import comparison_scene
from relcore.maps.pane_maps import ViewSpec
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import match

A = SpaceSpec("bundled", "a")
B = SpaceSpec("bundled", "b")


@pytest.fixture
def pair(rng, make_space):
    vectors = rng.normal(size=(60, 5)) + 1
    return match(make_space(vectors, name="s"), make_space(3 * vectors[:, ::-1] - 2, name="t"))


@pytest.fixture
def files(pair, tmp_path):
    specs = []
    for space in (pair.source, pair.target):
        path = tmp_path / f"{space.name}.npz"
        np.savez(path, vectors=space.vectors, ids=space.ids.astype(str))
        specs.append(SpaceSpec("file", str(path)))
    return specs


@pytest.mark.parametrize(
    "recipe",
    [
        ComparisonRecipe(A, B, ("r0", "r1")),
        ComparisonRecipe(
            SpaceSpec("file", "here.csv", 50, (("id_column", "word"), ("invalid", "drop"))),
            B,
            ("é", "r1"),
            ProjectionSpec("l1", center=False, ridge=1.0),
            ViewSpec(("r1", "r2"), 7, everything=True, show_anchors=True),
            ReductionSpec("tsne", n_components=3, align=True, random_state=4),
            ("absolute", "whitened"),
            "abc",
            "def",
        ),
    ],
    ids=["bare", "full"],
)
def test_json_and_back_is_the_same(recipe):
    record = json.loads(json.dumps(Panes.of(recipe).to_json()))
    assert recipe_of(record) == Panes.of(recipe)
    assert (record["relscope"], record["figure"]) == (__version__, "comparison")


@pytest.fixture
def shuffled(files, pair, rng):
    """The files again, the target's rows in another order, 20 of them gone and one of its own."""
    kept = np.append(rng.permutation(60)[:40], 0)
    vectors = pair.target.vectors[kept]
    ids = [*pair.ids[kept[:-1]], "own"]
    np.savez(files[1].name, vectors=vectors, ids=np.array(ids, dtype=str))
    return files


def test_three_models_over_rows_that_all_have_are_drawn_again(pair, shuffled, files):
    third = files[0].name.replace("s.npz", "third.npz")
    rng = np.random.default_rng(4)
    np.savez(third, vectors=rng.normal(size=(50, 3)), ids=pair.ids[10:].astype(str))
    specs = (*shuffled, SpaceSpec("file", third))
    matched = match(*map(load, specs))
    source, target, other = (space.digest for space in matched.spaces)
    about = {"source_digest": source, "target_digest": target}
    about |= {"others": specs[2:], "other_digests": (other,)}
    look = {"view": ViewSpec(tuple(matched.ids[:1]), 9), "panes": ("own", "relative")}
    recipe = ComparisonRecipe(*shuffled, tuple(matched.ids[:4]), **look, **about)
    figure = Panes.of(recipe).draw(comparison_scene(recipe, matched))
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert again.table().equals(figure.table())
    names = [title.rpartition(" · ")[0] for title in figure.table().columns if title.endswith("relative x")]
    assert names == ["s", "t", "third"]
    assert len(load_pair(recipe)) == len(matched) < 40
    assert "others" not in Panes.of(ComparisonRecipe(*files, ("r0",))).to_json()


def test_data_that_has_changed_is_noticed(files):
    recipe = ComparisonRecipe(*files, ("r0",), target_digest="0123456789abcdef")
    with pytest.raises(SpaceError, match="'t' has changed: expected content 01234567…, got"):
        load_pair(recipe)
