"""Partners found through parallel anchors, figures from recipes, and the digits stitched."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import METHODS
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.encodings import encode
from relcore.compare.pictures import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.vision import SmallVision, held_out_rows
from relcore.represent.representations import MethodSettings
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.charts import StitchConfusion, StitchMatrix
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.stitch.try_it import RetrievalSpec, pair_up, retrieve

SPEC = RetrievalSpec(n_anchors=40, k=5)


@pytest.fixture
def rotated(rng, make_space):
    vectors = rng.normal(size=(120, 12))
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    return make_space(vectors, name="one"), make_space(3 * vectors @ rotation + 2, name="other")


def test_through_anchors_every_partner_of_rotated_space_is_found(rotated):
    result = retrieve(pair_up(*rotated), SPEC)
    assert len(result.ids) == 80
    for method in ("relative", "whitened", "procrustes"):
        assert result.scores[method]["first"] == 1
        assert result.scores[method]["mrr"] == 1
        assert result.scores[method]["jaccard"] == pytest.approx(1)
        np.testing.assert_array_equal(result.found[method][:, 0], np.arange(80))
    assert result.scores["absolute"]["first"] < 0.1


def test_the_best_method_comes_first(rotated):
    one, other = rotated
    noisy = LatentSpace(other.vectors + np.random.default_rng(1).normal(size=other.vectors.shape), other.ids)
    result = retrieve(pair_up(one, noisy), SPEC)
    first = [float(result.scores[method]["first"]) for method in result.best_first()]
    assert first == sorted(first, reverse=True)
    assert first[0] > first[-1]
    assert next(iter(result.scores)) == result.best_first()[-1] == "absolute"  # tables keep METHODS' order


def test_a_list_pairs_ids_that_differ(rotated):
    one, other = rotated
    renamed = LatentSpace(other.vectors[::-1], [f"q{row}" for row in range(119, -1, -1)], name="other")
    pairs = [(f"r{row}", f"q{row}") for row in range(120)]
    listed = retrieve(pair_up(one, renamed, [("nobody", "q1"), *pairs, ("r0", "q5")]), SPEC)
    assert (
        listed.scores["whitened"]["mrr"] == retrieve(pair_up(one, other), SPEC).scores["whitened"]["mrr"] == 1
    )
    with pytest.raises(SpaceError, match=r"expected ids of 'other' in the first column .* swap the columns"):
        pair_up(renamed, one, pairs)


STITCHED = StitchSpec(
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
def result(specs):
    return stitch_matrix([load(spec) for spec in specs], STITCHED)


def matrix(specs, **settings):
    return StitchMatrix(spaces=tuple(specs), stitching=STITCHED, **settings)


def test_the_recipe_draws_the_same_numbers_again(specs, result):
    digests = tuple(load(spec).digest for spec in specs)
    figure = matrix(specs, metric="f1", show="gap", digests=digests).draw(result)
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert again.bytes("csv") == figure.bytes("csv")
    assert again.bytes("tex") == figure.bytes("tex")
    assert figure.table()["score"].notna().sum() == 3 * 3 * 3 * 3 - 3 * 4
    cell = {"method": "relative", "encoder": 0, "head": 2}
    one = StitchConfusion(spaces=tuple(specs), stitching=STITCHED, digests=digests, **cell).draw(result)
    assert exportable(json.loads(one.bytes("json", full_paths=True))).bytes("csv") == one.bytes("csv")
    with pytest.raises(SpaceError, match="has changed: expected content"):
        matrix(specs, digests=("0" * 32,) * 3).draw()


def digits(store: Store) -> tuple[list[LatentSpace], StitchSpec]:
    """Four architectures; tested on the fifth of the rows that none of them was trained on."""
    spaces = [
        encode(DatasetSpec("digits"), SmallVision(name), store)[0]
        for name in ("mlp", "cnn", "residual", "vit")
    ]
    test_ids = tuple(spaces[0].ids[held_out_rows(len(spaces[0]))])
    settings = MethodSettings(omega=8, delta=0.65)
    return spaces, StitchSpec(
        tuple(METHODS), n_anchors=128, test_ids=test_ids, random_states=(0, 1, 2), settings=settings
    )


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return digits(Store(tmp_path_factory.mktemp("store")))


@pytest.mark.slow
def test_four_encoders_of_digits(task):
    table = stitch_matrix(*task).summary().query("metric == 'accuracy'").set_index("method")
    stitched = table["stitched"]
    assert table["own"].min() > 0.96
    assert stitched["relative"] >= 0.94
    assert stitched["relative, whitened"] >= stitched["relative"] - 0.01
    assert stitched["absolute"] <= 0.30
    assert stitched["Procrustes"] >= 0.95
    assert stitched["inverse, pruned"] >= 0.94
