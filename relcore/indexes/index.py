"""VectorIndex: what every store of vectors can do here, streamed block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from relcore.estimator import matrix, need_finite
from relcore.progress import Report, silent
from relcore.similarity import unit_rows
from relcore.sources.index_place import Place
from relcore.spaces import SpaceError

BLOCK = 4096
Payload = tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of an index.

    Attributes
    ----------
    ids : list of str
    vectors : array (m, d) float32
    payload : tuple of dict
        What else the store keeps with each row; () where it keeps nothing.
    """

    ids: list[str]
    vectors: np.ndarray
    payload: Payload = field(default=())


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest rows of each query, nearest first: ids (m, k) object, scores (m, k) where larger is nearer.

    A query with fewer than k rows has "" and −∞ in the rest.
    """

    ids: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Target:
    """What is written: the number of rows and their width, and whether rows may be added to what is there.

    `resumed` is true where an earlier, killed run has begun to write the same rows to the same place.
    """

    n: int
    width: int
    add: bool = False
    resumed: bool = False


class VectorIndex(ABC):
    """Vectors with ids in a file or a database, opened for reading; to be used in a ``with``.

    Attributes
    ----------
    name : str
    n, width : int
        Rows, and numbers per row.
    """

    name: str
    n: int
    width: int

    @classmethod
    @abstractmethod
    def open(cls, place: Place) -> Self:
        """Open for reading; nothing is changed.

        Raises
        ------
        SpaceError
            Nothing there, a damaged file, a locked folder, a server that does not answer, a missing extra.
        """

    @abstractmethod
    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[Block]:
        """All rows from `start` on, at most `size` at once, in the same order each time."""

    @classmethod
    def need_target(cls, place: Place, target: Target) -> None:
        """Raise a SpaceError where `write` would before it takes the first row; here of a file."""
        folder = place.path.absolute().parent
        if not folder.is_dir():
            raise SpaceError(f"{place.path.name}: expected an existing folder, got {str(folder)!r:.200}; create it")
        need_new(place.path.name, place.path.exists(), target, can_add=False)

    @classmethod
    @abstractmethod
    def write(cls, place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
        """Write rows to a new place, or to one that is there where ``target.add``; nothing is ever deleted.

        Raises
        ------
        SpaceError
            The place is taken, or has another width; a store that cannot add rows.
        """

    def close(self) -> None:  # noqa: B027 - files are opened for each block, and most stores hold nothing else
        """Release locks and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ids(self) -> list[str]:
        """The ids of all rows, in their order."""
        return [one for block in self.blocks() for one in block.ids]

    def search(self, queries: np.ndarray, k: int) -> Neighbours:
        """The k rows with the largest cosine to each query (m, d), by going through all blocks once."""
        queries = unit_rows(self._checked(queries))
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        ids = np.full((len(queries), k), "", dtype=object)
        for block in self.blocks():
            found = np.concatenate([scores, queries @ unit_rows(block.vectors).T], axis=1)
            best = np.argsort(-found, axis=1, kind="stable")[:, :k]
            names = np.concatenate([ids, np.broadcast_to(np.array(block.ids, object), (len(queries), len(block.ids)))], axis=1)
            scores, ids = np.take_along_axis(found, best, 1), np.take_along_axis(names, best, 1)
        return Neighbours(ids, scores)

    def _checked(self, queries: np.ndarray) -> np.ndarray:
        queries = matrix(queries, "queries")
        if queries.shape[1] != self.width:
            raise SpaceError(f"{self.name}: expected queries of width {self.width}, as its rows, got {queries.shape[1]}")
        need_finite(queries.sum(axis=0), "queries")
        return queries


def need_width(name: str, got: int, target: Target) -> None:
    """Raise a SpaceError where rows are added to others of another width."""
    if got != target.width:
        raise SpaceError(f"{name}: expected rows of width {got}, as those that are there, got {target.width}; use a new place")


def need_new(name: str, exists: bool, target: Target, can_add: bool = True) -> None:
    """Raise a SpaceError where the place is taken and nothing may be added."""
    if exists and not (can_add and (target.add or target.resumed)):
        remedy = "choose another name" + ", or allow adding rows with --add" * can_add
        raise SpaceError(f"{name}: expected a new place, got one that is there already; {remedy}")
