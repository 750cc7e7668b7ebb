"""Figures of stitching: the numbers of the result, the same again from the recipe, and what is wrong with
one.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.scene import exportable
from relcore.stitch.stitching import StitchConfusion, StitchMatrix, StitchSpec, stitch_matrix

SPEC = StitchSpec(
    ("absolute", "relative", "procrustes"),
    n_anchors=24,
    random_states=(0, 1),
    order=("low", "middle", "high"),
)


@pytest.fixture
def specs(tmp_path, make_encoders):
    made = []
    for number, space in enumerate(make_encoders()):
        path = tmp_path / f"encoder{number}.npz"
        np.savez(path, vectors=space.vectors, ids=space.ids.astype(str), labels=space.labels.astype(str))
        made.append(SpaceSpec("file", str(path)))
    return made


@pytest.fixture
def make_encoders():
    from relcore.spaces.space import LatentSpace

    def make():
        rng, numbers = np.random.default_rng(0), np.arange(240) % 3
        points = rng.normal(size=(3, 8))[numbers] * 2 + 0.8 * rng.normal(size=(240, 8))
        labels, ids = np.array(SPEC.order)[numbers], [f"r{row}" for row in range(240)]
        turns = [np.linalg.qr(rng.normal(size=(width, width)))[0][:8] for width in (8, 8, 12)]
        vectors = [
            (points @ turn + 0.3 * rng.normal(size=(240, turn.shape[1]))).astype(np.float32) for turn in turns
        ]
        return [LatentSpace(X, ids, name=f"encoder{i}", labels=labels) for i, X in enumerate(vectors)]

    return make


@pytest.fixture
def result(specs):
    return stitch_matrix([load(spec) for spec in specs], SPEC)


def matrix(specs, **settings):
    return StitchMatrix(spaces=tuple(specs), stitching=SPEC, **settings)


def test_the_recipe_draws_the_same_numbers_again(specs, result):
    digests = tuple(load(spec).digest for spec in specs)
    figure = matrix(specs, metric="f1", show="gap", digests=digests).draw(result)
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert again.bytes("csv") == figure.bytes("csv")
    assert again.bytes("tex") == figure.bytes("tex")
    assert figure.table()["score"].notna().sum() == 3 * 3 * 3 * 3 - 3 * 4
    cell = {"method": "relative", "encoder": 0, "head": 2}
    one = StitchConfusion(spaces=tuple(specs), stitching=SPEC, digests=digests, **cell).draw(result)
    assert exportable(json.loads(one.bytes("json", full_paths=True))).bytes("csv") == one.bytes("csv")
    with pytest.raises(SpaceError, match="has changed: expected content"):
        matrix(specs, digests=("0" * 32,) * 3).draw()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"digests": ["x"]}, "expected 3 digests, one per space"),
        ({"metric": "speed"}, "metric: expected one of"),
    ],
)
def test_a_wrong_recipe_says_what_is_wrong(specs, change, message):
    recipe = matrix(specs).to_json()
    with pytest.raises(SpaceError, match=message):
        exportable({**recipe, **change})
