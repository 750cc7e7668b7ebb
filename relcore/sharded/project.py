"""Rows of a sharded space through a map, written shard by shard: project, adapt and invert."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.invert.recovery import InversionSpec, choose_numbers
from relcore.migrate.adapter_file import SIDES, LoadedAdapter, need_width
from relcore.migrate.adapters import apply_steps
from relcore.represent.similarity import rounded_mean, row_blocks, unit_rows
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.cka import CosineSums
from relcore.scores.comparison import ProjectionSpec
from relcore.scores.score import Score
from relcore.sharded.passes import (
    Partial,
    Runner,
    Shards,
    ShardWork,
    Survey,
    chosen_anchors,
    column_sums,
    gathered,
    keep,
    live_rows,
    read,
    wanted_ids,
)
from relcore.sharded.space import (
    Shard,
    ShardBlock,
    ShardedSpace,
    beside,
    filesystem,
    finite,
    listed,
    opened,
    paired,
    replacing,
)

# What is done to rows before they are written: kept in the store, and fitted again once in each worker.

RowMap = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, e) float32


@dataclass(frozen=True, eq=False)
class ProjectionMap:
    """The projection on anchors (k, d) of a space with this mean (d,)."""

    anchors: np.ndarray
    mean: np.ndarray
    spec: ProjectionSpec
    whiten: bool = False

    @cached_property
    def function(self) -> RowMap:
        projection = self.spec.projection(self.whiten)
        return projection.fit_from(self.mean, self.anchors, self.anchors).transform


@dataclass(frozen=True, eq=False)
class InversionMap:
    """The inverse from paired anchors of two spaces and the means of all their rows."""

    anchors: tuple[np.ndarray, np.ndarray]
    means: tuple[np.ndarray, np.ndarray]
    spec: InversionSpec

    @cached_property
    def function(self) -> RowMap:
        source_mean, target_mean = self.means
        inverse = self.spec.inverse().fit(*self.anchors, source_mean=source_mean, target_mean=target_mean)
        return inverse.transform


@dataclass(frozen=True, eq=False)
class AdapterMap:
    """An adapter's steps of one side: the names of their classes, and their arrays."""

    steps: tuple[tuple[str, dict[str, np.ndarray]], ...]

    @cached_property
    def function(self) -> RowMap:
        from relcore.migrate import adapters

        steps = tuple(getattr(adapters, name)(**arrays) for name, arrays in self.steps)
        return lambda X: apply_steps(steps, X)


_MAPS = {kind.__name__: kind for kind in (ProjectionMap, InversionMap, AdapterMap)}

# The folder that mapped shards are written to: one file for each shard, whole or not there.

FORMATS = ("npy", "parquet")
MARK = "_relscope.json"  # which work writes into the folder; a name with _ is no shard
_ROWS = 16384  # mapped at once: relative rows are wider than the rows that they come from


@dataclass(frozen=True)
class WriteRows(ShardWork):
    """Every row through the map of this kind under a key, with its id and its label, into the folder `goal`.
    Facts: files, addresses by shard; rows, width.
    """

    kind: ClassVar[str] = "write rows"
    version: ClassVar[int] = 2
    writes: ClassVar[bool] = True

    map: str
    of: str
    goal: str
    format: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> Partial:
        (shard,), function = shards, read(store, self.map, _MAPS[self.of]).function
        width = function(np.ones((1, shard.width), dtype=np.float32)).shape[1]
        url = beside(self.goal, f"{shard.name.rsplit('.', 1)[0]}.{self.format}")
        blocks = self._mapped(shard, function, report)
        files = (_write_npy if self.format == "npy" else _write_parquet)(url, shard, blocks, width)
        return {}, {"files": {shard.name: files}, "rows": shard.n, "width": width}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        one, other = first.metadata["facts"], second.metadata["facts"]
        rows = one["rows"] + other["rows"]
        return {}, {"files": one["files"] | other["files"], "rows": rows, "width": one["width"]}

    def holds(self, facts: dict) -> bool:
        places = (filesystem(url) for urls in facts["files"].values() for url in urls)
        return all(files.exists(path) for files, path in places)

    @staticmethod
    def _mapped(shard: Shard, function: RowMap, report: Report) -> Iterator[ShardBlock]:
        for block in shard.blocks(labels=True):
            vectors = finite(shard, block)
            for part in row_blocks(len(vectors), _ROWS):
                texts = [None if column is None else column[part] for column in (block.ids, block.labels)]
                yield ShardBlock(block.first + part.start, function(vectors[part]), *texts)
                report(block.first + part.stop, shard.n, shard.name)


