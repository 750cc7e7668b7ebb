"""The first pass over shards: counts of rows, zero rows, ids and classes; and rows that are gathered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.catalog.catalog import SpaceSpec, folder_stamp, is_address
from relcore.catalog.encodings import put_encoding
from relcore.runs.entries import digest_of
from relcore.runs.store import Store
from relcore.runs.work import Context, Progress, silent
from relcore.scores.roles import NO_ROWS, to_full_index
from relcore.sharded.runner import (
    Partial,
    PassResult,
    Runner,
    Shards,
    ShardTotal,
    ShardWork,
    keep,
    live_rows,
    read,
)
from relcore.sharded.space import ShardedSpace, finite, is_sharded, need_same_ids
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import row_keys

# The first pass computes means, and finds rows without direction, anchors and queries.

_MOST_DROPPED = 1_000_000  # number of dropped rows; their row numbers take 8 MB
_MOST_CLASSES = 100_000


@dataclass(frozen=True)
class Survey(ShardWork):
    """The first pass over two spaces: sum the rows that are not zero in any space, and draw candidates for
    queries.

    The result has these arrays. sums_0 and sums_1 (d,) are the sums of the columns of each space. dropped
    (m,) are the numbers of the zero rows. keys (n_candidates,) are the smallest `row_keys`, ascending, and
    rows (n_candidates,) their row numbers. wanted (2, m) has positions in the ids `wanted`, and the row
    numbers of these ids. Its facts are n, the number of rows that are not zero; and classes, the number of
    rows with each label in the space `classes_of` (−1 for no space), or None for more than 100,000 labels.

    `n_candidates` is the number of queries to draw plus the number of anchors. `stream` and `random_state`
    are those of `Split`.
    """

    kind: ClassVar[str] = "survey"
    version: ClassVar[int] = 5

    n_candidates: int = 0
    stream: str = "queries"
    random_state: int = 0
    wanted: tuple[str, ...] = ()
    classes_of: int = -1

    def start(self, store: Store, report: Progress = silent) -> SurveyTotal:
        return SurveyTotal(self, report)


@dataclass(eq=False)
class SurveyTotal(ShardTotal):
    """The counts, sums and rows that a `Survey` collects. `by_key` are the smallest keys, and their rows."""

    survey: Survey
    report: Progress = silent
    n: int = 0
    sums: list[np.ndarray] = field(default_factory=list)
    dropped: np.ndarray = field(default_factory=NO_ROWS.copy)
    classes: Counter[str] | None = field(default_factory=Counter)
    wanted: np.ndarray = field(default_factory=lambda: np.empty((2, 0), np.int64))
    by_key: tuple[np.ndarray, np.ndarray] = (np.empty(0), NO_ROWS)

    def add(self, shards: Shards) -> None:
        classes_of = self.survey.classes_of
        if not self.sums:
            self.sums = [np.zeros(shard.width) for shard in shards]
        dropped = []
        places = []
        for blocks, alive, rows, vectors in live_rows(shards, self.report, labels=classes_of >= 0):
            need_same_ids(shards, blocks)
            for shard, block, total, X in zip(shards, blocks, self.sums, vectors, strict=True):
                finite(shard, block)
                total += X.sum(axis=0, dtype=np.float64)
            self.n += len(rows)
            first = shards[0].start + blocks[0].first
            every = np.arange(first, first + len(blocks[0].vectors))
            dropped.append(np.setdiff1d(every, rows, assume_unique=True))
            if self.survey.n_candidates or self.survey.wanted:
                ids = shards[0].ids_of(blocks[0])
                if shards[0].ids:
                    places.append(self._wanted_among(ids, every, shards[0].name))
                if self.survey.n_candidates:
                    keys = row_keys(ids[alive], self.survey.stream, self.survey.random_state)
                    self.by_key = self._smallest((keys, rows))
            if classes_of >= 0 and self.classes is not None:
                labels = blocks[classes_of].labels
                assert labels is not None, "all shards of this space have labels"
                more = Counter(labels[row] for row in alive if labels[row])
                self.classes = _few_classes(self.classes + more)
        self.dropped = _few(np.concatenate([self.dropped, *dropped]))
        self.wanted = np.concatenate([self.wanted, *places], axis=1)

    def _wanted_among(self, ids: np.ndarray, rows: np.ndarray, shard: str) -> np.ndarray:
        """The wanted rows of a block, as an array (2, w): their positions in the ids `wanted`, and their row
        numbers. `rows` (m,) are the row numbers of the block, and `ids` (m,) the ids."""
        index = pd.Index(ids, dtype=object)
        if not index.is_unique:
            twice = index[index.duplicated()].unique()
            raise SpaceError(
                f"{shard}: ids must be distinct, {len(twice):,} occur more than once, first"
                f" {quote(twice[:3])}; mend them"
            )
        positions = np.full(len(ids), -1)
        if self.survey.wanted:
            positions = pd.Index(self.survey.wanted, dtype=object).get_indexer(ids)
        return np.stack([positions, rows])[:, positions >= 0]

    def _smallest(self, more: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The smallest keys and their rows, of those held and of `more`."""
        n = self.survey.n_candidates
        held_keys, held_rows = self.by_key
        keys, rows = more
        if 0 < len(held_keys) == n:
            near = keys < held_keys[-1]
            keys = keys[near]
            rows = rows[near]
        keys = np.concatenate([held_keys, keys])
        rows = np.concatenate([held_rows, rows])
        order = np.argsort(keys, kind="stable")[:n]
        return keys[order], rows[order]

    def merge(self, other: SurveyTotal) -> None:
        self.n += other.n
        self.sums = [total + more for total, more in zip(self.sums, other.sums, strict=True)]
        self.dropped = _few(np.concatenate([self.dropped, other.dropped]))
        self.wanted = np.concatenate([self.wanted, other.wanted], axis=1)
        self.by_key = self._smallest(other.by_key)
        if self.classes is None or other.classes is None:
            self.classes = None
        else:
            self.classes = _few_classes(self.classes + other.classes)

    def result(self) -> Partial:
        arrays = {f"sums_{side}": total for side, total in enumerate(self.sums)}
        keys, rows = self.by_key
        arrays |= {"keys": keys, "rows": rows, "dropped": self.dropped, "wanted": self.wanted}
        classes = None
        if self.classes is not None:
            classes = dict(self.classes)
        return arrays, {"n": self.n, "classes": classes}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> None:
        self.n = facts["n"]
        self.sums = [arrays[name] for name in sorted(arrays) if name.startswith("sums_")]
        self.dropped = arrays["dropped"]
        self.wanted = arrays["wanted"]
        self.by_key = arrays["keys"], arrays["rows"]
        self.classes = None
        if facts["classes"] is not None:
            self.classes = Counter(facts["classes"])


