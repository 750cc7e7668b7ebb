"""Compare, project and adapt folders of shards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS, SIMILARITIES
from relcore.base.numbers import counted
from relcore.base.report import Report
from relcore.base.rows import mean_row, row_blocks
from relcore.base.text import as_lines
from relcore.base.writing import disk_errors, finish_folder
from relcore.catalog.catalog import is_address
from relcore.engine.device import Device, on_device
from relcore.engine.nearest import need_k
from relcore.files.saving import OF_VECTORS, write_parquet
from relcore.migrate.adapters import SIDES, LoadedAdapter, need_width
from relcore.migrate.estimators import apply_steps
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.runs.entries import Entry
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, groups_of, metrics_of_a_pair, scores_of, scores_report
from relcore.scores.neighbours import CONVENTIONS
from relcore.scores.passes import (
    NO_ROWS,
    AlignedPair,
    ColumnSums,
    Plan,
    RowPair,
    RowRoles,
    ScoreRequest,
    SeveralSums,
    Sums,
    needed_rows,
    to_full_index,
    to_kept_index,
)
from relcore.scores.score import Score
from relcore.sharded.passes import (
    Partial,
    PassResult,
    Runner,
    Shards,
    ShardWork,
    Survey,
    chosen_anchors,
    column_sums,
    gather,
    keep,
    live_rows,
    need_distinct_ids,
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
from relcore.spaces.matching import distinct_names

_ROWS = 8192  # at once: relative rows are wider than their sources
MOST_QUERIES = 2048  # their similarities with a block of rows are 32 MB for each of two searches
_MOST_MUTUAL = 20_000_000  # rows; the chance level of "mutual" permutes all row numbers


@dataclass(frozen=True, eq=False)
class Plans:
    """What a pass sums up. Rows are counted without those `dropped` (m,), ascending; `labels_of` is the space
    whose labels give the classes, −1 for none.
    """

    each: tuple[Plan, ...]
    dropped: np.ndarray
    labels_of: int = -1


@dataclass(frozen=True)
class BlockWork(ShardWork):
    kind: ClassVar[str] = "compare"
    version: ClassVar[int] = 4

    plans: str

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        return on_device(lambda where: self._summed(shards, store, report, where)).to_arrays(), {}

    def _summed(self, shards: Shards, store: Store, report: Progress, where: Device) -> SeveralSums:
        plans, labelled = read(store, self.plans, Plans), None
        sums, classes_of = SeveralSums(plans.each, where), plans.labels_of
        for blocks, alive, rows, vectors in live_rows(shards, report, _ROWS, labels=classes_of >= 0):
            if classes_of >= 0:
                labels = blocks[classes_of].labels
                labelled = np.array([labels[row] != "" for row in alive], dtype=bool)
            sums.add(*vectors, to_kept_index(rows, plans.dropped), labelled)
        return sums

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        plans = read(store, self.plans, Plans).each
        sums, more = (SeveralSums.from_arrays(plans, entry.arrays) for entry in (first, second))
        sums.merge(more)
        return sums.to_arrays(), {}


@dataclass(frozen=True)
class ShardedScores:
    """Scores by representation and metric; `n` rows that have a direction in both spaces, `n_zero` that are
    left out, and the row numbers of the anchors (k,).
    """

    scores: dict[str, dict[str, Score]]
    n: int
    n_zero: int
    anchors: np.ndarray

    def report(self, passes: dict[str, Any], source: ShardedSpace, target: ShardedSpace) -> Report:
        """Every score with its chance level; `passes` are facts on how they were made."""
        names = distinct_names((source, target))
        sentence = f"{names[0]} and {names[1]}, {counted(len(self.anchors), 'anchor')}"
        sentence += f", {counted(len(source.shards), 'shard')} each."
        facts = {"source": names[0], "target": names[1], "n": self.n}
        facts |= {"anchors": source.ids_of(self.anchors), **passes}
        return scores_report(self.scores, sentence, facts, also=passes["passes"])


def compare_shards(
    source: ShardedSpace,
    target: ShardedSpace,
    anchors: int | Sequence[str],
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int = LIVE_QUERIES,
    random_state: int = 0,
) -> ShardedScores:
    """The scores of `score_forms` for all representations; anchors are ids, or a number of random rows, or 0.

    The numbers are those of both spaces in memory, but for rounding. Class agreement needs at most 100,000
    classes; metrics that read rows are left out.
    """
    need_one_of("convention", convention, CONVENTIONS)
    if not 1 <= n_queries <= MOST_QUERIES:
        raise SpaceError(
            f"n_queries: expected 1 … {MOST_QUERIES:,} queries by shard, got {n_queries:,}; take a sample"
        )
    if convention == "mutual" and source.n > _MOST_MUTUAL:
        raise SpaceError(
            f"convention: expected 'paper' above {_MOST_MUTUAL:,} rows, got 'mutual'; choose 'paper'"
        )
    spaces, parts = (source, target), paired(source, target)
    # The classes are those of `comparison.class_labels`: the source's labels, or the target's.
    classes_of = next((side for side in (0, 1) if all(shard.labels for shard in spaces[side].shards)), -1)
    n_candidates = n_queries + (anchors if isinstance(anchors, int) else len(anchors))
    work = Survey(n_candidates, wanted=wanted_ids(source, anchors), classes_of=classes_of)
    survey = runner.run(work, parts, "survey")
    need_distinct_ids(source, survey)
    chosen = NO_ROWS if anchors == 0 else chosen_anchors(source, survey, anchors, random_state)
    rows = ShardedPair(spaces, parts, survey, classes_of, runner)
    requests = []
    for group in groups_of(REPRESENTATIONS if len(chosen) else ("absolute",)):
        fitted = NO_ROWS if group[0] == "absolute" else to_kept_index(chosen, rows.dropped)
        roles = RowRoles(rows.n, fitted, rows.queries(n_queries, fitted), np.sort(fitted), rows.labelled)
        of = f" of {source.name!r} and {target.name!r}"
        need_k(k, len(roles), len(roles) - (convention == "mutual"), of)
        requests.append((ScoreRequest(group, spec or ProjectionSpec(), k, convention), roles))
    pairs = [AlignedPair.passed(rows, form, seen) for seen in rows.seen(requests) for form in seen.plan.forms]
    rows.gather_listed(pairs)
    metrics = [name for name in metrics_of_a_pair() if METRICS[name].load().reads != "rows"]
    scores = {pair.form: scores_of(pair, metrics) for pair in pairs}
    return ShardedScores(scores, rows.n, len(rows.dropped), chosen)


class ShardedPair(RowPair):
    """A pair whose rows are read by shard, without those that are zero in a space, as in a `Match`.

    Its classes are left out where most rows have no label or there are too many of them.
    """

    def __init__(
        self,
        spaces: Sequence[ShardedSpace],
        parts: Sequence[Shards],
        survey: PassResult,
        classes_of: int,
        runner: Runner,
    ) -> None:
        self.spaces, self.parts, self.survey, self.runner = spaces, parts, survey, runner
        self.n, self.dropped, self._classes_of = survey.facts["n"], survey.arrays["dropped"], classes_of
        self._rows, self._vectors = NO_ROWS, [np.empty((0, space.width), np.float32) for space in spaces]
        self._sizes = survey.facts["classes"] or {}
        labelled = sum(self._sizes.values())
        self.labelled = "" if 2 * labelled <= self.n else "all" if labelled == self.n else "some"
        self._numbers = {"": -1} | {label: number for number, label in enumerate(self._sizes)}

    def __len__(self) -> int:
        return self.n

    @cached_property
    def sums(self) -> tuple[ColumnSums, ColumnSums]:
        return column_sums(self.survey, 0), column_sums(self.survey, 1)

    def queries(self, n_queries: int, anchors: np.ndarray) -> np.ndarray:
        rows = to_kept_index(self.survey.arrays["rows"], self.dropped)
        return np.sort(rows[~np.isin(rows, anchors)][:n_queries])

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        self.gather(rows)
        return self._vectors[side][np.searchsorted(self._rows, rows)]

    def gather(self, rows: np.ndarray) -> None:
        """Read those of the rows that are not in memory yet, of both spaces, in one pass."""
        missing = np.setdiff1d(rows, self._rows)
        if not len(missing):
            return
        arrays = gather(self.runner, self.parts, to_full_index(missing, self.dropped)).arrays
        order = np.argsort(together := np.concatenate([self._rows, missing]))
        self._rows = together[order]
        for side in (0, 1):
            self._vectors[side] = np.concatenate([self._vectors[side], arrays[f"vectors_{side}"]])[order]

    def gather_listed(self, pairs: Sequence[AlignedPair]) -> None:
        """Of the listed rows the last neighbours, for notes, and the classes."""
        plans = [pair.searched.plan for pair in pairs]
        tops = [
            top.rows for pair in pairs for name, top in pair.searched.tops.items() if "/longest/" not in name
        ]
        self.gather(np.unique(np.concatenate([NO_ROWS, *(rows[:, -2:].ravel() for rows in tops)])))
        if not self.labelled:
            return
        more = [rows for plan in plans for rows in (plan.roles.queries, plan.roles.anchors)]
        rows = np.unique(np.concatenate([*more, *(rows.ravel() for rows in tops)]))
        self._labelled_rows, of = rows[rows >= 0], self.spaces[self._classes_of].alone
        numbers = to_full_index(self._labelled_rows, self.dropped)
        labels = gather(self.runner, of, numbers, texts=True, vectors=False).facts["labels"]
        self._classes = np.array([self._numbers[label] for label in labels])

    def names(self, rows: np.ndarray) -> Sequence[str]:
        return self.spaces[0].ids_of(to_full_index(rows, self.dropped))

    def classes_of(self, rows: np.ndarray) -> np.ndarray:
        return self._classes[np.searchsorted(self._labelled_rows, rows)]

    def class_sizes(self, left_out: np.ndarray) -> np.ndarray:
        classes = self.classes_of(left_out)
        sizes = np.array(list(self._sizes.values()), np.int64)
        sizes -= np.bincount(classes[classes >= 0], minlength=len(sizes))
        return sizes[sizes > 0]

    def plan(self, question: ScoreRequest, roles: RowRoles) -> Plan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, roles).values()))))
        return super().plan(question, roles)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        together = Plans(tuple(plans), self.dropped, self._classes_of if self.labelled == "some" else -1)
        key = keep(self.runner.store, together)
        arrays = self.runner.run(BlockWork(key), self.parts, "compare").arrays
        return SeveralSums.from_arrays(plans, arrays).each


# Maps of rows before they are written: kept in the store, fitted once in each worker.

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
class AdapterMap:
    """An adapter's steps of one side: class names and arrays."""

    steps: tuple[tuple[str, dict[str, np.ndarray]], ...]

    @cached_property
    def function(self) -> RowMap:
        from relcore.migrate import estimators

        steps = tuple(getattr(estimators, name)(**arrays) for name, arrays in self.steps)
        return lambda X: apply_steps(steps, X)


