"""Verdicts: a rule on numbers and their intervals, which says no to a reversed result and nothing to
noise.
"""

from dataclasses import replace
from math import sqrt

import pytest

from relcore.papers.rows import (
    DOES_NOT,
    HOLDS,
    NO,
    OPEN,
    YES,
    Claim,
    Number,
    Ours,
    decide,
    find_row,
    load_rows,
    shipped,
    spread_of,
    verdict_of,
)
from relcore.papers.runs import is_current


def ours(*numbers, run="words"):
    return {run: Ours(run, "data", {}, "2026-01-01", "0", 1.0, numbers)}


def row_of(*claims):
    return replace(find_row("relative-table-1"), claims=claims)


HIGH = Number("relative", "MRR", 0.9, 0.02, repeats=5, baseline=0.01)
LOW = Number("absolute", "MRR", 0.1, 0.02, repeats=5)
MORE = Claim("Relative rows are better.", "words", "relative | MRR", "absolute | MRR")


def test_every_measured_row_has_claims_and_every_other_row_says_why_not():
    for row in load_rows():
        assert bool(row.runs) != bool(row.why_not), row.id
        assert bool(row.runs) == bool(row.claims), row.id
        assert not row.why_not or row.why_not.endswith("."), row.id
        assert {claim.run for claim in row.claims} <= set(row.run_names()), (
            f"{row.id}: a claim on a run that is not the row's"
        )
        for claim in row.claims:
            assert claim.says.endswith("."), (row.id, claim.says)
            assert "{" not in str(claim.sides()) + claim.says, (row.id, claim.says)


def test_all_that_claims_name_is_in_the_shipped_numbers():
    known = {name: one for name, one in shipped().items() if is_current(one)}
    for row in load_rows():
        for claim in row.claims:
            if claim.run in known:
                decide(
                    claim, known[claim.run].of_groups(row.groups(claim.run))
                )  # raises where a side names nothing


def test_a_reversed_result_does_not_hold():
    assert verdict_of(row_of(MORE), ours(HIGH, LOW)).word == HOLDS
    reversed_ = ours(replace(HIGH, value=LOW.value), replace(LOW, value=HIGH.value))
    found = verdict_of(row_of(MORE), reversed_)
    assert (found.word, found.claims[0].outcome) == (DOES_NOT, NO)
    assert found.counts() == "0 of 1 comparison holds, 1 fails"


def test_the_shipped_words_with_absolute_and_relative_exchanged_do_not_hold():
    row, found = find_row("relative-table-1"), shipped()["words"]
    assert verdict_of(row, {"words": found}).word == HOLDS
    names = {"relative": "absolute", "absolute": "relative"}
    swapped = []
    for number in found.numbers:
        form, _, rest = number.label.partition(", ")
        centred = rest.startswith(("centred", "whitened"))
        swapped.append(number if centred else replace(number, label=f"{names[form]}, {rest}"))
    assert verdict_of(row, {"words": replace(found, numbers=tuple(swapped))}).word == DOES_NOT


def test_what_lies_within_the_error_is_not_decided():
    # Two means over 5 states with deviation .02: the difference's error is .02 √(2 / 5) = .0126, with 8
    # degrees of freedom t = 2.306, so that .029 decides. .01 apart is open, .04 apart holds.
    near, far = replace(LOW, value=0.89), replace(LOW, value=0.86)
    assert decide(MORE, (HIGH, near)).outcome == OPEN
    decided = decide(MORE, (HIGH, far))
    assert decided.outcome == YES
    assert decided.difference - decided.low == pytest.approx(2.306 * 0.02 * sqrt(2 / 5), rel=1e-3)


def test_welch_agrees_with_scipy():
    from scipy.stats import ttest_ind_from_stats

    one, other = (
        Number("relative", "MRR", 0.5, 0.03, repeats=4),
        Number("absolute", "MRR", 0.45, 0.01, repeats=7),
    )
    decided = decide(MORE, (one, other))
    _, p = ttest_ind_from_stats(0.5, 0.03, 4, 0.45, 0.01, 7, equal_var=False)
    assert (decided.low > 0) == (p < 0.05)
    shifted = replace(one, value=0.45 + decided.difference - decided.low)  # exactly at the edge
    _, p = ttest_ind_from_stats(shifted.value, 0.03, 4, 0.45, 0.01, 7, equal_var=False)
    assert p == pytest.approx(0.05, abs=1e-6)


def test_equal_numbers_hold_in_at_most_the_nominal_share():
    # The control: 400 pairs drawn from one distribution, 5 repeats each. The rule is two-sided at 95 %, so
    # about 2.5 % hold and 2.5 % fail; of 400 that is 10, with a standard error of 3.1. 20 would be 3.2 errors
    # above.
    import numpy as np

    rng = np.random.default_rng(0)
    outcomes = []
    for drawn in rng.normal(0.5, 0.05, size=(400, 2, 5)):
        sides = [
            Number(name, "MRR", float(x.mean()), float(x.std(ddof=1)), repeats=5)
            for name, x in zip(("relative", "absolute"), drawn, strict=True)
        ]
        outcomes.append(decide(MORE, sides).outcome)
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
    import numpy as np

    rng = np.random.default_rng(1)
    for scores in (rng.random(500), rng.random(500) < 0.2, rng.beta(0.2, 0.3, 500)):
        number = Number("a", "MRR", float(np.mean(scores)), n=500)
        assert spread_of(number).error >= np.std(scores) / sqrt(500) - 1e-12
