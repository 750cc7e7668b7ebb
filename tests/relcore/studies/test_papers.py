"""Published numbers, ours beside them, and verdicts that say no to a reversed result."""

import re
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from relcore.runs.store import Store
from relcore.studies.claims import DOES_NOT, HOLDS, NO, OPEN, YES, decide, verdicts_of
from relcore.studies.paper_runs import NUMBERS, RUNS, is_current, is_own, ours_of, result_of, study_runs
from relcore.studies.papers import Claim, find_row, load_rows
from relcore.studies.published import Number, Ours, shipped_results, spread_of
from relcore.studies.runs import finished_run
from relcore.studies.study import RunResult


def ours(*numbers, run="words"):
    return {run: Ours(run, "data", {}, "2026-01-01", "0", 1.0, numbers)}


def row_of(*claims):
    return replace(find_row("relative-table-1"), claims=claims)


HIGH = Number("relative", "MRR", 0.9, 0.02, repeats=5, baseline=0.01)
LOW = Number("absolute", "MRR", 0.1, 0.02, repeats=5)
MORE = Claim("Relative rows are better.", "words", "relative | MRR", "absolute | MRR", on="words")


def verdict_on(row, found):
    (verdict,) = verdicts_of(row, found).values()
    return verdict


def test_every_measured_row_has_claims_and_every_other_row_says_why_not():
    for row in load_rows():
        assert bool(row.runs) != bool(row.why_not), row.id
        assert bool(row.runs) == bool(row.claims or row.repeats or row.title == "Datasets"), row.id
        assert not (row.claims and row.repeats), row.id
        assert all(claim.on for claim in row.claims), row.id
        assert not row.why_not or row.why_not.endswith("."), row.id
        assert {claim.run for claim in row.claims} <= set(row.run_names()), row.id
        for claim in row.claims:
            assert claim.says.endswith("."), (row.id, claim.says)
            assert "{" not in str(claim.sides()) + claim.says, (row.id, claim.says)


def test_all_that_claims_name_is_in_shipped_numbers():
    known = {name: one for name, one in shipped_results().items() if is_current(one)}
    for row in load_rows():
        for claim in row.claims:
            if claim.run in known:  # raises where a side names nothing
                decide(claim, known[claim.run].of_groups(row.groups(claim.run)))


def test_a_reversed_result_does_not_hold():
    assert verdict_on(row_of(MORE), ours(HIGH, LOW)).word == HOLDS
    reversed_ = ours(replace(HIGH, value=LOW.value), replace(LOW, value=HIGH.value))
    found = verdict_on(row_of(MORE), reversed_)
    assert (found.word, found.claims[0].outcome) == (DOES_NOT, NO)
    assert found.counts() == "0 of 1 comparison holds, 1 fails"


def sides_of(*values):
    """The two numbers of the claim `MORE`, from the values of their repeats."""
    return [
        Number(name, "MRR", float(np.mean(x)), float(np.std(x, ddof=1)), repeats=len(x))
        for name, x in zip(("relative", "absolute"), values, strict=True)
    ]


def test_values_of_same_random_states_are_compared_in_pairs():
    from scipy.stats import ttest_rel

    # Welch does not tell these means apart
    first = (0.5, 0.6, 0.8, 0.7)
    second = (0.45, 0.56, 0.73, 0.66)
    sides = [
        replace(side, values=x) for side, x in zip(sides_of(first, second), (first, second), strict=True)
    ]
    assert decide(MORE, sides_of(first, second)).outcome == OPEN
    decided = decide(MORE, sides)
    interval = ttest_rel(first, second).confidence_interval()
    assert (decided.outcome, decided.paired) == (YES, True)
    assert (decided.low, decided.high) == pytest.approx((interval.low, interval.high))


def test_welch_agrees_with_scipy():
    from scipy.stats import ttest_ind_from_stats

    one = Number("relative", "MRR", 0.5, 0.03, repeats=4)
    other = Number("absolute", "MRR", 0.45, 0.01, repeats=7)
    decided = decide(MORE, (one, other))
    _, p = ttest_ind_from_stats(0.5, 0.03, 4, 0.45, 0.01, 7, equal_var=False)
    assert (decided.low > 0) == (p < 0.05)
    shifted = replace(one, value=0.45 + decided.difference - decided.low)  # exactly at the edge
    _, p = ttest_ind_from_stats(shifted.value, 0.03, 4, 0.45, 0.01, 7, equal_var=False)
    assert p == pytest.approx(0.05, abs=1e-6)


def test_equal_numbers_hold_in_at_most_nominal_share():
    # The control: 400 pairs drawn from one distribution, 5 repeats each. The rule is two-sided at 95 %, so
    # about 2.5 % hold and 2.5 % fail; of 400 that is 10, with a standard error of 3.1. 20 would be 3.2 errors
    # above.
    rng = np.random.default_rng(0)
    outcomes = []
    for drawn in rng.normal(0.5, 0.05, size=(400, 2, 5)):
        outcomes.append(decide(MORE, sides_of(*drawn)).outcome)
    assert outcomes.count(YES) < 20
    assert outcomes.count(NO) < 20
    assert outcomes.count(OPEN) > 360