_MAPS = {kind.__name__: kind for kind in (ProjectionMap, AdapterMap)}

# The folder of mapped shards: one file each, whole or not there.

FORMATS = ("npy", "parquet")
MARK = "_relscope.json"  # which work writes into the folder; a name with _ is no shard
_MAPPED_ROWS = 16384  # at once


@dataclass(frozen=True)
class WriteRows(ShardWork):
    """Writes every row through a map, with id and label, into the folder `goal`. Facts: files, names by
    shard; rows, width.
    """

    kind: ClassVar[str] = "write rows"
    version: ClassVar[int] = 3
    writes: ClassVar[bool] = True

    map: str
    of: str
    goal: str
    format: str

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        (shard,), function = shards, read(store, self.map, _MAPS[self.of]).function
        width = function(np.ones((1, shard.width), dtype=np.float32)).shape[1]
        url = beside(_written_to(self.goal), f"{shard.name.rsplit('.', 1)[0]}.{self.format}")
        blocks = self._mapped(shard, function, report)
        urls = (_write_npy if self.format == "npy" else _write_parquet)(url, shard, blocks, width)
        files = [url.rsplit("/", 1)[1] for url in urls]
        return {}, {"files": {shard.name: files}, "rows": shard.n, "width": width}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        facts, more = first.metadata["facts"], second.metadata["facts"]
        return {}, facts | {"files": facts["files"] | more["files"], "rows": facts["rows"] + more["rows"]}

    def holds(self, facts: dict) -> bool:
        files, path = filesystem(_written_to(self.goal))
        return all(files.exists(beside(path, name)) for names in facts["files"].values() for name in names)

    @staticmethod
    def _mapped(shard: Shard, function: RowMap, report: Progress) -> Iterator[ShardBlock]:
        for block in shard.blocks(labels=True):
            vectors = finite(shard, block)
            for part in row_blocks(len(vectors), _MAPPED_ROWS):
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
        write_parquet(stream, schema, map(table, blocks), **OF_VECTORS)
    return [url]


