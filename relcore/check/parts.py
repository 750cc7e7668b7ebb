"""The two most different parts of a collection: whether they can be compared, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from relcore.base.rows import Rows
from relcore.check.origins import RowOrigins
from relcore.passport.two_parts import FITTED, SUSPECTED, Slope, parts_of

FEWEST_ROWS = 500  # minimum number of rows for two parts
# limits of three checks in `_unfit`
_DENSE = 0.5
_ORDERED = 0.8
_PER_DIMENSION = 2
_ALIKE = (
    "Parts were not compared: these rows, or those of one group, vary alike in all directions, or are too few"
    " to tell. Groups of one model then differ as two models do, so neither can be found."
)
LIKE_TOPICS = (
    "The two most different groups of rows were compared, but they cannot be judged: topics of one model can"
    " differ like this, above all topics of single words."
)


class ComparedParts(NamedTuple):
    """Two parts of the rows, compared by their short axes. If they cannot be compared or judged, `unfit` says
    why, and there is no slope and no ratio. `graded` is whether they pass into each other, as topics do."""

    slope: Slope | None
    log_ratio: np.ndarray
    fitted: int
    unfit: str = ""
    graded: bool = False

    @classmethod
    def none(cls, fitted: int, unfit: str) -> ComparedParts:
        return cls(None, np.empty(0, np.float32), fitted, unfit)

    def judged(self, origins: RowOrigins) -> ComparedParts:
        """These parts, or none, if topics of one model can differ as they do. Whether the model of single
        rows is known decides, because the parts of the rows of two models may be mixed."""
        suspected = self.slope is not None and self.slope.high < SUSPECTED
        if origins.refused and suspected and (self.graded or origins.like_topics):
            return self.none(self.fitted, LIKE_TOPICS)
        return self


def compared_parts(
    X: Rows, marks: Mapping[str, np.ndarray], unlike: np.ndarray, random_state: int
) -> ComparedParts:
    distinct = len(X) - len(marks.get("repeated", ())) - len(marks.get("constant", ()))
    unfit = _unfit(X, distinct)
    if unfit:
        return ComparedParts.none(min(len(X), FITTED), unfit)
    parts = parts_of(X, random_state, unlike if len(unlike) else None)
    if not parts.uneven:
        return ComparedParts.none(parts.fitted, _ALIKE)
    return ComparedParts(parts.slope, parts.log_ratio, parts.fitted, graded=parts.graded)


def _unfit(X: Rows, distinct: int) -> str:
    """The reason why two parts of these rows cannot be compared; "" if they can."""
    n, d = X.shape
    least = max(FEWEST_ROWS, _PER_DIMENSION * d)
    if distinct < least:
        return (
            f"Parts were not compared: {least:,} distinct rows of this width are needed, and there are"
            f" {distinct:,}."
        )
    some = np.asarray(X[:: max(1, n // FITTED)])
    if np.count_nonzero(some) < _DENSE * some.size:
        return "Parts were not compared: most numbers are 0, and sparse spaces are out of scope."
    spread = pd.Series(some.var(axis=0, dtype=np.float64))
    order = pd.Series(np.arange(d))
    # Spearman's correlation. Pandas would import scipy.stats for it, which takes two seconds.
    if -spread.rank().corr(order) > _ORDERED:
        return (
            "Parts were not compared: the columns are ordered by their variance, as those of LSA or a PCA,"
            " and in such spaces topics have axes of their own."
        )
    return ""
