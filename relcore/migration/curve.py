"""Quality over the number of pairs: each adapter fitted on 25 to 5,000 of them, several draws each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.evaluation import row_keys
from relcore.migration.evaluate import Bootstrap, Trial
from relcore.migration.retrieval import ndcg
from relcore.migration.weight import fused_weight
from relcore.names import ADAPTERS
from relcore.progress import Report, silent

SIZES = (25, 50, 100, 250, 500, 1000, 2500, 5000)
MOST_ROWS = 20_000


@dataclass(frozen=True)
class CurvePoint:
    """An option with one adapter at one number of pairs: nDCG@k, the mean over draws, its 95 % interval over queries."""

    n_pairs: int
    adapter: str
    option: str
    value: float
    low: float
    high: float
    draws: int


@dataclass(frozen=True)
class Plan:
    """What a curve is made of.

    Attributes
    ----------
    adapters : tuple of names
        Each as a bridge; the first one also for asking twice.
    """

    adapters: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES
    draws: int = 3
    k: int = 10
    fusion: str = "z"
    random_state: int = 0


def curve_of(
    trial: Trial,
    plan: Plan,
    new: np.ndarray,
    old: np.ndarray,
    ids: Sequence[str],
    truth: str,
    report: Report = silent,
) -> tuple[CurvePoint, ...]:
    """Points of each adapter and size, and of all pairs, on at most 20,000 rows of the trial's corpus; none without sizes.

    Parameters
    ----------
    new, old : arrays (m, d_new), (m, d_old)
        Unit rows of the pairs that may be fitted on; smaller sizes of a draw are part of its larger ones.
    ids : m ids
    truth : see `weight.fused_weight`
    """
    if not plan.sizes:
        return ()
    trial = trial.with_fewer_rows(MOST_ROWS, plan.random_state)
    bootstrap = Bootstrap(len(trial.old_queries))
    sizes = [size for size in plan.sizes if size < len(new)] + [len(new)]
    orders = [np.argsort(row_keys(ids, f"draw {draw}", plan.random_state)) for draw in range(plan.draws)]
    points = []
    for number, size in enumerate(sizes):
        report(number, len(sizes), f"curve: {size:,} pairs")
        draws = orders[:1] if size == len(new) else orders
        for adapter in dict.fromkeys(plan.adapters):
            options = ("bridge", "twice") if adapter == plan.adapters[0] else ("bridge",)
            scores = {option: [] for option in options}
            for order in draws:
                kept = np.sort(order[:size])
                weight = 1.0
                if "twice" in options:
                    weight = fused_weight(adapter, new[kept], old[kept], np.asarray(ids)[kept], truth, plan.random_state)
                made = ADAPTERS[adapter].load()().fit(new[kept], old[kept])
                for option, found in trial.found(made, weight, plan.fusion, plan.k, options).items():
                    scores[option].append(ndcg(found, trial.relevance, plan.k))
            for option, drawn in scores.items():
                mean = bootstrap.mean(np.mean(drawn, axis=0))
                points.append(CurvePoint(size, adapter, option, mean.value, mean.low, mean.high, len(draws)))
    return tuple(points)
