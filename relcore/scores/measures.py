"""What the measures of the literature share: a function of two matrices whose rows are paired, a sample of
these drawn by their ids, and a chance level by permutations of the rows of one space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar, ParamSpec

import numpy as np

from relcore.base.errors import SpaceError
from relcore.represent.similarity import need_finite
from relcore.scores.comparison import AlignedPair, Metric
from relcore.scores.neighbours import PERMUTATIONS
from relcore.scores.score import QUANTILE_DRAWS, ChanceLevel, Score
from relcore.spaces.space import MatrixLike, ids_of, matrix, need_paired
from relcore.spaces.split import Split

FEATURE_ROWS = 5000  # of measures whose cost is linear in the rows
MATRIX_ROWS = 1000  # of measures that need a matrix of rows × rows
_CHEAP = 2e7  # products per permutation up to which 200 are drawn, not 50
_most_permutations = ContextVar("most_permutations", default=QUANTILE_DRAWS)


class SampledMetric(Metric):
    """A `Metric` that is a public function ``(source, target, ids=…)`` → Score, with k where it `uses_k`."""

    function: ClassVar[Callable[..., Score]]
    uses_k: ClassVar[bool] = False

    def score(self, pair: AlignedPair) -> Score | None:
        settings = {"k": pair.k} if self.uses_k else {}
        ids = pair.split.ids[pair.split.test]
        function = type(self).function  # without the note: a table names its samples below all scores
        score = getattr(function, "__wrapped__", function)(pair.source, pair.target, ids=ids, **settings)
        if score.n < len(ids):
            score.drawn_from = len(ids)
        return score


_Given = ParamSpec("_Given")


def notes_sample(function: Callable[_Given, Score]) -> Callable[_Given, Score]:
    """A measure whose score has a note where it read a sample of the rows only."""

    @wraps(function)
    def noted(*given: _Given.args, **settings: _Given.kwargs) -> Score:
        score = function(*given, **settings)
        rows: Any = given[0] if given else settings["source"]
        n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        if score.n < n:
            score.drawn_from = n
            sample = f"{score.n:,} of {n:,} rows, drawn by their ids; most_rows=None takes all."
            score.note = f"{sample} {score.note}".rstrip()
        return score

    return noted


def paired_rows(
    source: MatrixLike, target: MatrixLike, most_rows: int | None, ids: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows of both spaces, (m, d_source) and (m, d_target) in float64: all n, or `most_rows`,
    drawn by a hash of their ids (default: their numbers), so that one more row replaces at most one.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, or a space whose rows are all equal.
    """
    ids = ids_of(source) if ids is None else ids
    need_paired(source, target)
    source, target = matrix(source, "source", None), matrix(target, "target", None)
    if len(source) != len(target):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(source)} and {len(target)} rows; pair them with match()"
        )
    if len(source) < 4:
        raise SpaceError(f"expected at least 4 rows, got {len(source)}")
    rows = slice(None)
    if most_rows is not None and most_rows < 4:
        raise SpaceError(f"most_rows: expected 4 or more rows, or None for all, got {most_rows!r:.40}")
    if most_rows is not None and len(source) > most_rows:
        names = np.arange(len(source)).astype(str) if ids is None else np.asarray(ids)
        rows = Split.held_out(names).queries(most_rows)
    sides = tuple(np.asarray(side[rows], dtype=np.float64) for side in (source, target))
    for side, name in zip(sides, ("source", "target"), strict=True):
        need_finite(side, name)
    if any((side == side[0]).all() for side in sides):
        raise SpaceError("expected spaces with different rows, got one whose rows are all equal")
    return sides


def about_mean(X: np.ndarray, unit_size: bool = True) -> np.ndarray:
    """X (n, d) less its mean row; scaled so that the sum of all squares is 1, unless `unit_size` is False."""
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X) if unit_size else X


def by_permutation(value: Callable[[np.ndarray], float], n: int, cost: float) -> ChanceLevel:
    """The chance level of a measure: `value(order)` is its score with row order[i] of the second space as the
    partner of row i, at `cost` products; 50 permutations, or 200 where they are cheap."""
    rng = np.random.default_rng(0)
    n_draws = min(QUANTILE_DRAWS if cost <= _CHEAP else PERMUTATIONS, _most_permutations.get())
    return ChanceLevel.from_draws(np.array([value(rng.permutation(n)) for _ in range(n_draws)]))


@contextmanager
def fewer_permutations(most: int) -> Iterator[None]:
    """Inside, chance levels by permutation take at most this many draws, for whom their mean is enough."""
    token = _most_permutations.set(most)
    try:
        yield
    finally:
        _most_permutations.reset(token)


def matrix_agreement(A: np.ndarray, B: np.ndarray, metric: str, convention: str = "") -> Score:
    """The cosine of two symmetric matrices (n, n) whose rows and columns are paired, −1 … 1, with the chance
    level of permuting the rows and columns of one together (Mantel 1967)."""
    A, B = (side / np.linalg.norm(side) for side in (A, B))
    few_a, few_b = A.astype(np.float32), B.astype(np.float32)

    def value(order: np.ndarray) -> float:
        return float(np.vdot(few_a, few_b[order[:, None], order]))

    null = by_permutation(value, len(A), 8 * A.size)
    return Score(float(np.vdot(A, B)), metric=metric, convention=convention, n=len(A), null=null)
