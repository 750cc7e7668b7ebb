"""An adapter as files that work without Relscope: safetensors with a card, a NumPy script, ONNX, a faiss map.

adapter.safetensors has one key of metadata, ``relscope-adapter``: a JSON object with the version of this
layout, the kinds of the steps of queries and of the corpus, and the card. Tensors are float32 and named by
their place: ``queries.1.matrix``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore import __version__
from relcore.base.access import expanded, regular_file
from relcore.base.errors import SpaceError, need_whole, quote
from relcore.base.libraries import extra
from relcore.base.records import from_json, parse, to_json
from relcore.migrate.adapters import Adapter, AffineStep, Step, Steps, Unit
from relcore.runs.digest import digest_of
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.stores.index import (
    BLOCK,
    Place,
    StagedRows,
    StoredRows,
    Target,
    need_target,
    open_index,
    write_index,
)

if TYPE_CHECKING:
    from relcore.migrate.migration import MigrationResult


@dataclass(frozen=True)
class CardScore:
    """A score on held-out rows, with its interval where there is one, and the number of queries behind it."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Card:
    """What an adapter is, what it was learned from, and how it scored.

    Attributes
    ----------
    adapter : str
        Its method, a name of `relcore.base.names.ADAPTERS`.
    new_width, old_width, width : int
        Dimensions of the new model, of the old one, and of the space that is searched.
    n_pairs : int
        Rows that both models have embedded, and from which it was learned.
    new_digest, old_digest : str
        `relcore.runs.digest.digest_of` of these rows as float32 arrays.
    commit, version : str
        Of Relscope; the commit is "" outside a checkout.
    """

    adapter: str
    new_width: int
    old_width: int
    width: int
    n_pairs: int
    new_digest: str
    old_digest: str
    new_model: str = ""
    old_model: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    scores: tuple[CardScore, ...] = ()
    date: str = ""
    commit: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        need_whole(self, new_width=1, old_width=1, width=1, n_pairs=2)


def card_of(
    adapter: Adapter,
    new: np.ndarray,
    old: np.ndarray,
    *,
    method: str,
    new_model: str = "",
    old_model: str = "",
    scores: Sequence[CardScore] = (),
    commit: str = "",
) -> Card:
    """The card, dated today, of an adapter that was fitted on the pairs new (m, d_new) and old (m, d_old)."""
    return Card(
        method,
        new.shape[1],
        old.shape[1],
        width=adapter.corpus(old[:1]).shape[1],
        n_pairs=len(new),
        new_digest=digest_of(np.asarray(new, np.float32)),
        old_digest=digest_of(np.asarray(old, np.float32)),
        new_model=new_model,
        old_model=old_model,
        settings=adapter.get_params(),
        scores=tuple(scores),
        date=date.today().isoformat(),
        commit=commit,
        version=__version__,
    )


# adapter.safetensors

FILE = "adapter.safetensors"
KEY = "relscope-adapter"
LAYOUT = 1
_KINDS: dict[str, type[Step]] = {"unit": Unit, "affine": AffineStep}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_SHAPES = {"matrix": ("d", "e"), "offset": ("e",)}  # d: the width before the step, e: the width after it
_MOST_STEPS, _MOST_BYTES = 16, 1 << 30


@dataclass(frozen=True)
class StepPlan:
    layout: int
    queries: tuple[str, ...]
    corpus: tuple[str, ...]
    card: Card


