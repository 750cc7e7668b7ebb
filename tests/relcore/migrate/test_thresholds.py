"""The new cut-off of a similarity threshold, on made-up scores where the answer is known, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.migrate.cut_offs import KindCutOffs, PassCounts, ratio_interval
from relcore.migrate.migration import Migration
from relcore.migrate.moved_threshold import MovedThreshold, read_limits
from relcore.migrate.similarities import Similarities
from relcore.migrate.threshold_command import accepted_pairs
from relcore.migrate.thresholds import ThresholdChange, Wanted, check_collection, move_threshold, moved
from relcore.scores.relevance import JudgedQuery
from relcore.spaces.space import LatentSpace
from tests.relcore.migrate.planted import write_migration

pytestmark = pytest.mark.usefixtures("own_store")
JUDGED = "migrate old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --no-curve"


def models(noise, n=400, q=60, d=24, seed=0):
    """The same queries and rows by two models: topics with noise; and which rows have the query's topic."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, d))
    topics = rng.integers(12, size=n + q)
    vectors = centres[topics] + noise * rng.normal(size=(n + q, d))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    sides = []
    for rows in (vectors, vectors @ turn + 0.1 * rng.normal(size=vectors.shape)):
        sides.append((rows[:q], rows[q:]))
    return (*sides, topics[:q, None] == topics[None, q:])


def passing(side, cut, score):
    """Which rows pass, by the definition of the score."""
    queries, rows = side
    if score == "l2":
        return np.linalg.norm(queries[:, None] - rows[None], axis=2) <= cut
    if score == "cosine":
        queries, rows = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in side)
    return queries @ rows.T >= cut


@pytest.mark.parametrize("score", ["cosine", "inner", "l2"])
@pytest.mark.parametrize("keep", ["hits", "precision", "recall"])
def test_the_new_cut_off_keeps_what_the_old_one_has(score, keep):
    old, new, relevant = models(0.9)
    threshold = {"cosine": 0.5, "inner": 12.0, "l2": 6.0}[score]
    found = move_threshold(old, new, threshold, relevant=relevant, keep=keep, score=score)
    by_old = passing(old, threshold, score)
    by_new = passing(new, found.new_threshold, score)
    measured = {}
    for name, passed in (("old", by_old), ("new", by_new)):
        right = np.count_nonzero(passed & relevant)
        measured[name] = {
            "precision": right / passed.sum(),
            "recall": right / relevant.sum(),
            "hits": passed.sum() / len(passed),
        }
    for name, one in found.old.items():
        assert one.value == pytest.approx(measured["old"][name], rel=0.01), name
    for name, one in found.new.items():
        assert one.value == pytest.approx(measured["new"][name], rel=0.01), name
    if keep == "hits":
        assert measured["new"][keep] == pytest.approx(measured["old"][keep], rel=0.05)
    else:
        assert 0 <= found.new[keep].value - found.old[keep].value < 0.02
    errors = 1 - np.count_nonzero(by_old & by_new) / np.count_nonzero(by_old | by_new)
    assert found.error == pytest.approx(errors, abs=0.01)
    assert found.beats_chance
    again = records.unpack(MovedThreshold, *records.pack(found))
    assert again.describe() == found.describe()
    assert f"<p>{found.describe()}</p>" in found._repr_html_()


def test_a_turned_model_keeps_its_threshold_and_a_shorter_one_does_not():
    old, _, _ = models(0.9)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(24, 24)))[0]
    turned = tuple(rows @ turn for rows in old)
    assert move_threshold(old, turned, 0.6).new_threshold == pytest.approx(0.6, abs=0.002)
    halved = tuple(0.5 * rows for rows in turned)
    assert move_threshold(old, halved, 5.0, score="l2").new_threshold == pytest.approx(2.5, abs=0.01)
    assert move_threshold(old, halved, 9.0, score="inner").new_threshold == pytest.approx(2.25, abs=0.01)


def test_queries_that_are_all_right_do_not_promise_that_others_are():
    found = ratio_interval(np.full(30, 2.0), np.full(30, 2.0), is_share=True)
    # one more query without a right row: 1 / √(30 · 29), Student's t with 29 degrees of freedom, √2
    assert found.low == pytest.approx(1 - 2.0452 * np.sqrt(2 / (30 * 29)), abs=1e-4)
    assert (found.value, found.high) == (1.0, 1.0)


