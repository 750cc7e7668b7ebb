"""Which anchor pairs are wrong: trimmed Procrustes maps rank them, and a mixture tells how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relcore.base.errors import SpaceError
from relcore.engine.engine import Engine

TRUSTED = 0.6  # share of the pairs on which the rotation is fitted
ROUNDS = 10
FOLDS = 10
FALSE_SHARE = 0.05
FEWEST_PAIRS = 10  # minimum number of pairs; fewer do not determine a rotation
_JUDGED = (0.5, 0.9, 0.99, 0.999)  # quantiles of the mismatches; pairs below them are counted
_COUNTED = 0.9  # quantile of the mismatches; the number of pairs below it is that of suspects
_NEVER_RIGHT = 0.25  # quantile of the mismatches; right pairs are not expected below it
_TAIL_SHARE = 0.025
_MOST_WRONG = 1 - TRUSTED
_TAIL = (8, 40)  # maximum degrees of freedom; number of pairs per degree above two
_NEAREST = 1e-4  # lower limit of 1 − agreement; pairs below it count as equal
_SILENT = 1e-9  # share of the largest singular value; in directions below it, trusted pairs have no spread


@dataclass(frozen=True, eq=False)
class Audit:
    """A search for wrong pairs among k pairs of source and target rows. `agreement` (k, k) is that of source
    i with target j, −1 … 1, so the pairs are on its diagonal. Pairs that are probably wrong are called
    suspects.

    On average, at most the share `false_share` of the suspects are right pairs.
    """

    agreement: np.ndarray
    false_share: float = FALSE_SHARE

    @cached_property
    def of_pairs(self) -> np.ndarray:
        return self.agreement.diagonal().copy()

    @cached_property
    def mismatched(self) -> np.ndarray:
        """The agreement of all mismatches (sources with targets of other pairs), an ascending array (k · (k −
        1),)."""
        k = len(self.agreement)
        return np.sort(self.agreement[~np.eye(k, dtype=bool)])

    @cached_property
    def ranking(self) -> np.ndarray:
        return np.argsort(self.of_pairs, kind="stable")

    @cached_property
    def n_wrong(self) -> float:
        """The estimated number of wrong pairs (Storey 2002), which lies in `wrong_interval`. It is assumed
        that the agreement of wrong pairs is distributed as that of mismatches. It is computed
        from the number of pairs below an agreement that few right pairs fall below."""
        below = [(np.count_nonzero(self._behind > 1 - share), share) for share in _JUDGED]
        # Take the smallest estimate plus three standard errors, because right pairs can only raise an
        # estimate.
        n, share = min(below, key=lambda one: (one[0] + 3 * np.sqrt(one[0] * (1 - one[1]))) / one[1])
        return float(np.clip(n / share, *self.wrong_interval))

    @cached_property
    def wrong_interval(self) -> tuple[int, int]:
        """The 95 % interval of the number of wrong pairs.

        If w pairs are wrong, the number of wrong pairs below the quantile q of the mismatches is binomial (w,
        q). The upper end is the largest w for which the observed number of pairs below q is plausible. This
        end assumes nothing about right pairs. The lower end assumes that every right pair agrees more than a
        quarter of the mismatches do.
        """
        from scipy.special import bdtr, bdtrc

        wrong = np.arange(len(self.of_pairs) + 1)
        low = 0
        high = len(self.of_pairs)
        for share in _JUDGED:
            n = int(np.count_nonzero(self._behind > 1 - share))
            possible = bdtr(n, np.maximum(wrong, n + 1), share) >= _TAIL_SHARE / len(_JUDGED)
            high = min(high, max(n, int(wrong[possible].max(initial=0))))
        if n := int(np.count_nonzero(self._behind > 1 - _NEVER_RIGHT)):
            possible = (bdtrc(n - 1, np.maximum(wrong, n), _NEVER_RIGHT) >= _TAIL_SHARE) & (wrong >= n)
            low = int(wrong[possible].min(initial=len(self.of_pairs)))
        return min(low, high), high

    @cached_property
    def _behind(self) -> np.ndarray:
        """For each pair, the share of mismatches that agree more, (k,), 0 … 1. Before, the mean agreement of
        each row with its mismatches is subtracted, because some rows agree with all others."""
        off_diagonal = ~np.eye(len(self.agreement), dtype=bool)
        others = np.where(off_diagonal, self.agreement, 0)
        n = len(others) - 1 - off_diagonal
        rows = (others.sum(axis=1)[:, None] - others) / n
        columns = (others.sum(axis=0) - others) / n
        beyond = self.agreement - rows - columns
        mismatched = np.sort(beyond[off_diagonal])
        return 1 - np.searchsorted(mismatched, beyond.diagonal()) / len(mismatched)

    @cached_property
    def _counted(self) -> float:
        """The number of pairs that agree as little as mismatches (Storey 2002). It is used to name suspects,
        and may include right pairs."""
        below = np.quantile(self.mismatched, _COUNTED)
        return float(min((self.of_pairs < below).sum() / _COUNTED, len(self.of_pairs)))

    def chance_if_right(self, agreement: np.ndarray) -> np.ndarray:
        """The estimated share of right pairs with at most this agreement. The log(1 − agreement) of right
        pairs is modelled by a Student's t distribution around the median. Its width comes from the lower
        quartile of the pairs that are not counted as wrong."""
        from scipy.special import stdtr

        right = self.of_pairs[self.ranking[int(self._counted) :]]
        middle, low = np.log(np.maximum(1 - np.quantile(right, (0.5, 0.25)), _NEAREST))
        away = np.log(np.maximum(1 - agreement, _NEAREST)) - middle
        most, pairs = _TAIL
        return stdtr(min(most, 2 + len(self.of_pairs) / pairs), -away / max((low - middle) / 0.6745, 0.05))

    @property
    def decided(self) -> bool:
        """Whether the pairs can be judged. Two conditions must hold: at most 40 % of the pairs are wrong, so
        the fit is valid; and right pairs rarely agree as little as the median mismatch."""
        if self._counted > _MOST_WRONG * len(self.of_pairs):
            return False
        return bool(self.chance_if_right(np.median(self.mismatched)) <= _MOST_WRONG * self.false_share)

    @cached_property
    def suspects(self) -> np.ndarray:
        """The indices of the suspect pairs, least agreement first. If the audit is not `decided`, there are
        none.

        Two conditions limit the number n of suspects. First, among the n pairs that agree least, the expected
        number of wrong pairs must be large enough. It is `_counted` times the share of mismatches that agree
        less than the next pair. Second, right pairs must rarely agree so little, by the method of Benjamini
        and Hochberg (1995) with `chance_if_right`.
        """
        if not self.decided or self._counted == 0:
            return self.ranking[:0]
        counts = np.arange(1, len(self.ranking) + 1)
        beyond = np.append(self.of_pairs[self.ranking[1:]], np.inf)
        share = np.searchsorted(self.mismatched, beyond) / len(self.mismatched)
        rare = self.chance_if_right(self.of_pairs[self.ranking]) <= self.false_share * counts / len(counts)
        within = np.flatnonzero((1 - self._counted * share / counts <= self.false_share) & rare)
        if len(within):
            return self.ranking[: within[-1] + 1]
        return self.ranking[:0]


def audit_pairs(X: np.ndarray, Y: np.ndarray, false_share: float = FALSE_SHARE) -> Audit:
    """The audit of k pairs of centred unit rows: X (k, d_source) and Y (k, d_target).

    A rotation is fitted ten times, each time on the 60 % of the pairs that agree best (the trusted pairs).
    The agreement of a pair is the cosine between the rotated source row and the target row. For a trusted
    pair, the rotation is fitted without this pair. `false_share` is that of the `Audit`, above 0 and below 1.

    Raises a SpaceError for fewer than 10 pairs, and if X and Y have different numbers of rows.
    """
    if len(X) != len(Y) or len(X) < FEWEST_PAIRS:
        raise SpaceError(
            f"audit: expected {FEWEST_PAIRS} pairs or more, got {len(X):,} and {len(Y):,} rows; choose"
            " more anchors"
        )
    if not 0 < false_share < 1:
        raise SpaceError(f"false_share: expected a share between 0 and 1, got {false_share!r}")
    X = np.asarray(X, dtype=np.float64)
    Y = np.asarray(Y, dtype=np.float64)
    trusted = np.arange(len(X))
    for _ in range(ROUNDS):
        agreement = np.vecdot(_rotated_rows(X, X[trusted], Y[trusted]), Y)
        best = np.argsort(-agreement, kind="stable")[: int(np.ceil(TRUSTED * len(X)))]
        before = trusted
        trusted = np.sort(best)
        if np.array_equal(before, trusted):
            break
    turned = _rotated_rows(X, X[trusted], Y[trusted])
    for fold in np.array_split(np.random.default_rng(0).permutation(trusted), min(FOLDS, len(trusted))):
        others = np.setdiff1d(trusted, fold)
        turned[fold] = _rotated_rows(X[fold], X[others], Y[others])
    return Audit(turned @ Y.T, false_share)


def _rotated_rows(rows: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    left, values, right = Engine().svd(X.T @ Y)
    known = values > _SILENT * values[0]
    turned = rows @ (left[:, known] @ right[known])
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.divide(turned, lengths, out=np.zeros_like(turned), where=lengths > 0)
