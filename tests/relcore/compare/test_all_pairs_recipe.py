"""The heat map of pairs comes back from its recipe with the same numbers, and from a wrong recipe with one
line.
"""

import numpy as np
import pytest

from relcore.catalog.catalog import SpaceSpec, load
from relcore.cli import main
from relcore.compare.scene import PairMap
from relcore.compare.scoring import AllPairs
from relcore.represent.translation import ProjectionSpec

SETTINGS = {
    "cka": {},
    "relative cosine": {
        "anchors": ("w3", "w9", "w27"),
        "projection": ProjectionSpec("angular", center=False),
    },
    "mutual knn": {"k": 5, "n_queries": 30},
}


@pytest.fixture
def specs(tmp_path):
    rng = np.random.default_rng(5)
    vectors, ids = rng.normal(size=(60, 8)), np.array([f"w{row}" for row in range(60)])
    for name, noise in (("first", 0), ("far", 2), ("near", 0.1)):
        np.savez(tmp_path / f"{name}.npz", vectors=vectors + noise * rng.normal(size=vectors.shape), ids=ids)
    return [SpaceSpec("file", str(tmp_path / f"{name}.npz")) for name in ("first", "far", "near")]


@pytest.fixture
def figure(specs):

    def make(metric="cka", grouped=False):
        spaces, own = [load(spec) for spec in specs], SETTINGS[metric]
        recipe = PairMap(tuple(specs), tuple(one.digest for one in spaces), metric, grouped, **own)
        return recipe.draw(AllPairs(metric, **own).run(spaces))

    return make


@pytest.mark.parametrize("metric", SETTINGS)
@pytest.mark.parametrize("grouped", [False, True])
def test_drawn_again_it_holds_the_same_numbers(figure, tmp_path, metric, grouped):
    made, recipe, numbers = figure(metric, grouped), tmp_path / "recipe.json", tmp_path / "numbers.csv"
    recipe.write_bytes(made.bytes("json"))
    assert main(["figure", str(recipe), "-o", str(numbers)]) == 0
    assert numbers.read_bytes() == made.bytes("csv")
