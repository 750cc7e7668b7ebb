"""Blind judging: the error of the stop rule, a judge by relevance, answers that belong elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.migrate.evaluate import ndcg, search
from relcore.migrate.measurements import (
    LEVEL,
    MOST,
    Answer,
    BlindAnswers,
    average_overlap,
    questions,
    sequential_test,
    tally,
    with_answers,
)
from relcore.migrate.migration import Migration
from tests.relcore.migrate.planted import migration_spaces


def test_of_two_equal_sides_one_is_called_better_in_at_most_5_percent():
    paths, ended = np.ones(1), 0.0  # a fair coin that has not ended the test, by the number of heads
    for n, look in enumerate(sequential_test()):
        clear = ended + paths[look.p <= LEVEL].sum()
        assert clear <= LEVEL
        assert n < 20 or clear > 0.02
        assert np.allclose(look.p, look.p[::-1])
        assert (look.p[look.ends] <= LEVEL).all()
        ended += paths[look.ends].sum()
        paths = np.convolve(np.where(look.ends, 0, paths), [0.5, 0.5])
    assert n == MOST


def test_lists_are_compared_by_their_average_overlap():
    first, second = np.array([[1, 2, 3], [1, 2, -1]]), np.array([[2, 1, 4], [3, 4, -1]])
    assert average_overlap(first, second) == pytest.approx([(0 + 1 + 2 / 3) / 3, 0])


def models(seed, seen, noise):
    """What an old model of `seen` topics and a new one of all twelve find, and each query's five best rows."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(900, 12))
    find = lambda rows, k: search(unit_rows(rows[300:]), unit_rows(rows[:300]), k)  # noqa: E731
    best = find(topics, 5)
    relevant = csr_array((np.ones(3000), (np.arange(3000) // 5, best.ravel())), shape=(600, 300))
    found = {}
    for option, n in (("keep", seen), ("re-embed", 12)):
        found[option] = find(
            np.pad(topics[:, :n], ((0, 0), (0, 12 - n))) + noise * rng.normal(size=(900, 12)), 10
        )
    gap = np.mean(ndcg(found["re-embed"], relevant) - ndcg(found["keep"], relevant))
    result = SimpleNamespace(queries=tuple(f"q{query}" for query in range(600)), found=found)
    return result, {(f"q{query}", f"d{row}") for query in range(600) for row in best[query]}, gap


def judge(result, relevant):
    """The tally at the end, of a judge who prefers the five rows with more relevant ones among them."""
    ids = np.array([f"d{row}" for row in range(300)], dtype=object)
    asked, answers = questions(result, ids, "re-embed"), BlindAnswers()
    while one := (found := tally(asked, answers)).question:
        keep, other = (sum((one.query, row) in relevant for row in side) for side in (one.keep, one.other))
        preferred = "other" if other > keep else "keep" if keep > other else "equal"
        answer = Answer(one.query, one.keep, one.other, preferred)
        answers = replace(answers, answers=(*answers.answers, answer))
    assert found.n_answers == len(answers.answers) <= MOST
    return found.verdict()


def test_judge_by_relevance_finds_better_of_two_models_that_differ_by_tenth():
    gaps, right = [], 0
    for seed in range(20):
        *case, gap = models(seed, 11, 0.25)
        verdict = judge(*case)
        assert (verdict.option, verdict.is_clear) != ("keep", True)
        right += verdict.is_clear
        gaps.append(gap)
    assert right >= 19
    assert 0.08 < np.mean(gaps) < 0.11


def test_equal_models_are_too_close_to_call():
    verdicts = [judge(*models(seed, 12, 0.35)[:2]) for seed in range(20)]
    clear = [verdict for verdict in verdicts if verdict.is_clear]
    assert len(clear) <= 3  # of 5 %, more come up in 2 of 100 such tests
    assert all(one.sentence.startswith("No clear preference") for one in verdicts if one not in clear)


@pytest.fixture(scope="module")
def unjudged():
    """A migration without judgements, and the ids of the old space."""
    (old, new, *_), _ = migration_spaces(n=300)
    return Migration(adapter="whitened", sizes=()).run([old, new]), old.ids


def answered(asked, preferred, n=MOST):
    return BlindAnswers("re-embed", tuple(Answer(q.query, q.keep, q.other, preferred) for q in asked[:n]))


def test_sides_and_order_tell_nothing_and_repeat(unjudged):
    asked = questions(*unjudged, "re-embed")
    assert asked == questions(*unjudged, "re-embed") != questions(*unjudged, "re-embed", 1)
    assert len(asked) == MOST
    assert 15 <= sum(one.is_turned for one in asked) <= 35
    assert all(set(one.keep) != set(one.other) and len(one.keep) == len(one.other) == 5 for one in asked)


@pytest.mark.parametrize(
    ("preferred", "n", "head", "option"),
    [
        ("other", 3, "Not decided yet", ""),
        ("other", MOST, "Re-embed the corpus", "re-embed"),
        ("keep", MOST, "Keep the old model", "keep"),
        ("equal", MOST, "No clear preference", "keep"),
    ],
)
def test_the_answers_give_the_verdict(unjudged, preferred, n, head, option):
    result, ids = unjudged
    assert result.option("re-embed") is None  # its lists are there to be judged, and have no score
    verdict = with_answers(result, ids, answered(questions(result, ids, "re-embed"), preferred, n)).verdict
    assert verdict.sentence.startswith(head)
    assert verdict.option == option
    assert verdict.is_clear == (n == MOST and preferred != "equal")
    assert "No verdict" not in verdict.sentence
    assert "the bridge" in verdict.sentence  # what was measured stays


def test_answers_after_end_or_about_other_rows_do_not_count(unjudged):
    result, ids = unjudged
    asked = questions(result, ids, "re-embed")
    assert (
        tally(asked, answered(asked, "keep")).n_answers
        == tally(asked, answered(asked, "keep", 9)).n_answers
        == 9
    )
    with pytest.raises(SpaceError, match="are these the vectors"):
        with_answers(result, ids, answered([replace(one, keep=one.other) for one in asked], "keep"))


@pytest.mark.parametrize("content", ["[]", '{"option": "keep"}', '{"answers": [{"query": "a"}]}'])
def test_files_that_are_no_answers_are_refused(tmp_path, content):
    path = tmp_path / "answers.json"
    path.write_text(content)
    with pytest.raises(SpaceError, match=r"answers\.json"):
        BlindAnswers.read(path)
    answers = BlindAnswers("bridge", (Answer("q", ("a", "é"), (), "equal"),))
    path.write_text(json.dumps(records.to_json(answers)))
    assert BlindAnswers.read(path) == answers
