"""Blind judging and cheaper indexes, on made-up models where the answer is known."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.rows import unit_rows
from relcore.migrate.blind_test import (
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
from relcore.migrate.charts import indexes_chart
from relcore.migrate.cheaper_index import FORMS, CheaperIndex
from relcore.migrate.migration import Migration
from relcore.scores.relevance import ndcg, search
from relcore.scores.score import Interval
from relcore.spaces.space import LatentSpace
from tests.relcore.migrate.planted import migration_spaces


def test_of_two_equal_sides_one_is_called_better_in_at_most_5_percent():
    # probability that a fair coin has not ended the test yet, by the number of heads
    paths = np.ones(1)
    ended = 0.0
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
    first = np.array([[1, 2, 3], [1, 2, -1]])
    second = np.array([[2, 1, 4], [3, 4, -1]])
    assert average_overlap(first, second) == pytest.approx([(0 + 1 + 2 / 3) / 3, 0])


def models(seed, seen, noise):
    """The rows that an old model with `seen` topics and a new one with all twelve find, and the five best
    rows for each query."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(600, 12))
    find = lambda rows, k: search(unit_rows(rows[300:]), unit_rows(rows[:300]), k)  # noqa: E731
    best = find(topics, 5)
    relevant = csr_array((np.ones(1500), (np.arange(1500) // 5, best.ravel())), shape=(300, 300))
    found = {}
    for option, n in (("keep", seen), ("re-embed", 12)):
        found[option] = find(topics * (np.arange(12) < n) + noise * rng.normal(size=topics.shape), 10)
    gap = np.mean(ndcg(found["re-embed"], relevant) - ndcg(found["keep"], relevant))
    return SimpleNamespace(queries=tuple(map(str, range(300))), found=found), best, gap


def judge(result, best):
    """The verdict of a judge who prefers the five rows with more relevant ones among them."""
    asked = questions(result, np.arange(300).astype(str), "re-embed")
    answers = BlindAnswers()
    while one := (found := tally(asked, answers)).question:
        relevant = {*map(str, best[int(one.query)])}
        keep, other = (len(relevant & {*side}) for side in (one.keep, one.other))
        if other > keep:
            preferred = "other"
        elif keep > other:
            preferred = "keep"
        else:
            preferred = "equal"
        answer = Answer(one.query, one.keep, one.other, preferred)
        answers = replace(answers, answers=(*answers.answers, answer))
    assert found.n_answers == len(answers.answers) <= MOST
    return found.verdict()


def test_judge_by_relevance_finds_the_better_of_two_models_and_no_better_one_of_equals():
    cases = [models(seed, 11, 0.25) for seed in range(20)]
    verdicts = [judge(*case) for *case, _ in cases]
    assert 0.08 < np.mean([gap for *_, gap in cases]) < 0.11
    assert sum(one.is_clear for one in verdicts) >= 19
    assert not any(one.is_clear and one.option == "keep" for one in verdicts)
    equal = [judge(*models(seed, 12, 0.35)[:2]) for seed in range(20)]
    assert (
        sum(one.is_clear for one in equal) <= 3
    )  # at a rate of 5 %, 4 or more of 20 have a probability of .02


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
    assert result.option("re-embed") is None  # its lists can be judged, but it has no score
    verdict = with_answers(result, ids, answered(questions(result, ids, "re-embed"), preferred, n)).verdict
    assert verdict.sentence.startswith(head)
    assert (verdict.option, verdict.is_clear) == (option, n == MOST and preferred != "equal")
    assert "No verdict" not in verdict.sentence
    assert "the bridge" in verdict.sentence  # the measured scores stay


def test_answers_after_the_end_or_about_other_rows_do_not_count(unjudged):
    result, ids = unjudged
    asked = questions(result, ids, "re-embed")
    assert [tally(asked, answered(asked, "keep", n)).n_answers for n in (9, MOST)] == [9, 9]
    with pytest.raises(SpaceError, match="were other vectors"):
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


def test_principal_components_keep_what_first_dimensions_lose(rng):
    rows = unit_rows(rng.normal(size=(300, 8)) @ rng.normal(size=(8, 32)))  # on 8 axes, across all dimensions

    def overlap(form):
        codes = FORMS[form](rows)
        queries = rows[:50]
        exact = search(queries, rows, 10)
        found = search(codes.queries(queries), codes.rows, 10)
        return np.mean([len({*a} & {*b}) / 10 for a, b in zip(exact, found, strict=True)])

    assert overlap("pca-half") == 1.0  # 16 of 32 dimensions hold the 8 axes
    assert overlap("pca-quarter") > 0.99
    assert overlap("int8") > 0.97
    assert overlap("first-quarter") < 0.85
    assert 0.3 < overlap("binary") < overlap("int8")
    assert [FORMS[form](rows).n_bytes for form in FORMS] == [32, 4, 64, 32, 64, 32]


def test_each_option_on_each_form_by_the_judgements():
    spaces, judgements = migration_spaces(n=300, n_queries=40, old_topics=8)
    migration = Migration(judgements=judgements, sizes=(), adapter="inverse", n_candidates=30)
    result = migration.run(spaces)
    found = CheaperIndex(migration=migration, adapter="inverse", weight=result.weight).run(spaces)
    table = {(one.option, one.form): one for one in found.rows}
    assert len(table) == 5 * len(FORMS)
    for option in ("keep", "bridge", "re-embed"):
        assert table[option, "int8"].score == pytest.approx(result.option(option).value, abs=0.01)
        assert table[option, "binary"].score == pytest.approx(result.option(option).value, abs=0.05)
        assert table[option, "first-quarter"].change.high < 0
    assert table["keep", "int8"].row_bytes == table["twice", "int8"].row_bytes == 24
    assert table["cascade", "pca-half"].change.value > table["keep", "first-quarter"].change.value
    assert "cut only vectors of models that were trained for it" in found.cautions[0]
    assert "first d/4" in str(found.report().tables[0].shown)
    chart = indexes_chart(found)
    drawn = {line.name: line for line in chart.lines}
    assert len(drawn) == 5
    assert sorted(drawn["keep"].y) == sorted(table["keep", form].score for form in FORMS)
    one = table["keep", "first-quarter"]
    place = drawn["keep"].y.tolist().index(one.score)
    assert drawn["keep"].high[place] - drawn["keep"].low[place] == pytest.approx(
        one.change.high - one.change.low
    )
    assert chart.baselines == (("keep, full vectors", pytest.approx(one.score - one.change.value)),)
    assert chart.x_names[0].startswith("binary")  # the smallest first
    # 40 queries do not show that the loss is small; the sentence has the loss that they do exclude.
    least = max(table["keep", form].change.low for form in FORMS)
    assert (found.best("keep") is None) == (least < -0.01)
    assert (
        f"“keep” none, because these queries exclude only a loss above {short(-least)} (" in found.describe()
    )
    sure = replace(table["keep", "pca-half"], change=Interval(0.0, -0.004, 0.004))
    found = replace(found, rows=(table["keep", "int8"], sure))
    told = "with a loss below .01 (95 %, 40 queries): “keep” PCA d/2, at most .004."
    assert (found.best("keep"), told in found.describe()) == (sure, True)
    both = replace(found, rows=(sure, replace(sure, option="bridge", change=Interval(0.0, -0.005, 0.004))))
    assert "is the same for all options: PCA d/2, at most .005." in both.describe()
    # Rows of a model that was trained to be cut: the first dimensions hold everything.
    padded = [
        LatentSpace(np.pad(one.vectors, ((0, 0), (0, 3 * one.dimension))), one.ids, name=one.name)
        for one in spaces
    ]
    assert CheaperIndex(migration=migration, adapter="inverse").run(padded).cautions == ()