def _write_npy(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    stem = url.rsplit(".", 1)[0]
    urls = {what: f"{stem}.{what}.txt" for what in ("ids", "labels") if getattr(shard, what)}
    with ExitStack() as open_files:  # the vectors are closed last, so that their file is there once all are
        stream = open_files.enter_context(replacing(url))
        texts = {what: open_files.enter_context(replacing(text)) for what, text in urls.items()}
        header = {"descr": "<f4", "fortran_order": False, "shape": (shard.n, width)}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            for what, text in texts.items():
                column = getattr(block, what)
                lines = "\n".join(column)
                if lines.count("\n") != len(column) - 1 or "\r" in lines:
                    raise SpaceError(
                        f"{shard.name}: expected {what} without line breaks, got one with a line break; write"
                        " parquet instead"
                    )
                text.write(f"{lines}\n".encode())
    return [url, *urls.values()]


def _write_parquet(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    names = [name for name, column in (("id", shard.ids), ("label", shard.labels)) if column]
    fields = [(name, pa.string()) for name in names]
    schema = pa.schema([*fields, ("vector", pa.list_(pa.float32(), width))])
    # Vectors hardly shrink: dictionaries and compression would cost more time than they save space.
    settings = {"use_dictionary": False, "compression": "none"}
    with replacing(url) as stream, parquet.ParquetWriter(stream, schema, **settings) as writer:
        for block in blocks:
            values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
            texts = {"id": block.ids, "label": block.labels}
            columns = {name: pa.array(texts[name], pa.string()) for name in names}
            columns["vector"] = pa.FixedSizeListArray.from_arrays(values, width)
            writer.write_table(pa.table(columns, schema))
    return [url]


def _need_folder(place: str, key: str) -> None:
    """Make the folder, or find that the same work began to write there."""
    files, path = filesystem(place)
    if files.exists(path):
        marked = files.exists(beside(path, MARK))
        if marked:
            with (
                opened(beside(place, MARK)) as stream,
                suppress(ValueError),
            ):  # a damaged one is of other work
                if json.loads(stream.read()) == {"key": key}:
                    return
        if marked or listed(place):
            raise SpaceError(
                f"{place!r:.200}: expected a new or empty folder for the shards, got one with files; choose"
                " another"
            )
    files.makedirs(path, exist_ok=True)
    with replacing(beside(place, MARK)) as stream:
        stream.write(json.dumps({"key": key}).encode())


@dataclass(frozen=True)
class Written:
    """A folder that was written: its rows, numbers per row, and the row numbers of the anchors (k,) in the
    source, where there are some."""

    goal: str
    n: int
    width: int
    anchors: np.ndarray


def write_mapped(
    source: ShardedSpace,
    rows: ProjectionMap | InversionMap | AdapterMap,
    goal: str,
    form: str,
    runner: Runner,
    title: str,
    anchors: Sequence[int] = (),
) -> Written:
    """Write all rows through a map into a folder. A stopped run resumes by shard.

    Raises
    ------
    SpaceError
        A folder that holds something else, rows with NaN, an unknown format.
    """
    form = form or source.shards[0].written
    need_one_of("format", form, FORMATS)
    work = WriteRows(keep(runner.store, rows), type(rows).__name__, goal, form)
    _need_folder(goal, work.key(source.alone))
    facts = runner.run(work, source.alone, title).facts
    return Written(goal, facts["rows"], facts["width"], np.asarray(anchors, dtype=np.int64))


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
    spec = spec or ProjectionSpec()
    if spec.similarity == "quantised":
        raise SpaceError(
            "similarity: expected one that needs the anchors alone, got 'quantised'; it is not offered by"
            " shard"
        )
    chosen, (vectors,), (mean,), _ = _fitted_on([source], source.alone, anchors, runner, random_state)
    return write_mapped(
        source, ProjectionMap(vectors, mean, spec, whiten), goal, form, runner, "project", chosen
    )


def _fitted_on(
    spaces: Sequence[ShardedSpace],
    parts: Sequence[Shards],
    anchors: int | Sequence[str],
    runner: Runner,
    random_state: int,
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray], int]:
    """The numbers of the anchors, their rows in each space, the means of the spaces, and n."""
    survey = runner.run(Survey(wanted=wanted_ids(spaces[0], anchors)), parts, "survey")
    chosen, n = chosen_anchors(spaces[0], survey, anchors, random_state), survey.facts["n"]
    vectors = gathered(runner, parts, chosen)
    sums = [column_sums(survey, side) for side in range(len(spaces))]
    # The mean over all rows that have a direction, or, of a single space, over all rows.
    n_rows = n if len(spaces) > 1 else spaces[0].n
    means = [rounded_mean(one.total / n_rows, rows) for one, rows in zip(sums, vectors, strict=True)]
    return chosen, vectors, means, n


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
    rows = AdapterMap(tuple((type(step).__name__, vars(step)) for step in steps))
    return write_mapped(source, rows, goal, form, runner, "adapt")


# invert by shard: the rows of one sharded space translated into the other, and scored against its rows.


@dataclass(frozen=True)
class ShardedInversion:
    """What was recovered.

    Attributes
    ----------
    score : Score
        Mean cosine of recovered and true directions from the target's mean, over all rows that are not
        anchors, with the chance level when these rows are permuted.
    spec : InversionSpec
        With the numbers that were used.
    anchors : array (k,)
    goal : str
        The folder of the translated rows; "" where none was asked for.
    """

    score: Score
    spec: InversionSpec
    anchors: np.ndarray
    goal: str


@dataclass(frozen=True, eq=False)
class Inversion:
    """A map of the source's rows, and the anchors (row numbers), which are not scored."""

    rows: InversionMap
    anchors: np.ndarray


@dataclass(frozen=True)
class Recovered(ShardWork):
    """`CosineSums` of recovered and true rows beside the anchors, by the `Inversion` under a key."""

    kind: ClassVar[str] = "invert"
    version: ClassVar[int] = 2

    inversion: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> Partial:
        inversion, sums = read(store, self.inversion, Inversion), CosineSums(shards[1].width)
        mean = inversion.rows.means[1]
        for _, _, rows, (X, true) in live_rows(shards, report, _ROWS):
            scored = ~np.isin(rows, inversion.anchors)
            if scored.any():  # a map refuses a block without rows
                recovered = inversion.rows.function(X[scored])
                sums.add(unit_rows(recovered, mean), unit_rows(true[scored], mean))
        return vars(sums), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        return {name: array + second.arrays[name] for name, array in first.arrays.items()}, {}


def invert_shards(
    source: ShardedSpace,
    target: ShardedSpace,
    anchors: int | Sequence[str],
    runner: Runner,
    spec: InversionSpec | None = None,
    *,
    goal: str = "",
    form: str = "",
    random_state: int = 0,
) -> ShardedInversion:
    """Translate the source through the relative space of these anchors, score all other rows, and write all
    to a folder.

    The map needs the anchors and the means of both spaces, so it is the same as that of `invert_pair`; this
    scores every row that is no anchor, where `invert_pair` takes a sample above 20,000.

    Raises
    ------
    SpaceError
        Shards that do not pair, NaN, anchors that a space lacks or that the method cannot use, a folder that
        is taken.
    """
    spec = spec or InversionSpec()
    if spec.route != "forward":
        raise SpaceError(f"route: expected 'forward' by shard, got {spec.route!r}; exchange the two folders")
    parts = paired(source, target)
    chosen, vectors, means, n = _fitted_on([source, target], parts, anchors, runner, random_state)
    if len(chosen) >= n:
        raise SpaceError(f"anchors: expected fewer than the {n:,} rows, got {len(chosen):,}; choose fewer")
    choice = choose_numbers(*vectors, tuple(means), spec) if spec.tuned else None
    spec = replace(spec, tuned=False, **(choice.numbers() if choice else {}))
    rows = InversionMap(tuple(vectors), tuple(means), spec)
    rows.function(vectors[0][:1])  # refuses anchors that the method cannot use
    work = Recovered(keep(runner.store, Inversion(rows, np.sort(chosen))))
    sums = CosineSums(target.width)
    vars(sums).update(runner.run(work, parts, "invert").arrays)
    if goal:
        write_mapped(source, rows, goal, form, runner, "write")
    return ShardedInversion(sums.score(), spec, chosen, goal)
