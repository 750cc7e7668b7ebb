"""The whole migration, the chosen adapter and cheaper indexes on made-up models, where the answer is known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from relcore.base import records
from relcore.base.names import ADAPTERS
from relcore.base.rows import unit_rows
from relcore.migrate.adapters import InPlaceAdapter
from relcore.migrate.evaluate import (
    SIZES,
    WEIGHTS,
    Pairs,
    RetrievalTask,
    cross_fitted,
    curve_of,
    jackknife_deviations,
    neighbours_as_truth,
    parts_of,
    search,
)
from relcore.migrate.measurements import FORMS, CheaperIndex
from relcore.migrate.migration import Migration, MigrationResult
from relcore.represent.translation import Affine
from relcore.spaces.space import LatentSpace, match
from relcore.spaces.split import row_keys
from tests.relcore.migrate.planted import migration_spaces, model

QUICK = {"sizes": (50,), "draws": 1, "compared": ("whitened",)}


def test_much_better_model_is_worth_embedding_everything_again():
    spaces, judgements = migration_spaces(n=700, old_topics=3)
    found = Migration(**QUICK, judgements=judgements).run(spaces)
    assert found.verdict.option == "re-embed", found.verdict.sentence
    assert found.option("bridge").value < found.option("re-embed").value


def test_a_much_worse_model_is_not_taken():
    spaces, judgements = migration_spaces(n=700, new_topics=3)
    found = Migration(**QUICK, judgements=judgements).run(spaces)
    assert found.verdict.option == "keep", found.verdict.sentence
    assert found.option("twice").value >= found.option("keep").value - 0.01
    assert not np.array_equal(found.scores["twice"], found.scores["keep"])


@pytest.mark.parametrize("worse", ["old_topics", "new_topics"])
def test_pairs_alone_give_no_verdict_and_no_score_that_is_one_by_construction(worse):
    spaces, _ = migration_spaces(n=700, **{worse: 3})
    found = Migration(**QUICK).run(spaces[:2])
    assert (found.relevance, found.verdict.option, found.weight) == ("neighbours", "", 1)
    assert [one.option for one in found.options] == ["keep", "bridge", "twice", "cascade"]
    assert all(one.chance < one.low < one.value < one.high < 1 for one in found.options)


def test_labels_count_as_judgements_wherever_there_are_any():
    spaces, _ = migration_spaces(n=700, old_topics=3)
    labels = np.argmax(spaces[1].vectors[:, :4], axis=1).astype(str)
    for side in (0, 1):
        pair = list(spaces[:2])
        pair[side] = LatentSpace(pair[side].vectors, pair[side].ids, name="labelled", labels=labels)
        found = Migration(**QUICK).run(pair)
        assert found.relevance == "labels"
        assert found.verdict.option
        assert found.metric == "nDCG@10"
        assert Migration(**QUICK, relevance="neighbours").run(pair).relevance == "neighbours"
    alone = LatentSpace(spaces[1].vectors, spaces[1].ids, name="one label", labels=["a"] * 700)
    assert Migration(**QUICK).run((spaces[0], alone)).relevance == "neighbours"


def test_rotated_copy_is_not_worth_anything_and_its_bridge_loses_nothing():
    spaces, judgements = migration_spaces()
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))
    turned = [
        LatentSpace(one.vectors @ rotation, one.ids, name=f"new {one.name}") for one in (spaces[0], spaces[2])
    ]
    found = Migration(**QUICK, adapter="in-place", judgements=judgements).run(
        (spaces[0], turned[0], spaces[2], turned[1])
    )
    assert found.verdict.option == "keep"
    assert found.option("re-embed").value == pytest.approx(found.option("keep").value, abs=1e-6)
    assert found.option("bridge").value == pytest.approx(found.option("keep").value, abs=0.01)


def test_result_survives_store_and_its_tables_agree():
    spaces, judgements = migration_spaces()
    found = Migration(**QUICK, judgements=judgements).run(spaces)
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
    old = spaces[0]
    assert set(old.ids[found.relevant_row[found.relevant_query == 0]]) == {
        one.row for one in judgements if one.query == "q0"
    }


def test_held_out_rows_are_never_fitted_and_same_ids_are_drawn_wherever_they_stand():
    spaces, _ = migration_spaces()
    paired = match(*spaces[:2])
    parts = parts_of(paired, 0, "random", judged=False)
    assert not set(parts.fitted) & set(parts.held_out)
    assert len(parts.held_out) == 80
    fewer = parts_of(paired, 100, "farthest-point", judged=False)
    assert (len(fewer.fitted), len(fewer.held_out)) == (100, 80)
    order = np.random.default_rng(0).permutation(400)
    shuffled = match(spaces[0].take(order), spaces[1])
    again = parts_of(shuffled, 0, "random", judged=False)
    assert set(shuffled.ids[again.fitted]) == set(paired.ids[parts.fitted])
    assert row_keys(["d1"], "pairs") == row_keys(["x", "d1"], "pairs")[1]
    found = Migration(**QUICK).run(spaces[:2])
    assert not set(spaces[0].ids[found.pairs]) & set(found.queries)
    assert not set(found.pairs) & set(found.found["keep"].ravel())


def test_rows_that_repeat_fitted_one_are_not_scored():
    spaces, _ = migration_spaces()
    old = spaces[0].vectors.copy()
    parts = parts_of(match(*spaces[:2]), 0, "random", judged=False)
    old[parts.held_out[:3]] = old[parts.fitted[:3]]
    spaces = LatentSpace(old, spaces[0].ids, name="old"), spaces[1]
    found = Migration(**QUICK).run(spaces)
    assert "3 rows left out as queries: the adapter was fitted on equal rows." in found.cautions
    assert len(found.queries) == 77


M, Q = 300, 100


def paired(new, old):
    ids = np.array([f"r{row}" for row in range(len(new))], dtype=object)
    return Pairs(unit_rows(new), unit_rows(old), ids)


def on(old, new, truth):
    """A trial of the rows from M on: Q queries, and the ten nearest by `truth`."""
    queries = np.arange(Q)
    old, new, truth = (unit_rows(rows[M:]) for rows in (old, new, truth))
    relevance = neighbours_as_truth(search(truth[:Q], truth, 10, queries), len(old))
    return RetrievalTask(old[:Q], new[:Q], old, new, relevance, queries, np.arange(len(old)))


@pytest.fixture
def topics(rng):
    return rng.normal(size=(3 * M, 12))


def fits(pairs, names=ADAPTERS):
    return {name: pairs.fit(name) for name in names}


def test_rotation_is_found_and_all_adapters_are_compared(rng):
    old = rng.normal(size=(2 * M, 10))
    new = old @ np.linalg.qr(rng.normal(size=(10, 10)))[0]
    found = cross_fitted(on(old, new, old), fits(paired(new[:M], old[:M])))
    assert {one.adapter for one in found.candidates} == set(ADAPTERS)
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.95


def test_adapter_for_queries_alone_is_chosen_unless_clearly_worse(topics):
    """Two adapters that are equal on a rotation; then one that fits noise, beside one that has the corpus rewritten."""
    old = topics
    new = old @ np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    names = ("whitened", "in-place")
    found = cross_fitted(on(old, new, old), fits(paired(new[:M], old[:M]), names))
    assert found.adapter == "in-place"
    assert {one.adapter: one.rewrites_corpus for one in found.candidates} == {
        "whitened": True,
        "in-place": False,
    }
    old, new = (model(topics, 0.5, 40, seed) for seed in (1, 2))
    pairs = paired(new[:50], old[:50])
    poor = {"least squares": LeastSquaresAdapter().fit(pairs.new, pairs.old)}
    assert cross_fitted(on(old, new, topics), poor | fits(pairs, ("whitened",))).adapter == "whitened"


def test_curve_fits_as_much_whatever_number_of_pairs_and_estimate_counts_widths(topics, monkeypatch):
    """Before, 8,000 rows took longer than 9 minutes, of which the estimate said nothing."""
    old = topics[:, :3]
    trial, fitted, known = on(old, old, old), [], paired(old[:50], old[:50]).fit("in-place")
    monkeypatch.setattr(Pairs, "fit", lambda pairs, adapter: fitted.append(len(pairs.ids)) or known)
    for m in (2600, 5000):
        rows = np.resize(old, (m, 3))
        curve_of(trial, paired(rows, rows), ("in-place", "ridge"), 1.0)
        assert sum(size for size in fitted if size < m) == 2 * 3 * sum(SIZES)
        fitted.clear()
    narrow, wide = (
        Migration().seconds(
            [LatentSpace(np.ones((8000, d), np.float32), [f"r{row}" for row in range(8000)])] * 2
        )
        for d in (192, 768)
    )
    assert wide > 8 * narrow


class LeastSquaresAdapter(InPlaceAdapter):
    def _matrix(self, new, old):
        return Affine().fit(new, old).matrix_


@pytest.mark.parametrize("heavier", [False, True])
def test_the_better_model_counts_for_more(topics, heavier):
    """Judged by all topics, of which one of the models knows three."""
    few, all_topics = model(topics[:, :3], 0.1, 24, 1), model(topics, 0.1, 24, 2)
    old, new = (few, all_topics) if heavier else (all_topics, few)
    found = cross_fitted(on(old, new, topics), fits(paired(new[:M], old[:M]), ("whitened",)))
    assert found.weight > 0.5 if heavier else found.weight < 0.5
    assert found.weight in WEIGHTS


def test_choice_on_random_judgements_is_not_optimistic(rng, topics):
    """Negative control: ten random rows are relevant, which no weight and no adapter finds."""
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    trial, adapters = on(old, new, topics), fits(paired(new[:100], old[:100]))
    gains = []
    for _ in range(12):
        lists = rng.permuted(np.tile(np.arange(Q, 2 * M), (Q, 1)), axis=1)[:, :10]
        drawn = replace(trial, relevance=neighbours_as_truth(lists, 2 * M))
        found = cross_fitted(drawn, adapters).found
        gains.append(drawn.score(found["twice"]).mean() - drawn.score(found["keep"]).mean())
    assert np.mean(gains) < 3 * np.std(gains) / np.sqrt(len(gains))


def test_fewer_pairs_move_the_score_more(topics):
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    trial = on(old, new, topics)
    few, many = (jackknife_deviations(trial, paired(new[:m], old[:m]), "whitened", 1.0) for m in (40, M))
    assert np.abs(few["bridge"]).mean() > 2 * np.abs(many["bridge"]).mean() > 0
    # Values of other draws of 40 pairs deviate by as much, within the error of ten deviations (a factor of 2).
    drawn = []
    for start in range(0, M - 40, 40):
        adapter = paired(new[start : start + 40], old[start : start + 40]).fit("whitened")
        drawn.append(trial.score(trial.search(adapter, options=("bridge",))["bridge"]).mean())
    assert 0.5 < np.sqrt(np.mean(few["bridge"] ** 2) / 2) / np.std(drawn) < 2


@pytest.fixture
def rows(rng):
    """Rows (300, 32) on 8 axes that lie across all dimensions."""
    turned = rng.normal(size=(300, 8)) @ rng.normal(size=(8, 32))
    return unit_rows(turned)


def overlap(form, rows):
    codes, queries = FORMS[form](rows), rows[:50]
    exact, found = search(queries, rows, 10), search(codes.queries(queries), codes.rows, 10)
    return np.mean([len({*a} & {*b}) / 10 for a, b in zip(exact, found, strict=True)])


def test_principal_components_keep_what_first_dimensions_lose(rows):
    assert overlap("pca-half", rows) == 1.0  # 16 of 32 dimensions hold the 8 axes
    assert overlap("pca-quarter", rows) > 0.99
    assert overlap("int8", rows) > 0.97
    assert overlap("first-quarter", rows) < 0.85
    assert 0.3 < overlap("binary", rows) < overlap("int8", rows)
    sizes = [FORMS[form](rows).n_bytes for form in FORMS]
    assert sizes == [32, 4, 64, 32, 64, 32]


@pytest.mark.parametrize("adapter", ["inverse"])
def test_each_option_on_each_form_by_the_judgements(adapter):
    spaces, judgements = migration_spaces(n=300, n_queries=40, old_topics=8)
    migration = Migration(judgements=judgements, sizes=(), adapter=adapter, n_candidates=30)
    result = migration.run(spaces)
    found = CheaperIndex(migration=migration, adapter=adapter, weight=result.weight).run(spaces)
    table = {(one.option, one.form): one for one in found.rows}
    assert len(table) == 5 * len(FORMS)
    for option in ("keep", "bridge", "re-embed"):
        assert table[option, "int8"].score == pytest.approx(result.option(option).value, abs=0.01)
        assert table[option, "binary"].score == pytest.approx(result.option(option).value, abs=0.05)
        assert table[option, "first-quarter"].change.high < 0
    assert table["keep", "int8"].row_bytes == 24
    assert table["twice", "int8"].row_bytes == (24 if adapter == "inverse" else 48)
    assert table["cascade", "pca-half"].change.value > table["keep", "first-quarter"].change.value
    assert "cut only vectors of models that were trained for it" in found.cautions[0]
    assert "first d/4" in str(found.report().tables[0].shown)
    assert found.best("keep").change.high >= 0


def test_full_vectors_that_are_few_axes_first_are_cut_without_caution():
    """Rows as a model trained for it gives them: all is in the first dimensions."""
    spaces, judgements = migration_spaces(n=300, n_queries=40, noise=0.0)
    cut = []
    for one in spaces:
        width = one.dimension
        padded = np.hstack([one.vectors, np.full((len(one), 3 * width), 1e-6)])
        cut.append(LatentSpace(padded, one.ids, name=one.name))
    migration = Migration(judgements=judgements, sizes=(), adapter="in-place")
    assert CheaperIndex(migration=migration, adapter="in-place").run(cut).cautions == ()