def need_distinct_ids(space: ShardedSpace, survey: PassResult) -> None:
    """Raise a SpaceError if two candidates for queries have the same id. Keys are hashes of ids, sorted, so
    only neighbours can be equal.
    """
    keys = survey.arrays["keys"]
    rows = survey.arrays["rows"]
    pairs = np.flatnonzero(np.diff(keys) == 0)[:3]
    if not len(pairs) or not space.shards[0].ids:
        return
    first = rows[pairs]
    second = rows[pairs + 1]
    same = np.flatnonzero(np.array(space.ids_of(first)) == np.array(space.ids_of(second)))
    if len(same):
        twice = int(first[same[0]]), int(second[same[0]])
        names = [next(shard.name for shard in space.shards if row < shard.start + shard.n) for row in twice]
        raise SpaceError(
            f"{space.name}: ids must be distinct, {quote(space.ids_of(first[same[:1]]))} occurs more than"
            f" once, in {names[0]!r} and in {names[1]!r}; leave out rows that were written twice"
        )


def _few_classes(classes: Counter[str]) -> Counter[str] | None:
    if len(classes) <= _MOST_CLASSES:
        return classes
    return None


def _few(dropped: np.ndarray) -> np.ndarray:
    if len(dropped) > _MOST_DROPPED:
        raise SpaceError(
            f"expected at most {_MOST_DROPPED:,} zero vectors, got {len(dropped):,} in some shards; leave"
            " zero vectors out when you write the shards"
        )
    return dropped


