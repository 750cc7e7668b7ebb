"""DriftSeries: drift over a series of versions, such as checkpoints: every version against every other, as
a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import NoCommonId, SpaceError, need_one_of
from relcore.base.names import Named
from relcore.drift.check import DRAWN, FEWEST_ROWS, NEIGHBOURS, NOISE, STATE
from relcore.drift.measures import (
    EVERYTHING_NEW,
    NEW_QUERIES,
    SearchedRows,
    across,
    chance_churn,
    churn,
    decompose,
    jittered,
)
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, distinct_names, shared_ids
from relcore.spaces.split import Split
from relcore.tasks.task import Task

MOST_VERSIONS = 40
AGAINST = {"previous": Named("the version before"), "first": Named("the first version")}
LINES = (
    (EVERYTHING_NEW, "churn", "everything new: churn"),
    (EVERYTHING_NEW, "rho", "everything new: ρ"),
    (NEW_QUERIES, "churn", "new queries, old vectors: churn"),
    (NEW_QUERIES, "lost", "new queries, old vectors: lost"),
)


@dataclass(frozen=True, eq=False)
class SeriesDrift:
    """Drift from each version (row, the old one) to each other (column, the new one).

    Attributes
    ----------
    names : v strings
    n, k, n_queries : int
        Rows that all versions have, neighbours of each query, queries.
    churn, rho : arrays (v, v)
        "everything_new". ρ is symmetric; churn is but for ties.
    across_churn, lost : arrays (v, v)
        "new_queries": vectors of the column's version search those of the row's; NaN between different
        widths.
    noise : array (v,)
        Churn of each version by numeric noise.
    """

    names: tuple[str, ...]
    n: int
    k: int
    n_queries: int
    churn: np.ndarray
    rho: np.ndarray
    across_churn: np.ndarray
    lost: np.ndarray
    noise: np.ndarray

    @property
    def chance_churn(self) -> float:
        """The churn of rows that are paired at random."""
        return chance_churn(self.n, self.k)

    def matrix(self, situation: str, quantity: str) -> np.ndarray:
        """The (v, v) array of one quantity."""
        if situation == NEW_QUERIES:
            return self.lost if quantity == "lost" else self.across_churn
        return self.rho if quantity == "rho" else self.churn

    def steps(self, situation: str, quantity: str, against: str) -> np.ndarray:
        """One quantity of each version but the first, against the version before or the first, (v − 1,)."""
        need_one_of("against", against, AGAINST)
        matrix = self.matrix(situation, quantity)
        return matrix.diagonal(1) if against == "previous" else matrix[0, 1:]

    def table(self) -> pd.DataFrame:
        """One row per pair of versions: old, new, and all quantities."""
        v = len(self.names)
        pairs = [(i, j) for i in range(v) for j in range(v) if i != j]
        columns = {"old": [self.names[i] for i, _ in pairs], "new": [self.names[j] for _, j in pairs]}
        for situation, quantity, _ in LINES:
            matrix = self.matrix(situation, quantity)
            columns[f"{situation} {quantity}"] = [float(matrix[pair]) for pair in pairs]
        return pd.DataFrame(columns)

    def headline(self, against: str = "previous") -> str:
        """The version with the largest churn, in a sentence."""
        steps = self.steps(EVERYTHING_NEW, "churn", against)
        worst = int(np.argmax(steps))
        old = self.names[worst] if against == "previous" else self.names[0]
        last = f" The last changed {100 * steps[-1]:.0f} %." if worst + 1 < len(steps) else ""
        return (
            f"{self.names[worst + 1]!r} changed most: {100 * steps[worst]:.0f} % of the {self.k} nearest"
            f" neighbours are others than in {old!r}.{last}"
        )


@dataclass(frozen=True)
class DriftSeries(Task[SeriesDrift]):
    """Compare all versions of a series, in the order given, on the rows that all of them have; settings as
    in `DriftCheck`.
    """

    kind: ClassVar[str] = "drift-series"
    result: ClassVar[str] = "relcore.drift.series:SeriesDrift"
    title: ClassVar[str] = "Drift over a series of versions"

    k: int = NEIGHBOURS
    n_queries: int = DRAWN
    jitter: float = NOISE
    random_state: int = STATE

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: a decomposition for each pair, a search for each ordered pair."""
        n, d, v = len(spaces[0]), max(space.dimension for space in spaces), len(spaces)
        pairs = v * (v - 1) / 2 * (n * d**2 * 7e-11 + 5e-9 * d**3)
        return 0.2 + pairs + v * (v + 3) * n * min(n, self.n_queries) * (d + 50) / 2e10

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> SeriesDrift:
        """
        Raises
        ------
        SpaceError
            Fewer than two versions or more than `MOST_VERSIONS`, no rows or too few that all of them have.
        """
        versions, ids = _aligned(spaces)
        v, k = len(versions), min(self.k, len(ids) - 2)
        queries = Split.held_out(ids, random_state=self.random_state).queries(self.n_queries)
        centred, plain = (
            [SearchedRows.of(version, queries, k, self.jitter, center) for version in versions]
            for center in (True, False)
        )
        tables = {name: np.zeros((v, v)) for name in ("churn", "rho", "across_churn", "lost")}
        pairs = list(combinations(range(v), 2))
        for done, (i, j) in enumerate(pairs):
            report(done, len(pairs), "comparing versions")
            tables["rho"][i, j] = tables["rho"][j, i] = decompose(versions[i], versions[j]).rho
            same_width = versions[i].shape[1] == versions[j].shape[1]
            for old, new in ((i, j), (j, i)):
                tables["churn"][old, new] = churn(centred[old], centred[new]).mean()
                searched = across(plain[old], plain[new]) if same_width else None
                tables["lost"][old, new] = searched.lost.mean() if searched else np.nan
                tables["across_churn"][old, new] = searched.churn.mean() if searched else np.nan
        rng = np.random.default_rng(self.random_state)
        noise = []
        for version in versions:
            runs = [jittered(version, self.jitter, rng) for _ in range(2)]
            noise.append(churn(*(SearchedRows.of(run, queries, k, self.jitter, True) for run in runs)).mean())
        names = tuple(distinct_names(spaces))
        return SeriesDrift(names, len(ids), k, len(queries), **tables, noise=np.array(noise))


def _aligned(spaces: Sequence[LatentSpace]) -> tuple[list[np.ndarray], np.ndarray]:
    """The vectors of the rows that all versions have and none has as zeros, in one order, and their ids."""
    if not 2 <= len(spaces) <= MOST_VERSIONS:
        raise SpaceError(
            f"series: expected 2 to {MOST_VERSIONS} versions, got {len(spaces)}; choose every tenth, say"
        )
    ids = shared_ids(spaces)
    if not len(ids):
        raise NoCommonId(
            "series: expected rows that all versions have, got none; give all files the same id column"
        )
    rows = [space.rows(ids) for space in spaces]
    alive = np.all([space.norms[own] > 0 for space, own in zip(spaces, rows, strict=True)], axis=0)
    if np.count_nonzero(alive) < FEWEST_ROWS:
        got = f"got {np.count_nonzero(alive)}; compare more rows, or leave out the version that lacks them"
        raise SpaceError(f"series: expected {FEWEST_ROWS} rows or more that all versions have, {got}")
    vectors = [space.vectors[own[alive]] for space, own in zip(spaces, rows, strict=True)]
    return vectors, np.asarray(ids, dtype=object)[alive]
