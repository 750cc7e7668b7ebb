"""Which kinds of rows changed most: features whose rows have a higher or lower number than all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.numbers import and_list, percent
from relcore.explain.families import Features
from relcore.explain.reasons import Proposable, evidence_of, proposed, standard_error
from relcore.explain.responses import of_numbers
from relcore.scores.score import Z95

MOST_KINDS = 5
_CLEARLY = 0.1  # a mean share of changed neighbours this far above that of all rows makes the headline


@dataclass(frozen=True, eq=False)
class MovedRows:
    """A kind of rows of which more, or fewer, neighbours changed than of all rows.

    Attributes
    ----------
    title, short, family : str
        See `Reason`.
    n : int
        Number of compared rows of this kind, none of which suggested it.
    churn, of_all : float
        The mean share of changed neighbours of these rows, and of all rows, 0 … 1.
    low, high : float
        The 95 % interval of `churn`.
    p : float
        The p-value, corrected for all features that were tried.
    rows : array
        The numbers of all rows of this kind, in the matched spaces.
    """

    title: str
    short: str
    family: str
    n: int
    churn: float
    of_all: float
    low: float
    high: float
    p: float
    rows: np.ndarray


def moved_rows(
    queries: np.ndarray, churn: np.ndarray, features: Features, suggesting: np.ndarray, regions: np.ndarray
) -> tuple[MovedRows, ...]:
    """The kinds of rows that differ most from all rows in their share of changed neighbours, largest total
    first. One half of the queries suggests them, the other half tests them.

    Rows that one kind explains are taken out before the next is sought. This says which rows changed, not
    why: noise of one size for all rows changes more neighbours where rows are dense.

    Parameters
    ----------
    queries, churn, suggesting, regions : arrays (m,)
    """
    response = of_numbers(queries, churn, features, regions)
    p = features.members.shape[1]
    single = np.arange(len(features)) >= p  # a family as a whole is all rows
    candidates = Proposable(np.full(len(features), -1), features.of_spaces, single)
    numbers = proposed([response.of_part(suggesting)], candidates)
    testing = response.of_part(~suggesting)
    whole = testing.whole()
    kinds = []
    for one in evidence_of([testing], numbers, p):
        if not one.significant:
            continue
        feature = features.listed[one.number]
        rows = testing.rows_of(one.number, whole)
        inside = testing.members_of(one.number)
        terms = testing.having_feature(one.number)
        mean = float(churn[~suggesting][inside].mean())
        reach = Z95 * standard_error(testing, rows, inside, terms)
        numbers_of_rows = features.members[:, one.number].nonzero()[0]
        kinds.append(
            MovedRows(
                feature.title,
                feature.short,
                feature.family,
                int(inside.sum()),
                mean,
                float(churn.mean()),
                max(0.0, mean - reach),
                min(1.0, mean + reach),
                one.p,
                numbers_of_rows,
            )
        )
    return tuple(kinds[:MOST_KINDS])


def most_changed(kinds: Sequence[MovedRows]) -> MovedRows | None:
    """The kind of rows with the largest share of changed neighbours, if that is clearly more than of all
    rows."""
    most = max(kinds, key=lambda one: one.churn, default=None)
    if most is None or most.churn - most.of_all < _CLEARLY:
        return None
    return most


def most_changed_in_words(most: MovedRows) -> str:
    return (
        f"{most.title[:1].upper()}{most.title[1:]} differ most: {percent(most.churn)} of their neighbours"
        f" changed, {percent(most.of_all)} on average."
    )


def moved_in_words(kinds: Sequence[MovedRows]) -> str:
    """Which kinds of rows changed more, and which less, in a sentence; "" if there are none."""
    if not kinds:
        return ""
    text = f"On average, {percent(kinds[0].of_all)} of a row's neighbours differ"
    for more, word in ((True, "more"), (False, "fewer")):
        listed = [f"{one.title} ({percent(one.churn)})" for one in kinds if (one.churn > one.of_all) == more]
        if listed:
            text += f"; {word} for {and_list(listed)}"
    return f"{text}."
