"""What the stores of this package share: rows with ids that are texts, overwritten when written again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.stores.index import StoredRows, StorePlace, Target, VectorIndex, need_new, need_width, no_secrets
from relcore.stores.lance import need_adapter


class Database(VectorIndex):
    """One collection. As rows are overwritten by their ids, a killed run is repeated with --add."""

    def __init__(self, place: StorePlace) -> None:
        self.place = place
        self.name, _, self.column = place.table.partition("/")

    @classmethod
    def open(cls, place: StorePlace) -> Self:
        index = cls(place)
        if not place.address and not place.path.exists():  # the library would make it
            raise SpaceError(f"{place.text}: expected a folder, got nothing there; check the path")
        try:
            with clear_errors(place):
                index.connect()
                facts = index.facts()
                if facts is not None:
                    index.adapter = index.recorded()
            if facts is None or min(facts) < 1:
                if facts is None:
                    got = "none of this name"
                else:
                    got = "an empty one"
                raise SpaceError(f"{place.text}: expected a collection with rows, got {got}; check its name")
        except BaseException:
            index.close()
            raise
        index.n, index.width = facts
        return index

    @abstractmethod
    def connect(self) -> None:
        """Open the database. An embedded one is created if it does not exist."""

    @abstractmethod
    def facts(self) -> tuple[int, int] | None:
        """(rows, width) of the collection, with width 0 if it is unknown because there are no rows. None if
        there is no collection."""

    @abstractmethod
    def create(self, width: int, adapter: str) -> None:
        """Make the collection, for cosines, and record the digest of the adapter."""

    def recorded(self) -> str:
        """The digest of the adapter that the collection records; "" if it records none."""
        return ""

    def record(self, adapter: str) -> None:
        """Record the digest of an adapter in a collection that records none, if the store can."""

    @abstractmethod
    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        """See `VectorIndex.read`. Errors of the library need not be caught here."""

    @abstractmethod
    def put(self, block: StoredRows) -> None:
        """Write rows, and replace those with the same ids."""

    def finish(self) -> None:
        """Commit the written rows."""

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        with clear_errors(self.place):
            yield from self.rows(size, start)

    @classmethod
    def need_target(cls, place: StorePlace, target: Target) -> None:
        if place.address or place.path.exists():
            with cls._for_writing(place, target):
                return
        cls(place)

    @classmethod
    @contextmanager
    def _for_writing(cls, place: StorePlace, target: Target) -> Iterator[tuple[Self, bool]]:
        """The open database, and whether the collection is there."""
        index = cls(place)
        try:
            with clear_errors(place):
                index.connect()
                facts = index.facts()
                need_new(place.text, facts is not None, target)
                if facts and facts[1]:
                    need_width(place.text, facts[1], target)
                if facts:
                    need_adapter(place.text, index.recorded(), target)
                yield index, facts is not None
        finally:
            index.close()

    @classmethod
    def write(cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
        with cls._for_writing(place, target) as (index, is_there):
            if not is_there:
                index.create(target.width, target.adapter)
            elif target.adapter and not index.recorded():
                # Recorded first: a killed run leaves no rows whose adapter is unknown.
                index.record(target.adapter)
            for block in blocks:
                index.put(block)
            index.finish()
            facts = index.facts()
            if not target.add and (facts is None or facts[0] != target.n):
                raise SpaceError(
                    f"{place.text}: expected {target.n:,} rows after writing, got {facts and facts[0]}; write"
                    " to a new place"
                )


@contextmanager
def clear_errors(place: StorePlace) -> Iterator[None]:
    """Raise any error of the library as one sentence, without the credentials of an address."""
    try:
        yield
    except SpaceError:
        raise
    except ImportError as error:
        raise SpaceError(
            f"{place.kind}: expected the package {error.name}, which is not installed; get"
            f' it by pip install "./plugins/stores[{place.kind}]" in a checkout'
        ) from error
    except Exception as error:
        said = visible(no_secrets(f"{type(error).__name__}: {error}"), 300)
        raise SpaceError(
            f"{place.text}: expected a {place.kind} store that can be used, got {said}; check the place and"
            " the credentials"
        ) from None
