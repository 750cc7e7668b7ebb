import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate import evaluate, pairs
from relcore.migrate.migration import Migration
from relcore.migrate.retrieval import JudgedQuery
from relcore.runs.jobs import Engine
from relcore.runs.store import Store
from relcore.sharded import migrate
from relcore.sharded import migrate as sharded_migrate
from relcore.sharded.migrate import migrate_shards
from relcore.sharded.passes import Runner
from relcore.sharded.space import ShardedPair, ShardedSpace
from relcore.sharded.survey import DistinctRows
from tests.relcore.sharded.folders import write_npy, write_parquet

N, SIZES = 700, (150, 300, 200, 50)
IDS = [f"row-{row}" for row in range(N)]


@pytest.fixture(autouse=True)
def few_queries(monkeypatch):
    """Two products of float32 that differ by a rounding are ordered either way: among few lists there are
    none.
    """
    for where in (evaluate, migrate):
        monkeypatch.setattr(where, "MOST_QUERIES", 40)


def rows_of(richer="both", alike=True, copies=True):
    """Two models of the same rows, of two widths; a few rows zero, and a few that repeat others."""
    rng = np.random.default_rng(11)
    latent = rng.normal(size=(N, 8))
    widths = {"both": (8, 8), "new": (3, 8), "old": (8, 3)}[richer]
    turns = (np.linalg.qr(rng.normal(size=(9 - side, 9 - side)))[0] for side in (0, 1))
    old, new = (latent[:, :width] @ turn[:width] for width, turn in zip(widths, turns, strict=True))
    old, new = (side + 0.2 * rng.normal(size=side.shape) for side in (old, new))
    new = new if alike else rng.normal(size=new.shape)
    old, new = old.astype(np.float32), new.astype(np.float32)
    old[[5, 444]], new[[444, 699]] = 0, 0
    if copies:
        old[100:110], new[300:305] = old[200:210], new[400:405]
    return old, new


def pair_of(tmp_path, old, new, ids=IDS):
    write_npy(tmp_path / "old", old, SIZES, ids=ids)
    write_parquet(tmp_path / "new", new, SIZES, ids=ids)
    return ShardedPair(ShardedSpace.open(tmp_path / "old"), ShardedSpace.open(tmp_path / "new"))


def whole(pair):
    return [pair.source.whole(), pair.target.whole()]


