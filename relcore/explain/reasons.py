"""Find features that explain a response: propose them on one half of the queries, test them on the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from relcore.explain.responses import FEWEST_QUERIES, Response

SMALLEST = 0.02  # effects below are none
_LEFT = 0.5  # share of an effect that earlier features must leave
# Of features that explain so much of the largest total, the one with the largest effect is first. Chosen on
# planted features of one state; .7 to .9 gave the same on another one.
_AS_MUCH = 0.8
SIGNIFICANT = 0.05
MOST_PROPOSED = 12
_PROPOSED = 3.5  # z-score from which a feature is proposed
_POWER = 2.0  # z-score by which an effect must exceed the limits of both halves
# An effect e adds about _CLUMPED · e to the variance of a row. Measured on planted features: .2 to .6 where a
# group was gathered. Up to 1.7 where it was dispersed, because some of its regions stay together.
_CLUMPED = 1.0
_CORRELATED = 1.5  # variance of a mean of correlated rows, as a multiple of that of independent ones
_WHOLE = 1.5


@dataclass(frozen=True)
class FeatureEvidence:
    """A proposed feature, tested on the other half of the queries.

    Attributes
    ----------
    number : int
        The number of the feature.
    n : int
        Number of queries with the feature.
    effect, error : float
        The mean response of its queries, without terms that earlier features explain, and its standard error.
    whole : float
        The mean response with all terms.
    p : float
        The p-value, corrected for all features that were tried (Holm 1979).
    """

    number: int
    n: int
    effect: float
    error: float
    whole: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether the effect is clear, and large enough: `SMALLEST` with all terms, and half of that without
        those that earlier features explain, which leave less to differ."""
        return self.p < SIGNIFICANT and bool(_enough(np.asarray(self.effect), np.asarray(self.whole)))


