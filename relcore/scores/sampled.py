"""What all measures of a sample of rows share: `SampledMetric`, paired rows, and
chance levels by permutation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar, ParamSpec, cast

import numpy as np

from relcore.base.arguments import need_whole
from relcore.base.errors import SpaceError
from relcore.scores.metrics import Metric
from relcore.scores.neighbours import PERMUTATIONS
from relcore.scores.passes import AlignedPair
from relcore.scores.score import QUANTILE_DRAWS, ChanceLevel, Score
from relcore.spaces.ids import Texts
from relcore.spaces.matching import checked_names, paired_matrices
from relcore.spaces.space import MatrixLike, ids_of
from relcore.spaces.split import Split

FEATURE_ROWS = 5000  # maximum number of rows for measures whose cost is linear in the rows
MATRIX_ROWS = 1000  # maximum number of rows for measures that need a matrix of rows × rows
_CHEAP = 2e7  # maximum number of products for which 200 permutations are drawn instead of 50
_most_permutations = ContextVar("most_permutations", default=QUANTILE_DRAWS)


class SampledMetric(Metric):
    """A `Metric` whose score comes from a public `function` of the form ``(source, target, ids=…)`` → Score.
    With `uses_k`, the function gets the number of neighbours k."""

    function: ClassVar[Callable[..., Score]]
    uses_k: ClassVar[bool] = False

    def score(self, pair: AlignedPair) -> Score | None:
        settings = {"k": pair.k} if self.uses_k else {}
        ids = pair.scored_ids
        # `__wrapped__` leaves the note out, because a table has it once for all scores.
        function = type(self).function
        score = getattr(function, "__wrapped__", function)(pair.source, pair.target, ids=ids, **settings)
        if score.n < len(ids):
            score.drawn_from = len(ids)
        return score


def metric_of(
    function: Callable[..., Score], *unchanged_by: str, uses_k: bool = False
) -> type[SampledMetric]:
    """Make a metric of a public measure. `unchanged_by` lists the changes of one space that leave its score
    unchanged."""
    facts = {"function": staticmethod(function), "unchanged_by": unchanged_by, "uses_k": uses_k}
    return type(function.__name__, (SampledMetric,), facts)


_Arguments = ParamSpec("_Arguments")


def public_measure(function: Callable[_Arguments, Score]) -> Callable[_Arguments, Score]:
    """A decorator of a measure: the front door of its arguments. Both spaces become row-aligned arrays of
    finite numbers (see `paired_matrices`), and `ids` are checked; by default, they are those of the source.
    The score gets a note if it was computed from only a sample of the rows.

    Code that has such arrays calls `function.__wrapped__`.
    """

    measure: Callable[..., Score] = function

    @wraps(function)
    def guarded(*arguments: _Arguments.args, **settings: _Arguments.kwargs) -> Score:
        of = dict(inspect.signature(function).bind(*arguments, **settings).arguments)
        source, target = of.pop("source"), of.pop("target")
        sides = paired_matrices(source, target, ("source", "target"))
        n = len(sides[0])
        ids = checked_names(of.pop("ids", None), n)
        score = measure(*sides, ids=ids_of(source) if ids is None else ids, **of)
        if score.n < n:
            score.drawn_from = n
            sample = f"{score.n:,} of {n:,} rows, drawn by their ids; most_rows=None takes all."
            score.note = f"{sample} {score.note}".rstrip()
        return score

    return guarded


def paired_rows(
    source: MatrixLike, target: MatrixLike, most_rows: int | None, ids: Texts | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows of both row-aligned spaces, (m, d_source) and (m, d_target) in float64. If there are more
    than `most_rows`, this many are drawn by a hash of their ids (default: their numbers), so that adding a
    row to the spaces replaces at most one drawn row.

    Raises
    ------
    SpaceError
        Fewer than four rows; a space whose rows are all equal; an invalid `most_rows`.
    """
    # Measures are declared with what their users give; `public_measure` has made arrays of it.
    first = cast(np.ndarray, source)
    second = cast(np.ndarray, target)
    n = len(first)
    if n < 4:
        raise SpaceError(f"expected at least 4 rows, got {n}")
    rows: slice | np.ndarray = slice(None)
    if most_rows is not None:
        need_whole("most_rows", most_rows, 4)
    if most_rows is not None and n > most_rows:
        if ids is None:
            names = np.arange(n).astype(str)
        else:
            names = np.asarray(ids)
        rows = Split.held_out(names).queries(most_rows)
    # BLAS sums rows of another memory layout, such as those of a DataFrame, to other last digits.
    first = np.ascontiguousarray(first[rows], dtype=np.float64)
    second = np.ascontiguousarray(second[rows], dtype=np.float64)
    if (first == first[0]).all() or (second == second[0]).all():
        raise SpaceError("expected spaces with different rows, got one whose rows are all equal")
    return first, second


def about_mean(X: np.ndarray) -> np.ndarray:
    """The rows of X (n, d) minus their mean, scaled so that the sum of all squares is 1."""
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X)


def by_permutation(value: Callable[[np.ndarray], float], n: int, cost: float) -> ChanceLevel:
    """The chance level of a measure, from 50 permutations, or from 200 if these are cheap. ``value(order)``
    is the score if row order[i] of the second space is the partner of row i. It takes `cost` multiplications.
    """
    rng = np.random.default_rng(0)
    n_draws = min(QUANTILE_DRAWS if cost <= _CHEAP else PERMUTATIONS, _most_permutations.get())
    return ChanceLevel.from_draws(np.array([value(rng.permutation(n)) for _ in range(n_draws)]))


@contextmanager
def fewer_permutations(most: int) -> Iterator[None]:
    """Within the block, chance levels use at most this many permutations. Few are enough for the mean."""
    token = _most_permutations.set(most)
    try:
        yield
    finally:
        _most_permutations.reset(token)


def permuted(value: Callable[[Any], float], n: int, cost: float, **facts: Any) -> Score:
    """The score ``value(slice(None))`` of n rows, with a chance level from `by_permutation`."""
    return Score(value(slice(None)), n=n, null=by_permutation(value, n, cost), **facts)


def matrix_agreement(A: np.ndarray, B: np.ndarray, metric: str, convention: str = "") -> Score:
    """The cosine of two symmetric matrices (n, n) with paired rows, −1 … 1. For the chance level, the rows
    and columns of one matrix are permuted together (Mantel 1967)."""
    A = A / np.linalg.norm(A)
    B = B / np.linalg.norm(B)
    few_a = A.astype(np.float32)
    few_b = B.astype(np.float32)

    def value(order: np.ndarray) -> float:
        return float(np.vdot(few_a, few_b[order[:, None], order]))

    null = by_permutation(value, len(A), 8 * A.size)
    return Score(float(np.vdot(A, B)), metric=metric, convention=convention, n=len(A), null=null)


def angular(cosine: float) -> float:
    """The similarity 1 − 2 arccos(c) / π of a cosine c. If rounding makes c larger than 1, it counts as 1."""
    return 1 - 2 * float(np.arccos(np.clip(cosine, -1, 1))) / np.pi
