"""Which anchor pairs are wrong? Pairs ranked by how well the others explain them, and a threshold with a
stated error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import AUDITS

TRUSTED = 0.6  # share of the pairs that the rotation is fitted on
ROUNDS = 10
FOLDS = 10
FALSE_SHARE = 0.05
FEWEST = 10  # pairs; with fewer, the trusted ones cannot tell a rotation
_JUDGED = 0.9  # quantile of the mismatches below which pairs are counted as wrong
_MOST_WRONG = 1 - TRUSTED
_SILENT = 1e-9  # of the largest singular value: directions that the trusted pairs do not have


@dataclass(frozen=True, eq=False)
class Audit:
    """Agreement of k pairs, and which of them are suspects.

    Attributes
    ----------
    agreement : array (k, k)
        Of source i with target j, −1 … 1: pairs are on the diagonal, all else is mismatched on purpose.
    trusted : array (t,)
        The pairs that it was fitted on, ascending.
    false_share : float
        Share of the suspects that may be right, on average.
    """

    agreement: np.ndarray
    trusted: np.ndarray
    false_share: float = FALSE_SHARE

    @cached_property
    def of_pairs(self) -> np.ndarray:
        """Agreement of each pair, (k,)."""
        return self.agreement.diagonal().copy()

    @cached_property
    def mismatched(self) -> np.ndarray:
        """Agreement of a source with the target of another pair, ascending, (k · (k − 1),): what a wrong
        pair looks like.
        """
        k = len(self.agreement)
        return np.sort(self.agreement[~np.eye(k, dtype=bool)])

    @cached_property
    def ranking(self) -> np.ndarray:
        """Pairs (k,), the least agreement first."""
        return np.argsort(self.of_pairs, kind="stable")

    @cached_property
    def n_wrong(self) -> float:
        """Estimated number of wrong pairs (Storey 2002): wrong pairs agree as mismatches do, 90 % of which
        lie below a known value where hardly a right pair lies."""
        below = np.quantile(self.mismatched, _JUDGED)
        return float(min((self.of_pairs < below).sum() / _JUDGED, len(self.of_pairs)))

    @property
    def decided(self) -> bool:
        """Whether the pairs have enough in common to judge: the fit stands while at most 40 % are wrong."""
        return self.n_wrong <= _MOST_WRONG * len(self.of_pairs)

    @cached_property
    def suspects(self) -> np.ndarray:
        """Pairs that are suspect, the least agreement first; none where the audit is not `decided`.

        As many of the ranking as keep the expected share of right pairs among them within `false_share`: of
        the n that agree least, n_wrong · F are wrong, F being the share of mismatches that agree less than
        the next pair.
        """
        if not self.decided or self.n_wrong == 0:
            return self.ranking[:0]
        counts = np.arange(1, len(self.ranking) + 1)
        beyond = np.append(self.of_pairs[self.ranking[1:]], np.inf)
        share = np.searchsorted(self.mismatched, beyond) / len(self.mismatched)
        within = np.flatnonzero(1 - self.n_wrong * share / counts <= self.false_share)
        return self.ranking[: within[-1] + 1] if len(within) else self.ranking[:0]


def audit_pairs(
    X: np.ndarray, Y: np.ndarray, method: str = "procrustes", false_share: float = FALSE_SHARE
) -> Audit:
    """Audit pairs of directions: centred unit rows of two spaces, (k, d_source) and (k, d_target), of any two
    widths.

    Parameters
    ----------
    method : {"procrustes", "similarities"}
        "procrustes": a rotation fitted on the 60 % of the pairs that agree best, ten times; agreement is the
        cosine of the rotated source to the target, for trusted pairs by a rotation fitted without them.
        "similarities": the correlation of the pair's similarities to all other anchors, worked out in each
        space by itself.
    false_share : float
        Above 0, below 1; see `Audit`.

    Measured on 300 pairs, of which 0, 10, 30 or 100 were mismatched, by "procrustes", on average over five
    random states that chose no setting: precision of the ranking at the number of wrong pairs; precision and
    recall of the suspects; suspects with no wrong pair.

    ==================================== ================ ================ ================ =======
    pairs                                ranking          precision        recall           with 0
    ==================================== ================ ================ ================ =======
    words, Word2Vec and FastText         .98, 1.00, 1.00  .98, .99, .96    .88, .93, 1.00   0.0
    digits, MLP and CNN                  .92, .93, .92    .96, .95, .96    .92, .93, .92    0.4
    sentences, pooled words              1.00, 1.00, 1.00 .93, .96, .94    1.00, .96, 1.00  0.0
    sentences, TF-IDF + SVD and MiniLM   .50, .67, .84    .32, .54, .80    .84, .87, .54    19.6
    ==================================== ================ ================ ================ =======

    Every tenth mismatch of digits pairs two pictures of one digit, which is wrong in name only, and is not
    found. In the last line the two encoders have little in common: one right pair in 15 agrees no better than
    mismatched pairs, and no audit can tell it from a wrong one. "similarities" ranks words .90, .96, .98, and
    the last line .68, .79, .84.

    Raises
    ------
    SpaceError
        Fewer than 10 pairs, numbers of rows that differ, an unknown method.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.represent.audit import audit_pairs
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> Y = X[:, ::-1].copy()  # a rotation
    >>> Y[[3, 8]] = Y[[8, 3]]
    >>> sorted(audit_pairs(X, Y).suspects.tolist())
    [3, 8]
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