def _written_to(goal: str) -> str:
    """Where the shards of a folder are until it has all: beside it, and at an address in it."""
    path = filesystem(goal)[1].rstrip("/")
    return goal if is_address(goal) or os.path.exists(beside(path, MARK)) else f"{path}.partial"


def _need_folder(goal: str, key: str) -> None:
    """Make the folder to write to, or check that the same work began it."""
    written_to = _written_to(goal)
    for place in dict.fromkeys((goal, written_to)):
        if _begun_by(place) == key:
            return
        if _begun_by(place) or (filesystem(place)[0].exists(filesystem(place)[1]) and listed(place)):
            raise SpaceError(
                f"{place!r:.200}: expected a new or empty folder for the shards, got one with files; choose"
                " another, or remove it"
            )
    files, path = filesystem(written_to)
    files.makedirs(path, exist_ok=True)
    with replacing(beside(written_to, MARK)) as stream:
        stream.write(json.dumps({"key": key}).encode())


def _begun_by(place: str) -> str:
    """The key of the work that writes into a folder; "" for none."""
    files, path = filesystem(place)
    if not files.exists(beside(path, MARK)):
        return ""
    with opened(beside(place, MARK)) as stream, suppress(ValueError, TypeError, KeyError):
        return json.loads(stream.read())["key"]
    return "damaged"


