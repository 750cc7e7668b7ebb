"""project by shard: a sharded space relative to anchors, written shard by shard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of
from relcore.invert.recovery import InversionSpec
from relcore.migrate.adapter_file import SIDES, LoadedAdapter, need_width
from relcore.migrate.adapters import apply_steps
from relcore.represent.similarity import row_blocks
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec
from relcore.sharded.passes import Arrays, Runner, Shards, ShardWork, made_once
from relcore.sharded.shard import Shard, ShardBlock, beside, filesystem, finite, listed, opened, replacing
from relcore.sharded.space import ShardedSpace, chosen_anchors, put_rows, wanted_ids
from relcore.sharded.survey import Survey, mean_from_sums

# What is done to the rows of a shard before they are written: kept in the store, and made again in workers.

RowMap = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, e) float32
_made: dict[str, RowMap] = {}


@dataclass(frozen=True, eq=False)
class ProjectionMap:
    """The projection on anchors (k, d) of a space with this mean (d,)."""

    anchors: np.ndarray
    mean: np.ndarray
    spec: ProjectionSpec
    whiten: bool = False

    def function(self) -> RowMap:
        projection = self.spec.projection(self.whiten)
        return projection.fit_from(self.mean, self.anchors, self.anchors).transform


@dataclass(frozen=True, eq=False)
class InversionMap:
    """The inverse from paired anchors of two spaces and the means of all their rows."""

    anchors: tuple[np.ndarray, np.ndarray]
    means: tuple[np.ndarray, np.ndarray]
    spec: InversionSpec

    def function(self) -> RowMap:
        source_mean, target_mean = self.means
        inverse = self.spec.inverse().fit(*self.anchors, source_mean=source_mean, target_mean=target_mean)
        return inverse.transform


@dataclass(frozen=True, eq=False)
class AdapterMap:
    """An adapter's steps of one side: the names of their classes, and their arrays."""

    steps: tuple[tuple[str, dict[str, np.ndarray]], ...]

    def function(self) -> RowMap:
        from relcore.migrate import adapters

        steps = tuple(getattr(adapters, name)(**arrays) for name, arrays in self.steps)
        return lambda X: apply_steps(steps, X)


_MAPS = {kind.__name__: kind for kind in (ProjectionMap, InversionMap, AdapterMap)}


def put_map(store: Store, rows: ProjectionMap | InversionMap | AdapterMap) -> str:
    """The key under which workers find the map of the rows."""
    arrays, record = records.pack(rows)
    facts = {"map": type(rows).__name__, "settings": record}
    key = digest_of("row map", arrays, facts)
    if not store.has(key):
        store.put(key, arrays, facts)
    return key


def row_map(store: Store, key: str) -> RowMap:
    """The function that was put under a key; made once for the shards that a process maps one after the
    other.
    """

    def made(entry: Entry) -> RowMap:
        facts = entry.metadata
        return records.unpack(_MAPS[facts["map"]], entry.arrays, facts["settings"]).function()

    return made_once(_made, store, key, made, "the map of the rows")


# The folder that mapped shards are written to: one file for each shard, whole or not there.

FORMATS = ("npy", "parquet")
MARK = "_relscope.json"  # which work writes into the folder; a name with _ is no shard


def need_folder(place: str, key: str) -> None:
    """Make the folder, or find that the same work began to write there.

    Raises
    ------
    SpaceError
        It holds something else.
    """
    files, path = filesystem(place)
    mark = beside(place, MARK)
    if files.exists(path):
        marked = files.exists(beside(path, MARK))
        if marked:
            with opened(mark) as stream, suppress(ValueError):  # a damaged one is of other work
                found = json.loads(stream.read())
                if isinstance(found, dict) and found.get("key") == key:
                    return
        if marked or listed(place):
            raise SpaceError(
                f"{place!r:.200}: expected a new or empty folder for the shards, got one with files; choose"
                " another"
            )
    files.makedirs(path, exist_ok=True)
    with replacing(mark) as stream:
        stream.write(json.dumps({"key": key}).encode())