def agreement_of_others(
    X: np.ndarray, Y: np.ndarray, trusted: np.ndarray, P: np.ndarray, Q: np.ndarray
) -> np.ndarray:
    """Cosine of other paired directions P (n, d_source) and Q (n, d_target) by the rotation of the trusted
    pairs, (n,).

    Rows that are right, but agree as little as suspects do, tell how many suspects are right.
    """
    X, Y, P, Q = (np.asarray(Z, dtype=np.float64) for Z in (X, Y, P, Q))
    return np.vecdot(_turned(P, X[trusted], Y[trusted]), Q)


def by_procrustes(X: np.ndarray, Y: np.ndarray, false_share: float) -> Audit:
    """`Audit` by trimmed Procrustes."""
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
    return Audit(turned @ Y.T, trusted, false_share)


def by_similarities(X: np.ndarray, Y: np.ndarray, false_share: float) -> Audit:
    """`Audit` by correlations of similarity rows: each space is used on its own side only.

    Anchors i and j are left out of the rows that are compared for i and j: the similarity of an anchor to
    itself is 1.
    """
    k = len(X)
    first, second = (Z @ Z.T for Z in (X, Y))
    itself = np.eye(k, dtype=bool)
    counts = k - 2 + itself  # of source i and target j the columns i and j go; on the diagonal that is one

    def sums(K: np.ndarray) -> np.ndarray:
        """Of row i without the columns i and j, (k, k)."""
        return K.sum(axis=1)[:, None] - np.diag(K)[:, None] - np.where(itself, 0, K)

    left, right = sums(first), sums(second).T
    both = np.diag(first)[:, None] * second + np.where(itself, 0, first * np.diag(second)[None])
    covariance = first @ second.T - both - left * right / counts
    variances = (sums(first**2) - left**2 / counts) * (sums(second**2).T - right**2 / counts)
    spread = np.sqrt(np.maximum(variances, 0))
    correlation = np.divide(covariance, spread, out=np.zeros((k, k)), where=spread > 0)
    return Audit(correlation, np.arange(k), false_share)


def _turned(rows: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Unit rows, turned by Procrustes between X (m, d_source) and Y (m, d_target) on the directions that
    these have.
    """
    left, values, right = np.linalg.svd(X.T @ Y, full_matrices=False)
    known = values > _SILENT * values[0]
    turned = rows @ (left[:, known] @ right[known])
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.divide(turned, lengths, out=np.zeros_like(turned), where=lengths > 0)
