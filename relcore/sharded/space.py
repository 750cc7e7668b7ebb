"""ShardedSpace: a folder of shards as one space."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from relcore import access
from relcore.sharded.files import beside, filesystem, is_address, listed, stamp_of
from relcore.sharded.made_shard import PREFIX, made_shards
from relcore.sharded.shard import KINDS, Shard
from relcore.spaces import LatentSpace, SpaceError, quote
from relcore.store import digest_of

_NUMBERS = re.compile(r"(\d+)")
_AT_ONCE = 16  # headers that are read at the same time: a store of objects answers each in a tenth of a second


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
        """The space of a folder of .npy, .parquet, .arrow or .feather files, at a path or an fsspec address, by their headers.

        Raises
        ------
        SpaceError
            No such folder, no shards, two formats, widths that differ, ids in some shards only.
        """
        place = str(place)
        if place.startswith(PREFIX):
            return cls("made", place, tuple(shard for shard in made_shards(place) if shard.n))
        place = place if is_address(place) else filesystem(place)[1]
        files = listed(place)
        kinds = {name: kind for name in files for kind in KINDS if name.lower().endswith(kind)}
        if not kinds:
            raise SpaceError(
                f"{place!r:.200}: expected a folder with shards ({', '.join(_FORMATS)}), got none; name another folder"
            )
        if len(set(kinds.values())) > 1:
            raise SpaceError(
                f"{place!r:.200}: expected shards of one format, got {', '.join(sorted(set(kinds.values())))}; keep one of "
                "them in this folder"
            )
        of_stem = {name.rsplit(".", 1)[0].lower(): name for name in sorted(kinds)}
        if alike := sorted(kinds.keys() - of_stem.values()):  # their ids, and their results, would be one file
            pair = quote([alike[0], of_stem[alike[0].rsplit(".", 1)[0].lower()]])
            raise SpaceError(f"expected shards whose names differ, not only in case, got {pair}; rename one")
        names = sorted(kinds, key=lambda name: (_natural(name), name))  # "part-01" and "part-1" in one order on all machines

        def shard(name: str) -> Shard:
            kind, url = kinds[name], beside(place, name)
            header = KINDS[kind].load().header(url, files[name]["size"], files.keys())
            stamps = [stamp_of(files[other]) for other in files if other.startswith(f"{name.rsplit('.', 1)[0]}.")]
            return Shard(name, url, kind, stamp=digest_of(stamps), **header)

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
        """Digest of the shards' stamps: it changes when a shard is written again, added or removed. No shard is read."""
        return digest_of("sharded", [(shard.name, shard.n, shard.width, shard.stamp) for shard in self.shards])

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (m, width) of these rows of the whole space, in their order, float32.

        Raises
        ------
        SpaceError
            A row number outside 0 … n − 1, a shard that cannot be read.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.n:
            raise SpaceError(f"{self.name}: expected rows 0 … {self.n - 1:,}, got {rows.min():,} … {rows.max():,}")
        out = np.empty((len(rows), self.width), dtype=np.float32)
        for shard in self.shards:
            here = np.flatnonzero((rows >= shard.start) & (rows < shard.start + shard.n))
            if len(here):
                out[here] = shard.take(rows[here] - shard.start)
        return out

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
                found |= {shard.start + row: block.ids[row - block.first] for row in here if block.first <= row < stop}
        return [found[int(row)] for row in rows]

    def whole(self) -> LatentSpace:
        """All rows in memory, as one space: for spaces that fit, and to check results by shard against."""
        blocks = [(shard, block) for shard in self.shards for block in shard.blocks(labels=True)]
        ids = np.concatenate([shard.ids_of(block) for shard, block in blocks])
        labelled = all(block.labels is not None for _, block in blocks)
        labels = [label for _, block in blocks for label in block.labels] if labelled else None
        return LatentSpace(np.concatenate([block.vectors for _, block in blocks]), ids, name=self.name, labels=labels)


_FORMATS = tuple(kind for kind in KINDS if kind != ".made")


def is_sharded(place: str) -> bool:
    """Whether a path or an address names a folder of two shards or more of one format and one width."""
    if place.startswith(PREFIX):
        return True
    if not is_address(place) and not _may_hold_shards(access.allowed(place)):
        return False
    filesystem(place)  # says what to install, where fsspec is missing
    try:
        return len(ShardedSpace.open(place).shards) > 1
    except SpaceError:
        return False


def _may_hold_shards(folder: Path) -> bool:
    """Whether a folder of this machine has two files of one format that shards have; fsspec, an extra, is not asked."""
    try:
        kinds = Counter(path.suffix.lower() for path in folder.iterdir())
    except OSError:
        return False
    return any(kinds[kind] > 1 for kind in _FORMATS)


def _numbered(place: str, found: list[Shard]) -> tuple[Shard, ...]:
    """The shards with the numbers of their first rows, once they are known to fit together."""
    full = [shard for shard in found if shard.n]
    if not full:
        raise SpaceError(f"{place!r:.200}: expected shards with rows, got {len(found):,} without any; write them again")
    first = full[0]
    for shard in full[1:]:
        if shard.width != first.width:
            raise SpaceError(
                f"{place!r:.200}: expected shards of one width, got {first.width:,} in {first.name!r} and {shard.width:,} in "
                f"{shard.name!r}; move one of them to another folder, or open the files one by one"
            )
        if bool(shard.ids) != bool(first.ids):
            without = quote([(first if shard.ids else shard).name])
            raise SpaceError(f"{place!r:.200}: expected ids in all shards or in none, {without} has none; write its ids, too")
    starts = np.cumsum([0, *(shard.n for shard in full)]).tolist()
    return tuple(replace(shard, start=start) for shard, start in zip(full, starts[:-1], strict=True))


def _natural(name: str) -> list[tuple[int, str, int]]:
    parts = _NUMBERS.split(name.lower())
    return [(1, "", int(part)) if part.isdecimal() else (0, part, 0) for part in parts if part]
