"""LatentSpace: the rows of an encoder with their ids; match() pairs two spaces by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from relcore.errors import NoCommonId, SpaceError, quote
from relcore.magnitude import lengths
from relcore.mapped import mapped
from relcore.row_columns import RowNumbers, checked_counts, checked_strings, checked_vectors, need_distinct_ids
from relcore.space_digest import digest_of_columns, digest_of_content

_COLUMNS = ("labels", "payload", "counts")


class LatentSpace:
    """An absolute space: a float32 vector and an id per row; immutable.

    Parameters
    ----------
    vectors : array (n, d)
        Kept as float32, read-only; copied unless it is a read-only float32 array already. A read-only memory map of float16
        or float32 (``numpy.load(path, mmap_mode="r")``), or `MappedRows`, stays on disk: `vectors` then is a float32 map, or
        `MappedRows`, of which slices, rows and masks are float32. Its file must not be written again while it is in use.
    ids : n distinct strings
        What pairs this space with another; see `match`. `RowNumbers` are made when they are used.
    name : str
        Its display name: ``"word2vec-novels"``.
    labels : n strings, optional
        One category per row, for colours and class-balanced anchors; ``""`` where a row has none.
    payload : n items, optional
        The item of each row (a sentence, the path of a picture).
    counts : n non-negative integers, optional
        How often each row occurs in its corpus; "most frequent" anchors go by it, or by row order where it is absent.

    Raises
    ------
    SpaceError
        Not two dimensions, no rows, NaN or infinite values, lengths that differ, duplicate or empty ids; ids or labels
        that are bytes, fractions or missing; counts that are negative, fractions or beyond int64.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace
    >>> space = LatentSpace(np.eye(3), ["king", "queen", "river"], name="words")
    >>> len(space), space.dimension
    (3, 3)
    >>> space.rows(["river", "king"])
    array([2, 0])
    """

    def __init__(
        self,
        vectors: np.ndarray,
        ids: Sequence[str],
        *,
        name: str = "space",
        labels: Sequence[str] | None = None,
        payload: Sequence[Any] | None = None,
        counts: Sequence[int] | None = None,
    ) -> None:
        self._stored = stored = mapped(vectors)
        given = np.asarray(vectors) if stored is None else stored
        if given.ndim != 2 or 0 in given.shape:
            raise SpaceError(f"{name}: expected a matrix (n, d) with rows and columns, got shape {given.shape}")
        self.name = name
        self._vectors = checked_vectors(given, name) if stored is None else stored if stored.plain is None else stored.plain
        n = len(given)
        self._row_numbers = ids if isinstance(ids, RowNumbers) and len(ids) == n else None
        if self._row_numbers is None:
            self.ids = _read_only(checked_strings(ids, n, name, "ids"))
        self.labels = None if labels is None else _read_only(checked_strings(labels, n, name, "labels"))
        self.payload = None if payload is None else tuple(payload)
        self.counts = None if counts is None else _read_only(checked_counts(counts, name))
        for what, column in (("payload", self.payload), ("counts", self.counts)):
            if column is not None and len(column) != n:
                raise SpaceError(f"{name}: expected {n} {what}, one per row, got {len(column)}")
        self._check_finite()
        if self._row_numbers is None:
            need_distinct_ids(self.index, name)

    def _check_finite(self) -> None:
        # A finite sum proves finite rows at a fraction of the cost of looking at every value; of a map the lengths are known.
        known = None if self._stored is None else self._stored.lengths
        if np.isfinite(np.sum(self.vectors if known is None else known, dtype=np.float64)):
            return
        bad = np.flatnonzero(~np.isfinite(self.vectors).all(axis=1) if known is None else ~np.isfinite(known))
        if len(bad):
            raise SpaceError(
                f"{self.name}: {len(bad)} of {len(self)} rows hold NaN or infinite values, first {quote(self.ids[bad[:3]])}; "
                "drop these rows, or load the file with invalid='drop' (in a command FILE#invalid=drop); "
                "float32 holds numbers up to 3.4e38"
            )

    @property
    def vectors(self) -> np.ndarray:
        """The vectors (n, d), float32 and read-only; of a file that is mapped, once it is known to be as it was.

        Raises
        ------
        SpaceError
            The file was changed since the space was loaded.
        """
        if self._stored is not None:
            self._stored.origin.need_unchanged()
        return self._vectors

    def __len__(self) -> int:
        return len(self._vectors)

    def __repr__(self) -> str:
        return f"LatentSpace({self.name!r}, n={len(self)}, d={self.dimension}, digest={self.digest[:8]})"

    @property
    def dimension(self) -> int:
        return self._vectors.shape[1]

    @cached_property
    def ids(self) -> np.ndarray:
        """The id of each row, (n,) Python strings."""
        return _read_only(self._row_numbers.at(slice(None)))

    @cached_property
    def index(self) -> pd.Index:
        return pd.Index(self.ids, dtype=object)

    @cached_property
    def norms(self) -> np.ndarray:
        """Euclidean length of each row, (n,)."""
        return _read_only(lengths(self._vectors)) if self._stored is None else self._stored.lengths

    @cached_property
    def zero_rows(self) -> np.ndarray:
        """Row numbers of zero vectors: they have no direction, so no cosine."""
        return _read_only(np.flatnonzero(self.norms == 0))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of vectors, ids, labels and counts: equal content, equal digest, whatever the name."""
        columns = self._row_numbers or self.ids, self.labels, self.counts
        if self._stored is None:
            return digest_of_content(self._vectors.shape, [self._vectors], columns)
        told, origin = digest_of_columns(columns), self._stored.origin
        origin.need_unchanged()
        if (known := origin.known_digest(told)) is None:
            known = digest_of_content(self._stored.shape, (block for _, block in self._stored.blocks()), columns)
            origin.keep_digest(told, known)
        return known

    def same_ids(self, other: LatentSpace) -> bool:
        """Whether another space has the same ids in the same order."""
        if self._row_numbers is not None and other._row_numbers is not None:
            return self._row_numbers == other._row_numbers
        return np.array_equal(self.ids, other.ids)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Row numbers (m,) of the ids, in their order.

        Raises
        ------
        SpaceError
            Ids that the space lacks, naming the first three.
        """
        ids = list(ids)
        rows = self._row_numbers.rows(ids) if self._row_numbers else self.index.get_indexer(pd.Index(ids, dtype=object))
        unknown = [identifier for identifier, row in zip(ids, rows, strict=True) if row < 0]
        if unknown:
            raise SpaceError(f"expected ids of {self.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}")
        return rows

    def with_columns(self, **changes: Any) -> LatentSpace:
        """The same vectors with another name, ids, labels, payload or counts."""
        columns = {"ids": self._row_numbers or self.ids, **{key: getattr(self, key) for key in ("name", *_COLUMNS)}}
        return LatentSpace(self._vectors if self._stored is None else self._stored, **columns | changes)

    def take(self, rows: np.ndarray, name: str | None = None) -> LatentSpace:
        """The space of these rows, in this order."""
        rows = np.asarray(rows)
        ids = self.ids if self._row_numbers is None else self._row_numbers
        return LatentSpace(
            self.vectors[rows],
            ids[rows] if isinstance(ids, np.ndarray) else ids.at(rows),
            name=name or self.name,
            labels=None if self.labels is None else self.labels[rows],
            payload=None if self.payload is None else [self.payload[row] for row in rows],
            counts=None if self.counts is None else self.counts[rows],
        )


@dataclass(frozen=True)
class Match:
    """Two spaces over the same ids in the same order, and the number of rows left out."""

    source: LatentSpace
    target: LatentSpace
    n_source_only: int
    n_target_only: int
    n_zero: int

    @property
    def ids(self) -> np.ndarray:
        return self.source.ids

    def __len__(self) -> int:
        return len(self.source)


def match(source: LatentSpace, target: LatentSpace) -> Match:
    """Pair two spaces by id, in the source's order; rows that are zero in either are left out and counted.

    Raises
    ------
    NoCommonId
        No shared id; a SpaceError.
    SpaceError
        None left after zero vectors are taken out.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, match
    >>> first = LatentSpace(np.eye(3), ["king", "queen", "river"])
    >>> second = LatentSpace(2 * np.eye(3), ["river", "sea", "king"])
    >>> pair = match(first, second)
    >>> pair.ids.tolist(), pair.n_target_only
    (['king', 'river'], 1)
    >>> pair.target.vectors.tolist()
    [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]]
    """
    if source.same_ids(target):
        in_source = in_target = np.arange(len(source))
    else:
        rows = target.index.get_indexer(source.index)
        in_source = np.flatnonzero(rows >= 0)
        in_target = rows[in_source]
    if not len(in_source):
        raise NoCommonId(
            f"{source.name!r} and {target.name!r} share no ids (for instance {quote(source.ids[:2])} and "
            f"{quote(target.ids[:2])}); encode the same items with both, or give both files the same id column"
        )
    alive = (source.norms[in_source] > 0) & (target.norms[in_target] > 0)
    if not alive.any():
        raise SpaceError(f"{source.name!r} and {target.name!r} share {len(alive)} ids, but every shared row is a zero vector")
    return Match(
        source=_take_unless_all(source, in_source[alive]),
        target=_take_unless_all(target, in_target[alive]),
        n_source_only=len(source) - len(in_source),
        n_target_only=len(target) - len(in_target),
        n_zero=int(np.count_nonzero(~alive)),
    )


def _take_unless_all(space: LatentSpace, rows: np.ndarray) -> LatentSpace:
    whole = len(rows) == len(space) and np.array_equal(rows, np.arange(len(space)))
    return space if whole else space.take(rows)


def distinct_names(spaces: Sequence[LatentSpace]) -> list[str]:
    """A distinct name for each space; equal names are numbered, ``"words (1)"``, ``"words (2)"``."""
    names = [space.name for space in spaces]
    taken, distinct = set(names), []
    for name in names:
        if names.count(name) > 1:
            name = next(numbered for number in count(1) if (numbered := f"{name} ({number})") not in taken)
            taken.add(name)
        distinct.append(name)
    return distinct


def need_one_of(setting: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise a SpaceError that names the setting unless the value is one of those allowed."""
    if value not in allowed:
        raise SpaceError(f"{setting}: expected one of {', '.join(map(str, allowed))}, got {value!r:.80}")


def need_strings(setting: str, value: Any) -> None:
    """Raise a SpaceError that names the setting unless the value is a tuple of strings."""
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise SpaceError(f"{setting}: expected a list of ids, got {value!r:.80}")


def need_distinct(setting: str, values: Any, allowed: Sequence[Any] | None = None) -> None:
    """Raise a SpaceError that names the setting unless the value is a tuple of different items, one or more, all allowed."""
    if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
        raise SpaceError(f"{setting}: expected at least one, none twice, got {values!r:.80}")
    for value in values if allowed else ():
        need_one_of(setting, value, allowed)


def need_whole(settings: Any, **least: int) -> None:
    """Raise a SpaceError unless these attributes are whole numbers, each at least as large as given."""
    for name, lowest in least.items():
        value = getattr(settings, name)
        if type(value) is not int or value < lowest:
            raise SpaceError(f"{name}: expected a whole number from {lowest}, got {value!r:.80}")


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def shared_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The ids that every space has, in the first one's order; empty where there are none."""
    ids = spaces[0].index
    for space in spaces[1:]:
        ids = ids[ids.isin(space.index)]
    return ids
