"""FollowUp: what the tabs of a migration share: its settings, the adapter that it chose, and its queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.evaluate import Trial
from relcore.migration.migrate import Migration
from relcore.migration.split import parts_of
from relcore.migration.trial import held_out_trial, judged_trial
from relcore.names import ADAPTERS
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace, SpaceError, match, need_one_of
from relcore.store import Store
from relcore.task import Report, Task, silent

MOST_QUERIES = 500  # with 20,000 rows, each matrix of scores is 40 MB
MOST_ROWS = 20_000
TRUTHS = ("judgements", "labels", "new", "both", "old")

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, eq=False)
class Fitted:
    """The adapter of a migration, its pairs, and the queries that it was not fitted on.

    Attributes
    ----------
    adapter : Adapter
    new, old : arrays (m, d_new), (m, d_old)
        Unit rows of the pairs.
    ids : array (m,)
    trial : Trial
        At most 20,000 rows and 500 queries.
    rows : LatentSpace (n, d_old)
        The rows that are searched, with their ids and counts.
    """

    adapter: Adapter
    new: np.ndarray
    old: np.ndarray
    ids: np.ndarray
    trial: Trial
    rows: LatentSpace

    def system(self, option: str) -> tuple[np.ndarray, np.ndarray]:
        """Unit queries (q, d) and rows (n, d) of keeping, bridging or re-embedding.

        Raises
        ------
        SpaceError
            Re-embedding, where rows lack a new vector.
        """
        trial = self.trial
        if option == "keep":
            return trial.old_queries, trial.old_corpus
        if option == "bridge":
            return self.adapter.transform(trial.new_queries), self.adapter.corpus(trial.old_corpus)
        if trial.new_corpus is None:
            raise SpaceError(
                "re-embedding: expected a new vector for every row that is searched, got some rows without; leave the "
                "judgements out, so that the pairs are both queries and rows"
            )
        return trial.new_queries, trial.new_corpus

    def scores(self, option: str) -> np.ndarray:
        """Cosine of each query and row, (q, n); −1 for the row that is the query itself."""
        queries, rows = self.system(option)
        found = queries @ rows.T
        if self.trial.own is not None:
            found[np.arange(len(found)), self.trial.own] = -1
        return found


def fitted(
    migration: Migration, adapter: str, truth: str, spaces: Sequence[LatentSpace], most_queries: int = MOST_QUERIES
) -> Fitted:
    """The pairs, the queries and the adapter of a migration, as `Migration.run` has them.

    Parameters
    ----------
    adapter, truth : str
        As its result names them.

    Raises
    ------
    SpaceError
        As `Migration.run`.
    """
    need_one_of("adapter", adapter, ADAPTERS)
    need_one_of("truth", truth, TRUTHS)
    state = migration.random_state
    paired = match(*spaces[:2])
    parts = parts_of(paired, migration.n_pairs, migration.strategy, bool(migration.judgements), state)
    new, old = (unit_rows(side.vectors)[parts.fitted] for side in (paired.target, paired.source))
    if migration.judgements:
        if len(spaces) != 4:
            raise SpaceError("judgements: expected the queries by the old and by the new model, too; add both")
        trial, _, _ = judged_trial(spaces, migration.judgements, state)
    else:
        trial = held_out_trial(paired, parts, migration.relevance, truth, migration.k, state)
    trial = _with_fewer_queries(trial, most_queries).with_fewer_rows(MOST_ROWS, state)
    rows = (spaces[0] if migration.judgements else paired.source).take(trial.rows)
    return Fitted(ADAPTERS[adapter].load()().fit(new, old), new, old, paired.ids[parts.fitted], trial, rows)


def _with_fewer_queries(trial: Trial, most: int) -> Trial:
    if len(trial.old_queries) <= most:
        return trial
    kept = np.linspace(0, len(trial.old_queries) - 1, most).round().astype(int)
    return replace(
        trial,
        old_queries=trial.old_queries[kept],
        new_queries=trial.new_queries[kept],
        relevance=trial.relevance.take(kept),
        own=None if trial.own is None else trial.own[kept],
    )


@dataclass(frozen=True, kw_only=True)
class FollowUp(Task[Outcome]):
    """A measurement on a `Fitted`. Spaces as of the migration.

    Attributes
    ----------
    migration : Migration
    adapter, truth : str
        What its result names.
    """

    migration: Migration
    adapter: str
    truth: str

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> Outcome:
        """
        Raises
        ------
        SpaceError
            As `fitted`, and what the measurement needs.
        """
        report(0, 2, "fitting the adapter")
        found = fitted(self.migration, self.adapter, self.truth, spaces)
        report(1, 2, "searching")
        return self.measure(found)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: six fits, and at most 20,000 rows and 500 queries."""
        n, m = min(len(spaces[1]), MOST_ROWS), self.migration.n_pairs or len(spaces[1])
        low, high = sorted(space.dimension for space in spaces[:2])
        return 0.3 + 1e-7 * MOST_QUERIES * n + 1e-9 * min(m, MOST_ROWS) * low * high

    @abstractmethod
    def measure(self, found: Fitted) -> Outcome: ...