def test_an_interval_is_that_of_means_and_wider_for_fewer_new_queries(rng):
    part = rng.poisson(3, 40).astype(float)
    found = ratio_interval(part, np.ones(40), n_new=10**9)
    half = 2.0227 * part.std(ddof=1) / np.sqrt(40)  # Student's t with 39 degrees of freedom
    assert found.value == pytest.approx(part.mean())
    assert found.high - found.value == pytest.approx(half, rel=1e-4)
    wide = ratio_interval(part, np.ones(40))
    assert wide.high - wide.value == pytest.approx(half * np.sqrt(2), rel=1e-4)
    assert np.isnan(ratio_interval(part, np.zeros(40)).value)


def test_intervals_hold_for_other_queries():
    """Of the next queries' precision and recall, about 95 % are within the interval of the first ones."""
    held = []
    for seed in range(40):
        old, new, relevant = models(1.1, q=80, seed=seed)
        halves = [slice(0, 40), slice(40, 80)]
        sides = [[(queries[half], rows) for queries, rows in (old, new)] for half in halves]
        found = move_threshold(*sides[0], 0.45, relevant=relevant[halves[0]], keep="precision")
        passed = passing(sides[1][1], found.new_threshold, "cosine")
        right = np.count_nonzero(passed & relevant[halves[1]])
        for name, whole in (("precision", passed.sum()), ("recall", relevant[halves[1]].sum())):
            held.append(found.new[name].low <= right / whole <= found.new[name].high)
    assert np.mean(held) > 0.88  # two standard errors below .95, if 40 draws count


@pytest.mark.parametrize(("noise", "usable"), [(0.5, "one"), (4.0, "none")])
def test_separable_topics_have_a_cut_off_and_noise_has_none(noise, usable):
    old, new, relevant = models(noise)
    found = move_threshold(old, new, relevant=relevant)
    assert found.usable == usable
    # Of two cut-offs in the text, only one is to set.
    assert ("The cut-off to set is above" in found.verdict()) == (usable == "one")
    assert found.to_set() == f"cosine ≥ {found.number(found.new_threshold)}"
    assert found.separability.value == pytest.approx(
        max(
            min(row.precision, row.recall)
            for row in found.curve().itertuples()
            if not np.isnan(row.precision)
        )
    )


def test_few_queries_near_one_half_cannot_tell():
    old, new, relevant = models(1.35, q=20)
    found = move_threshold(old, new, relevant=relevant)
    assert found.usable == "undecided"
    assert "cannot tell" in found.verdict()


def shifted(rng, shift, q=120, n=200):
    """Counts of queries of two kinds, of which one has scores that are higher by the shift."""
    kinds = np.array(["a", "b"], dtype=object)[np.arange(q) % 2]
    relevant = rng.random((q, n)) < 0.1
    scores = relevant + 0.25 * rng.normal(size=(q, n)) + shift * (kinds == "b")[:, None]
    cuts = np.linspace(-1, 4, 300)
    passed = np.stack([(scores >= cut).sum(axis=1) for cut in cuts], axis=1)
    found = np.stack([((scores >= cut) & relevant).sum(axis=1) for cut in cuts], axis=1)
    return PassCounts(cuts, passed, found, relevant.sum(axis=1)), kinds


def test_a_cut_off_for_each_kind_is_offered_if_kinds_are_shifted(rng):
    found = KindCutOffs.of(*shifted(rng, 1.0))
    assert found.is_better
    assert found.separability.verdict == "yes"
    assert found.cuts[1] - found.cuts[0] == pytest.approx(1.0, abs=0.15)


def test_equal_kinds_get_no_cut_offs_of_their_own(rng):
    offered = [KindCutOffs.of(*shifted(rng, 0.0)).is_better for _ in range(40)]
    assert np.mean(offered) <= 0.125  # 2.5 % of 40 draws, and four standard errors


def test_kinds_with_few_queries_are_not_tried(rng):
    counts, _ = shifted(rng, 1.0)
    assert KindCutOffs.of(counts, np.array(["a", "b", ""] * 3 + [""] * 111, dtype=object)) is None