@dataclass(frozen=True, eq=False)
class RowList:
    """The rows that `Gather` reads, as ascending row numbers (m,) in the whole space."""

    rows: np.ndarray


@dataclass(frozen=True)
class Gather(ShardWork):
    """Read the vectors of some rows in every space. `wanted` is the key under which `keep` stored their
    `RowList`.

    The arrays of the result are rows (m,), ascending, and vectors_0 and vectors_1 (m, d). With `texts`, its
    facts are the ids and the labels of the first space; each is None if a shard lacks them.
    """

    kind: ClassVar[str] = "gather"
    version: ClassVar[int] = 3

    wanted: str
    texts: bool = False
    vectors: bool = True

    def start(self, store: Store, report: Progress = silent) -> GatherTotal:
        return GatherTotal(self, read(store, self.wanted, RowList).rows)


@dataclass(eq=False)
class GatherTotal(ShardTotal):
    """The rows that a `Gather` found. Each list has one item for each shard."""

    gather: Gather
    wanted: np.ndarray
    found: list[dict[str, np.ndarray]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    labels: list[str] | None = field(default_factory=list)

    def add(self, shards: Shards) -> None:
        shard = shards[0]
        here = self.wanted[(self.wanted >= shard.start) & (self.wanted < shard.start + shard.n)]
        arrays = {"rows": here}
        if self.gather.vectors:
            arrays |= {f"vectors_{side}": part.take(here - shard.start) for side, part in enumerate(shards)}
        self.found.append(arrays)
        if not self.gather.texts:
            return
        if not shard.labels:
            self.labels = None
        for block, _, places in shard.holding(here - shard.start, labels=True):
            self.ids += shard.ids_of(block)[places].tolist()
            if self.labels is not None:
                assert block.labels is not None, "the labels of the block were asked for"
                self.labels += [block.labels[place] for place in places]

    def merge(self, other: GatherTotal) -> None:
        self.found += other.found
        self.ids += other.ids
        if self.labels is None or other.labels is None:
            self.labels = None
        else:
            self.labels += other.labels

    def result(self) -> Partial:
        arrays = {name: np.concatenate([part[name] for part in self.found]) for name in self.found[0]}
        if not self.gather.texts:
            return arrays, {}
        return arrays, {"ids": self.ids, "labels": self.labels}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> None:
        self.found = [dict(arrays)]
        if self.gather.texts:
            self.ids = list(facts["ids"])
            self.labels = facts["labels"]


def gather(
    runner: Runner, parts: Sequence[Shards], rows: np.ndarray, texts: bool = False, vectors: bool = True
) -> PassResult:
    """The result of `Gather` for these rows. A row that is given twice is read once."""
    key = keep(runner.store, RowList(np.unique(np.asarray(rows, dtype=np.int64))))
    return runner.run(Gather(key, texts, vectors), parts, "gather rows")


def wanted_ids(space: ShardedSpace, anchors: int | Sequence[str]) -> tuple[str, ...]:
    """The ids of anchors whose rows must be searched while shards are read. () if no search is needed: the
    ids are row numbers, or anchors are drawn at random."""
    if isinstance(anchors, int) or not space.shards[0].ids:
        return ()
    return tuple(anchors)


def chosen_anchors(
    space: ShardedSpace, survey: PassResult, anchors: int | Sequence[str], random_state: int = 0
) -> np.ndarray:
    """The row numbers of the anchors. `anchors` are ids, whose order is kept, or a number of rows to draw.
    The drawn rows are those that `select_anchors` would draw from the whole space with the strategy "random".
    """
    dropped = survey.arrays["dropped"]
    if isinstance(anchors, int):
        alive = space.n - len(dropped)
        if not 1 <= anchors <= alive:
            raise SpaceError(
                f"anchors: expected 1 … {alive:,}, the rows that have a direction, got {anchors:,}"
            )
        drawn = np.random.default_rng(random_state).choice(alive, anchors, replace=False)
        return to_full_index(drawn, dropped)
    ids = list(anchors)
    n_ids = len(set(anchors))
    if not ids or n_ids < len(ids):
        raise SpaceError(
            f"anchors: expected distinct ids, at least one, got {len(ids)}, {n_ids} of them distinct"
        )
    rows = np.full(len(ids), -1, dtype=np.int64)
    if space.shards[0].ids:
        places, numbers = survey.arrays["wanted"]
        rows[places] = numbers
        if several := [ids[place] for place in np.flatnonzero(np.bincount(places, minlength=1) > 1)]:
            raise SpaceError(
                f"anchors: expected ids of one row each, {len(several)} occur more than once in"
                f" {space.name!r}, first {quote(several[:3])}; make the ids distinct"
            )
    else:
        for place, number in enumerate(ids):  # the ids are row numbers
            if number.isdecimal() and f"{int(number)}" == number and int(number) < space.n:
                rows[place] = int(number)
    if unknown := [id_ for id_, row in zip(ids, rows, strict=True) if row < 0]:
        raise SpaceError(
            f"anchors: expected ids of {space.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}"
        )
    if zero := [ids[place] for place in np.flatnonzero(np.isin(rows, dropped))]:
        raise SpaceError(
            f"anchors: {quote(zero[:3])} are zero vectors in a space and have no direction; remove them"
        )
    return rows


MOST_ROWS = 1_000_000  # number of rows that four panes can draw
_SERIES = re.compile(r"step|epoch|iter|checkpoint|ckpt|layer", re.IGNORECASE)


def sample_spec(space: ShardedSpace, n_rows: int) -> SpaceSpec:
    """The spec to load the sample that `sample_job` draws. Its key changes if a shard is written again."""
    rows = min(n_rows, space.n)
    key = digest_of("sample of shards", 1, space.place, space.digest, rows)
    return SpaceSpec("sample", space.place, options=(("key", key), ("rows", f"{rows}"), ("of", f"{space.n}")))


def sample_job(context: Context, *, place: str, n_rows: int) -> None:
    """Draw a sample, and store it under the context's key."""
    stamp = folder_stamp(place)
    space = ShardedSpace.open(place)
    drawn = sample_shards(space, n_rows, Runner(context.store, report=context.report))
    put_encoding(context.store, context.key, drawn, {"sample of": space.place, "stamp": stamp})


sample_job.on_cpu = True  # no need to wait for a GPU


def too_large(place: str) -> ShardedSpace | None:
    """If the app can open a folder of shards only as a sample of its rows, the space in this folder;
    otherwise None. A sample is needed if the space has more rows than the app can draw, or is at an address.

    Folders of separate spaces, such as checkpoints of a model, give None. They are recognised by the names of
    their files, or by equal ids in two files.
    """
    if not is_sharded(place):
        return None
    space = ShardedSpace.open(place)
    if is_address(place):
        return space
    if space.n <= MOST_ROWS or any(_SERIES.search(shard.name) for shard in space.shards):
        return None
    first = next(space.shards[0].blocks(1)).ids
    second = next(space.shards[1].blocks(1)).ids
    if first is not None and first == second:
        return None
    return space


def sample_shards(space: ShardedSpace, n_rows: int, runner: Runner, also: Sequence[str] = ()) -> LatentSpace:
    """Draw a sample of `n_rows` rows that are not zero, with ids and labels, in the order of the shards. If
    there are fewer, all are taken.

    Rows are drawn by a hash of their ids, so spaces with the same ids get the same rows, even if their rows
    are distributed differently over shards. Rows with the ids `also`, such as seed pairs, are always
    included.
    """
    if n_rows < 1:
        raise SpaceError(f"n_rows: expected 1 row or more, got {n_rows}")
    work = Survey(min(n_rows, space.n), "sample", wanted=wanted_ids(space, also))
    survey = runner.run(work, space.alone, "survey")
    rows = survey.arrays["rows"]
    if also:
        rows = np.union1d(rows, chosen_anchors(space, survey, also))
    drawn = gather(runner, space.alone, rows, texts=True)
    vectors = drawn.arrays["vectors_0"]
    texts = drawn.facts
    return LatentSpace(vectors, texts["ids"], name=space.name, labels=texts["labels"])
