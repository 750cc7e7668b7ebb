"""Anchors: choose them by strategy, diagnose them, and audit them for wrong pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import AUDITS, STRATEGIES
from relcore.base.rows import mean_row, unit_rows
from relcore.engine.engine import Engine
from relcore.represent.similarity import mean_of
from relcore.spaces.space import LatentSpace, MatrixLike, as_space

USUAL_ANCHORS = 300


def usual_anchors(n: int) -> int:
    """The default number of anchors of n rows: 300 as in the papers, but at most a fifth of the rows.

    By 24 anchors of 120 words, 94 % of the other words are nearest to themselves; by 12 it is 76 %, by 60 it
    is 98 %, but then only half of the words are left to be scored (8 draws of the bundled words). With fewer
    than 50 rows there are up to 10 anchors, at most half of the rows.
    """
    return max(1, min(USUAL_ANCHORS, max(n // 5, min(n // 2, 10))))


def select_anchors(
    space: MatrixLike,
    n_anchors: int,
    strategy: Literal[
        "random", "farthest-point", "k-means", "most-frequent", "class-balanced", "learned"
    ] = "random",
    *,
    pool: int | None = None,
    random_state: int = 0,
) -> np.ndarray:
    """The ids (n_anchors,) of anchors chosen in this space; zero vectors are never chosen.

    Parameters
    ----------
    space : LatentSpace, or matrix (n, d) in any form
        Rows without ids have "0", "1", … as ids.
    strategy : one of `names.STRATEGIES`
        Strategies of Moschella et al. 2023 (their code): uniform; the row farthest in angle from all anchors
        so far; the row nearest to each k-means centroid; the most frequent rows; the same number from each
        label, with more from others if a label is too small.
    pool : int, optional
        Choose only among the `pool` most frequent rows (the paper's code: 1,000, 5,000, 10,000).

    Raises
    ------
    SpaceError
        More anchors than distinct candidates, an unknown strategy, "class-balanced" without labels.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, select_anchors
    >>> vectors = [[1, 0], [1, 0.1], [0, 1], [-1, 0]]
    >>> space = LatentSpace(vectors, ["a", "b", "c", "d"], counts=[9, 2, 5, 1])
    >>> select_anchors(space, 2, "most-frequent").tolist()
    ['a', 'c']
    >>> len(select_anchors(space, 3, random_state=0))
    3
    """
    space = as_space(space)
    need_one_of("strategy", strategy, STRATEGIES)
    for name, number, least in (
        ("n_anchors", n_anchors, 1),
        ("random_state", random_state, 0),
        ("pool", pool, 1),
    ):
        if number is not None and not (isinstance(number, int | np.integer) and number >= least):
            raise SpaceError(f"{name}: expected {least} or more, got {number!r:.40}")
    rows = np.arange(len(space)) if space.counts is None else np.argsort(-space.counts, kind="stable")
    candidates = rows[space.norms[rows] > 0][:pool]
    if n_anchors > len(candidates):
        raise SpaceError(
            f"n_anchors: expected at most {len(candidates)}, the rows of {space.name!r} that can be chosen,"
            f" got {n_anchors}; ask for fewer, or widen the pool"
        )
    rows = STRATEGIES[strategy].load()(space, candidates, n_anchors, np.random.default_rng(random_state))
    return space.ids[rows]


def shared_anchors(ids: Sequence[str], *spaces: LatentSpace) -> list[str]:
    """These ids as a list, after a check. Raises a SpaceError if an id is repeated, or if its row is zero in
    a space."""
    ids = list(ids)
    if not ids:
        raise SpaceError("anchors: expected at least one id, got none")
    if len(set(ids)) < len(ids):
        twice = sorted({identifier for identifier in ids if ids.count(identifier) > 1})
        raise SpaceError(f"anchors: expected distinct ids, got {quote(twice[:3])} more than once")
    for space in spaces:
        zero = np.flatnonzero(space.norms[space.rows(ids)] == 0)
        if len(zero):
            raise SpaceError(
                f"anchors: {quote([ids[place] for place in zero[:3]])} are zero vectors in {space.name!r} and"
                " have no direction; remove them"
            )
    return ids


# The strategies: each returns the rows of n anchors among `candidates` (m,), which are row numbers by
# descending frequency.


def at_random(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    return rng.choice(candidates, n_anchors, replace=False)


def most_frequent(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    return candidates[:n_anchors]


def farthest_point(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    rows, start = _directions(space, candidates), int(rng.integers(len(candidates)))
    order, _ = farthest_order(lambda row: rows @ rows[row], len(rows), start, 1e-6, n_anchors)
    if len(order) < n_anchors:
        raise SpaceError(
            f"n_anchors: expected at most {len(order)}, the number of distinct directions, got {n_anchors}"
        )
    return candidates[order]


def farthest_order(
    similarity: Callable[[int], np.ndarray], n: int, start: int, delta: float = 0.0, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Greedy farthest-point order of n rows under 1 − similarity, starting at row `start`, until the next row
    is nearer than δ.

    Returns at most `most` rows, and the distance of each to the nearest earlier row, 1 for the first. The
    distances never rise, so the order at a larger δ is a prefix.
    """
    order, distances = [int(start)], [1.0]
    nearest = similarity(start).copy()
    nearest[start] = np.inf
    while len(order) < (n if most is None else most):
        farthest = int(np.argmin(nearest))
        distance = max(1 - float(nearest[farthest]), 0.0)
        if distance < delta:
            break
        order.append(farthest)
        distances.append(distance)
        np.maximum(nearest, similarity(farthest), out=nearest)
        nearest[farthest] = np.inf
    return np.array(order), np.array(distances)


def k_means(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    directions = _directions(space, candidates)
    # Mini-batches take a tenth of the time of full k-means.
    k_means = MiniBatchKMeans(n_anchors, batch_size=4096, n_init=1, random_state=int(rng.integers(2**31)))
    return candidates[_nearest_rows(k_means.fit(directions).cluster_centers_, directions)]


def _nearest_rows(centres: np.ndarray, directions: np.ndarray) -> np.ndarray:
    similarity, chosen = unit_rows(centres) @ directions.T, np.empty(len(centres), dtype=np.int64)
    for centre, row in enumerate(similarity):
        chosen[centre] = np.argmax(row)
        similarity[:, chosen[centre]] = -np.inf  # another centre with the same nearest row takes its next one
    return chosen


def class_balanced(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    if space.labels is None:
        raise SpaceError(
            f"strategy 'class-balanced': expected labels, {space.name!r} has none; choose another strategy"
        )
    shuffled = rng.permutation(candidates)
    shuffled = shuffled[space.labels[shuffled] != ""]
    if len(shuffled) < n_anchors:
        raise SpaceError(f"n_anchors: expected at most {len(shuffled)}, the labelled rows, got {n_anchors}")
    # Take the first row of every class, then the second of every class, until there are enough.
    labels = pd.Series(space.labels[shuffled])
    turn, place = labels.groupby(labels).cumcount(), np.unique(labels, return_inverse=True)[1]
    return shuffled[np.lexsort((place, turn))[:n_anchors]]


def _directions(space: LatentSpace, rows: np.ndarray) -> np.ndarray:
    return unit_rows(space.vectors[rows], mean_row(space.vectors))


# Diagnostics of a set of anchors: rank, condition, coverage and near-duplicates.

_SAMPLED_ROWS = 1000
_DUPLICATE = 0.9  # cosine of near-duplicates
_SAME, _MANY = 1 - 1e-4, 0.05  # cosine of anchors that coincide; share of the anchors


@dataclass(frozen=True)
class AnchorDiagnostics:
    """Diagnostics of an anchor set in one space.

    Attributes
    ----------
    singular_values : array (min(k, d),)
        Singular values of the centred unit anchors, descending.
    rank : int
        Numerical rank; below min(k, d) some anchors are combinations of others.
    condition_number : float
        Largest over smallest singular value, 1 … ∞; if it is large, the inverse amplifies noise.
    effective_rank : float
        exp of the entropy of the normalised squared singular values, 1 … min(k, d) (Roy and Vetterli 2007).
    coverage, coverage_random : float
        Mean cosine between a row and its nearest anchor, −1 … 1, and the same for as many random anchors.
    near_duplicates : tuple of (id, id, cosine)
        Anchor pairs with a cosine above .9, closest first.
    """

    n_anchors: int
    singular_values: np.ndarray
    rank: int
    condition_number: float
    effective_rank: float
    coverage: float
    coverage_random: float
    near_duplicates: tuple[tuple[str, str, float], ...]


def diagnose_anchors(
    space: LatentSpace, anchor_ids: Sequence[str], *, random_state: int = 0
) -> AnchorDiagnostics:
    """Diagnostics of the anchors after centring and scaling to length 1; SpaceError as in
    `shared_anchors`."""
    ids = shared_anchors(anchor_ids, space)
    mean = mean_of(space)
    anchors = unit_rows(space.vectors[space.rows(ids)], mean)
    values = Engine().svd(anchors)[1]
    floor = values[0] * max(anchors.shape) * np.finfo(np.float32).eps
    energy = values**2 / np.sum(values**2)
    energy = energy[energy > 0]
    n_random = min(len(ids), np.count_nonzero(space.norms))
    at_random = unit_rows(
        space.vectors[space.rows(select_anchors(space, n_random, random_state=random_state))], mean
    )
    coverage, coverage_random = (
        float(
            Engine()
            .map_rows(space.vectors, chosen.T, mean=mean, unit=True)
            .max(axis=1)
            .mean(dtype=np.float64)
        )
        for chosen in (anchors, at_random)
    )
    cosines = np.triu(anchors @ anchors.T, 1)
    pairs = np.argwhere(cosines > _DUPLICATE)
    near = [(ids[first], ids[second], float(cosines[first, second])) for first, second in pairs]
    return AnchorDiagnostics(
        n_anchors=len(ids),
        singular_values=values,
        rank=int(np.count_nonzero(values > floor)),
        condition_number=float(values[0] / values[-1]) if values[-1] > floor else float("inf"),
        effective_rank=float(np.exp(-np.sum(energy * np.log(energy)))),
        coverage=coverage,
        coverage_random=coverage_random,
        near_duplicates=tuple(sorted(near, key=lambda pair: -pair[2])),
    )


def coinciding_anchors(space: LatentSpace, anchor_ids: Sequence[str]) -> str:
    """A warning if at least 5 % of the anchors coincide with another anchor; else ""."""
    ids = shared_anchors(anchor_ids, space)
    sample = space.vectors[:: -(-len(space) // _SAMPLED_ROWS)]
    anchors = unit_rows(space.vectors[space.rows(ids)], mean_row(sample))
    again = np.flatnonzero((np.triu(anchors @ anchors.T, 1) > _SAME).any(axis=0))
    if len(again) < max(2, _MANY * len(ids)):
        return ""
    named = quote([ids[row] for row in again[:3]]) + (", …" if len(again) > 3 else "")
    return (
        f"{len(again):,} of {len(ids):,} anchors coincide with another anchor in {quote([space.name])}"
        f" ({named}), so one direction counts several times in relative scores. Remove them, or read the"
        " whitened scores."
    )


# Audit: find wrong anchor pairs.

TRUSTED = 0.6  # share of the pairs on which the rotation is fitted
ROUNDS = 10
FOLDS = 10
FALSE_SHARE = 0.05
FEWEST = 10  # pairs; fewer than this do not determine a rotation
_JUDGED = (0.5, 0.9, 0.99, 0.999)  # quantiles of the mismatches below which pairs are counted as wrong
_COUNTED = 0.9  # quantile below which pairs are counted to name suspects
_NEVER_RIGHT = 0.25  # quantile of the mismatches below which right pairs are not expected
_TAIL_SHARE = 0.025
_MOST_WRONG = 1 - TRUSTED
_TAIL = (8, 40)  # largest number of degrees of freedom; pairs per degree above two
_NEAREST = 1e-4  # pairs with a smaller 1 − agreement agree equally
_SILENT = 1e-9  # times the largest singular value; the trusted pairs lack directions below it


@dataclass(frozen=True, eq=False)
class Audit:
    """The agreement (k, k) of source i with target j, −1 … 1, with the pairs on the diagonal, and the
    suspects.

    On average, at most a share `false_share` of the suspects are right pairs.
    """

    agreement: np.ndarray
    false_share: float = FALSE_SHARE

    @cached_property
    def of_pairs(self) -> np.ndarray:
        return self.agreement.diagonal().copy()

    @cached_property
    def mismatched(self) -> np.ndarray:
        """The agreement of sources with targets of other pairs (mismatches), ascending, (k · (k − 1),)."""
        k = len(self.agreement)
        return np.sort(self.agreement[~np.eye(k, dtype=bool)])

    @cached_property
    def ranking(self) -> np.ndarray:
        return np.argsort(self.of_pairs, kind="stable")

    @cached_property
    def n_wrong(self) -> float:
        """The estimated number of wrong pairs (Storey 2002), within `wrong_interval`. It assumes that wrong
        pairs agree as mismatches do, and counts pairs below values that right pairs rarely reach."""
        below = [(np.count_nonzero(self._behind > 1 - share), share) for share in _JUDGED]
        # Take the smallest estimate plus three standard errors, because right pairs can only raise an
        # estimate.
        n, share = min(below, key=lambda one: (one[0] + 3 * np.sqrt(one[0] * (1 - one[1]))) / one[1])
        return float(np.clip(n / share, *self.wrong_interval))

    @cached_property
    def wrong_interval(self) -> tuple[int, int]:
        """The 95 % interval of the number of wrong pairs.

        Of w wrong pairs, the number below quantile q of the mismatches is binomial (w, q). The upper end is
        the largest w for which so few pairs there are plausible; it assumes nothing about right pairs. The
        lower end assumes that no right pair agrees less than three quarters of the mismatches do.
        """
        from scipy.special import bdtr, bdtrc

        wrong = np.arange(len(self.of_pairs) + 1)
        low, high = 0, len(self.of_pairs)
        for share in _JUDGED:
            n = np.count_nonzero(self._behind > 1 - share)
            possible = bdtr(n, np.maximum(wrong, n + 1), share) >= _TAIL_SHARE / len(_JUDGED)
            high = min(high, max(n, int(wrong[possible].max(initial=0))))
        if n := np.count_nonzero(self._behind > 1 - _NEVER_RIGHT):
            possible = (bdtrc(n - 1, np.maximum(wrong, n), _NEVER_RIGHT) >= _TAIL_SHARE) & (wrong >= n)
            low = int(wrong[possible].min(initial=len(self.of_pairs)))
        return min(low, high), high

    @cached_property
    def _behind(self) -> np.ndarray:
        """The share of mismatches that agree more than each pair, (k,), 0 … 1. Each row's mean agreement with
        mismatches is subtracted first, because some rows agree with all others."""
        off_diagonal = ~np.eye(len(self.agreement), dtype=bool)
        others = np.where(off_diagonal, self.agreement, 0)
        n = len(others) - 1 - off_diagonal
        rows, columns = (others.sum(axis=1)[:, None] - others) / n, (others.sum(axis=0) - others) / n
        beyond = self.agreement - rows - columns
        mismatched = np.sort(beyond[off_diagonal])
        return 1 - np.searchsorted(mismatched, beyond.diagonal()) / len(mismatched)

    @cached_property
    def _counted(self) -> float:
        """The number of pairs that agree as little as mismatches (Storey 2002), from which suspects are
        named; it may include right pairs."""
        below = np.quantile(self.mismatched, _COUNTED)
        return float(min((self.of_pairs < below).sum() / _COUNTED, len(self.of_pairs)))

    def chance_if_right(self, agreement: np.ndarray) -> np.ndarray:
        """The share of right pairs that agree at most this much. Their log(1 − agreement) is modelled by a
        Student's t around the median, with the width from the lower quartile of the pairs not counted as
        wrong."""
        from scipy.special import stdtr

        right = self.of_pairs[self.ranking[int(self._counted) :]]
        middle, low = np.log(np.maximum(1 - np.quantile(right, (0.5, 0.25)), _NEAREST))
        away = np.log(np.maximum(1 - agreement, _NEAREST)) - middle
        most, pairs = _TAIL
        return stdtr(min(most, 2 + len(self.of_pairs) / pairs), -away / max((low - middle) / 0.6745, 0.05))

    @property
    def decided(self) -> bool:
        """Whether the pairs can be judged: at most 40 % are wrong, so the fit is valid, and right pairs
        rarely agree as little as the median mismatch."""
        if self._counted > _MOST_WRONG * len(self.of_pairs):
            return False
        return bool(self.chance_if_right(np.median(self.mismatched)) <= _MOST_WRONG * self.false_share)

    @cached_property
    def suspects(self) -> np.ndarray:
        """The suspect pairs, least agreement first; none unless the audit is `decided`.

        Two conditions bound the number n of suspects. Among the n pairs that agree least, the expected number
        of wrong ones is `_counted` times the share of mismatches that agree less than the next pair. And
        right pairs rarely agree so little, by Benjamini and Hochberg (1995) with `chance_if_right`.
        """
        if not self.decided or self._counted == 0:
            return self.ranking[:0]
        counts = np.arange(1, len(self.ranking) + 1)
        beyond = np.append(self.of_pairs[self.ranking[1:]], np.inf)
        share = np.searchsorted(self.mismatched, beyond) / len(self.mismatched)
        rare = self.chance_if_right(self.of_pairs[self.ranking]) <= self.false_share * counts / len(counts)
        within = np.flatnonzero((1 - self._counted * share / counts <= self.false_share) & rare)
        return self.ranking[: within[-1] + 1] if len(within) else self.ranking[:0]


def audit_pairs(
    X: np.ndarray, Y: np.ndarray, method: str = "procrustes", false_share: float = FALSE_SHARE
) -> Audit:
    """The audit of pairs of centred unit rows of two spaces, (k, d_source) and (k, d_target).

    Parameters
    ----------
    method : {"procrustes", "similarities"}
        "procrustes": a rotation is fitted ten times on the 60 % of the pairs that agree best. Agreement is
        the cosine between the rotated source and the target; for a trusted pair, the rotation is fitted
        without it. "similarities": the correlation of the pair's similarities to all other anchors, each
        within its own space.
    false_share : float
        Above 0, below 1; see `Audit`.

    Raises SpaceError: fewer than 10 pairs, numbers of rows that differ, an unknown method.
    """
    need_one_of("method", method, AUDITS)
    if len(X) != len(Y) or len(X) < FEWEST:
        raise SpaceError(
            f"audit: expected {FEWEST} pairs or more, got {len(X):,} and {len(Y):,} rows; choose more anchors"
        )
    if not 0 < false_share < 1:
        raise SpaceError(f"false_share: expected a share between 0 and 1, got {false_share!r}")
    X, Y = (np.asarray(Z, dtype=np.float64) for Z in (X, Y))
    return AUDITS[method].load()(X, Y, false_share)


def by_procrustes(X: np.ndarray, Y: np.ndarray, false_share: float) -> Audit:
    trusted = np.arange(len(X))
    for _ in range(ROUNDS):
        agreement = np.vecdot(_turned(X, X[trusted], Y[trusted]), Y)
        best = np.argsort(-agreement, kind="stable")[: int(np.ceil(TRUSTED * len(X)))]
        before, trusted = trusted, np.sort(best)
        if np.array_equal(before, trusted):
            break
    turned = _turned(X, X[trusted], Y[trusted])
    for fold in np.array_split(np.random.default_rng(0).permutation(trusted), min(FOLDS, len(trusted))):
        others = np.setdiff1d(trusted, fold)
        turned[fold] = _turned(X[fold], X[others], Y[others])
    return Audit(turned @ Y.T, false_share)


def by_similarities(X: np.ndarray, Y: np.ndarray, false_share: float) -> Audit:
    """An `Audit` by correlations of rows of similarities, without columns i and j for anchors i and j."""
    k = len(X)
    first, second = (Z @ Z.T for Z in (X, Y))
    itself = np.eye(k, dtype=bool)
    counts = k - 2 + itself  # for source i and target j, columns i and j are left out

    def sums(K: np.ndarray) -> np.ndarray:
        return K.sum(axis=1)[:, None] - np.diag(K)[:, None] - np.where(itself, 0, K)

    left, right = sums(first), sums(second).T
    both = np.diag(first)[:, None] * second + np.where(itself, 0, first * np.diag(second)[None])
    covariance = first @ second.T - both - left * right / counts
    variances = (sums(first**2) - left**2 / counts) * (sums(second**2).T - right**2 / counts)
    spread = np.sqrt(np.maximum(variances, 0))
    correlation = np.divide(covariance, spread, out=np.zeros((k, k)), where=spread > 0)
    return Audit(correlation, false_share)


def _turned(rows: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    left, values, right = Engine().svd(X.T @ Y)
    known = values > _SILENT * values[0]
    turned = rows @ (left[:, known] @ right[known])
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.divide(turned, lengths, out=np.zeros_like(turned), where=lengths > 0)