class LoadedAdapter(Adapter):
    """An adapter from a file: it maps queries and the corpus, and learns nothing.

    Attributes
    ----------
    card : Card
    """

    def __init__(self, card: Card, queries: Steps, corpus: Steps) -> None:
        self.card = card
        self.query_steps_, self.corpus_steps_ = queries, corpus
        self.n_features_in_, self.n_features_old_ = card.new_width, card.old_width

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings with which it was learned."""
        return dict(self.card.settings)

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        raise SpaceError("fit: expected an adapter that learns, got one that was loaded from a file")


def write_adapter(adapter: Adapter, card: Card, path: Path) -> None:
    """Write the file as a whole or not at all; equal adapters and cards give equal bytes.

    Raises
    ------
    SpaceError
        A card of other widths, or numbers that are not finite.
    """
    from safetensors.numpy import save

    sides = {"queries": adapter.query_steps_, "corpus": adapter.corpus_steps_}
    tensors = {
        f"{side}.{place}.{name}": np.ascontiguousarray(array, dtype="<f4")
        for side, steps in sides.items()
        for place, step in enumerate(steps)
        for name, array in vars(step).items()
    }
    plan = StepPlan(
        LAYOUT,
        **{side: tuple(_NAMES[type(one)] for one in steps) for side, steps in sides.items()},
        card=card,
    )
    _adapter(path.name, plan, dict(tensors))
    text = json.dumps(to_json(plan), ensure_ascii=False, sort_keys=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(save(tensors, metadata={KEY: text}))
    os.replace(partial, path)


def load(path: Path) -> LoadedAdapter:
    """The adapter in a file, or in a folder that `export` wrote.

    Raises
    ------
    SpaceError
        Another file, a damaged one, shapes that do not fit together, numbers that are not finite, a later
        layout.
    """
    from safetensors import SafetensorError, safe_open

    path = expanded(path)
    path = regular_file(path / FILE if path.is_dir() else path)
    if (size := path.stat().st_size) > _MOST_BYTES:
        raise _damaged(path.name, f"at most {_MOST_BYTES >> 20} MB", f"{size >> 20} MB")
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if other := {file.get_slice(name).get_dtype() for name in names} - {"F32"}:
                raise _damaged(path.name, "float32 tensors", quote(sorted(other)))
            text = (file.metadata() or {}).get(KEY)
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise _damaged(
            path.name, "an adapter as safetensors", f"another file or a damaged one ({error!s:.100})"
        ) from None
    if text is None:
        raise _damaged(path.name, "an adapter with its card", f"a safetensors file without {KEY!r}")
    return _adapter(path.name, _plan(path.name, text), tensors)


def _damaged(name: str, expected: str, got: str) -> SpaceError:
    return SpaceError(f"{name}: expected {expected}, got {got}; export or copy it again")


def _plan(name: str, text: str) -> StepPlan:
    try:
        described = parse(text, KEY)
        if isinstance(described, dict) and type(layout := described.get("layout")) is int and layout > LAYOUT:
            raise SpaceError(f"expected layout {LAYOUT}, got {layout} of a later version of Relscope")
        return from_json(StepPlan, described, KEY)
    except SpaceError as error:
        raise SpaceError(f"{name}: {error!s:.700}; export or copy it again") from None


def _adapter(name: str, plan: StepPlan, tensors: dict[str, np.ndarray]) -> LoadedAdapter:
    card = plan.card
    sides = [
        _steps(name, side, getattr(plan, side), width, card.width, tensors)
        for side, width in (("queries", card.new_width), ("corpus", card.old_width))
    ]
    if tensors:
        raise _damaged(name, "the tensors of its steps only", f"also {quote(sorted(tensors)[:3])}")
    return LoadedAdapter(card, *sides)


def _steps(
    name: str, side: str, kinds: Sequence[str], width: int, end: int, tensors: dict[str, np.ndarray]
) -> Steps:
    """The steps of one side from rows of `width` to rows of width `end`; takes their tensors out of the
    dict.
    """
    if unknown := set(kinds) - set(_KINDS):
        got = f"{quote(sorted(unknown)[:3])}; update Relscope"
        raise SpaceError(f"{name}: expected steps among {quote(_KINDS)}, got {got}")
    if {*kinds[:1], *kinds[-1:]} != {"unit"} or len(kinds) > _MOST_STEPS:
        expected = f"at most {_MOST_STEPS} steps of the {side}, the first and the last 'unit'"
        raise _damaged(name, expected, quote(kinds[:6]) or "none")
    steps = []
    for place, kind in enumerate(kinds):
        sizes, arrays = {"d": width}, {}
        for part in fields(_KINDS[kind]):
            tensor, dims = f"{side}.{place}.{part.name}", _SHAPES[part.name]
            array = arrays[part.name] = tensors.pop(tensor, np.empty(()))
            if array.ndim != len(dims) or any(
                sizes.setdefault(*one) != one[1] for one in zip(dims, array.shape, strict=True)
            ):
                expected = f"the tensor {tensor} of shape {tuple(sizes.get(dim, dim) for dim in dims)}"
                raise _damaged(name, expected, str(array.shape))
            if not np.isfinite(array).all():
                raise _damaged(name, f"finite numbers in {tensor}", "NaN or infinity")
        steps.append(_KINDS[kind](**arrays))
        width = sizes.get("e", width)
    if width != end:
        raise _damaged(name, f"{side} of width {end} after all steps", str(width))
    return tuple(steps)


# ONNX

OPSET = 18  # ReduceL2 takes its axes as an input from here on; onnxruntime knows it since 1.14
_IR = 8  # of the same time
_LEAST_LENGTH = 1e-30  # a shorter row counts as zero, which stays zero


def graph_bytes(adapter: LoadedAdapter, side: str) -> bytes:
    """The steps of one side, ``"queries"`` or ``"corpus"``, as an ONNX graph, checked by the package onnx.

    Input ``rows``, float32 (n, d) for any n; output ``mapped``, float32 (n, width) of length 1.

    Raises
    ------
    SpaceError
        The package onnx is not installed.
    """
    with extra("onnx"):
        from onnx import TensorProto, checker, helper, numpy_helper
    nodes, tensors = [], []

    def node(kind: str, *inputs: str | np.ndarray, **attributes: Any) -> str:
        names = []
        for one in inputs:
            if isinstance(one, np.ndarray):
                tensors.append(numpy_helper.from_array(np.ascontiguousarray(one), f"tensor_{len(tensors)}"))
            names.append(one if isinstance(one, str) else tensors[-1].name)
        nodes.append(helper.make_node(kind, names, [f"{kind}_{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    is_query, card = side == "queries", adapter.card
    rows = "rows"
    for step in adapter.query_steps_ if is_query else adapter.corpus_steps_:
        if isinstance(step, Unit):
            length = node("ReduceL2", rows, np.array([1], np.int64), keepdims=1)
            rows = node("Div", rows, node("Max", length, np.array(_LEAST_LENGTH, np.float32)))
        else:
            rows = node("Add", node("MatMul", rows, step.matrix), step.offset)
    nodes.append(helper.make_node("Identity", [rows], ["mapped"]))
    ends = (("rows", card.new_width if is_query else card.old_width), ("mapped", card.width))
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])] for name, width in ends
    )
    graph = helper.make_graph(nodes, f"relscope adapter, {side}", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="relscope", ir_version=_IR, opset_imports=opsets)
    checker.check_model(model, full_check=True)
    return model.SerializeToString()


# The folder that people take with them.

SNIPPET = "apply.py"
GRAPHS = {"queries": "adapter.onnx", "corpus": "corpus.onnx"}


def export(adapter: Adapter, card: Card, folder: Path, *, replace: bool = False) -> tuple[Path, ...]:
    """Write the files of an adapter, and return their paths.

    ``adapter.safetensors`` holds the steps and the card; ``apply.py`` maps rows with NumPy alone;
    ``adapter.onnx`` maps queries, and ``corpus.onnx`` the corpus where the adapter projects it. The graphs
    are left out where the package onnx (extra ``onnx``) is not installed. For faiss see `index_with_map`.

    Raises
    ------
    SpaceError
        The folder holds an adapter already, unless `replace`; a card of other widths than the adapter.
    """
    folder = expanded(folder)
    if (folder / FILE).exists() and not replace:
        raise SpaceError(
            f"{folder}: expected a folder without an adapter, got one with {FILE}; choose another"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_adapter(adapter, card, folder / FILE)
    (folder / SNIPPET).write_bytes(files("relcore.migrate").joinpath(SNIPPET).read_bytes())
    written, loaded = [folder / FILE, folder / SNIPPET], load(folder)
    for side, name in GRAPHS.items():
        (folder / name).unlink(missing_ok=True)  # of an adapter that was replaced
        if find_spec("onnx") and (side == "queries" or len(loaded.corpus_steps_) > 1):
            (folder / name).write_bytes(graph_bytes(loaded, side))
            written.append(folder / name)
    return tuple(written)


def export_result(
    result: MigrationResult,
    rows: tuple[np.ndarray, np.ndarray],
    names: tuple[str, str],
    folder: Path,
    commit: str = "",
) -> tuple[Path, ...]:
    """Fit the adapter of a migration again, on the rows of its pairs by the new and the old model, and
    `export` it with a card.
    """
    from relcore.migrate.migration import TITLES

    scores = [
        CardScore(f"{result.metric}, {TITLES[one.option]}", one.value, one.low, one.high, len(result.queries))
        for one in result.options
    ]
    adapter, models = result.fitted(*rows), {"new_model": names[0], "old_model": names[1]}
    card = card_of(adapter, *rows, method=result.adapter, scores=scores, commit=commit, **models)
    return export(adapter, card, folder)


# A faiss index with an adapter in front: search programs give it the new model's queries and change nothing.


def index_with_map(index: Any, adapter: Adapter, *, projected: bool = False) -> Any:
    """A `faiss.IndexPreTransform` that maps queries of the new model and searches `index` with them.

    The index keeps its vectors, of any kind and compression; it is not copied. Search by inner product, or by
    Euclidean distance where its rows have length 1. Add rows to the index inside, ``mapped.index``: the map
    is for queries, and ``mapped.add`` would apply it to the corpus.

    Parameters
    ----------
    index : faiss.Index
        Of the old vectors; for an adapter that projects the corpus, of projected ones (`Adapter.corpus`).
    projected : bool
        Whether the vectors in the index went through `Adapter.corpus`. Adapters that need it are refused
        without it.

    Raises
    ------
    SpaceError
        An index of other rows, or of another width.

    Examples
    --------
    >>> import faiss, numpy as np
    >>> from relcore.migrate.adapter_file import index_with_map
    >>> from relcore.migrate.adapters import InPlaceProcrustesAdapter
    >>> old = np.eye(4, 3, dtype=np.float32)[:3]
    >>> new = old[:, ::-1]
    >>> index = faiss.IndexFlatIP(3)
    >>> index.add(old)
    >>> mapped = index_with_map(index, InPlaceProcrustesAdapter().fit(new, old))
    >>> mapped.search(np.ascontiguousarray(new), 1)[1].ravel().tolist()
    [0, 1, 2]
    """
    import faiss

    if len(adapter.corpus_steps_) > 1 and not projected:
        raise SpaceError(
            "index: expected vectors projected by this adapter, which searches no vectors as they are; write"
            " the index again with relscope adapt ADAPTER OLD NEW.faiss --corpus, and pass projected=True"
        )
    width, transforms = adapter.n_features_in_, []
    for step in adapter.query_steps_:
        if isinstance(step, AffineStep):
            transform = faiss.LinearTransform(*step.matrix.shape, True)
            faiss.copy_array_to_vector(np.ascontiguousarray(step.matrix.T, np.float32).ravel(), transform.A)
            faiss.copy_array_to_vector(np.ascontiguousarray(step.offset, np.float32), transform.b)
            transform.is_trained = True
        else:
            transform = faiss.NormalizationTransform(width, 2.0)
        transforms.append(transform)
        width = transform.d_out
    if index.d != width:
        expected = f"vectors of width {width}, to which the adapter maps queries"
        raise SpaceError(f"index: expected {expected}, got {index.d}")
    mapped = faiss.IndexPreTransform(index)
    for transform in reversed(transforms):
        mapped.prepend_transform(transform)
    return mapped


SIDES = ("queries", "corpus")


def adapt(
    adapter: Adapter | None,
    source: Place,
    goal: Place,
    *,
    side: str = "queries",
    add: bool = False,
    report: Report = silent,
    block: int = BLOCK,
) -> Target:
    """Map all rows of a store and write them to another one, with their ids and payload.

    Memory holds one block. Mapped blocks are kept in a folder beside the goal, `staging_folder`, until all
    are there; then the goal is written, a file under its name only when it is whole. After a kill the same
    call continues behind the last block. So the disk needs room for the result twice.

    Parameters
    ----------
    adapter : Adapter, optional
        None copies the rows as they are.
    side : "queries" or "corpus"
        Rows of the new model, or of the old one.
    add : bool
        Whether rows may be added to a collection or table that is there.

    Raises
    ------
    SpaceError
        Rows of another width than the adapter's, NaN or infinite values; a goal that is taken; as
        `open_index`.
    """
    if source == goal:
        expected = "a target other than the source, got the same; choose another"
        raise SpaceError(f"{goal.text}: expected {expected}")
    with open_index(source) as index:
        mapped, width, steps = (lambda rows: rows), index.width, ()
        if adapter is not None:
            need_width(adapter, side, index.width, index.name)
            is_query = side == "queries"
            mapped = adapter.transform if is_query else adapter.corpus
            steps = adapter.query_steps_ if is_query else adapter.corpus_steps_
            width = mapped(np.ones((1, index.width), np.float32)).shape[1]
        # Of the whole work. A file that was written again counts as another.
        written = [] if source.address else [_written(path) for path in _files(source.path)]
        key = digest_of([*steps], side, source.text, goal.text, index.n, index.width, written)
        staged = StagedRows(staging_folder(goal), key)
        target = Target(index.n, width, add, resumed=staged.writing)
        if staged.writing and goal.is_file and goal.path.exists():  # killed after the last step but one
            staged.remove()
            return target
        need_target(goal, target)
        for rows in index.blocks(block, staged.done) if staged.done < index.n else ():
            staged.append(StoredRows(rows.ids, mapped(rows.vectors), rows.payload))
            report(staged.done, index.n, f"mapping {index.name}")
    staged.begin_writing()
    write_index(goal, staged.blocks(), target, report)
    staged.remove()
    return target


def staging_folder(goal: Place) -> Path:
    if goal.address:
        return Store().root / "adapting" / digest_of(goal.text)
    path = goal.path
    return path.with_name(f"{path.name}{f'-{Path(goal.table).name}' * bool(goal.table)}.adapting")


def need_width(adapter: Adapter, side: str, width: int, name: str) -> None:
    """Raise a SpaceError where an adapter takes no rows of this width: "queries" of the new model,
    "corpus" of the old.
    """
    expected = adapter.n_features_in_ if side == "queries" else adapter.n_features_old_
    if width != expected:
        model = "new" if side == "queries" else "old"
        raise SpaceError(
            f"{name}: expected rows of the {model} model, of width {expected}, got {width}; name its vectors"
            + ", or use --corpus for those of the old model" * (side == "queries")
        )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != ".lock")


def _written(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return path.name, status.st_size, status.st_mtime_ns