def test_what_no_threshold_can_be_moved_for_is_refused():
    old, new, relevant = models(0.9)
    with pytest.raises(SpaceError, match="expected judgements, to keep precision"):
        move_threshold(old, new, keep="precision")
    with pytest.raises(SpaceError, match="expected a cosine"):
        move_threshold(old, new, 1.5)
    with pytest.raises(SpaceError, match="an L2 distance, 0 or more"):
        move_threshold(old, new, -1.0, score="l2")
    with pytest.raises(SpaceError, match="expected a number or None, got inf"):
        move_threshold(old, new, float("inf"), score="inner")
    with pytest.raises(SpaceError, match="20 queries or more, got 12"):
        move_threshold((old[0][:12], old[1]), (new[0][:12], new[1]))
    with pytest.raises(SpaceError, match="which rows of 0 queries pass; was it chosen on other rows"):
        move_threshold(old, new, 0.999)
    with pytest.raises(SpaceError, match="a row for each query"):
        move_threshold(old, new, relevant=relevant[:, :5])
    with pytest.raises(SpaceError, match="paired by row"):
        move_threshold(old, (new[0], new[1][:50]))


def test_a_precision_that_cannot_be_kept_is_refused_with_the_best_one():
    old, new, relevant = models(0.5)
    rng = np.random.default_rng(0)
    noisy = tuple(rows + 6 * rng.normal(size=rows.shape) for rows in new)
    found = move_threshold(old, noisy, 0.8, relevant=relevant, keep="precision")
    assert np.isnan(found.new_threshold)
    assert "keep recall or hits instead" in found.describe()
    assert found.separability.verdict == "no"
    assert found.cases([("precision", 0.5)], "bridge")[0].failed


def test_the_threshold_of_another_collection_is_refused_without_judgements(rng):
    old, new, relevant = models(0.9)
    other = rng.normal(size=(500, 24))  # with the same row numbers as ids
    with pytest.raises(SpaceError, match="pass judgements of some queries"):
        move_threshold(old, new, 0.5, found_on=other)
    assert move_threshold(old, new, 0.5, found_on=other, relevant=relevant).is_judged
    grown = np.concatenate([old[1], other[:20]])
    assert not move_threshold(old, new, 0.5, found_on=grown).is_judged
    spaces = [LatentSpace(old[1][rows], [f"{row}" for row in rows]) for rows in (range(400), range(340))]
    with pytest.raises(SpaceError, match="has 85 % of the rows"):
        check_collection(*spaces[::-1])
    check_collection(*spaces)


def test_the_row_that_is_the_query_does_not_count(rng):
    rows = rng.normal(size=(50, 6)).astype(np.float32)
    own = np.arange(20)
    for score in ("cosine", "l2"):
        similarities = Similarities(rows[:20], rows, score, own)
        whole = np.concatenate([block for _, block in similarities.blocks()], axis=1)
        assert np.isnan(whole[own, own]).all()
        assert np.count_nonzero(np.isnan(whole)) == 20
        query, row = np.nonzero(~np.isnan(whole))
        assert similarities.of_pairs(query, row) == pytest.approx(whole[query, row], abs=1e-4)


def test_rows_of_a_sample_count_for_those_left_out():
    (queries, rows), new, relevant = models(0.9)
    old = Similarities(unit_rows(queries), unit_rows(rows))
    other = Similarities(unit_rows(new[0]), unit_rows(new[1]))
    found = moved(old, other, csr_array(relevant), Wanted(0.5, weight=3.0))
    passed = passing((queries, rows), 0.5, "cosine")
    right = np.count_nonzero(passed & relevant)
    assert found.old["precision"].value == pytest.approx(
        right / (right + 3 * (passed.sum() - right)), rel=1e-3
    )


@pytest.mark.parametrize(
    "text", ["precision", "precision=2", "hits=.5", "precision=.8.1", "recall=-1", "recall=nan"]
)
def test_gates_that_mean_nothing_are_refused(text):
    with pytest.raises(SpaceError, match="precision or recall and its smallest value"):
        read_limits([text])
    assert read_limits(["precision=.8", "recall=1"]) == [("precision", 0.8), ("recall", 1.0)]


@pytest.fixture
def vectors(tmp_path):
    spaces, judgements = write_migration(tmp_path)
    pairs = [f"{one.query},{one.row}\n" for one in judgements[::2]]
    (tmp_path / "accepted.csv").write_text("".join(["query,row\n", *pairs]), encoding="utf-8")
    return spaces, judgements


