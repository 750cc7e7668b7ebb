"""Costs of the four options in the user's own numbers: rows, seconds, price."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_whole
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.tasks.task import Task

OPTIONS = {"keep": "keep", "bridge": "bridge", "twice": "ask twice", "re-embed": "re-embed"}
MEASURED_ROWS = 64


@dataclass(frozen=True)
class Prices:
    """The user's own numbers.

    Attributes
    ----------
    rows : int
        Rows of the corpus.
    queries : int
        Queries per month.
    new_seconds, old_seconds : float
        Seconds in which each model embeds a thousand rows or queries.
    new_price, old_price : float
        What a thousand rows or queries cost, in any currency.
    """

    rows: int
    queries: int = 0
    new_seconds: float = 0.0
    old_seconds: float = 0.0
    new_price: float = 0.0
    old_price: float = 0.0

    def __post_init__(self) -> None:
        need_whole(self, rows=1, queries=0)
        for name in ("new_seconds", "old_seconds", "new_price", "old_price"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise SpaceError(f"{name}: expected a number from 0, got {value!r:.40}")


@dataclass(frozen=True)
class Cost:
    """What one option costs.

    Attributes
    ----------
    rows : int
        Rows to embed with the new model, once.
    seconds, price : float
        Of embedding them.
    monthly_seconds, monthly_price : float
        Of embedding a month's queries, with both models where both are needed.
    """

    rows: int
    seconds: float
    price: float
    monthly_seconds: float
    monthly_price: float


def option_costs(prices: Prices, n_pairs: int, n_embedded: int = 0) -> dict[str, Cost]:
    """The cost of each of `OPTIONS`.

    Parameters
    ----------
    n_pairs : int
        Pairs that the adapter needs.
    n_embedded : int
        Pairs that are there already, and cost nothing more.

    Raises
    ------
    SpaceError
        Counts below 0, or more pairs than rows.
    """
    if not 0 <= n_embedded <= prices.rows or not 0 <= n_pairs <= prices.rows:
        raise SpaceError(
            f"costs: expected 0 … {prices.rows:,} pairs, as many as the corpus has rows, got {n_pairs:,}"
            f" needed and {n_embedded:,} embedded"
        )
    more = max(n_pairs - n_embedded, 0)
    plan = {
        "keep": (0, False, True),
        "bridge": (more, True, False),
        "twice": (more, True, True),
        "re-embed": (prices.rows - n_embedded, True, False),
    }
    return {
        option: Cost(
            rows=rows,
            seconds=rows * prices.new_seconds / 1000,
            price=rows * prices.new_price / 1000,
            monthly_seconds=prices.queries / 1000 * (new * prices.new_seconds + old * prices.old_seconds),
            monthly_price=prices.queries / 1000 * (new * prices.new_price + old * prices.old_price),
        )
        for option, (rows, new, old) in plan.items()
    }


def cost_table(costs: Mapping[str, Cost], quality: Mapping[str, Any], metric: str) -> pd.DataFrame:
    """One row per option: quality with its interval, rows, seconds, price, and what a month of queries costs.

    Parameters
    ----------
    quality : option → anything with `value`, `low` and `high`
    metric : str
        The name of the quality's column.
    """
    keep = quality["keep"].value
    return pd.DataFrame(
        [
            {
                "option": OPTIONS[option],
                metric: quality[option].value,
                "low": quality[option].low,
                "high": quality[option].high,
                "rows to embed": cost.rows,
                "seconds, once": cost.seconds,
                "price, once": cost.price,
                "seconds a month": cost.monthly_seconds,
                "price a month": cost.monthly_price,
                "gain per thousand rows": (
                    (quality[option].value - keep) / cost.rows * 1000 if cost.rows else np.nan
                ),
            }
            for option, cost in costs.items()
            if option in quality
        ]
    )


def seconds_per_thousand(
    encode: Callable[[list[Any]], Any], items: Sequence[Any], clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds in which an encoder takes a thousand items, measured on at most 64 after one batch to warm up.

    Raises
    ------
    SpaceError
        No items.
    """
    if not len(items):
        raise SpaceError("costs: expected items to measure on, got none")
    measured = list(items[:MEASURED_ROWS])
    encode(measured[:8])
    started = clock()
    encode(measured)
    return (clock() - started) / len(measured) * 1000


# EncoderPace: seconds in which an encoder takes a thousand items here, measured, as a task.


@dataclass(frozen=True)
class Pace:
    """Seconds per thousand items."""

    seconds: float


@dataclass(frozen=True)
class EncoderPace(Task[Pace]):
    """On at most 64 items of a dataset, after one batch to warm up."""

    kind: ClassVar[str] = "encoder-pace"
    result: ClassVar[str] = "relcore.migrate.costs:Pace"

    dataset: DatasetSpec
    encoder: Encoder

    @property
    def title(self) -> str:
        return f"Pace of {self.encoder.title}"

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        return 5.0 + (self.encoder.seconds(MEASURED_ROWS) or 0.0)

    def run(
        self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent
    ) -> Pace:
        """
        Raises
        ------
        SpaceError
            Items or a model that are not here.
        """
        report(0, 2, "loading the encoder")
        dataset = load_dataset(self.dataset, store)
        encode = self.encoder.prepare(dataset, lambda done, total, text: report(0, 2, text))
        report(1, 2, f"encoding {MEASURED_ROWS} items")
        return Pace(seconds_per_thousand(encode, dataset.items(0, min(MEASURED_ROWS, len(dataset)))))