def need_equal(found, wanted):
    """Everything in two results, the numbers to 1e-6."""
    for name in ("adapter", "truth", "k", "n_pairs", "n_rows", "queries", "cautions"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.weight == pytest.approx(wanted.weight, abs=1e-6)
    assert found.verdict.option == wanted.verdict.option
    np.testing.assert_array_equal(found.pairs, wanted.pairs)
    np.testing.assert_array_equal(found.relevant_row, wanted.relevant_row)
    np.testing.assert_array_equal(found.relevant_query, wanted.relevant_query)
    assert found.scores.keys() == wanted.scores.keys()
    for option, scores in wanted.scores.items():
        np.testing.assert_array_equal(found.found[option], wanted.found[option], option)
        np.testing.assert_allclose(found.scores[option], scores, atol=1e-6)
    for one, other in zip(found.options, wanted.options, strict=True):
        assert (one.value, one.low, one.high, one.recall) == pytest.approx(
            (other.value, other.low, other.high, other.recall)
        )
    assert [one.adapter for one in found.candidates] == [one.adapter for one in wanted.candidates]
    for one, other in zip(
        (*found.candidates, *found.curve), (*wanted.candidates, *wanted.curve), strict=True
    ):
        assert vars(one) == pytest.approx(vars(other), abs=1e-6)


@pytest.mark.parametrize(
    ("richer", "settings"),
    [
        ("both", {}),
        ("both", {"adapter": "procrustes", "fusion": "reciprocal", "sizes": (50,), "n_pairs": 200}),
        ("new", {"adapter": "ridge", "sizes": (), "random_state": 3}),
        ("old", {"adapter": "procrustes", "sizes": (), "k": 4}),
    ],
)
def test_all_numbers_are_those_of_one_machine(tmp_path, richer, settings):
    copies = (
        not settings
    )  # of equal rows that are held out, which it may have by other settings, one machine finds any
    pair, task = pair_of(tmp_path, *rows_of(richer, copies=copies)), Migration(**settings)
    found = migrate_shards(task, pair, Runner(Store(tmp_path / "store")))
    assert found.truth == richer
    assert any("repeat" in one for one in found.cautions) == copies
    need_equal(found, task.run(whole(pair)))


def test_samples_of_bounded_size_are_the_same_rows(tmp_path, monkeypatch):
    """Of the curve, of the choice and of the comparison of the models, on more rows than they take."""
    for where, rows in ((evaluate, 90), (evaluate, 120), (evaluate, 80)):
        monkeypatch.setattr(where, "MOST_ROWS", rows)
    for where in (pairs, sharded_migrate):
        monkeypatch.setattr(where, "MOST_FITTED", 300)
    pair, task = pair_of(tmp_path, *rows_of(copies=False), ids=None), Migration(sizes=(60,), draws=2)
    found = migrate_shards(task, pair, Runner(Store(tmp_path / "store")))
    assert (len(found.queries), found.n_pairs, found.n_rows) == (40, 300, N - 3 - 300)
    need_equal(found, task.run(whole(pair)))


def test_on_workers_it_resumes_by_shard(tmp_path):
    pair, task = pair_of(tmp_path, *rows_of()), Migration("ridge", sizes=())
    engine = Engine(n_workers=2, store=Store(tmp_path / "there"))
    try:
        run, again = Runner(engine.store, engine), Runner(engine.store, engine)
        there = migrate_shards(task, pair, run)
        migrate_shards(task, pair, again)
    finally:
        engine.close()
    need_equal(there, task.run(whole(pair)))
    assert {one.computed for _, one in run.done} == {4}
    assert {one.computed for _, one in again.done} == {0}
    assert len(run.peaks) == 2


def test_models_that_have_nothing_in_common_are_refused(tmp_path):
    pair = pair_of(tmp_path, *rows_of(alike=False))
    with pytest.raises(SpaceError, match="find no better than by chance"):
        migrate_shards(Migration(sizes=()), pair, Runner(Store(tmp_path / "store")))


def test_rows_in_another_order_are_found_by_their_shift(tmp_path):
    old, new = rows_of()
    pair = pair_of(tmp_path, old, np.roll(new, 2, axis=0))
    with pytest.raises(SpaceError, match="found 2 rows further up"):
        migrate_shards(Migration(sizes=()), pair, Runner(Store(tmp_path / "store")))


def test_what_is_left_to_a_sample(tmp_path):
    pair, runner = pair_of(tmp_path, *rows_of()), Runner(Store(tmp_path / "store"))
    for task, what in (
        (Migration(relevance="labels"), "labels as relevance"),
        (Migration(n_pairs=50, strategy="farthest-point"), "choosing pairs by 'farthest-point'"),
        (Migration(judgements=(JudgedQuery("q", "row-1", 1),)), "judged queries"),
    ):
        with pytest.raises(SpaceError, match=what):
            migrate_shards(task, pair, runner)
    with pytest.raises(SpaceError, match="expected 690 to fit on and 25 held out"):
        migrate_shards(Migration(n_pairs=690), pair, runner)


def test_the_share_of_repeated_rows():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(900, 5)).astype(np.float32)[rng.integers(0, 900, 3000)]
    rows[0], rows[1] = 0.0, -0.0
    wanted = 1 - len(np.unique(rows, axis=0)) / len(rows)
    parts = [DistinctRows() for _ in range(3)]
    for number, part in enumerate(parts):
        part.add(rows[number::3])
    for other in parts[1:]:
        parts[0].merge(other.hashes, other.counts)
    assert parts[0].repeated == wanted
    assert parts[0].counts.sum() == len(rows)
    bounded = DistinctRows(most=200)
    for start in range(0, len(rows), 100):
        bounded.add(rows[start : start + 100])
    assert len(bounded.hashes) == 200
    # A row has 3.5 copies on average, standard deviation 1.7: 1 / mean count of 200 of them has a standard
    # error of .01.
    assert bounded.repeated == pytest.approx(wanted, abs=0.04)
    assert DistinctRows().repeated == 0
    fresh = DistinctRows()
    fresh.add(rng.normal(size=(5000, 3)).astype(np.float32))
    assert fresh.repeated == 0


def test_rows_that_were_written_in_two_shards_are_refused(tmp_path):
    pair = pair_of(tmp_path, *rows_of(), ids=[*IDS[:690], *IDS[:10]])
    with pytest.raises(
        SpaceError, match=r"occurs more than once, in 'part-00000.npy' and in 'part-00003.npy'"
    ):
        migrate_shards(Migration(sizes=()), pair, Runner(Store(tmp_path / "store")))
