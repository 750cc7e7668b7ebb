"""The whole migration, and the choice of an adapter, on made-up models where the answer is known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.rows import unit_rows
from relcore.migrate.adapters import InPlaceAdapter
from relcore.migrate.cross_fitting import (
    SIZES,
    WEIGHTS,
    Pairs,
    QueryScores,
    Resampling,
    cross_fitted,
    curve_of,
    jackknife_deviations,
)
from relcore.migrate.migration import Migration, losses_by_group
from relcore.migrate.pairing import parts_of
from relcore.migrate.result import MigrationResult
from relcore.migrate.trial import RetrievalTask
from relcore.represent.translation import Affine
from relcore.scores.relevance import neighbours_as_truth, search
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from tests.relcore.migrate.planted import migration_spaces, model

QUICK = {"sizes": (50,), "draws": 1, "compared": ("whitened",)}


def test_much_better_model_is_worth_embedding_everything_again():
    spaces, judgements = migration_spaces(n=700, old_topics=3)
    found = Migration(**QUICK, judgements=judgements).run(spaces)
    assert found.verdict.option == "re-embed", found.verdict.sentence
    assert found.option("bridge").value < found.option("re-embed").value


def test_a_much_worse_model_is_not_taken_and_a_cascade_by_it_harms():
    spaces, judgements = migration_spaces(n=700, new_topics=3)
    found = Migration(**QUICK, judgements=judgements).run(spaces)
    assert found.verdict.option == "keep", found.verdict.sentence
    assert found.option("twice").value >= found.option("keep").value - 0.01
    assert not np.array_equal(found.scores["twice"], found.scores["keep"])
    assert found.option("cascade").to_keep.high < 0
    assert "the new model ranks worse than the old one, so a cascade can only harm" in found.verdict.sentence


@pytest.mark.parametrize("worse", ["old_topics", "new_topics"])
def test_pairs_alone_give_no_verdict_and_no_score_that_is_one_by_construction(worse):
    spaces, _ = migration_spaces(n=700, **{worse: 3})
    found = Migration(**QUICK).run(spaces[:2])
    assert (found.relevance, found.verdict.option, found.weight) == ("neighbours", "", 1)
    assert [one.option for one in found.options] == ["keep", "bridge", "twice", "cascade"]
    assert all(one.chance < one.low < one.value < one.high < 1 for one in found.options)


def test_labels_count_as_judgements_wherever_there_are_any():
    pair = migration_spaces(old_topics=3)[0][:2]
    labels = np.argmax(pair[1].vectors[:, :4], axis=1).astype(str)
    task = Migration(sizes=(), adapter="in-place")
    for labelled in range(2):
        pair = [
            one.with_columns(labels=labels if side == labelled else None) for side, one in enumerate(pair)
        ]
        found = task.run(pair)
        assert (found.relevance, found.metric) == ("labels", "nDCG@10")
        assert found.verdict.option
        assert replace(task, relevance="neighbours").run(pair).relevance == "neighbours"
    alone = pair[1].with_columns(labels=np.full(len(labels), "a"))
    assert task.run((pair[0], alone)).relevance == "neighbours"


def test_rotated_copy_is_not_worth_anything_and_its_bridge_loses_nothing():
    (old, _, queries, _), judgements = migration_spaces()
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))
    turned = [LatentSpace(one.vectors @ rotation, one.ids, name=f"new {one.name}") for one in (old, queries)]
    task = Migration(**QUICK, adapter="in-place", judgements=judgements)
    found = task.run((old, turned[0], queries, turned[1]))
    assert found.verdict.option == "keep"
    assert found.option("re-embed").value == pytest.approx(found.option("keep").value, abs=1e-6)
    assert found.option("bridge").value == pytest.approx(found.option("keep").value, abs=0.01)


def test_result_survives_store_and_its_tables_agree():
    spaces, judgements = migration_spaces()
    found = Migration(**QUICK, adapter="inverse", judgements=judgements).run(spaces)
    arrays, facts = records.pack(found)
    again = records.unpack(MigrationResult, arrays, json.loads(json.dumps(facts)))
    assert (again.verdict, again.options, again.curve) == (found.verdict, found.options, found.curve)
    table = found.table().set_index("option")
    assert table.loc["query both models", "score"] == pytest.approx(found.scores["twice"].mean(), abs=1e-6)
    gain = found.scores["bridge"].mean() - found.scores["keep"].mean()
    assert table.loc["bridge", "to keep"] == pytest.approx(gain, abs=1e-6)
    assert {point.n_pairs for point in found.curve} == {50, found.n_pairs}
    assert (np.diff(found.worst_queries("bridge").change) >= 0).all()
    assert found.found["keep"].shape == (60, 10)
    relevant = spaces[0].ids[found.relevant_row[found.relevant_query == 0]]
    assert set(relevant) == {one.row for one in judgements if one.query == "q0"}


def test_held_out_rows_are_never_fitted_and_same_ids_are_drawn_wherever_they_stand():
    old, new, *_ = migration_spaces()[0]
    paired = match(old, new)
    parts = parts_of(paired, 0, "random", judged=False)
    assert not set(parts.fitted) & set(parts.held_out)
    assert len(parts.held_out) == 80
    fewer = parts_of(paired, 100, "farthest-point", judged=False)
    assert (len(fewer.fitted), len(fewer.held_out)) == (100, 80)
    shuffled = match(old.take(np.random.default_rng(0).permutation(400)), new)
    again = parts_of(shuffled, 0, "random", judged=False)
    assert set(shuffled.ids[again.fitted]) == set(paired.ids[parts.fitted])
    copied = old.vectors.copy()
    copied[parts.held_out[:3]] = copied[parts.fitted[:3]]
    found = Migration(sizes=(), adapter="in-place").run([LatentSpace(copied, old.ids, name="old"), new])
    assert not set(old.ids[found.pairs]) & set(found.queries)
    assert not set(found.pairs) & set(found.found["keep"].ravel())
    assert "3 rows left out as queries: the adapter was fitted on equal rows." in found.cautions
    assert len(found.queries) == 77


def test_with_few_new_rows_the_ids_to_embed_next_are_named():
    spaces, judgements = migration_spaces(n_new=40)
    old, new, *queries = spaces
    with pytest.raises(SpaceError, match="expected 50 rows or more that both models") as few:
        Migration(sizes=()).run((old, new))
    ids = str(few.value).partition("model next: ")[2].split(", ")
    assert len(ids) == len(set(ids) - set(new.ids)) == 10
    assert set(ids) < set(old.ids)
    task = Migration(sizes=(), judgements=judgements, adapter="inverse")
    found = task.run(spaces)
    assert len(found.embed_next) == 300 - 40
    assert found.embed_next[:10] == tuple(ids)
    assert found.report().record()["embed_next"] == list(found.embed_next)
    assert f"Embed these 260 rows by the new model next: {ids[0]}, " in found.report().notes[-1]
    assert task.run((old, migration_spaces(n_new=300)[0][1], *queries)).embed_next == ()
    with pytest.raises(SpaceError, match="add rows: the old space has 30 rows"):
        Migration(sizes=()).run((old.take(np.arange(30)), new))


M = 300
Q = 100


def paired(new, old):
    ids = np.array([f"r{row}" for row in range(len(new))], dtype=object)
    return Pairs(unit_rows(new), unit_rows(old), ids)


def on(old, new, truth):
    """A retrieval task on the rows from M on, with Q queries; relevant are the ten nearest rows by `truth`."""
    queries = np.arange(Q)
    old, new, truth = (unit_rows(rows[M:]) for rows in (old, new, truth))
    relevance = neighbours_as_truth(search(truth[:Q], truth, 10, queries), len(old))
    return RetrievalTask(old[:Q], new[:Q], old, new, relevance, queries, np.arange(len(old)))


@pytest.fixture
def topics(rng):
    return rng.normal(size=(3 * M, 12))


def fits(pairs, names=ADAPTERS):
    return {name: pairs.fit(name) for name in names}


class LeastSquaresAdapter(InPlaceAdapter):
    def _matrix(self, new, old):
        return Affine().fit(new, old).matrix_


def test_adapter_for_queries_alone_is_chosen_unless_clearly_worse(topics):
    """All adapters are equal on a rotation. One that fits noise is clearly worse than "whitened"."""
    new = topics @ np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    found = cross_fitted(on(topics, new, topics), fits(paired(new[:M], topics[:M])))
    assert {one.adapter: one.rewrites_corpus for one in found.candidates} == {
        name: name == "whitened" for name in ADAPTERS
    }
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.95
    assert found.adapter != "whitened"
    old, new = (model(topics, 0.5, 40, seed) for seed in (1, 2))
    pairs = paired(new[:50], old[:50])
    poor = {"least squares": LeastSquaresAdapter().fit(pairs.new, pairs.old)}
    assert cross_fitted(on(old, new, topics), poor | fits(pairs, ("whitened",))).adapter == "whitened"


def test_curve_fits_as_much_whatever_number_of_pairs_and_estimate_counts_widths(topics, monkeypatch):
    """Before, 8,000 rows took longer than 9 minutes, and the estimate did not say so."""
    old = topics[:, :3]
    trial = on(old, old, old).take(np.arange(5))
    fitted = []
    known = paired(old[:50], old[:50]).fit("in-place")
    monkeypatch.setattr(Pairs, "fit", lambda pairs, adapter: fitted.append(len(pairs.ids)) or known)
    for m in (2600, 5000):
        rows = np.resize(old, (m, 3))
        curve_of(trial, paired(rows, rows), ("in-place", "ridge"), 1.0)
        assert sum(size for size in fitted if size < m) == 2 * 3 * sum(SIZES)
        fitted.clear()
    ids = [f"r{row}" for row in range(8000)]
    narrow, wide = (
        Migration().seconds([LatentSpace(np.ones((8000, d), np.float32), ids)] * 2) for d in (192, 768)
    )
    assert wide > 8 * narrow


@pytest.mark.parametrize("heavier", [False, True])
def test_the_better_model_counts_for_more(topics, heavier):
    """Relevant are rows by all topics, and one of the models knows three of them."""
    few = model(topics[:, :3], 0.1, 24, 1)
    every = model(topics, 0.1, 24, 2)
    if heavier:
        old = few
        new = every
    else:
        old = every
        new = few
    found = cross_fitted(on(old, new, topics), fits(paired(new[:M], old[:M]), ("whitened",)))
    assert found.weight in WEIGHTS
    assert (found.weight > 0.5) == heavier


def test_choice_on_random_judgements_is_not_optimistic(rng, topics):
    """Negative control: ten random rows are relevant, which no weight and no adapter finds."""
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    trial = on(old, new, topics)
    adapters = fits(paired(new[:100], old[:100]))
    gains = []
    for _ in range(12):
        lists = rng.permuted(np.tile(np.arange(Q, 2 * M), (Q, 1)), axis=1)[:, :10]
        drawn = replace(trial, relevance=neighbours_as_truth(lists, 2 * M))
        found = cross_fitted(drawn, adapters).found
        gains.append(drawn.score(found["twice"]).mean() - drawn.score(found["keep"]).mean())
    assert np.mean(gains) < 3 * np.std(gains) / np.sqrt(len(gains))


def test_only_choices_add_to_the_variance_over_queries(topics):
    """With one adapter nothing is chosen for a bridge; the weights of equal searches have equal scores."""
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    alone = fits(paired(new[:100], old[:100]), ("ridge",))
    chosen = cross_fitted(on(old, new, topics), alone).chosen
    assert not chosen["bridge"].any()
    assert np.std(chosen["twice"]) > 0
    assert abs(chosen["twice"].mean()) < 1e-9
    same = fits(paired(old, old), ("in-place",))
    assert np.abs(cross_fitted(on(old, old, topics), same).chosen["twice"]).max() < 1e-6


class ScoredTask:
    """A retrieval task whose lists are scores: a query gains `gains` (q,) by a bridge, a share of them by both
    models, which rises with the weight, and nothing by the old model."""

    is_judged = True

    def __init__(self, gains):
        self.gains = gains
        self.old_queries = gains

    def with_fewer_rows(self, most, random_state=0):
        return self

    def take(self, queries):
        return ScoredTask(self.gains[queries])

    def search(self, adapter, weight=1.0, k=10, options=("bridge", "twice")):
        lists = {"bridge": self.gains, "keep": 0 * self.gains, "twice": self.gains * weight / (1 + weight)}
        return {option: lists[option][:, None] for option in options if option in lists}

    def score(self, lists, k=10):
        return lists[:, 0]


@pytest.mark.slow
def test_an_interval_holds_for_other_queries_that_choose_another_weight(rng):
    """Queries that gain much choose a large weight, which gains more. Intervals that count this choice as
    independent of the gain agree in 83 % of pairs of samples, not in 95 %."""
    q = 40
    resampling = Resampling(q)
    alone = fits(paired(np.eye(30), np.eye(30)), ("in-place",))
    agree = []
    for _ in range(240):
        gains = []
        for sample in rng.normal(0.09, 0.3, (2, q)):  # two standard errors, where the weight is uncertain
            choice = cross_fitted(ScoredTask(sample), alone)
            both = QueryScores(choice.found["twice"][:, 0], chosen=choice.chosen["twice"])
            gains.append(resampling.difference(both, QueryScores(np.zeros(q))))
        lower, upper = sorted(gains, key=lambda gain: gain.value)
        widths = np.hypot(lower.high - lower.value, upper.value - upper.low)
        agree.append(upper.value - lower.value <= widths)
    assert np.mean(agree) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 240)


def test_fewer_pairs_move_the_score_more(topics):
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    trial = on(old, new, topics)
    few, many = (jackknife_deviations(trial, paired(new[:m], old[:m]), "whitened", 1.0) for m in (40, M))
    assert np.abs(few["bridge"]).mean() > 2 * np.abs(many["bridge"]).mean() > 0
    # Scores of other draws of 40 pairs deviate by as much, within the error of ten deviations (a factor of 2).
    drawn = []
    for start in range(0, M - 40, 40):
        adapter = paired(new[start : start + 40], old[start : start + 40]).fit("whitened")
        drawn.append(trial.score(trial.search(adapter, options=("bridge",))["bridge"]).mean())
    assert 0.5 < np.sqrt(np.mean(few["bridge"] ** 2) / 2) / np.std(drawn) < 2


def test_the_class_that_loses_comes_first(rng):
    groups = np.repeat(["red", "green", "blue", "few"], [40, 40, 40, 3])
    table = losses_by_group(rng.normal(0, 0.1, 123) - 0.2 * (groups == "green"), groups)
    assert table.group[0] == "green"
    assert set(table.group) == {"red", "green", "blue"}  # "few" has fewer than five
    assert table.p[0] < 0.01
    assert table.change[0] < table.low[0]
    assert (table.p[1:] > 0.05).all()
