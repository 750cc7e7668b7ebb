"""MigrationResult: what a migration found, as pages, commands, studies and the store hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from relcore.migration.adapter import Adapter
from relcore.migration.choice import Candidate
from relcore.migration.curve import CurvePoint
from relcore.migration.evaluate import Interval
from relcore.migration.verdict import TITLES, Verdict
from relcore.names import ADAPTERS
from relcore.similarity import unit_rows


@dataclass(frozen=True)
class OptionScore:
    """One option on all queries.

    Attributes
    ----------
    option : "keep", "bridge", "twice" or "re-embed"
    value, low, high : float
        Mean nDCG@k over the queries, with its 95 % bootstrap interval.
    recall : float
        Mean recall@k.
    to_keep, to_reembed : Interval or None
        The difference to these options on the same queries; None of the option itself, and where re-embedding is not measured.
    """

    option: str
    value: float
    low: float
    high: float
    recall: float
    to_keep: Interval | None = None
    to_reembed: Interval | None = None


@dataclass(frozen=True, eq=False)
class MigrationResult:
    """The answer of a migration.

    Attributes
    ----------
    verdict : Verdict
        What to do, and the sentence that says so.
    options : tuple of OptionScore
        keep, bridge, twice, and re-embed where it is measured.
    adapter : str
        The chosen one, a name of `names.ADAPTERS`.
    weight : float
        How much the bridged search counts where the old one counts 1, when both are added.
    candidates : tuple of Candidate
        The cross-validation on the pairs, the best first; empty where the adapter was given.
    curve : tuple of CurvePoint
    cautions : tuple of str
    truth : "judgements", "labels", "new", "both" or "old"
        What is relevant: judged rows, rows of the same label, or neighbours in the new model, in both models, in the old model.
    k, n_pairs, n_rows : int
        Depth of the lists; pairs that the adapter was fitted on; rows that were searched.
    queries : q ids
        At most `trial.MOST_QUERIES`.
    scores : option → array (q,)
        nDCG@k of each query.
    found : option → array (q, k)
        Row numbers of the old space that each option found, the best first, −1 for none.
    relevant_query, relevant_row : arrays (j,)
        Row numbers of the old space that are relevant, and the position of the query.
    pairs : array (m,)
        Row numbers in the old space of the pairs that the adapter was fitted on.
    """

    verdict: Verdict
    options: tuple[OptionScore, ...]
    adapter: str
    weight: float
    candidates: tuple[Candidate, ...]
    curve: tuple[CurvePoint, ...]
    cautions: tuple[str, ...]
    truth: str
    k: int
    n_pairs: int
    n_rows: int
    queries: tuple[str, ...]
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)
    found: Mapping[str, np.ndarray] = field(default_factory=dict)
    relevant_query: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    relevant_row: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    pairs: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def fitted(self, new: np.ndarray, old: np.ndarray) -> Adapter:
        """The chosen adapter, fitted on the vectors of `pairs` by both models."""
        return ADAPTERS[self.adapter].load()().fit(unit_rows(new), unit_rows(old))

    @property
    def metric(self) -> str:
        return f"nDCG@{self.k}"

    def option(self, name: str) -> OptionScore | None:
        """The scores of this option; None where it is not measured."""
        return next((one for one in self.options if one.option == name), None)

    def table(self) -> pd.DataFrame:
        """One row per option: option, ndcg, low, high, recall, and its differences to keeping and to re-embedding."""
        rows = []
        for one in self.options:
            row = {"option": TITLES[one.option], "ndcg": one.value, "low": one.low, "high": one.high, "recall": one.recall}
            for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed)):
                low, middle, high = (gain.low, gain.value, gain.high) if gain else (np.nan,) * 3
                row |= {f"to {name}": middle, f"to {name}, low": low, f"to {name}, high": high}
            rows.append(row | {"queries": len(self.queries), "rows": self.n_rows})
        return pd.DataFrame(rows)

    def curve_table(self) -> pd.DataFrame:
        """One row per point: pairs, adapter, option, ndcg, low, high, draws."""
        names = ("pairs", "adapter", "option", "ndcg", "low", "high", "draws")
        values = [
            (one.n_pairs, ADAPTERS[one.adapter].title, TITLES[one.option], one.value, one.low, one.high, one.draws)
            for one in self.curve
        ]
        return pd.DataFrame(values, columns=list(names))

    def losers(self, option: str, to: str = "keep") -> pd.DataFrame:
        """One row per query, the greatest loss of the option first: query, the two scores, and the change."""
        before, now = self.scores[to], self.scores[option]
        table = pd.DataFrame({"query": self.queries, TITLES[to]: before, TITLES[option]: now, "change": now - before})
        return table.sort_values("change", kind="stable").reset_index(drop=True)