def _enough(effect: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return (np.abs(whole) >= SMALLEST) & (effect * np.sign(whole) >= _LEFT * np.abs(whole))


def effects(response: Response, left: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each feature, the mean effect, its standard error by rows, and the number of queries, (f,) each.
    Only the terms (t,) that are `left` count."""
    n = np.asarray(response.members.sum(axis=0)).ravel()
    weights = np.where(left, response.weights, 0)
    at = (response.queries, np.arange(len(weights)))
    summing = sparse.csr_matrix((weights, at), shape=(response.n_queries, len(weights)))
    of_rows = summing @ response.having.tocsr()
    surplus = response.by_surplus(left)
    if surplus is not None:
        of_rows = of_rows - surplus
    counted = np.maximum(n, 1)
    means = np.asarray(of_rows.sum(axis=0)).ravel() / counted
    squares = np.asarray(of_rows.multiply(of_rows).sum(axis=0)).ravel() / counted
    errors = np.sqrt(np.maximum(squares - means**2, 0) / np.maximum(n - 1, 1))
    return means, errors, n


@dataclass(frozen=True, eq=False)
class Proposable:
    """Which features may be proposed.

    Attributes
    ----------
    whole_of : array (f,)
        The number of the family as a whole that a feature belongs to; −1 for none. A family as a whole is
        proposed only if it explains `_WHOLE` times as much as each of its features.
    later : array (f,) of bool
        Features that are sought only when no other one is left.
    never : array (f,) of bool
        Features that are not sought.
    """

    whole_of: np.ndarray
    later: np.ndarray
    never: np.ndarray

    def allowed(self, totals: np.ndarray) -> np.ndarray:
        """The features (f,) bool that may be proposed, by their total effects."""
        largest = np.zeros(len(totals))
        inside = self.whole_of >= 0
        wholes = self.whole_of[inside]
        same = totals[inside] * np.sign(totals[wholes])
        np.maximum.at(largest, wholes, same)
        return ~self.never & (np.abs(totals) >= _WHOLE * largest)


def proposed(responses: list[Response], candidates: Proposable) -> list[int]:
    """The features that may explain the response, the largest total effect first; of several with nearly the
    same total, the one with the largest effect, which has the fewest other rows. The terms that a feature
    explains are taken out before the next one is sought.

    If there are several responses (one for each kind of noise, see `coarser`), a feature must explain all of
    them, with effects of one sign.
    """
    left = [response.whole() for response in responses]
    whole: np.ndarray | None = None
    found: list[int] = []
    while len(found) < MOST_PROPOSED:
        means, errors, n = _weakest([effects(*pair) for pair in zip(responses, left, strict=True)])
        if whole is None:
            whole = means
        clear = (np.abs(means) > _PROPOSED * np.maximum(errors, 1e-9)) & _enough(means, whole)
        clear &= (n >= FEWEST_QUERIES) & candidates.allowed(means * n)
        clear[found] = False
        if not clear.any():
            break
        if (clear & ~candidates.later).any():
            clear &= ~candidates.later
        totals = np.where(clear, np.abs(means) * n, -1)
        much = totals >= _AS_MUCH * totals.max()
        best = int(np.argmax(np.where(much, np.abs(means), -1)))
        found.append(best)
        left = [response.without(one, best) for response, one in zip(responses, left, strict=True)]
    return found


def _weakest(
    several: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The effect of each feature that is nearest to 0, with its error; 0 if effects differ in sign."""
    means = np.stack([one[0] for one in several])
    errors = np.stack([one[1] for one in several])
    which = np.abs(means).argmin(axis=0)
    every = np.arange(means.shape[1])
    same = np.all(means > 0, axis=0) | np.all(means < 0, axis=0)
    _, _, n = several[0]  # equal in all
    return np.where(same, means[which, every], 0), errors[which, every], n


def evidence_of(responses: list[Response], numbers: list[int], n_tried: int) -> list[FeatureEvidence]:
    """Test proposed features on other queries, in the order in which they were proposed. With several
    responses, the weakest effect counts."""
    left = [response.whole() for response in responses]
    found = []
    for number in numbers:
        measured = [_measured(response, number, one) for response, one in zip(responses, left, strict=True)]
        left = [response.without(one, number) for response, one in zip(responses, left, strict=True)]
        effect, error, whole, n = min(measured, key=lambda one: abs(one[0]))
        if len({np.sign(one[0]) for one in measured}) > 1:
            effect = 0.0
        found.append((number, n, effect, error, whole))
    return _corrected(found, n_tried)


def _measured(response: Response, number: int, left: np.ndarray) -> tuple[float, float, float, int]:
    """The effect of a feature with the terms that are left, its standard error, its effect with all terms,
    and the number of queries that have it."""
    inside = response.members_of(number)
    n = int(inside.sum())
    if n < 2:
        return 0.0, 0.0, 0.0, n
    rows = response.rows_of(number, left)
    whole = response.rows_of(number, response.whole())
    terms = response.having_feature(number) & left
    return float(rows.sum() / n), standard_error(response, rows, inside, terms), float(whole.sum() / n), n


def standard_error(response: Response, rows: np.ndarray, inside: np.ndarray, terms: np.ndarray) -> float:
    """The standard error of a mean effect, the largest of three: of independent rows; of rows whose errors
    are correlated within a region; of pairs that are correlated if they have a row in common (Aronow, Samii
    and Assenova 2015, eq. 5).

    Parameters
    ----------
    rows : array (m,)
        The sum of the feature's terms of each query.
    inside : array (m,) of bool
        The queries with the feature.
    terms : array (t,) of bool
        The terms that were summed.
    """
    n = int(inside.sum())
    rest = np.where(inside, rows - rows.sum() / n, 0)
    by_row = np.square(rest).sum()
    by_place = np.square(np.bincount(response.places, rest)).sum()
    n_places = len(np.unique(response.places[inside]))
    by_place *= n_places / max(n_places - 1, 1)
    weights = response.weights[terms]
    arriving = np.bincount(response.others[terms], weights)
    by_pair = by_row + np.square(arriving).sum() - np.square(weights).sum()
    return float(np.sqrt(max(by_row, by_place, by_pair)) / n)


def _corrected(found: list[tuple[int, int, float, float, float]], n_tried: int) -> list[FeatureEvidence]:
    """The tested features, with p-values of Student's t (with the number of queries less one as degrees of
    freedom), corrected by Holm's method over all features that were tried."""
    from scipy.special import stdtr

    plain = []
    for _, n, effect, error, _ in found:
        plain.append(2 * float(stdtr(max(n - 1, 1), -abs(effect) / max(error, 1e-12))))
    corrected = [1.0] * len(found)
    largest = 0.0
    for rank, place in enumerate(np.argsort(plain, kind="stable").tolist()):
        largest = max(largest, min(1.0, plain[place] * (n_tried - rank)))
        corrected[place] = largest
    return [FeatureEvidence(*one, p) for one, p in zip(found, corrected, strict=True)]


def smallest_effect(response: Response, share: float, n_tried: int) -> float:
    """The smallest effect that is found in at least 95 % of the draws, for a feature that this share of the
    rows has. It is found if it is proposed on one half of the queries and significant on the other half, of
    which this is the response.

    The variance of a row is that of features of about this size, plus `_CLUMPED` e for an effect e. NaN if
    there are no features of about this size, or if so few rows have one that not even an effect of 1 is
    found.
    """
    from scipy.special import stdtrit

    _, errors, n = effects(response, response.whole())
    wanted = share * response.n_queries
    near = (n > wanted / 2) & (n < wanted * 2) & (errors > 0)
    if not near.any() or wanted < FEWEST_QUERIES:
        return float("nan")
    of_row = float(np.median(np.square(errors[near]) * n[near]))
    limit = max(-float(stdtrit(wanted - 1, SIGNIFICANT / (2 * max(n_tried, 1)))), _PROPOSED)
    # e² = a (b + c e): the effect at which it exceeds the limits.
    a = (limit + _POWER) ** 2 / wanted
    b = _CORRELATED * of_row
    effect = (a * _CLUMPED + np.sqrt((a * _CLUMPED) ** 2 + 4 * a * b)) / 2
    if effect > 1:
        return float("nan")
    return max(SMALLEST, float(effect))
