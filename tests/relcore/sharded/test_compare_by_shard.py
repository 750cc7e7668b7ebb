import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.represent.strategies import select_anchors
from relcore.runs.store import Store
from relcore.scores.comparison import class_labels, held_out, score_pair
from relcore.sharded.comparison import compare_shards
from relcore.sharded.runner import Runner
from relcore.sharded.space import ShardedSpace
from relcore.spaces.matching import match
from tests.relcore.sharded.folders import whole, write_npy, write_parquet

N = 1500
SIZES = (400, 700, 300, 100)
IDS = [f"row-{row}" for row in range(N)]


def rows_of(width=9, noise=0.5, alike=True):
    """Two spaces with the same rows turned, or unrelated ones, a few of them zero."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, width)).astype(np.float32) + 1
    if alike:
        Y = X @ rng.normal(size=(width, width)) + noise * rng.normal(size=(N, width))
    else:
        Y = rng.normal(size=(N, width))
    Y = Y.astype(np.float32)
    X[[7, 450]] = 0
    Y[[450, 1499]] = 0
    return X, Y


def spaces(tmp_path, X, Y, ids=IDS):
    labels = [f"class {int(2 * one)}" if row % 5 else "" for row, one in enumerate(X[:, 0])]
    write_npy(tmp_path / "a", X, SIZES, ids=ids, labels=labels)
    write_parquet(tmp_path / "b", Y, SIZES, ids=ids)
    return ShardedSpace.open(tmp_path / "a"), ShardedSpace.open(tmp_path / "b")


def expected(source, target, anchors, spec, n_queries, forms=REPRESENTATIONS, **settings):
    pair = match(whole(source), whole(target))
    if not isinstance(anchors, int):
        ids = anchors
    elif anchors:
        ids = select_anchors(pair.source, anchors)
    else:
        ids = ()
    settings |= {"labels": class_labels(pair)}
    made = {form: (represent(pair, form, ids, spec), held_out(pair, ids, form)) for form in forms}
    return {
        form: score_pair(*rows, split, n_queries=n_queries, **settings)
        for form, (rows, split) in made.items()
    }


def need_equal(found, wanted):
    assert found.keys() == wanted.keys()
    for form, scores in wanted.items():
        assert found[form].keys() == scores.keys(), form
        for metric, score in scores.items():
            other = found[form][metric]
            facts = (score.n, score.n_queries, score.k, score.convention, score.note)
            assert (other.n, other.n_queries, other.k, other.convention, other.note) == facts, (form, metric)
            numbers = [float(score), *(score.interval or ())], [float(other), *(other.interval or ())]
            np.testing.assert_allclose(numbers[1], numbers[0], atol=1e-6, err_msg=f"{form} {metric}")
            nulls = [(one.null.mean, one.null.low, one.null.high) for one in (other, score)]
            np.testing.assert_allclose(*nulls, atol=2e-6, err_msg=f"{form} {metric} chance")


@pytest.mark.parametrize(
    ("anchors", "alike"), [(0, False), ([IDS[row] for row in (3, 90, 444, 800, 1400, 1401)], True)]
)
def test_shards_numbers_are_those_of_one_machine(tmp_path, anchors, alike):
    source, target = spaces(tmp_path, *rows_of(alike=alike))
    found = compare_shards(source, target, anchors, Runner(Store(tmp_path / "store")), n_queries=60)
    if anchors:
        forms = REPRESENTATIONS
    else:
        forms = ("absolute",)
    need_equal(found.scores, expected(source, target, anchors, ProjectionSpec(), 60, forms))
    assert (found.n, found.n_zero) == (N - 3, 3)
    if not alike:
        for score in found.scores["absolute"].values():
            assert score.null.low - 0.02 <= score <= score.null.high + 0.02


def test_of_another_convention_and_similarity(tmp_path):
    source, target = spaces(tmp_path, *rows_of(), ids=None)
    spec = ProjectionSpec("euclidean", center=False, ridge=0.1)
    settings = {"k": 5, "convention": "mutual"}
    found = compare_shards(
        source, target, 30, Runner(Store(tmp_path / "store")), spec, n_queries=50, **settings
    )
    wanted = expected(source, target, 30, spec, 50, **settings)
    # The chance level permutes the rows at random, in another order where rows are equally near.
    for scores in (found.scores, wanted):
        assert all(0 <= one["jaccard"].null.mean < 0.02 for one in scores.values())
    need_equal(found.scores, wanted)


def test_rows_that_were_written_in_two_shards_are_refused(tmp_path):
    """One machine refuses them, too. Both spaces have these rows twice, so the shards would pair."""
    X, Y = rows_of()
    ids = [*IDS[:1400], *IDS[:100]]
    source, target = spaces(tmp_path, X, Y, ids=ids)
    with pytest.raises(
        SpaceError,
        match=r"a: ids must be distinct, 'row-\d+' occurs .* in 'part-00000.npy' and in 'part-00003.npy'",
    ):
        compare_shards(source, target, 10, Runner(Store(tmp_path / "store")), n_queries=300)
    with pytest.raises(SpaceError, match="ids must be distinct"):
        whole(source)
