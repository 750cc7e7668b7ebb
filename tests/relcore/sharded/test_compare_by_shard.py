import numpy as np
import pytest

from benchmarks.made_shards import made
from relcore.base.errors import SpaceError
from relcore.invert.recovery import InversionSpec, invert_pair
from relcore.represent.anchors import select_anchors
from relcore.runs.jobs import Engine
from relcore.runs.store import Store
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    class_labels,
    held_out,
    represent,
    score_pair,
)
from relcore.sharded.compare import compare_shards
from relcore.sharded.invert import invert_shards
from relcore.sharded.passes import Runner
from relcore.sharded.space import ShardedSpace
from relcore.spaces.space import match
from tests.relcore.sharded.folders import write_npy, write_parquet

N, SIZES = 1500, (400, 700, 300, 100)
IDS = [f"row-{row}" for row in range(N)]


def rows_of(width=9, noise=0.5, alike=True):
    """Two spaces with the same rows turned, or unrelated ones, a few of them zero."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, width)).astype(np.float32) + 1
    Y = (
        X @ rng.normal(size=(width, width)) + noise * rng.normal(size=(N, width))
        if alike
        else rng.normal(size=(N, width))
    )
    Y = Y.astype(np.float32)
    X[[7, 450]] = 0
    Y[[450, 1499]] = 0
    return X, Y


def spaces(tmp_path, X, Y, ids=IDS):
    write_npy(tmp_path / "a", X, SIZES, ids=ids)
    write_parquet(tmp_path / "b", Y, SIZES, ids=ids)
    return ShardedSpace.open(tmp_path / "a"), ShardedSpace.open(tmp_path / "b")


def expected(source, target, anchors, spec, n_queries, forms=REPRESENTATIONS, **settings):
    pair = match(source.whole(), target.whole())
    ids = anchors if not isinstance(anchors, int) else select_anchors(pair.source, anchors) if anchors else ()
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


@pytest.mark.parametrize("anchors", [40, 0, [IDS[row] for row in (3, 90, 444, 800, 1400, 1401)]])
@pytest.mark.parametrize("alike", [True, False])
def test_the_shards_numbers_are_those_of_one_machine(tmp_path, anchors, alike):
    source, target = spaces(tmp_path, *rows_of(alike=alike))
    found = compare_shards(source, target, anchors, Runner(Store(tmp_path / "store")), n_queries=60)
    forms = REPRESENTATIONS if anchors else ("absolute",)
    need_equal(found.scores, expected(source, target, anchors, ProjectionSpec(), 60, forms))
    assert (found.n, found.n_zero) == (N - 3, 3)
    if not alike:
        for score in found.scores["absolute"].values():
            assert score.null.low - 0.02 <= score <= score.null.high + 0.02


@pytest.mark.parametrize("convention", ["mutual", "paper"])
@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_of_every_convention_and_similarity(tmp_path, convention, similarity):
    source, target = spaces(tmp_path, *rows_of(), ids=None)
    spec = ProjectionSpec(similarity, center=similarity == "cosine", ridge=0.1)
    settings = {"k": 5, "convention": convention}
    found = compare_shards(
        source, target, 30, Runner(Store(tmp_path / "store")), spec, n_queries=50, **settings
    )
    wanted = expected(source, target, 30, spec, 50, **settings)
    if (
        convention == "mutual"
    ):  # its chance level permutes the rows at random, in another order where rows are equally near
        for scores in (found.scores, wanted):
            assert all(0 <= one["jaccard"].null.mean < 0.02 for one in scores.values())
    need_equal(found.scores, wanted)


@pytest.mark.parametrize("convention", ["paper", "mutual"])
@pytest.mark.parametrize("share", [1, 0.8])
@pytest.mark.parametrize("side", [0, 1])
def test_class_agreement(tmp_path, convention, share, side):
    """Of all rows, or of the labelled ones where some have no label; by the labels of either folder."""
    X, Y = rows_of()
    rng = np.random.default_rng(6)
    labels = [f"class {int(2 * one)}" if rng.random() < share else "" for one in X[:, 0]]
    write_npy(tmp_path / "a", X, SIZES, ids=IDS, labels=None if side else labels)
    write_parquet(tmp_path / "b", Y, SIZES, ids=IDS, labels=labels if side else None)
    source, target = ShardedSpace.open(tmp_path / "a"), ShardedSpace.open(tmp_path / "b")
    found = compare_shards(
        source, target, 40, Runner(Store(tmp_path / "store")), n_queries=60, convention=convention
    )
    wanted = expected(source, target, 40, ProjectionSpec(), 60, convention=convention)
    names = (
        "class agreement",
        "mrr",
    )  # the chance level of others permutes the rows by "mutual", in another order
    assert names[0] in found.scores["absolute"]
    assert set(wanted["relative"]) == set(found.scores["relative"])
    need_equal(
        *(
            {form: {name: one[name] for name in names if name in one} for form, one in each.items()}
            for each in (found.scores, wanted)
        )
    )


@pytest.mark.parametrize("labels", [["one"] * N, IDS, ["a", "b"] * 300 + [""] * 900])
def test_labels_that_are_no_classes(tmp_path, labels):
    """One class, a class of its own for each row, or none for most rows."""
    X, Y = rows_of()
    write_npy(tmp_path / "a", X, SIZES, ids=IDS, labels=labels)
    source, target = (
        ShardedSpace.open(tmp_path / "a"),
        ShardedSpace.open(write_npy(tmp_path / "b", Y, SIZES, ids=IDS)),
    )
    found = compare_shards(source, target, 10, Runner(Store(tmp_path / "store")), n_queries=30)
    need_equal(found.scores, expected(source, target, 10, ProjectionSpec(), 30))
    assert "class agreement" not in found.scores["absolute"]


def test_classes_of_unrelated_spaces_agree_by_chance(tmp_path):
    X, Y = rows_of(alike=False)
    labels = [("red", "green", "blue")[int(one) % 3] for one in np.random.default_rng(7).integers(0, 3, N)]
    write_npy(tmp_path / "a", X, SIZES, ids=IDS, labels=labels)
    source, target = (
        ShardedSpace.open(tmp_path / "a"),
        ShardedSpace.open(write_npy(tmp_path / "b", Y, SIZES, ids=IDS)),
    )
    found = compare_shards(source, target, 30, Runner(Store(tmp_path / "store")), n_queries=400)
    for form in REPRESENTATIONS:
        score = found.scores[form]["class agreement"]
        assert score.null.low <= score <= score.null.high, form


def test_a_long_row_that_decides_is_named(tmp_path):
    X, Y = rows_of()
    X[20], Y[20] = 4000, 4000
    source, target = spaces(tmp_path, X, Y)
    found = compare_shards(source, target, 25, Runner(Store(tmp_path / "store")), n_queries=40)
    wanted = expected(source, target, 25, ProjectionSpec(), 40)
    need_equal(found.scores, wanted)
    assert "'row-20'" in found.scores["absolute"]["cka"].note


def test_on_the_workers_of_a_cluster(tmp_path):
    source, target = (made(rows=30_000, width=8, shards=5, side=side) for side in (0, 1))
    here = compare_shards(source, target, 20, Runner(Store(tmp_path / "here")), n_queries=30)
    engine = Engine(n_workers=2, store=Store(tmp_path / "there"))
    try:
        run = Runner(engine.store, engine)
        there = compare_shards(source, target, 20, run, n_queries=30)
        again = Runner(engine.store, engine)
        compare_shards(source, target, 20, again, n_queries=30)
    finally:
        engine.close()
    need_equal(there.scores, here.scores)
    need_equal(there.scores, expected(source, target, 20, ProjectionSpec(), 30))
    assert all(one.computed == 5 for _, one in run.done)
    assert all(one.computed == 0 for _, one in again.done)
    assert len(run.peaks) == 2


def test_what_cannot_be_compared(tmp_path):
    source, target = spaces(tmp_path, *rows_of())
    runner = Runner(Store(tmp_path / "store"))
    with pytest.raises(SpaceError, match=r"1 … 2,048 queries by shard, got 3,000"):
        compare_shards(source, target, 10, runner, n_queries=3000)
    with pytest.raises(SpaceError, match="1 unknown: 'nobody'"):
        compare_shards(source, target, ["nobody"], runner)
    with pytest.raises(SpaceError, match="'row-7' are zero vectors"):
        compare_shards(source, target, ["row-7"], runner)
    with pytest.raises(SpaceError, match="expected one of paper, mutual"):
        compare_shards(source, target, 10, runner, convention="other")


@pytest.mark.parametrize(
    "spec", [InversionSpec(method="whitened", ridge=0.3), InversionSpec(), InversionSpec(tuned=True)]
)
def test_inversion_by_shard_is_that_of_one_machine(tmp_path, spec):
    source, target = spaces(tmp_path, *rows_of())
    runner, goal = Runner(Store(tmp_path / "store")), tmp_path / "goal"
    found = invert_shards(source, target, 30, runner, spec, goal=str(goal))
    pair = match(source.whole(), target.whole())
    wanted = invert_pair(pair, select_anchors(pair.source, 30), spec, most_rows=N)
    score = wanted.scores[wanted.spec.title]
    assert (found.spec, found.score.n) == (wanted.spec, score.n)
    np.testing.assert_allclose(found.score, score, atol=1e-6)
    nulls = [(one.null.mean, one.null.low, one.null.high) for one in (found.score, score)]
    np.testing.assert_allclose(*nulls, atol=1e-6)
    written = ShardedSpace.open(goal).whole()
    np.testing.assert_allclose(written.vectors[written.rows(pair.ids[wanted.rows])], wanted.found, atol=1e-5)


def test_inversion_between_unrelated_spaces_is_at_chance(tmp_path):
    source, target = spaces(tmp_path, *rows_of(alike=False))
    score = invert_shards(source, target, 40, Runner(Store(tmp_path / "store"))).score
    assert score.null.low - 0.05 < score < score.null.high + 0.05
    with pytest.raises(SpaceError, match="exchange the two folders"):
        invert_shards(source, target, 40, Runner(Store(tmp_path / "store")), InversionSpec(route="backward"))


@pytest.mark.parametrize("spec", [InversionSpec(method="whitened", ridge=0.3), InversionSpec()])
def test_inversion_of_shards_without_a_row_to_score(tmp_path, spec):
    """One row that is an anchor, and zero rows alone."""
    X, Y = (one[:200] for one in rows_of())
    X[1:4] = 0
    sizes, ids = (1, 3, 196), IDS[:200]
    source = ShardedSpace.open(write_npy(tmp_path / "a", X, sizes, ids=ids))
    target = ShardedSpace.open(write_npy(tmp_path / "b", Y, sizes, ids=ids))
    anchors = [ids[row] for row in (0, *range(20, 50))]
    score = invert_shards(source, target, anchors, Runner(Store(tmp_path / "store")), spec).score
    pair = match(source.whole(), target.whole())
    wanted = invert_pair(pair, anchors, spec, most_rows=N)
    assert score == pytest.approx(float(wanted.scores[wanted.spec.title]), abs=1e-6)


def test_an_anchor_of_several_rows_is_refused(tmp_path):
    X, Y = rows_of()
    ids = [*IDS[:900], IDS[3], *IDS[901:]]
    source, target = spaces(tmp_path, X, Y, ids=ids)
    with pytest.raises(SpaceError, match="1 occur more than once in 'a', first 'row-3'"):
        compare_shards(source, target, ["row-5", "row-3"], Runner(Store(tmp_path / "store")), n_queries=30)


def test_rows_that_were_written_in_two_shards_are_refused(tmp_path):
    """As one machine does: both spaces have them twice, so the rows do pair."""
    X, Y = rows_of()
    ids = [*IDS[:1400], *IDS[:100]]
    source, target = spaces(tmp_path, X, Y, ids=ids)
    with pytest.raises(
        SpaceError,
        match=r"a: ids must be distinct, 'row-\d+' occurs .* in 'part-00000.npy' and in 'part-00003.npy'",
    ):
        compare_shards(source, target, 10, Runner(Store(tmp_path / "store")), n_queries=300)
    with pytest.raises(SpaceError, match="ids must be distinct"):
        source.whole()


def test_spaces_with_few_rows_are_named(tmp_path):
    spaces = [
        ShardedSpace.open(write_npy(tmp_path / name, np.eye(3, 4, dtype=np.float32), (1, 2))) for name in "ab"
    ]
    runner = Runner(Store(tmp_path / "store"))
    with pytest.raises(SpaceError, match="for 3 rows of 'a' and 'b', got 10"):
        compare_shards(*spaces, 0, runner)