@pytest.mark.parametrize("score", ["cosine", "inner", "l2"])
def test_the_task_and_the_function_agree(vectors, score):
    spaces, judgements = vectors
    task = Migration(judgements=tuple(judgements), sizes=())
    settings = {"keep": "recall", "score": score, "system": "re-embed"}
    change = ThresholdChange(migration=task, adapter="ridge", threshold=None, **settings)
    found = change.run(spaces)
    place = {one: number for number, one in enumerate(spaces[0].ids)}
    asked = {one: number for number, one in enumerate(spaces[2].ids)}
    relevant = np.zeros((len(asked), len(place)), bool)
    for one in judgements:
        relevant[asked[one.query], place[one.row]] = True
    own = move_threshold(
        (spaces[2].vectors, spaces[0].vectors),
        (spaces[3].vectors, spaces[1].vectors),
        found.threshold,
        relevant=csr_array(relevant),
        keep="recall",
        score=score,
    )
    assert own.new_threshold == pytest.approx(found.new_threshold, rel=1e-3)
    assert own.new["precision"].value == pytest.approx(found.new["precision"].value, abs=0.01)
    assert found.relevance == "judgements"


def test_a_gate_passes_and_fails_and_writes_junit_and_a_card(run, vectors):
    call = f"{JUDGED} --qrels qrels.txt --system re-embed --keep recall --threshold 0.8 --card card.md"
    run(f"{call} --gate precision=0 --junit gate.xml")
    assert 'failures="0"' in Path("gate.xml").read_text()
    run(f"{call} --gate recall=.1 --gate precision=1 --junit gate.xml", code=1)
    assert 'tests="2" failures="1"' in Path("gate.xml").read_text()
    assert "Set: cosine ≥" in Path("card.md").read_text(encoding="utf-8")
    found = json.loads(run(call, "--json"))["thresholds"]
    assert list(found) == ["re-embed"]
    measured = json.loads(run(call, f"--new-threshold {found['re-embed']['new_threshold']} --json"))
    assert measured["thresholds"]["re-embed"]["new"]["recall"]["value"] == pytest.approx(
        found["re-embed"]["new"]["recall"]["value"], abs=0.02
    )


def test_accepted_pairs_are_judgements_that_favour_the_old_model(run, vectors):
    pairs = accepted_pairs(Path("accepted.csv"))
    assert pairs[0] == JudgedQuery(*next((one.query, one.row) for one in vectors[1]), 1.0)
    told = run(f"{JUDGED} --accepted accepted.csv --keep recall --threshold 0.7")
    assert "measurements favour the old model" in told


def test_what_the_command_cannot_do_is_refused(refuse, vectors):
    call = "migrate old.npz new.npz --no-curve"
    assert "expected judgements, got none" in refuse(call, "--gate precision=.8")
    assert "expected judgements, to keep recall" in refuse(call, "--keep recall")
    assert "expected --gate" in refuse(call, "--junit gate.xml")
    assert "expected --threshold, which" in refuse(call, "--threshold-rows q_old.npz")
    other = "--threshold 0.5 --threshold-rows q_old.npz"
    assert "pass judgements of some queries" in refuse(call, other)
    assert "leave one out" in refuse(JUDGED, "--qrels qrels.txt --accepted accepted.csv")
    assert "expected both --queries-old" in refuse(call, "--accepted accepted.csv")


def test_queries_and_rows_of_other_orders_are_paired_by_id():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 8))
    queries = rng.normal(size=(40, 8))
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    order = rng.permutation(300)
    ids = np.array([f"r{row}" for row in range(300)])
    old = queries, LatentSpace(rows, ids)
    shuffled = LatentSpace((rows @ turn)[order], ids[order])
    known = move_threshold((queries, rows), (queries @ turn, rows @ turn), 0.6)
    assert move_threshold(old, (queries @ turn, shuffled), 0.6).new_threshold == pytest.approx(
        known.new_threshold, abs=1e-6
    )
    others = LatentSpace(rows @ turn, [f"other {row}" for row in range(300)])
    with pytest.raises(SpaceError, match=r"the same rows by both models, .* match\(\)"):
        move_threshold(old, (queries @ turn, others), 0.6)
