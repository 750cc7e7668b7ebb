"""What the drift between two versions is measured by: each quantity for all rows and for each class, beside its noise level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relcore.drift.decomposition import Decomposition
from relcore.drift.neighbour_churn import Across, Directions, jittered

EVERYTHING_NEW, NEW_QUERIES = "everything_new", "new_queries"
_NOISE_ROWS = 20_000
FEWEST = 5  # rows of a class that a mean is computed of
_Rows = dict[tuple[str, str], np.ndarray]


@dataclass(frozen=True)
class Measure:
    """One quantity of one group of rows, in one situation.

    Attributes
    ----------
    situation : "everything_new" or "new_queries"
    quantity : "churn", "rho" or "lost"
    group : str
        A class; "" for all rows.
    n : int
        Rows that it is the mean of.
    value, noise : float
        What was measured, and what numeric noise alone would leave; shares 0 … 1.
    error : float
        Standard error of value − noise over the rows.
    """

    situation: str
    quantity: str
    group: str
    n: int
    value: float
    noise: float
    error: float


@dataclass(frozen=True, eq=False)
class NeighbourRows:
    """Per query: the measured shares and what noise leaves, by situation and quantity; (m,) each."""

    measured: _Rows
    noise: _Rows
    reciprocal_rank: float | None
    churn_uncentred: float


def neighbour_rows(
    old: np.ndarray, new: np.ndarray, queries: np.ndarray, k: int, jitter: float, n_draws: int, random_state: int
) -> NeighbourRows:
    """Search the neighbours of the queries in both versions, across them, and in versions of the old rows with noise.

    The noise level is the mean over `n_draws` pairs of such versions, each with noise of its own: two runs of one model, on at
    most `_NOISE_ROWS` rows and the queries, so that it takes less than the two versions themselves. Between different widths
    nothing can be searched across, and only "everything_new" is measured.
    """
    across = old.shape[1] == new.shape[1]
    measured, rank, uncentred = _compared(old, new, queries, k, jitter, across)
    rng, drawn = np.random.default_rng(random_state), []
    if len(old) > _NOISE_ROWS:
        rows = np.union1d(queries, rng.choice(len(old), _NOISE_ROWS, replace=False))
        old, queries = old[rows], np.searchsorted(rows, queries)
    for _ in range(n_draws):
        pair = [jittered(old, jitter, rng) for _ in range(2)]
        drawn.append(_compared(*pair, queries, k, jitter, across)[0])
    noise = {name: np.mean([rows[name] for rows in drawn], axis=0) for name in measured}
    return NeighbourRows(measured, noise, rank, uncentred)


def _compared(
    old: np.ndarray, new: np.ndarray, queries: np.ndarray, k: int, jitter: float, across: bool
) -> tuple[_Rows, float | None, float]:
    """The measured shares of two versions, the mean reciprocal rank across them, and the churn of rows that are not centred."""
    rows: _Rows = {}
    for center in (True, False):
        before, after = (Directions.of(one, jitter, center) for one in (old, new))
        lists = before.near(queries, k)
        churn = after.changed(queries, lists, after.near(queries, k))
        if center:
            rows[EVERYTHING_NEW, "churn"] = churn
    if not across:
        return rows, None, float(churn.mean())
    found = Across.search(after, before, queries, lists)
    rows |= {(NEW_QUERIES, "lost"): found.lost, (NEW_QUERIES, "churn"): found.changed}
    return rows, float(found.reciprocal_rank.mean()), float(churn.mean())


def measures_of(
    split: Decomposition, rows: NeighbourRows, queries: np.ndarray, jitter: float, groups: Mapping[str, np.ndarray]
) -> tuple[Measure, ...]:
    """All quantities of all rows, then of each group with `FEWEST` rows or more; groups are row numbers."""
    found = [_rho(split, jitter, "", np.arange(len(split.remaining)))]
    found += [_mean(*name, "", values, rows.noise[name]) for name, values in rows.measured.items()]
    for group, members in groups.items():
        chosen = np.isin(queries, members)
        found.append(_rho(split, jitter, group, members))
        if np.count_nonzero(chosen) >= FEWEST:
            found += [_mean(*name, group, one[chosen], rows.noise[name][chosen]) for name, one in rows.measured.items()]
    return tuple(found)


def _mean(situation: str, quantity: str, group: str, values: np.ndarray, noise: np.ndarray) -> Measure:
    n, excess = len(values), values - noise
    error = float(excess.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return Measure(situation, quantity, group, n, float(values.mean()), float(noise.mean()), error)


def _rho(split: Decomposition, jitter: float, group: str, members: np.ndarray) -> Measure:
    """The residuals of these rows over their squared lengths: a ratio of means, with the error of such a ratio."""
    residuals, sizes, n = split.remaining[members], split.sizes[members], len(members)
    mean = float(sizes.mean())
    ratio = float(residuals.mean()) / mean if mean else 0.0
    error = float((residuals - ratio * sizes).std(ddof=1) / (mean * np.sqrt(n))) if n > 1 and mean else 0.0
    noise = 2 * jitter**2 * float(split.lengths[members].mean()) / mean if mean else 0.0
    value = ratio if group else split.rho
    return Measure(EVERYTHING_NEW, "rho", group, n, min(1.0, value), min(1.0, noise), error)
