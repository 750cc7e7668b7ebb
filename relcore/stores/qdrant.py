"""A collection of Qdrant as an index: of a folder in the embedded mode, or of a server."""

from __future__ import annotations

import os
import pickletools
import sqlite3
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.records import read_file
from relcore.base.text import visible
from relcore.files.places import Place
from relcore.files.rows import readable, usable_bytes
from relcore.runs.progress import Report, silent
from relcore.stores.index import BLOCK, Hits, StoredRows, Target, VectorIndex, need_new, need_width

# A folder of Qdrant's embedded mode, looked through before the client opens it.
#
# The client keeps each point as a pickle and unpickles all of them when it opens a folder. It is let near a
# folder only after every one has been read as instructions, without running them, and asks for nothing but
# the classes of a point.

META, _POINTS = "meta.json", "storage.sqlite"
_HARMLESS = {f"qdrant_client.http.models.models {name}" for name in ("PointStruct", "SparseVector")}
_HIDDEN_NAMES = ("INST", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID")
_TEXTS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
_RECALLED, _KEPT = ("GET", "BINGET", "LONG_BINGET"), ("PUT", "BINPUT", "LONG_BINPUT")
_UNPACKED = 6  # bytes of memory for each byte of pickle: the points, and NumPy arrays of them
_MOST_POINT = 1 << 26


def need_harmless(folder: Path) -> dict[str, int]:
    """The collections of the folder with their numbers of points, once its pickles are known to run nothing.

    Raises
    ------
    SpaceError
        No such folder, a damaged one, more points than fit into memory, a pickle that asks for something
        else.
    """
    meta = folder / META
    if not meta.is_file():
        raise SpaceError(
            f"{folder}: expected a folder of Qdrant's embedded mode, got one without {META}; check the path"
        )
    found = read_file(meta, "Qdrant's collections")
    collections = found.get("collections") if isinstance(found, dict) else None
    if not isinstance(collections, dict):
        raise SpaceError(
            f"{meta}: expected Qdrant's collections by name, got something else; restore the folder"
        )
    strange = [name for name in collections if Path(name).name != name or "\\" in name or name in (".", "..")]
    if strange:
        raise SpaceError(
            f"{meta}: expected names of collections without folders, got {quote(strange[:2])}; rename them"
        )
    places = {name: folder / "collection" / name / _POINTS for name in collections}
    there = {name: path for name, path in places.items() if path.is_file()}
    size = sum(path.stat().st_size for path in there.values())
    if _UNPACKED * size > usable_bytes():
        raise SpaceError(
            f"{folder}: expected points that fit into memory, which is where the embedded mode reads all"
            f" collections, got {readable(size)} on disk; serve the folder with a Qdrant server and name its"
            " address"
        )
    return {name: _look_through(there[name], name) if name in there else 0 for name in collections}


def _look_through(path: Path, name: str) -> int:
    n = 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as storage:
            kinds = storage.execute(
                "SELECT type FROM sqlite_master WHERE type NOT IN ('table', 'index')"
            ).fetchall()
            if kinds:
                raise sqlite3.DatabaseError(f"a {kinds[0][0]} beside the table of points")
            largest = storage.execute("SELECT max(length(point)) FROM points").fetchone()[0] or 0
            if largest > _MOST_POINT:
                raise sqlite3.DatabaseError(f"a point of {readable(largest)}")
            for (point,) in storage.execute("SELECT point FROM points"):
                _need_harmless(path, bytes(point))
                n += 1
    except (sqlite3.Error, TypeError, ValueError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(
            f"{path}: expected the points of the collection {name!r:.80}, got a file that cannot be read"
            f" ({error!s:.200}); restore the folder"
        ) from error
    return n


def _need_harmless(path: Path, pickled: bytes) -> None:
    strange = sorted(set(strange_names(pickled)))
    if strange:
        raise SpaceError(
            f"{path}: refused, a pickle in it asks for {quote(strange[:3])}, which points never need; nothing"
            " of it was run. Get the folder from a source that you trust; or export its points to a file"
        )


def strange_names(pickled: bytes) -> Iterator[str]:
    """The classes and functions that a pickle asks for beyond those of a point, and instructions that hide a
    name.

    A name of protocol 4 is the two strings that were pushed last, directly or from the memo; any other origin
    is strange.
    """
    memo: dict[int, str | None] = {}
    below: str | None = None
    top: str | None = None
    for opcode, argument, _ in pickletools.genops(pickled):
        kind = opcode.name
        if kind in _TEXTS:
            below, top = top, argument
        elif kind in _RECALLED:
            below, top = top, memo.get(int(argument))
        elif kind == "MEMOIZE":
            memo[len(memo)] = top
        elif kind in _KEPT:
            memo[int(argument)] = top
        elif kind == "STACK_GLOBAL":
            named = f"{below} {top}"
            if named not in _HARMLESS:
                yield named
            below = top = None
        elif kind == "GLOBAL":
            if argument not in _HARMLESS:
                yield argument
            below = top = None
        elif kind in _HIDDEN_NAMES:
            yield kind
        elif kind not in ("PROTO", "FRAME"):
            below = top = None


KEY = "QDRANT_API_KEY"
TIMEOUT_SECONDS = 20
ID = (  # in the payload, where an id is neither a whole number nor a UUID, which are all that Qdrant takes
    "relscope_id"
)
_AT_ONCE = 256  # points per request: a server refuses requests of more than 32 MB
_MOST_NUMBER = 2**64


class QdrantIndex(VectorIndex):
    """One collection. A collection for cosines holds its vectors at length 1, and gives them back so.

    With ``#COLLECTION/NAME`` one of several named vectors.
    """

    def __init__(self, place: Place, client: Any) -> None:
        self.place, self._client = place, client
        self._collection, _, vector = place.table.partition("/")
        with _told(place):
            if not client.collection_exists(self._collection):
                names = quote(sorted(one.name for one in client.get_collections().collections)[:6])
                raise SpaceError(
                    f"{place.text}: expected a collection that exists, got {self._collection!r}; there:"
                    f" {names}"
                )
            facts = client.get_collection(self._collection)
            self.n = client.count(self._collection, exact=True).count
        self._vector, parameters = _vector(place, facts.config.params.vectors, vector)
        self.name, self.width = self._collection, parameters.size
        if not self.n:
            raise SpaceError(f"{place.text}: expected points, got an empty collection; check its name")

    @classmethod
    def open(cls, place: Place) -> QdrantIndex:
        client = _client(place)
        try:
            return cls(place, client)
        except BaseException:
            client.close()
            raise

    def close(self) -> None:
        self._client.close()

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        offset, skipped = None, 0
        while skipped < start:
            points, offset = self._scroll(min(BLOCK, start - skipped), offset, vectors=False)
            skipped += len(points)
            if offset is None:
                return
        while True:
            points, offset = self._scroll(size, offset, vectors=True)
            if points:
                yield self._block(points)
            if offset is None:
                return

    def _scroll(self, limit: int, offset: Any, vectors: bool) -> tuple[list[Any], Any]:
        wanted = ([self._vector] if self._vector else True) if vectors else False
        with _told(self.place):
            return self._client.scroll(
                self._collection,
                limit=limit,
                offset=offset,
                with_payload=vectors,
                with_vectors=wanted,
                timeout=TIMEOUT_SECONDS,
            )

    def _block(self, points: list[Any]) -> StoredRows:
        found = [one.vector[self._vector] if self._vector and one.vector else one.vector for one in points]
        odd = next(
            (one for one, vector in zip(points, found, strict=True) if np.shape(vector) != (self.width,)),
            None,
        )
        if odd is not None:
            raise SpaceError(
                f"{self.place.text}: expected a vector of {self.width} numbers at point {odd.id}, got none"
            )
        payload = [dict(one.payload or {}) for one in points]
        ids = [str(kept.pop(ID, one.id)) for one, kept in zip(points, payload, strict=True)]
        return StoredRows(ids, np.array(found, np.float32), tuple(payload) if any(payload) else ())

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """By the collection itself: approximate on a server, exact in the embedded mode; by its own
        distance.
        """
        from qdrant_client import models

        queries = self._checked(queries)
        ids, scores = np.full((len(queries), k), "", object), np.full((len(queries), k), -np.inf, np.float32)
        requests = [
            models.QueryRequest(query=one.tolist(), limit=k, with_payload=True, using=self._vector or None)
            for one in queries
        ]
        distance = _vector(self.place, self._parameters(), self._vector)[1].distance
        sign = 1 if distance in (models.Distance.COSINE, models.Distance.DOT) else -1
        with _told(self.place):
            answers = self._client.query_batch_points(self._collection, requests, timeout=TIMEOUT_SECONDS)
        for row, answer in enumerate(answers):
            for place, one in enumerate(answer.points):
                ids[row, place], scores[row, place] = (
                    str((one.payload or {}).get(ID, one.id)),
                    sign * one.score,
                )
        return Hits(ids, scores)

    def _parameters(self) -> Any:
        with _told(self.place):
            return self._client.get_collection(self._collection).config.params.vectors

    @classmethod
    def need_target(cls, place: Place, target: Target) -> None:
        if place.address or (place.path / META).exists():
            with closing(_client(place)) as client, _told(place):
                _named_vector(client, place, target)
        else:
            _need_free(place.path)

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        """Points with equal ids are overwritten where rows are added; a killed run begins again with the
        same ids.
        """
        if not place.address and not (place.path / META).exists():
            _need_free(place.path)
        with closing(_client(place, new=True)) as client, _told(place):
            _write(client, place, blocks, target, report)


def _named_vector(client: Any, place: Place, target: Target) -> str | None:
    """The name of the vector that rows are added to, "" for the unnamed one; None where there is no such
    collection yet.
    """
    if "/" in place.table:
        raise SpaceError(
            f"{place.text}: expected the name of a collection, got one with a vector; leave that out"
        )
    exists = client.collection_exists(place.table)
    need_new(place.text, exists, target)
    if not exists:
        return None
    name, parameters = _vector(place, client.get_collection(place.table).config.params.vectors, "")
    need_width(place.text, parameters.size, target)
    return name


def _need_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpaceError(
            f"{folder}: expected a folder of Qdrant's embedded mode or a new one, got another; choose another"
        )


def _write(client: Any, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report) -> None:
    from qdrant_client import models

    name = _named_vector(client, place, target)
    if name is None:
        parameters = models.VectorParams(size=target.width, distance=models.Distance.COSINE)
        client.create_collection(place.table, vectors_config=parameters, timeout=TIMEOUT_SECONDS)
    done = 0
    for block in blocks:
        points = _points(block, name or "")
        while some := list(islice(points, _AT_ONCE)):
            client.upsert(place.table, some, wait=True)
            done += len(some)
            report(done, target.n, place.text)


def _points(block: StoredRows, name: str) -> Iterator[Any]:
    from qdrant_client import models

    payload = block.payload or ({},) * len(block.ids)
    for one, vector, kept in zip(block.ids, block.vectors, payload, strict=True):
        number = _number(one)
        values = vector.tolist()
        told = dict(kept) if number is not None else {**kept, ID: one}
        key = str(uuid.uuid5(uuid.NAMESPACE_OID, one)) if number is None else number
        yield models.PointStruct(id=key, vector={name: values} if name else values, payload=told)


def _number(text: str) -> int | str | None:
    """A point's id of this text, if it comes back as the same text: a whole number or a UUID."""
    if text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < _MOST_NUMBER:
        return int(text)
    try:
        return text if str(uuid.UUID(text)) == text else None
    except ValueError:
        return None


def _vector(place: Place, found: Any, chosen: str) -> tuple[str, Any]:
    """The name of the vector, "" for the unnamed one, and its parameters."""
    if not isinstance(found, dict):
        if found is None or chosen:
            raise SpaceError(
                f"{place.text}: expected one dense vector per point, got"
                f" {'none' if found is None else 'no names'}"
            )
        return "", found
    if chosen in found:
        return chosen, found[chosen]
    if chosen or len(found) != 1:
        raise SpaceError(
            f"{place.text}: expected one of its vectors, {quote(found)}; name it as #COLLECTION/NAME"
        )
    return next(iter(found.items()))


def _client(place: Place, new: bool = False) -> Any:
    with extra("qdrant"):
        from qdrant_client import QdrantClient
    with _told(place):
        if place.address:
            key = os.environ.get(KEY) or None
            return QdrantClient(
                url=place.address, api_key=key, timeout=TIMEOUT_SECONDS, check_compatibility=False
            )
        folder = place.path
        if new and not (folder / META).exists():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise SpaceError(
                    f"{folder}: expected a folder of Qdrant's embedded mode or a new one, got another; choose"
                    " another"
                )
        else:
            need_harmless(folder)
        return QdrantClient(path=str(folder))


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Whatever the client raises, as one sentence with the place."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ApiException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the client's advice on large collections, and on addresses without TLS
            yield
    except SpaceError:
        raise
    except (ApiException, HTTPError, OSError) as error:
        if not place.address:
            raise SpaceError(
                f"{place.text}: expected a folder that can be used, got {visible(error, 200)}; check it"
            ) from error
        said = visible(error, 200).strip() or type(error).__name__
        raise SpaceError(
            f"{place.text}: expected an answer from the Qdrant server at {place.address} within"
            f" {TIMEOUT_SECONDS} seconds, got: {said}; check the address, that it runs, and {KEY}"
        ) from error
    except RuntimeError as error:
        if "already accessed" not in str(error):
            raise
        raise SpaceError(
            f"{place.text}: expected a folder that no other program has open, got a locked one; close that"
            " program, or serve the folder with a Qdrant server"
        ) from error
    except ValueError as error:
        raise SpaceError(
            f"{place.text}: expected a collection that can be used, got: {visible(error, 200)}; check it"
        ) from error