@dataclass(frozen=True)
class Written:
    """A written folder: rows, numbers per row, and the row numbers of the anchors (k,) in the source."""

    n: int
    width: int
    anchors: np.ndarray


def write_mapped(
    source: ShardedSpace,
    rows: ProjectionMap | AdapterMap,
    goal: str,
    form: str,
    runner: Runner,
    title: str,
    anchors: Sequence[int] = (),
) -> Written:
    """Write all rows through a map into a folder, a relative one from where this process is, not from where
    the workers are. A stopped run resumes by shard.
    """
    goal = goal if is_address(goal) else filesystem(goal)[1]
    form = form or source.shards[0].written
    need_one_of("format", form, FORMATS)
    work = WriteRows(keep(runner.store, rows), type(rows).__name__, goal, form)
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
    form: str = "",
    random_state: int = 0,
) -> Written:
    """Write the space relative to anchors (ids, or a number of random rows): (n, k), with ids and labels.

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
    mean = mean_row(vectors, column_sums(survey, 0).total / source.n)
    return write_mapped(
        source, ProjectionMap(vectors, mean, spec, whiten), goal, form, runner, "project", chosen
    )


def adapt_shards(
    adapter: LoadedAdapter,
    source: ShardedSpace,
    goal: str,
    runner: Runner,
    *,
    side: str = "queries",
    form: str = "",
) -> Written:
    """Write all rows through an adapter; `side` is their model: "queries" of the new one, "corpus" of the
    old.
    """
    need_one_of("side", side, SIDES)
    need_width(adapter, side, source.width, source.name)
    steps = adapter.query_steps_ if side == "queries" else adapter.corpus_steps_
    rows = AdapterMap(tuple((type(step).__name__, vars(step)) for step in steps))
    return write_mapped(source, rows, goal, form, runner, "adapt")
