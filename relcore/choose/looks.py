"""Looks at the scores of models while queries are judged: which model leads, and whether that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.numbers import counted
from relcore.scores.score import Interval

# The numbers of queries after which a person's judgements are looked at. Each is about 1.45 times the one
# before it.
LOOKS = (10, 15, 22, 32, 46, 66, 95, 136)
LEVEL = 0.05
_PSEUDO = np.array([1.0, -1.0])


@dataclass(frozen=True)
class InterimLook:
    """The scores after `n` judged queries.

    Attributes
    ----------
    n : int
    scores : tuple of float
        The mean score of each model, 0 … 1.
    best : int
        The number of the model that is chosen, or that leads if nothing is decided.
    leads : tuple of Interval or None
        How far the best model is ahead of each other one; None for itself. The intervals hold together, at
        all looks and for all pairs of models, with a probability of 95 %.
    decided : bool
        Whether the best model is ahead of each other one, or at most `epsilon` behind it.
    more : int
        About how many more queries would decide if the scores stay as they are; 0 if it is decided.
    """

    n: int
    scores: tuple[float, ...]
    best: int
    leads: tuple[Interval | None, ...]
    decided: bool
    more: int

    @property
    def is_ahead(self) -> bool:
        """Whether the best model is ahead of every other one beyond doubt."""
        return all(lead.low > 0 for lead in self.leads if lead is not None)


def planned_looks(n: int) -> tuple[int, ...]:
    """The numbers of queries after which to look if n queries can be judged: at most 8, of which the last is
    n. With fewer than 10 queries there is no look.

    Examples
    --------
    >>> from relcore.choose.looks import planned_looks
    >>> planned_looks(40)
    (10, 15, 22, 32, 40)
    """
    if n < LOOKS[0]:
        return ()
    return (*(look for look in LOOKS[:-1] if look < n), n)


def looks_at(
    scores: np.ndarray, epsilon: float, planned: Sequence[int], stops: bool = True
) -> tuple[InterimLook, ...]:
    """The looks at the scores (n_queries, n_models) of queries in the order in which they are judged. If it
    `stops`, up to the look that decides."""
    found = []
    for n in planned:
        if n > len(scores):
            break
        found.append(_look(scores[:n], epsilon))
        if stops and found[-1].decided:
            break
    return tuple(found)


def lead_of(differences: np.ndarray, n_pairs: int) -> Interval:
    r"""The mean of the differences (n,) of two models' scores, with an interval of Student's t at the level
    .05 / (8 looks · n_pairs).

    Two pseudo-differences, +1 and −1, are added for the interval. Without them, ten queries for which two
    models score alike would have an interval without width, and would decide at the first look.

    .. math:: \bar x ± t_{m - 1} s / \sqrt{m}, \quad m = n + 2
    """
    centre, half = _interval(differences, n_pairs)
    return Interval(float(differences.mean()), max(-1.0, centre - half), min(1.0, centre + half))


def _interval(differences: np.ndarray, n_pairs: int) -> tuple[float, float]:
    from scipy.special import stdtrit  # `scipy.stats` has the same function, but its import takes long

    values = np.append(differences, _PSEUDO)
    quantile = stdtrit(len(values) - 1, 1 - LEVEL / (2 * len(LOOKS) * n_pairs))
    return float(values.mean()), float(quantile * values.std(ddof=1) / np.sqrt(len(values)))


def _look(scores: np.ndarray, epsilon: float) -> InterimLook:
    means = scores.mean(axis=0)
    order = np.argsort(-means, kind="stable").tolist()
    leads = {model: _leads(scores, model) for model in order}
    sure = [model for model in order if all(lead.low > -epsilon for lead in leads[model] if lead)]
    if sure:
        best = sure[0]
        more = 0
    else:
        best = order[0]
        more = _more(scores, best, epsilon)
    return InterimLook(len(scores), tuple(means.tolist()), best, leads[best], bool(sure), more)


def _leads(scores: np.ndarray, model: int) -> tuple[Interval | None, ...]:
    n_models = scores.shape[1]
    n_pairs = n_models * (n_models - 1) // 2
    leads: list[Interval | None] = []
    for other in range(n_models):
        if other == model:
            leads.append(None)
        else:
            leads.append(lead_of(scores[:, model] - scores[:, other], n_pairs))
    return tuple(leads)


def _more(scores: np.ndarray, best: int, epsilon: float) -> int:
    """About how many more queries make the intervals narrow enough, with two significant digits."""
    n, n_models = scores.shape
    n_pairs = n_models * (n_models - 1) // 2
    needed = 0.0
    for other in range(n_models):
        if other != best:
            differences = scores[:, best] - scores[:, other]
            half = _interval(differences, n_pairs)[1]
            needed = max(needed, n * (half / (differences.mean() + epsilon)) ** 2)
    more = max(1, int(np.ceil(needed)) - n)
    digits = max(0, len(str(more)) - 2)
    return round(more, -digits)


def more_in_words(more: int) -> str:
    return f"about {counted(more, 'more query', 'more queries')} would tell"