def write_shard(place: str, shard: Shard, kind: str, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    """Write the blocks as one file, named after their shard, and return what was written: addresses.

    Ids and labels go with the rows, as `ShardedSpace.open` reads them again.
    """
    need_one_of("format", kind, FORMATS)
    stem = shard.name.rsplit(".", 1)[0]
    return (_npy if kind == "npy" else _parquet)(beside(place, f"{stem}.{kind}"), shard, blocks, width)


def are_there(urls: Iterable[str]) -> bool:
    """Whether all these files exist."""
    found = (filesystem(url) for url in urls)
    return all(files.exists(path) for files, path in found)


def _npy(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    stem = url.rsplit(".", 1)[0]
    columns = [what for what in ("ids", "labels") if getattr(shard, what)]
    urls = {what: f"{stem}.{what}.txt" for what in columns}
    with ExitStack() as open_files:  # the vectors are closed last, so that their file is there once all are
        stream = open_files.enter_context(replacing(url))
        texts = {what: open_files.enter_context(replacing(one)) for what, one in urls.items()}
        header = {"descr": "<f4", "fortran_order": False, "shape": (shard.n, width)}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            for what, text in texts.items():
                text.write(_lines(shard.name, what, getattr(block, what)))
    return [url, *urls.values()]


def _lines(name: str, what: str, column: list[str]) -> bytes:
    text = "\n".join(column)
    if text.count("\n") != len(column) - 1 or "\r" in text:
        raise SpaceError(
            f"{name}: expected {what} without line breaks, got one with a line break; write parquet instead"
        )
    return f"{text}\n".encode()


def _parquet(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    import pyarrow.parquet as parquet

    tables = _tables(blocks, width)
    first = next(tables)
    # Vectors hardly shrink: dictionaries and compression would cost more time than they save space.
    settings = {"use_dictionary": False, "compression": "none"}
    with replacing(url) as stream, parquet.ParquetWriter(stream, first.schema, **settings) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    return [url]


def _tables(blocks: Iterable[ShardBlock], width: int) -> Iterator:
    import pyarrow as pa

    for block in blocks:
        texts = {"id": block.ids, "label": block.labels}
        columns = {
            name: pa.array(column, pa.string()) for name, column in texts.items() if column is not None
        }
        values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
        yield pa.table({**columns, "vector": pa.FixedSizeListArray.from_arrays(values, width)})


# WriteRows: map the rows of each shard, and write them as a shard of another folder.

_ROWS = 16384  # mapped at once: relative rows are wider than the rows that they come from


@dataclass(frozen=True)
class WriteRows(ShardWork):
    """Every row through a map of `row_maps`, with its id and its label, into a folder. Facts: files,
    addresses by shard.

    Attributes
    ----------
    map : str
        The store's key of the map.
    goal, format : str
        The folder, and "npy" or "parquet".
    """

    kind: ClassVar[str] = "write rows"
    writes: ClassVar[bool] = True

    map: str
    goal: str
    format: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        shard, function = shards[0], row_map(store, self.map)
        width = function(np.ones((1, shard.width), dtype=np.float32)).shape[1]
        mapped = (self._mapped(shard, block, function, report) for block in shard.blocks(labels=True))
        files = write_shard(
            self.goal, shard, self.format, (part for block in mapped for part in block), width
        )
        return {}, {"files": {shard.name: files}, "rows": shard.n, "width": width}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        one, two = first.metadata["facts"], second.metadata["facts"]
        return {}, {
            "files": one["files"] | two["files"],
            "rows": one["rows"] + two["rows"],
            "width": one["width"],
        }

    def holds(self, facts: dict[str, Any]) -> bool:
        return are_there(url for urls in facts["files"].values() for url in urls)

    @staticmethod
    def _mapped(shard: Shard, block: ShardBlock, function: Any, report: Report) -> Iterator[ShardBlock]:
        vectors = finite(shard, block)
        for part in row_blocks(len(vectors), _ROWS):
            texts = [None if column is None else column[part] for column in (block.ids, block.labels)]
            yield ShardBlock(block.first + part.start, function(vectors[part]), *texts)
            report(block.first + part.stop, shard.n, shard.name)


@dataclass(frozen=True)
class Written:
    """A folder that was written.

    Attributes
    ----------
    goal : str
    n, width : int
        Its rows, and numbers per row.
    anchors : array (k,)
        Row numbers of the anchors in the source; empty where there are none.
    """

    goal: str
    n: int
    width: int
    anchors: np.ndarray


def write_mapped(
    source: ShardedSpace, map_key: str, goal: str, form: str, runner: Runner, title: str
) -> tuple[int, int]:
    """Write all rows through a map into a folder; returns rows and width. A stopped run resumes by shard.

    Raises
    ------
    SpaceError
        A folder that holds something else, rows with NaN.
    """
    work = WriteRows(map_key, goal, form or source.shards[0].written)
    parts = alone(source)
    need_folder(goal, work.key(parts))
    facts = runner.run(work, parts, title).facts
    return facts["rows"], facts["width"]


def alone(space: ShardedSpace) -> list[Shards]:
    """The parts of a pass over one space."""
    return [(shard,) for shard in space.shards]


def gathered(runner: Runner, parts: Sequence[Shards], rows: np.ndarray) -> list[np.ndarray]:
    """The vectors of these rows, in their order, of each space of the parts: (m, d) each."""
    found = runner.run(put_rows(runner.store, rows), parts, "gather rows").arrays
    places = np.searchsorted(found["rows"], rows)
    return [found[f"vectors_{side}"][places] for side in range(len(parts[0]))]


def project_shards(
    source: ShardedSpace,
    anchors: int | Sequence[str],
    goal: str,
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    whiten: bool = False,
    form: str = "",
    random_state: int = 0,
) -> Written:
    """Write the space relative to anchors, to ids or to as many random rows: (n, k), with ids and labels.

    The coordinates are those of `RelativeProjection` fitted on all rows.

    Raises
    ------
    SpaceError
        Anchors that the space lacks, NaN, a folder that holds something else.
    """
    spec, parts = spec or ProjectionSpec(), alone(source)
    if spec.similarity == "quantised":
        raise SpaceError(
            "similarity: expected one that needs the anchors alone, got 'quantised'; it is not offered by"
            " shard"
        )
    survey = runner.run(Survey(wanted=wanted_ids(source, anchors)), parts, "survey")
    chosen = chosen_anchors(source, survey, anchors, random_state)
    (vectors,) = gathered(runner, parts, chosen)
    mean = mean_from_sums(survey.arrays["sum_0"], float(survey.arrays["squares"][0]), source.n)
    key = put_map(runner.store, ProjectionMap(vectors, mean, spec, whiten))
    return Written(goal, *write_mapped(source, key, goal, form, runner, "project"), chosen)


# adapt by shard: the rows of a sharded space through an adapter, written shard by shard.


def adapt_shards(
    adapter: LoadedAdapter,
    source: ShardedSpace,
    goal: str,
    runner: Runner,
    *,
    side: str = "queries",
    form: str = "",
) -> Written:
    """Write all rows through an adapter; `side` says of which model they are: "queries" of the new one,
    "corpus" of the old.

    Raises
    ------
    SpaceError
        Rows of another width than the adapter's, NaN, a folder that holds something else.
    """
    need_one_of("side", side, SIDES)
    need_width(adapter, side, source.width, source.name)
    steps = adapter.query_steps_ if side == "queries" else adapter.corpus_steps_
    key = put_map(runner.store, AdapterMap(tuple((type(step).__name__, vars(step)) for step in steps)))
    return Written(goal, *write_mapped(source, key, goal, form, runner, "adapt"), np.empty(0, dtype=np.int64))
