"""ShardedSpace: a folder of shards as one space."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.plan import rows_beside
from relcore.sharded.passes import Arrays, PassResult, Shards, ShardWork
from relcore.sharded.shard import FORMATS, Shard, ShardBlock, beside, filesystem, is_address, listed, stamp_of
from relcore.spaces.space import LatentSpace

_NUMBERS = re.compile(r"(\d+)")
_AT_ONCE = (
    16  # headers that are read at the same time: a store of objects answers each in a tenth of a second
)


@dataclass(frozen=True)
class ShardedSpace:
    """The rows of all shards, one after the other in the order of their names ("part-2" before "part-10").

    Attributes
    ----------
    name, place : str
        Of the folder: its last part, and its path or address.
    shards : tuple of Shard
        Empty ones left out.
    """

    name: str
    place: str
    shards: tuple[Shard, ...]

    @classmethod
    def open(cls, place: str) -> ShardedSpace:
        """The space of a folder of .npy, .parquet, .arrow or .feather files, at a path or an fsspec address,
        by their headers.

        Raises
        ------
        SpaceError
            No such folder, no shards, two formats, widths that differ, ids in some shards only.
        """
        place = str(place)
        place = place if is_address(place) else filesystem(place)[1]
        files = listed(place)
        kinds = {name: kind for name in files for kind in FORMATS if name.lower().endswith(kind)}
        if not kinds:
            raise SpaceError(
                f"{place!r:.200}: expected a folder with shards ({', '.join(FORMATS)}), got none; name"
                " another folder"
            )
        if len(set(kinds.values())) > 1:
            raise SpaceError(
                f"{place!r:.200}: expected shards of one format, got"
                f" {', '.join(sorted(set(kinds.values())))}; keep one of them in this folder"
            )
        of_stem = {name.rsplit(".", 1)[0].lower(): name for name in sorted(kinds)}
        if alike := sorted(
            kinds.keys() - of_stem.values()
        ):  # their ids, and their results, would be one file
            pair = quote([alike[0], of_stem[alike[0].rsplit(".", 1)[0].lower()]])
            raise SpaceError(f"expected shards whose names differ, not only in case, got {pair}; rename one")
        names = sorted(
            kinds, key=lambda name: (_natural(name), name)
        )  # "part-01" and "part-1" in one order on all machines

        def shard(name: str) -> Shard:
            kind, url = kinds[name], beside(place, name)
            header = FORMATS[kind].header(url, files[name]["size"], files.keys())
            stamps = [
                stamp_of(files[other]) for other in files if other.startswith(f"{name.rsplit('.', 1)[0]}.")
            ]
            return FORMATS[kind](name, url, stamp=digest_of(stamps), **header)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(shard, names))
        return cls(place.rstrip("/").rsplit("/", 1)[-1] or "shards", place, _numbered(place, found))

    @property
    def n(self) -> int:
        """Rows."""
        return self.shards[-1].start + self.shards[-1].n

    @property
    def width(self) -> int:
        """Numbers per row."""
        return self.shards[0].width

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"ShardedSpace({self.name!r}, n={self.n}, d={self.width}, shards={len(self.shards)})"

    @cached_property
    def digest(self) -> str:
        """Digest of the shards' stamps: it changes when a shard is written again, added or removed. No
        shard is read.
        """
        return digest_of(
            "sharded", [(shard.name, shard.n, shard.width, shard.stamp) for shard in self.shards]
        )

    def shard_of(self, row: int) -> Shard:
        """The shard with this row, 0 … n − 1, of the whole space."""
        return next(shard for shard in self.shards if row < shard.start + shard.n)

    def ids_of(self, rows: np.ndarray) -> list[str]:
        """The ids of these rows, in their order."""
        if not self.shards[0].ids:
            return [str(row) for row in rows]
        found: dict[int, str] = {}
        for shard in self.shards:
            here = [int(row) - shard.start for row in rows if shard.start <= row < shard.start + shard.n]
            for block in shard.blocks() if here else ():
                stop = block.first + len(block.vectors)
                found |= {
                    shard.start + row: block.ids[row - block.first]
                    for row in here
                    if block.first <= row < stop
                }
        return [found[int(row)] for row in rows]

    def whole(self) -> LatentSpace:
        """All rows in memory, as one space: for spaces that fit, and to check results by shard against."""
        blocks = [(shard, block) for shard in self.shards for block in shard.blocks(labels=True)]
        ids = np.concatenate([shard.ids_of(block) for shard, block in blocks])
        labelled = all(block.labels is not None for _, block in blocks)
        labels = [label for _, block in blocks for label in block.labels] if labelled else None
        return LatentSpace(
            np.concatenate([block.vectors for _, block in blocks]), ids, name=self.name, labels=labels
        )


def is_sharded(place: str) -> bool:
    """Whether a path or an address names a folder of two shards or more of one format and one width."""
    if not is_address(place) and not _may_hold_shards(access.allowed(place)):
        return False
    filesystem(place)  # says what to install, where fsspec is missing
    try:
        return len(ShardedSpace.open(place).shards) > 1
    except SpaceError:
        return False


def _may_hold_shards(folder: Path) -> bool:
    """Whether a folder of this machine has two files of one format that shards have; fsspec, an extra, is
    not asked.
    """
    try:
        kinds = Counter(path.suffix.lower() for path in folder.iterdir())
    except OSError:
        return False
    return any(kinds[kind] > 1 for kind in FORMATS)


def _numbered(place: str, found: list[Shard]) -> tuple[Shard, ...]:
    """The shards with the numbers of their first rows, once they are known to fit together."""
    full = [shard for shard in found if shard.n]
    if not full:
        raise SpaceError(
            f"{place!r:.200}: expected shards with rows, got {len(found):,} without any; write them again"
        )
    first = full[0]
    for shard in full[1:]:
        if shard.width != first.width:
            raise SpaceError(
                f"{place!r:.200}: expected shards of one width, got {first.width:,} in {first.name!r} and"
                f" {shard.width:,} in {shard.name!r}; move one of them to another folder, or open the files"
                " one by one"
            )
        if bool(shard.ids) != bool(first.ids):
            without = quote([(first if shard.ids else shard).name])
            raise SpaceError(
                f"{place!r:.200}: expected ids in all shards or in none, {without} has none; write its"
                " ids, too"
            )
    starts = np.cumsum([0, *(shard.n for shard in full)]).tolist()
    return tuple(replace(shard, start=start) for shard, start in zip(full, starts[:-1], strict=True))


def _natural(name: str) -> list[tuple[int, str, int]]:
    parts = _NUMBERS.split(name.lower())
    return [(1, "", int(part)) if part.isdecimal() else (0, part, 0) for part in parts if part]


# ShardedPair: two sharded spaces whose shards hold the same rows in the same order.


@dataclass(frozen=True)
class ShardedPair:
    """Two spaces by shard; shard i of both has the same rows in the same order. Ids are compared while the
    shards are read.

    Raises
    ------
    SpaceError
        Another number of shards, or shards with other numbers of rows.
    """

    source: ShardedSpace
    target: ShardedSpace

    def __post_init__(self) -> None:
        pairs = zip(self.source.shards, self.target.shards, strict=False)
        other = next((pair for pair in pairs if pair[0].n != pair[1].n), None)
        if other is not None:
            first, second = other
            raise SpaceError(
                f"expected shards with the same rows in the same order, got {first.n:,} rows in"
                f" {first.name!r} of {self.source.name!r} and {second.n:,} in {second.name!r} of"
                f" {self.target.name!r}; write both with the same rows per shard, sorted by id"
            )
        if len(self.source.shards) != len(self.target.shards):
            longer, shorter = sorted((self.source, self.target), key=lambda space: -len(space.shards))
            missing = [shard.name for shard in longer.shards[len(shorter.shards) :][:3]]
            raise SpaceError(
                f"expected as many shards in both folders, got {len(self.source.shards):,} in"
                f" {self.source.name!r} and {len(self.target.shards):,} in {self.target.name!r}:"
                f" {shorter.name!r} has no partner for {quote(missing)}; add it, or move these shards"
                " elsewhere"
            )

    @property
    def n(self) -> int:
        """Rows of either space, with those that are zero."""
        return self.source.n

    @property
    def parts(self) -> list[Shards]:
        """What each job reads."""
        return list(zip(self.source.shards, self.target.shards, strict=True))


def need_same_ids(shards: Shards, blocks: tuple[ShardBlock, ...]) -> None:
    """Raise a SpaceError that names the first row whose ids differ between the shards."""
    if all(block.ids is None for block in blocks) and len({shard.start for shard in shards}) == 1:
        return
    first, *others = (shard.ids_of(block) for shard, block in zip(shards, blocks, strict=True))
    for shard, ids in zip(shards[1:], others, strict=True):
        differ = np.flatnonzero(ids != first)
        if len(differ):
            row = int(differ[0])
            raise SpaceError(
                f"{shards[0].name!r} and {shard.name!r}, row {blocks[0].first + row + 1:,}: expected the same"
                f" id in both, got {quote([first[row], ids[row]])};"
                " sort the rows of both spaces by id before they are written in shards"
            )


def lengths_above_zero(blocks: tuple[np.ndarray, ...]) -> np.ndarray:
    """Which rows have a direction in every space, (m,) bool; the others are left out of a comparison, as
    by `match`.
    """
    return np.logical_and.reduce([rows.any(axis=1) for rows in blocks])


def global_rows(shard: Shard, block: ShardBlock, rows: np.ndarray) -> np.ndarray:
    """Numbers in the whole space of rows of a block."""
    return shard.start + block.first + rows


# Gather: a few rows of sharded spaces, such as anchors and queries, into memory.


@dataclass(frozen=True)
class Gather(ShardWork):
    """The vectors of the rows whose numbers are in the store under a key, of every space; see `put_rows`.

    Arrays: rows (m,), ascending, and vectors_0, vectors_1 (m, d). Facts, with `texts`: the ids of the first
    space, and the labels of the first space that has some; labels are None where a shard has none in any
    space.
    """

    kind: ClassVar[str] = "gather"
    version: ClassVar[int] = 2

    wanted: str
    texts: bool = False
    vectors: bool = True

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        rows = store.get(self.wanted).arrays["rows"]
        start, n = shards[0].start, shards[0].n
        here = rows[(rows >= start) & (rows < start + n)]
        arrays = {"rows": here}
        if self.vectors:
            arrays |= {f"vectors_{side}": shard.take(here - start) for side, shard in enumerate(shards)}
        return arrays, _texts(shards, here - start) if self.texts else {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        return {
            name: np.concatenate([one, second.arrays[name]]) for name, one in first.arrays.items()
        }, _joined(first.metadata["facts"], second.metadata["facts"])


def _joined(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if None in (column, two[name]) else [*column, *two[name]] for name, column in one.items()
    }


def _texts(shards: Shards, rows: np.ndarray) -> dict[str, Any]:
    first, labelled = shards[0], next((shard for shard in shards if shard.labels), None)
    read: dict[Shard, tuple[list[str], list[str]]] = {
        shard: ([], []) for shard in (first, labelled) if shard is not None and (shard.ids or shard.labels)
    }
    for shard, (ids, labels) in read.items():
        for block in shard.blocks(labels=True):
            places = rows[(rows >= block.first) & (rows < block.first + len(block.vectors))] - block.first
            ids += shard.ids_of(block)[places].tolist()
            labels += [block.labels[place] for place in places] if shard.labels else []
    ids = read[first][0] if first.ids else [str(first.start + row) for row in rows]
    return {"ids": ids, "labels": None if labelled is None else read[labelled][1]}


def put_rows(store: Store, rows: np.ndarray, texts: bool = False, vectors: bool = True) -> Gather:
    """The work that gathers these rows of the whole space, each once, or their ids and labels alone."""
    rows = np.unique(np.asarray(rows, dtype=np.int64))
    key = digest_of("rows to gather", rows)
    if not store.has(key):
        store.put(key, {"rows": rows})
    return Gather(key, texts, vectors)


# Which rows of a sharded space are anchors: given ids, or as many as a number says, drawn as `select_anchors`
# draws them.


def drawn_anchors(survey: PassResult, n: int, n_anchors: int, random_state: int = 0) -> np.ndarray:
    """Row numbers (n_anchors,) at random among those that have a direction: the ones that `select_anchors`
    chooses by "random" of one space with all n rows.

    Raises
    ------
    SpaceError
        More anchors than rows.
    """
    dropped = survey.arrays["dropped"]
    alive = n - len(dropped)
    if not 1 <= n_anchors <= alive:
        raise SpaceError(
            f"anchors: expected 1 … {alive:,}, the rows that have a direction, got {n_anchors:,}"
        )
    drawn = np.random.default_rng(random_state).choice(alive, n_anchors, replace=False)
    return rows_beside(drawn, dropped)


def chosen_anchors(
    space: ShardedSpace, survey: PassResult, anchors: int | Sequence[str], random_state: int = 0
) -> np.ndarray:
    """Row numbers of anchors, which are ids, or a number of random rows."""
    if isinstance(anchors, int):
        return drawn_anchors(survey, space.n, anchors, random_state)
    return named_anchors(space, survey, anchors)


def wanted_ids(space: ShardedSpace, anchors: int | Sequence[str]) -> tuple[str, ...]:
    """The ids to look for while shards are read; none where ids are row numbers, which are known already."""
    return () if isinstance(anchors, int) or not space.shards[0].ids else tuple(anchors)


def named_anchors(space: ShardedSpace, survey: PassResult, ids: Sequence[str]) -> np.ndarray:
    """Row numbers of these ids, in their order.

    Raises
    ------
    SpaceError
        None, an id twice, one that the space lacks or that several of its rows have, one without a direction.
    """
    ids = list(ids)
    if not ids or len(set(ids)) < len(ids):
        raise SpaceError(
            f"anchors: expected distinct ids, at least one, got {len(ids)}, {len(set(ids))} of them distinct"
        )
    rows = np.full(len(ids), -1, dtype=np.int64)
    if space.shards[0].ids:
        places, found = survey.arrays["wanted"]
        rows[places] = found
        if several := [ids[place] for place in np.flatnonzero(np.bincount(places, minlength=1) > 1)]:
            raise SpaceError(
                f"anchors: expected ids of one row each, {len(several)} occur more than once in"
                f" {space.name!r}, first {quote(several[:3])}; make the ids distinct"
            )
    else:
        rows[:] = [
            int(one) if one.isdecimal() and str(int(one)) == one and int(one) < space.n else -1 for one in ids
        ]
    unknown = [one for one, row in zip(ids, rows, strict=True) if row < 0]
    if unknown:
        raise SpaceError(
            f"anchors: expected ids of {space.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}"
        )
    zero = [ids[place] for place in np.flatnonzero(np.isin(rows, survey.arrays["dropped"]))]
    if zero:
        raise SpaceError(
            f"anchors: {quote(zero[:3])} are zero vectors in a space and have no direction; remove them"
        )
    return rows
