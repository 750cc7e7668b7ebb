import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relcore.base.records import to_json
from relcore.migrate.adapter_files import load
from relcore.migrate.blind_test import Answer, BlindAnswers, questions
from relcore.migrate.changed_queries import changed_share
from relcore.migrate.migration import Migration
from relcore.migrate.thresholds import ThresholdChange
from tests.relcore.migrate.planted import write_migration

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def vectors(tmp_path):
    return write_migration(tmp_path)[0]


JUDGED = "migrate old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt"


def test_the_sentence_comes_first_and_formats_agree(run, vectors):
    text = run(JUDGED)
    found = json.loads(run(JUDGED, "--json"))
    table = pd.read_csv(io.StringIO(run(JUDGED, "--csv")))
    assert "by the judgements, nDCG@10 is" in text.splitlines()[0] == found["verdict"]["sentence"]
    options = ["keep", "bridge", "query both models", "cascade", "re-embed"]
    assert [row["option"] for row in found["rows"]] == table.option.tolist() == options
    assert [row["score"] for row in found["rows"]] == pytest.approx(table.score.tolist())
    rewritten = {one["adapter"]: one["rewrites_corpus"] for one in found["candidates"]}
    assert rewritten == {"whitened": True, "inverse": False, "in-place": False, "ridge": False}
    assert found["rewrites_corpus"] == rewritten[found["adapter"]]
    assert "corpus rewritten" in text


def test_thresholds_are_those_of_task_and_answers_give_verdict(run, refuse, vectors):
    old, new = vectors[:2]
    task = Migration(sizes=())
    result = task.run([old, new])
    change = ThresholdChange(migration=task, adapter=result.adapter, system="re-embed", threshold=0.6)
    outcome = change.run([old, new])
    asked = questions(result, old.ids, "re-embed")
    answers = BlindAnswers("re-embed", tuple(Answer(q.query, q.keep, q.other, "other") for q in asked))
    Path("answers.json").write_text(json.dumps(to_json(answers)), encoding="utf-8")
    call = "migrate old.npz new.npz --no-curve --threshold 0.6 --answers answers.json"
    found = json.loads(run(call, "--json"))
    assert set(found["thresholds"]) == {"bridge", "re-embed"}
    assert found["thresholds"]["re-embed"]["new_threshold"] == pytest.approx(outcome.new_threshold)
    assert (found["verdict"]["option"], found["verdict"]["clear"]) == ("re-embed", True)
    assert "were other vectors or settings judged" in refuse(call, "--random-state 1")


def test_adapter_that_is_taken_away_is_one_that_was_scored(run, vectors, tmp_path):
    assert "adapter.safetensors" in run(JUDGED, "--adapter ridge --export adapter")
    adapter = load(tmp_path / "adapter")
    old, new = vectors[:2]
    products = adapter.transform(new.vectors) @ adapter.corpus(old.vectors).T
    assert np.mean(products.argmax(axis=1) == np.arange(300)) > 0.5
    assert (adapter.card.n_pairs, adapter.card.scores[0].name) == (300, "nDCG@10, keep")


def test_costs_of_a_year_are_in_the_currency_and_each_quantity_has_one_name(run, vectors):
    call = f"{JUDGED} --price 0.1 --row-tokens 1000 --currency EUR --year-queries 5000 --least-saving 20"
    text = run(call)
    assert "in a year of 5,000 queries" in text
    assert "300 rows · 0.04 EUR" in text  # 300 rows of 1,000 tokens and 5,000 queries of 16
    assert "saves less than 20 EUR in a year" in text
    assert "nDCG@10 in the choice" in text
    assert json.loads(run(call, "--json"))["rate"]["currency"] == "EUR"


def test_kinds_of_queries_that_change(run, vectors):
    """The planted queries have no kinds, so there are none to find."""
    notes = json.loads(run(JUDGED, "--why", "--json"))["notes"]
    (told,) = [note for note in notes if note.startswith("By “re-embed”")]
    assert "of the results of a query change. No kind of queries changes more than others" in told


def test_changed_share_is_that_of_sets(vectors):
    result = Migration(sizes=()).run(list(vectors[:2]))
    for option in result.found:
        shares = changed_share(result, option)
        for place in (0, len(shares) - 1):
            old = set(result.found["keep"][place].tolist()) - {-1}
            kept = old & set(result.found[option][place].tolist())
            assert shares[place] == pytest.approx(1 - len(kept) / len(old))
    assert not changed_share(result, "keep").any()


def test_what_is_wrong_is_told(refuse, vectors):
    call = "migrate old.npz new.npz"
    assert "expected both --queries-old and --queries-new" in refuse(call, "--qrels qrels.txt")
    assert "expected --price and --row-tokens together" in refuse(call, "--price 2")
