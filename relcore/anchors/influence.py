"""What each anchor does to a score, by exact deletion: no column is projected again and no head is fitted again.

Influence tells what an anchor contributes. It does not find wrong pairs: a ranking of 300 words by influence on CKA finds 10,
30 and 100 wrong ones with a precision of .04, .09 and .29 (our measurement). `relcore.anchors.audit` finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.spaces import SpaceError

RIDGE = 1.0  # on rows of cosines: as much as one row with similarity 1
_ROUNDING = 1e-12  # of CKA, from its sums: less is no gain


@dataclass(frozen=True, eq=False)
class Products:
    """Squared entries of RᵀHS, RᵀHR and SᵀHS, each (m, m), of two relative spaces (n, m) over the same anchors.

    H centres the columns. Linear CKA of any subset of the columns is a ratio of sums over these entries.
    """

    cross: np.ndarray
    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, R: np.ndarray, S: np.ndarray) -> Products:
        """Of paired rows (n, m) and (n, m), in float64.

        Raises
        ------
        SpaceError
            Shapes that differ.
        """
        if R.shape != S.shape:
            raise SpaceError(f"expected relative spaces of the same rows and anchors, got {R.shape} and {S.shape}")
        R, S = (np.asarray(Z, dtype=np.float64) - Z.mean(axis=0, dtype=np.float64) for Z in (R, S))
        return cls((R.T @ S) ** 2, (R.T @ R) ** 2, (S.T @ S) ** 2)

    def cka(self, columns: np.ndarray) -> float:
        """Linear CKA of the spaces relative to these columns, (m,) bool, 0 … 1."""
        cross, source, target = (M[np.ix_(columns, columns)].sum() for M in (self.cross, self.source, self.target))
        return float(cross / np.sqrt(source * target))

    def cka_changed(self, columns: np.ndarray) -> np.ndarray:
        """Linear CKA after each of the m columns is taken out, where it is among `columns` (m,) bool, or else added, (m,).

        Deleting an anchor deletes its row and column of each product, so all m values together cost three sums over m².
        """
        sums = []
        for M in (self.cross, self.source, self.target):
            total, own = M[np.ix_(columns, columns)].sum(), M.diagonal()
            strip = M[:, columns].sum(axis=1) + M[columns].sum(axis=0)
            sums.append(np.where(columns, total - strip + own, total + strip + own))
        cross, source, target = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((source > 0) & (target > 0), cross / np.sqrt(source * target), np.nan)

    def greedy(self, columns: np.ndarray, allowed: np.ndarray, n: int) -> tuple[list[int], list[float]]:
        """Up to n columns among `allowed` (m,) bool, changed one after the other, each the one that raises CKA most, and CKA
        after each; fewer where nothing raises it or one column would be left."""
        columns, allowed = columns.copy(), allowed.copy()
        steps, values, now = [], [], self.cka(columns)
        while len(steps) < n and allowed.any() and (columns.sum() > 2 or not columns[allowed].any()):
            after = np.where(allowed, self.cka_changed(columns), -np.inf)
            best = int(np.nanargmax(after))
            if not after[best] > now + _ROUNDING:
                break
            columns[best], allowed[best], now = not columns[best], False, float(after[best])
            steps.append(best)
            values.append(now)
        return steps, values


def cosine_without(R: np.ndarray, S: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cosine of paired rows (n, m), and the same without each column, (m,)."""
    R, S = (np.asarray(Z, dtype=np.float64) for Z in (R, S))
    both, first, second = np.vecdot(R, S)[:, None], np.vecdot(R, R)[:, None], np.vecdot(S, S)[:, None]
    left = np.maximum((first - R * R) * (second - S * S), 0)
    found = np.divide(both - R * S, np.sqrt(left), out=np.zeros_like(R), where=left > 0)
    whole = np.divide(both, np.sqrt(first * second), out=np.zeros_like(both), where=first * second > 0)
    return float(whole.mean()), found.mean(axis=0)


@dataclass(frozen=True, eq=False)
class RidgeHead:
    """Ridge regression of class indicators on rows (n, m): scores = (x − mean) weights + offset.

    Attributes
    ----------
    mean : (m,), weights : (m, C), offset : (C,)
    inverse : array (m, m)
        (RᵀHR + ridge · I)⁻¹.
    """

    mean: np.ndarray
    weights: np.ndarray
    offset: np.ndarray
    inverse: np.ndarray

    @classmethod
    def fit(cls, R: np.ndarray, classes: Sequence[int], n_classes: int, ridge: float = RIDGE) -> RidgeHead:
        """Of rows (n, m) of classes 0 … C − 1."""
        R, wanted = np.asarray(R, dtype=np.float64), np.eye(n_classes)[np.asarray(classes)]
        mean, offset = R.mean(axis=0), wanted.mean(axis=0)
        moved = R - mean
        inverse = np.linalg.inv(moved.T @ moved + ridge * np.eye(R.shape[1]))
        return cls(mean, inverse @ (moved.T @ (wanted - offset)), offset, inverse)

    def scores(self, S: np.ndarray) -> np.ndarray:
        """Scores of rows (t, m), (t, C); the largest is the answer."""
        return (np.asarray(S, dtype=np.float64) - self.mean) @ self.weights + self.offset

    def scores_without(self, S: np.ndarray, column: int) -> np.ndarray:
        """`scores` of the head that is fitted without this column, (t, C), exactly.

        Without column j the other weights are w − a w_j / a_j, a the j-th column of the inverse (the inverse of a block
        matrix), so the scores lose (s · a) w_j / a_j: one outer product.
        """
        strip = self.inverse[:, column]
        moved = np.asarray(S, dtype=np.float64) - self.mean
        return self.scores(S) - np.outer(moved @ strip, self.weights[column] / strip[column])

    def answers_without(self, S: np.ndarray) -> np.ndarray:
        """Class of each row by the head without each column, (m, t)."""
        moved, scores = np.asarray(S, dtype=np.float64) - self.mean, self.scores(S)
        shifts = moved @ self.inverse
        factors = self.weights / self.inverse.diagonal()[:, None]
        return np.stack([np.argmax(scores - np.outer(shifts[:, j], factors[j]), axis=1) for j in range(len(factors))])
