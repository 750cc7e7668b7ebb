"""Searches of migrate by shard: the rows of the shards that are nearest to some queries, in several spaces in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from relcore.block_scores.device import NumpyDevice
from relcore.block_scores.top_rows import TopRows
from relcore.migration.fusion import Moments
from relcore.progress import Report, silent
from relcore.sharded.deep_rows import DeepRows
from relcore.sharded.pair import global_rows
from relcore.sharded.row_maps import row_map
from relcore.sharded.runner import Runner
from relcore.sharded.shard import aligned
from relcore.sharded.shard_pass import Arrays, Shards, ShardWork
from relcore.similarity import row_blocks, unit_rows
from relcore.store import Entry, Store, digest_of

_ROWS = 4096  # their products with 2,000 queries are 33 MB
_DEEP = 100


class Asked(NamedTuple):
    """One search: queries (q, d), how many rows, and in which `CORPORA`; rows of several are put side by side."""

    queries: np.ndarray
    k: int
    corpora: tuple[str, ...]


CORPORA = ("old", "new", "bridged")  # unit rows by the old model, by the new one, and old rows after an adapter's steps


@dataclass(frozen=True)
class SearchCorpus(ShardWork):
    """The rows nearest to queries, over all rows but some; `asked` is the key under which `searched` put them."""

    kind: ClassVar[str] = "search"

    asked: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> tuple[Arrays, dict[str, Any]]:
        entry, device = store.get(self.asked), NumpyDevice()
        found = self._empty(entry)
        searches = [(top, entry.arrays[f"queries/{name}"], entry.metadata["searches"][name]["corpora"]) for name, top in found]
        needed = {one for _, _, corpora in searches for one in corpora}
        for rows, sides in _corpus_blocks(shards, store, entry, needed, report):
            for top, queries, corpora in searches:
                corpus = sides[corpora[0]] if len(corpora) == 1 else np.column_stack([sides[one] for one in corpora])
                top.add(device, device.product(queries, corpus.T, "scores"), rows)
        return _arrays(found), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        found = self._empty(store.get(self.asked))
        for entry in (first, second):
            for name, top in found:
                other = TopRows(*top.values.shape)
                other.take({one: entry.arrays[f"{name}/{one}"] for one in ("values", "rows")})
                top.merge(other)
        return _arrays(found), {}

    @staticmethod
    def _empty(entry: Entry) -> list[tuple[str, TopRows]]:
        told = entry.metadata["searches"].items()
        return [(name, _lists(len(entry.arrays[f"queries/{name}"]), one["k"])) for name, one in told]


@dataclass(frozen=True)
class CorpusMoments(ShardWork):
    """Sums of the rows and of their products, float64, of the corpora that `asked` names under the key of `moments_of`."""

    kind: ClassVar[str] = "corpus moments"

    asked: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> tuple[Arrays, dict[str, Any]]:
        entry, sums = store.get(self.asked), {}
        for _, sides in _corpus_blocks(shards, store, entry, entry.metadata["corpora"], report):
            for name in entry.metadata["corpora"]:
                rows = sides[name].astype(np.float64)
                for what, one in (("sum", rows.sum(axis=0)), ("products", rows.T @ rows)):
                    sums[f"{name}/{what}"] = sums.get(f"{name}/{what}", 0) + one
        return sums, {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        every = [*first.arrays, *(name for name in second.arrays if name not in first.arrays)]  # a shard may have no such row
        return {name: first.arrays.get(name, 0) + second.arrays.get(name, 0) for name in every}, {}


@dataclass(frozen=True)
class Corpus:
    """The rows of a pair of sharded spaces, the old and the new one, that are searched: all but `taken` (ascending).

    `adapter` is the key of an adapter's steps for old rows, see `row_maps.put_adapter`; "" where "bridged" is not searched.
    """

    runner: Runner
    parts: Sequence[Shards]
    n: int
    taken: np.ndarray
    adapter: str = ""

    def searched(self, searches: Mapping[str, Asked], title: str) -> dict[str, np.ndarray]:
        """Row numbers (q, k) of the whole spaces by search, the nearest first."""
        arrays = {f"queries/{name}": np.ascontiguousarray(one.queries, dtype=np.float32) for name, one in searches.items()}
        told = {name: {"k": one.k, "corpora": list(one.corpora)} for name, one in searches.items()}
        key = self._put(arrays, {"searches": told})
        found = self.runner.run(SearchCorpus(key), self.parts, title).arrays
        return {name: found[f"{name}/rows"] for name in searches}

    def moments(self, corpora: Sequence[str]) -> list[Moments]:
        """Mean and covariance of the rows in each of these."""
        found = self.runner.run(CorpusMoments(self._put({}, {"corpora": list(corpora)})), self.parts, "corpus moments").arrays
        means = {name: found[f"{name}/sum"] / self.n for name in corpora}
        return [Moments(mean, found[f"{name}/products"] / self.n - np.outer(mean, mean)) for name, mean in means.items()]

    def _put(self, arrays: Arrays, told: dict[str, Any]) -> str:
        arrays, told = {**arrays, "taken": self.taken}, {**told, "adapter": self.adapter}
        key = digest_of("corpus search", arrays, told)
        if not self.runner.store.has(key):
            self.runner.store.put(key, arrays, told)
        return key


def _corpus_blocks(shards: Shards, store: Store, entry: Entry, needed, report: Report):
    """Row numbers of the whole spaces, and the rows in the corpora that are needed."""
    taken = entry.arrays["taken"]
    bridge = row_map(store, entry.metadata["adapter"]) if "bridged" in needed else None
    for blocks in aligned(shards):
        for part in row_blocks(len(blocks[0].vectors), _ROWS):
            rows = global_rows(shards[0], blocks[0], np.arange(part.start, part.stop))
            some = taken[np.searchsorted(taken, rows[0]) : np.searchsorted(taken, rows[-1], side="right")]
            rows = np.delete(rows, some - rows[0])
            if len(rows):
                old, new = (block.vectors[rows - shards[0].start - blocks[0].first] for block in blocks)
                sides = {"old": unit_rows(old)} if "old" in needed else {}
                sides |= {"new": unit_rows(new)} if "new" in needed else {}
                yield rows, sides | ({"bridged": bridge(old)} if bridge else {})
            report(blocks[0].first + part.stop, shards[0].n, shards[0].name)


def _lists(n_queries: int, k: int) -> TopRows:
    return (DeepRows if k > _DEEP else TopRows)(n_queries, k)


def _arrays(found: list[tuple[str, TopRows]]) -> Arrays:
    return {f"{name}/{one}": array for name, top in found for one, array in top.to_arrays().items()}
