"""Spaces in shards that are mapped and written, shard by shard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.families import Named
from relcore.base.names import SIMILARITIES
from relcore.base.rows import mean_row, row_blocks
from relcore.base.text import as_lines
from relcore.base.writing import disk_errors, finish_folder
from relcore.catalog.catalog import is_address
from relcore.files.saving import OF_VECTORS, write_parquet
from relcore.represent.representations import ProjectionSpec
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.sharded.places import beside, filesystem, list_files, open_url, replacing
from relcore.sharded.runner import Partial, Runner, Shards, ShardTotal, ShardWork, keep, read
from relcore.sharded.space import Shard, ShardBlock, ShardedSpace, finite
from relcore.sharded.survey import Survey, chosen_anchors, gather, wanted_ids

SAMPLE = 200_000
# Maps that are applied to rows before they are written. The map is stored once, and each worker fits it once.
RowMap = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, e) float32


class StoredMap(Protocol):
    """A dataclass that can be stored for workers, each of which computes its function once."""

    @property
    def function(self) -> RowMap: ...


@dataclass(frozen=True, eq=False)
class ProjectionMap:
    """The relative projection on anchors (k, d) of a space with the mean row `mean` (d,), in a form that can
    be stored for workers."""

    anchors: np.ndarray
    mean: np.ndarray
    spec: ProjectionSpec
    whiten: bool = False

    @cached_property
    def function(self) -> RowMap:
        return self.spec.projection(self.whiten).fit_from(self.mean, self.anchors, self.anchors).transform


# Name of a map's class → the place of that class.
_MAPS = {
    "ProjectionMap": Named("", ".sharded.writing:ProjectionMap"),
    "AdapterMap": Named("", ".migrate.by_shard:AdapterMap"),
}
# The folder of mapped shards has one file per shard, which is complete or missing.
MARK = "_relscope.json"  # describes the work in the folder; files whose names begin with _ are no shards
_MAPPED_ROWS = 16384  # number of rows that are mapped at once


@dataclass(frozen=True)
class WriteRows(ShardWork):
    """Map every row and write it with its id and label into the folder `goal`. The facts of the result are
    files, the names of written files by shard, and rows and width, the size of what was written.
    """

    kind: ClassVar[str] = "write rows"
    version: ClassVar[int] = 3
    writes: ClassVar[bool] = True
    on_device: ClassVar[bool] = True

    map: str
    of: str
    goal: str
    format: str

    def start(self, store: Store, report: Progress = silent) -> WrittenTotal:
        return WrittenTotal(self, store, report)

    def holds(self, facts: dict[str, Any]) -> bool:
        files, path = filesystem(_written_to(self.goal))
        return all(files.exists(beside(path, name)) for names in facts["files"].values() for name in names)


@dataclass(eq=False)
class WrittenTotal(ShardTotal):
    """What `WriteRows` wrote: the names of files by shard, and the number and width of the rows."""

    work: WriteRows
    store: Store
    report: Progress
    files: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0
    width: int = 0

    def add(self, shards: Shards) -> None:
        (shard,) = shards
        stored_map: StoredMap = read(self.store, self.work.map, _MAPS[self.work.of].load())
        function = stored_map.function
        one_row = np.ones((1, shard.width), dtype=np.float32)
        self.width = function(one_row).shape[1]  # must be known before the first row is written
        stem = shard.name.rsplit(".", 1)[0]
        url = beside(_written_to(self.work.goal), f"{stem}.{self.work.format}")
        if self.work.format == "npy":
            write = _write_npy
        else:
            write = _write_parquet
        urls = write(url, shard, self._mapped(shard, function), self.width)
        self.files[shard.name] = [url.rsplit("/", 1)[1] for url in urls]
        self.rows += shard.n

    def _mapped(self, shard: Shard, function: RowMap) -> Iterator[ShardBlock]:
        for block in shard.blocks(labels=True):
            vectors = finite(shard, block)
            for part in row_blocks(len(vectors), _MAPPED_ROWS):
                texts = [None if column is None else column[part] for column in (block.ids, block.labels)]
                yield ShardBlock(block.first + part.start, function(vectors[part]), *texts)
                self.report(block.first + part.stop, shard.n, shard.name)

    def merge(self, other: WrittenTotal) -> None:
        self.files |= other.files
        self.rows += other.rows

    def result(self) -> Partial:
        return {}, {"files": self.files, "rows": self.rows, "width": self.width}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> None:
        self.files = dict(facts["files"])
        self.rows = facts["rows"]
        self.width = facts["width"]


def _write_npy(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    stem = url.rsplit(".", 1)[0]
    urls = {what: f"{stem}.{what}.txt" for what in ("ids", "labels") if getattr(shard, what)}
    # The vectors are closed last, so that their file appears only after all others.
    with ExitStack() as open_files:
        stream = open_files.enter_context(replacing(url))
        texts = {what: open_files.enter_context(replacing(text)) for what, text in urls.items()}
        header = {"descr": "<f4", "fortran_order": False, "shape": (shard.n, width)}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            for what, text in texts.items():
                text.write(as_lines(getattr(block, what), shard.name, what, first=not block.first))
    return [url, *urls.values()]


def _write_parquet(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    import pyarrow as pa

    names = [name for name, column in (("id", shard.ids), ("label", shard.labels)) if column]
    fields = [(name, pa.string()) for name in names]
    schema = pa.schema([*fields, ("vector", pa.list_(pa.float32(), width))])

    def table(block: ShardBlock) -> Any:
        values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
        texts = {"id": block.ids, "label": block.labels}
        columns = {name: pa.array(texts[name], pa.string()) for name in names}
        columns["vector"] = pa.FixedSizeListArray.from_arrays(values, width)
        return pa.table(columns, schema)

    with replacing(url) as stream:
        write_parquet(stream, schema, (table(block) for block in blocks), **OF_VECTORS)
    return [url]


def _written_to(goal: str) -> str:
    """The folder to which shards are written until all are complete. It is a folder beside `goal`. At an
    address, it is a folder within `goal`."""
    path = filesystem(goal)[1].rstrip("/")
    if is_address(goal) or os.path.exists(beside(path, MARK)):
        return goal
    return f"{path}.partial"


def _need_folder(goal: str, key: str) -> None:
    """Make the folder to which shards are written. If it exists, check that the same computation began to
    write it."""
    written_to = _written_to(goal)
    for place in dict.fromkeys((goal, written_to)):
        if _begun_by(place) == key:
            return
        if _begun_by(place) or _has_files(place):
            raise SpaceError(
                f"{place!r:.200}: expected a new or empty folder for the shards, got one with files; choose"
                " another, or remove it"
            )
    files, path = filesystem(written_to)
    files.makedirs(path, exist_ok=True)
    with replacing(beside(written_to, MARK)) as stream:
        stream.write(json.dumps({"key": key}).encode())


def _has_files(place: str) -> bool:
    (files, path) = filesystem(place)
    return files.exists(path) and bool(list_files(place))


def _begun_by(place: str) -> str:
    """The key of the computation that began to write this folder; "" if none did."""
    files, path = filesystem(place)
    if not files.exists(beside(path, MARK)):
        return ""
    with open_url(beside(place, MARK)) as stream, suppress(ValueError, TypeError, KeyError):
        return json.loads(stream.read())["key"]
    return "damaged"


@dataclass(frozen=True)
class Written:
    """A summary of what was written to a folder: the number of rows, their width, and the row numbers of the
    anchors (k,) in the source."""

    n: int
    width: int
    anchors: np.ndarray


def write_mapped(
    source: ShardedSpace,
    rows: StoredMap,
    goal: str,
    runner: Runner,
    title: str,
    anchors: Sequence[int] = (),
) -> Written:
    """Map all rows and write them into a folder. A relative path starts at the working folder of this
    process, and not at a worker's. A stopped run resumes with the first missing shard.
    """
    if not is_address(goal):
        goal = filesystem(goal)[1]
    work = WriteRows(keep(runner.store, rows), type(rows).__name__, goal, source.shards[0].written)
    _need_folder(goal, work.key(source.alone))
    facts = runner.run(work, source.alone, title).facts
    path = filesystem(goal)[1].rstrip("/")
    if (written_to := _written_to(goal)) not in (goal, path):
        with disk_errors(path):
            finish_folder(Path(written_to), Path(path))
    return Written(facts["rows"], facts["width"], np.asarray(anchors, dtype=np.int64))


def project_shards(
    source: ShardedSpace,
    anchors: int | Sequence[str],
    goal: str,
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    whiten: bool = False,
    random_state: int = 0,
) -> Written:
    """Write the relative coordinates (n, k) of all rows, with ids and labels. `anchors` are ids, or a number
    of random rows.

    The coordinates are those of `RelativeProjection` fitted on all rows.
    """
    spec = spec or ProjectionSpec()
    if SIMILARITIES[spec.similarity].load().learns:
        raise SpaceError(
            f"similarity: expected one that needs the anchors alone, got {spec.similarity!r}; it is not"
            " offered by shard"
        )
    survey = runner.run(Survey(wanted=wanted_ids(source, anchors)), source.alone, "survey")
    chosen = chosen_anchors(source, survey, anchors, random_state)
    arrays = gather(runner, source.alone, chosen).arrays
    vectors = arrays["vectors_0"][np.searchsorted(arrays["rows"], chosen)]
    mean = mean_row(vectors, survey.arrays["sums_0"] / source.n)
    return write_mapped(source, ProjectionMap(vectors, mean, spec, whiten), goal, runner, "project", chosen)