def test_intervals_by_how_they_are_found():
    given = spread_of(Number("a", "Pearson", 0.9, low=0.8, high=0.95, n=50))
    assert (given.low, given.high, given.found_from) == (0.8, 0.95, "found by the run")
    student = spread_of(Number("a", "F1", 0.5, 0.1, repeats=4, n=100))
    assert student.high - 0.5 == pytest.approx(3.182 * 0.05, rel=1e-3)  # t with 3 degrees of freedom
    binomial = spread_of(Number("a", "accuracy", 0.9, n=100, repeats=3))
    assert binomial.error == pytest.approx(0.03)
    assert spread_of(Number("a", "accuracy", 1.0, n=100)).low == 1.0
    assert spread_of(Number("a", "Pearson", 0.9, unit="−1 … 1", n=100)) is None
    rows = spread_of(Number("a", "length", 20.0, 4.0, "length", n=400))
    assert rows.error == pytest.approx(0.2)


def test_a_bound_from_n_rows_is_never_too_small():
    rng = np.random.default_rng(1)
    for scores in (rng.random(500), rng.random(500) < 0.2, rng.beta(0.2, 0.3, 500)):
        number = Number("a", "MRR", float(np.mean(scores)), n=500)
        assert spread_of(number).error >= np.std(scores) / sqrt(500) - 1e-12


CAPTIONS = {"relative": (16, 8), "inverse": (2, 7), "bootstrapping": (7, 0)}


def test_every_table_and_figure_has_its_row():
    expected = {
        (paper, kind, number)
        for paper, counts in CAPTIONS.items()
        for kind, count in zip(("Table", "Figure"), counts, strict=True)
        for number in range(1, count + 1)
    }
    rows = load_rows()
    assert {(row.paper.id, row.kind, row.number) for row in rows} == expected
    assert len(rows) == len(expected) == 40


@pytest.mark.parametrize(
    ("row", "line", "measure", "text"),
    [
        ("relative-table-1", ("relative", "Word2Vec", "FastText"), "MRR", "0.98"),
        ("relative-table-3", ("AE", "Rel", "Stitch"), "CIFAR-100", "18.03 ± 12.46"),
        ("inverse-table-2", ("text", "TREC"), "zero-shot", "0.73 ± 0.09"),
        ("bootstrapping-table-5", ("AO", "FT", "W2V"), "Jaccard", "0.49 ± 0.00"),
    ],
)
def test_numbers_are_those_of_the_paper(row, line, measure, text):
    table = find_row(row).published
    column = [one.name for one in table.measures].index(measure)
    (cells,) = [cells for labels, cells in table.lines if labels == line]
    assert cells[column].text == text


def test_shipped_numbers_come_from_known_runs_with_all_they_depend_on():
    shipped = shipped_results()
    assert sum(any(name in shipped for name in row.run_names()) for row in load_rows()) >= 12
    for name, found in shipped.items():
        assert is_current(found), f"run python assets/papers/measure_rows.py {name}"
        assert re.fullmatch(r"[0-9a-f]{7,}", found.commit), (
            f"{name}: measured with code that is not committed"
        )
        assert all((found.data, found.version, found.numbers, found.seconds > 0))
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.date)
        for number in found.numbers:
            assert all((number.label, number.metric, number.unit, number.value == number.value))


STUDIED = [name for name, run in RUNS.items() if run.study]


@pytest.mark.parametrize("name", STUDIED)
def test_run_of_study_has_its_settings_as_options(name):
    runs_of = study_runs(name)
    assert {option: runs_of.spec.settings[option] for option in RUNS[name].settings} == RUNS[name].settings


@pytest.mark.parametrize("name", ["trained-count"])
def test_a_studys_runs_give_the_numbers_that_ship(name):
    runs_of = study_runs(name)
    store = Store(finished=True)
    if runs_of.missing(store):
        pytest.skip("its runs do not come with Relscope")
    numbers = NUMBERS[RUNS[name].study](runs_of, runs_of.table(store))
    assert numbers == shipped_results()[name].numbers


def test_the_stores_own_runs_replace_what_ships(tmp_path, monkeypatch):
    store = Store(tmp_path)
    studied = study_runs("trained-count")
    shipped = result_of("trained-count", store)
    assert shipped == shipped_results()["trained-count"]
    assert not is_own(shipped)
    values = dict.fromkeys(("relative, same space", "relative, stitched", "absolute"), 0.25)
    facts = values | {"chance": 0.1, "test rows": 9}
    monkeypatch.setattr(type(studied.study), "measure", lambda self, settings, *given: RunResult(facts))
    for settings in studied.settings:
        finished_run(studied.study, settings, store, lambda *progress: None)
    measured = ours_of("trained-count", studied, store)
    again = result_of("trained-count", store)
    assert is_own(again)
    assert again.numbers == measured.numbers
    assert {number.value for number in again.numbers} == {0.25}
    assert again.settings == RUNS["trained-count"].settings
