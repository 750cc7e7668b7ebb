"""The whole migration on made-up models, where the answer is known."""

import json

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.migrate.evaluate import parts_of
from relcore.migrate.migration import Migration, MigrationResult
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import row_keys
from tests.relcore.migrate.planted import migration_spaces

QUICK = {"sizes": (50,), "draws": 1, "compared": ("whitened",)}


def test_a_much_better_model_is_worth_embedding_everything_again():
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


def test_a_rotated_copy_is_not_worth_anything_and_its_bridge_loses_nothing():
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


def test_the_result_survives_the_store_and_its_tables_agree():
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


def test_held_out_rows_are_never_fitted_and_the_same_ids_are_drawn_wherever_they_stand():
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


def test_what_is_wrong_is_told():
    spaces, judgements = migration_spaces()
    with pytest.raises(SpaceError, match="expected the queries by the old and by the new model"):
        Migration(judgements=judgements).run(spaces[:2])


def test_rows_that_repeat_a_fitted_one_are_not_scored():
    spaces, _ = migration_spaces()
    old = spaces[0].vectors.copy()
    parts = parts_of(match(*spaces[:2]), 0, "random", judged=False)
    old[parts.held_out[:3]] = old[parts.fitted[:3]]
    spaces = LatentSpace(old, spaces[0].ids, name="old"), spaces[1]
    found = Migration(**QUICK).run(spaces)
    assert "3 held-out rows left out: the adapter was fitted on a copy." in found.cautions
    assert len(found.queries) == 77
