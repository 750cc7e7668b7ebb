"""The panes of two spaces in memory are those that a recipe draws."""

import numpy as np

from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.figures import panes_of
from relcore.compare.scene import ComparisonRecipe, comparison_scene
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import ViewSpec, default_pivots
from relcore.panes.page import scene_exportable
from relcore.spaces.space import match


def test_they_are_those_of_the_recipe(tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 6))
    np.save(tmp_path / "first.npy", vectors)
    np.save(tmp_path / "second.npy", 2 * vectors[:, ::-1] + 0.1 * rng.normal(size=vectors.shape))
    specs = [SpaceSpec("file", str(tmp_path / name)) for name in ("first.npy", "second.npy")]
    pair = match(*map(load, specs))
    anchors = ("3", "8", "21", "40")
    view = ViewSpec(default_pivots(pair.source), everything=True)
    expected = comparison_scene(
        ComparisonRecipe(*specs, anchors, view=view, reduction=ReductionSpec(fit="first"))
    )
    found = panes_of(pair, anchors)
    assert found.bytes("csv") == scene_exportable(expected).bytes("csv")
    assert found.recipe is None
    assert len(found.table()) == 80
