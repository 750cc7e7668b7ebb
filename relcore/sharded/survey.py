"""The first pass over shards: counts of rows, zero rows, ids and classes; and rows that are gathered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.catalog.catalog import SpaceSpec, folder_stamp, is_address
from relcore.catalog.encodings import put_encoding
from relcore.runs.entries import Entry, digest_of
from relcore.runs.store import Store
from relcore.runs.work import Context, Progress, silent
from relcore.scores.roles import to_full_index
from relcore.sharded.runner import Partial, PassResult, Runner, Shards, ShardWork, keep, live_rows, read
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

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        n = 0
        sums = [np.zeros(shard.width) for shard in shards]
        dropped = []
        classes = Counter()
        wanted = pd.Index(self.wanted, dtype=object)
        places = []
        smallest = np.empty(0), np.empty(0, np.int64)
        for blocks, alive, rows, vectors in live_rows(shards, report, labels=self.classes_of >= 0):
            need_same_ids(shards, blocks)
            for shard, block, side, X in zip(shards, blocks, sums, vectors, strict=True):
                finite(shard, block)
                side += X.sum(axis=0, dtype=np.float64)
            n += len(rows)
            first = shards[0].start + blocks[0].first
            every = np.arange(first, first + len(blocks[0].vectors))
            dropped.append(np.setdiff1d(every, rows, assume_unique=True))
            ids = None
            if self.n_candidates or len(wanted):
                ids = shards[0].ids_of(blocks[0])
            if ids is not None and shards[0].ids:
                index = pd.Index(ids, dtype=object)
                if not index.is_unique:
                    twice = index[index.duplicated()].unique()
                    raise SpaceError(
                        f"{shards[0].name}: ids must be distinct, {len(twice):,} occur more than once, first"
                        f" {quote(twice[:3])}; mend them"
                    )
                if len(wanted):
                    where = wanted.get_indexer(ids)
                else:
                    where = np.full(len(ids), -1)
                places.append(np.stack([where, every])[:, where >= 0])
            if self.n_candidates:
                keys = row_keys(ids[alive], self.stream, self.random_state)
                smallest = self._smallest(smallest, (keys, rows))
            if self.classes_of >= 0 and len(classes) <= _MOST_CLASSES:
                labels = blocks[self.classes_of].labels
                classes.update(labels[row] for row in alive if labels[row])
        arrays = {f"sums_{side}": total for side, total in enumerate(sums)}
        arrays |= {"keys": smallest[0], "rows": smallest[1]}
        arrays["dropped"] = _few(np.concatenate([*dropped, np.empty(0, np.int64)]))
        arrays["wanted"] = np.concatenate([*places, np.empty((2, 0), np.int64)], axis=1)
        return arrays, {"n": n, "classes": _few_classes(classes)}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        pairs = {name: (array, second.arrays[name]) for name, array in first.arrays.items()}
        keys, rows = self._smallest(*zip(pairs.pop("keys"), pairs.pop("rows"), strict=True))
        arrays = {"keys": keys, "rows": rows, "dropped": _few(np.concatenate(pairs.pop("dropped")))}
        arrays["wanted"] = np.concatenate(pairs.pop("wanted"), axis=1)
        for name, (sums, more) in pairs.items():
            arrays[name] = sums + more
        facts = first.metadata["facts"]
        more = second.metadata["facts"]
        classes = None
        if None not in (facts["classes"], more["classes"]):
            classes = _few_classes(Counter(facts["classes"]) + Counter(more["classes"]))
        return arrays, {"n": facts["n"] + more["n"], "classes": classes}

    def _smallest(
        self, held: tuple[np.ndarray, np.ndarray], more: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, rows = more
        if 0 < len(held[0]) == self.n_candidates:
            near = keys < held[0][-1]
            keys = keys[near]
            rows = rows[near]
        keys = np.concatenate([held[0], keys])
        rows = np.concatenate([held[1], rows])
        order = np.argsort(keys, kind="stable")[: self.n_candidates]
        return keys[order], rows[order]


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
        rows = int(first[same[0]]), int(second[same[0]])
        names = [next(shard.name for shard in space.shards if row < shard.start + shard.n) for row in rows]
        raise SpaceError(
            f"{space.name}: ids must be distinct, {quote(space.ids_of(first[same[:1]]))} occurs more than"
            f" once, in {names[0]!r} and in {names[1]!r}; leave out rows that were written twice"
        )


def _few_classes(classes: Counter[str]) -> dict[str, int] | None:
    if len(classes) <= _MOST_CLASSES:
        return dict(classes)
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

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        shard = shards[0]
        rows = read(store, self.wanted, RowList).rows
        here = rows[(rows >= shard.start) & (rows < shard.start + shard.n)]
        arrays = {"rows": here}
        ids = []
        labels = []
        if self.vectors:
            arrays |= {f"vectors_{side}": part.take(here - shard.start) for side, part in enumerate(shards)}
        if not self.texts:
            return arrays, {}
        for block, _, places in shard.holding(here - shard.start, labels=True):
            ids += shard.ids_of(block)[places].tolist()
            if shard.labels:
                labels += [block.labels[place] for place in places]
        return arrays, {"ids": ids, "labels": labels if shard.labels else None}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        arrays = {name: np.concatenate([rows, second.arrays[name]]) for name, rows in first.arrays.items()}
        pairs = {
            name: (texts, second.metadata["facts"][name]) for name, texts in first.metadata["facts"].items()
        }
        return arrays, {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}


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
        rows[:] = [
            int(id_) if id_.isdecimal() and f"{int(id_)}" == id_ and int(id_) < space.n else -1 for id_ in ids
        ]
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
    first, second = (next(shard.blocks(1)).ids for shard in space.shards[:2])
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
