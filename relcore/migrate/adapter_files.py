"""Adapters as files that run without Relscope: safetensors with a card, ONNX, faiss, and scripts of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.numbers import band, short
from relcore.base.records import checked_tensors, damaged_file, file_bytes
from relcore.base.report import Report, Reported, Table
from relcore.base.settings import check, setting
from relcore.base.version import __version__
from relcore.base.writing import disk_errors, new_folder, write
from relcore.migrate.adapters import Adapter, AffineStep, Step, Steps, Unit, apply_steps
from relcore.runs.entries import digest_of


@dataclass(frozen=True)
class CardScore:
    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True, repr=False)
class Card(Reported):
    """The card of an adapter records how it was made: its method (from `relcore.base.names.ADAPTERS`), the
    pairs that it was fitted on, and its scores.

    `width` is the width of the searched space. The two digests are the `digest_of` the paired rows as float32
    arrays. `commit` is "" outside a git checkout. `candidates` and `n_candidates` say which search results
    the new model ranks in a cascade; see `relcore.migrate.trial.Candidates`. `weight` is the weight of the
    mapped queries when both models search, where the old model has weight 1.
    """

    adapter: str
    new_width: int = setting(low=1)
    old_width: int = setting(low=1)
    width: int = setting(low=1)
    n_pairs: int = setting(low=2)
    new_digest: str
    old_digest: str
    new_model: str = ""
    old_model: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    scores: tuple[CardScore, ...] = ()
    date: str = ""
    commit: str = ""
    version: str = ""
    candidates: Literal["both", "old", "bridged"] = "both"
    n_candidates: int = setting(50, low=1)
    weight: float = 1.0

    __post_init__ = check

    def report(self) -> Report:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        with_settings = ""
        if settings:
            with_settings = f" ({settings})"
        lines = [
            f"{self.adapter}{with_settings}: {self.new_model or 'new model'},"
            f" {self.new_width:,} numbers per row → {self.old_model or 'old model'}, {self.old_width:,};"
            f" searched at width {self.width:,}",
            f"fitted on {self.n_pairs:,} pairs (new {self.new_digest[:8]}, old {self.old_digest[:8]})",
        ]
        cells = [["score", "value", "95 %", "n"]]
        for one in self.scores:
            if None in (one.low, one.high):
                interval = ""
            else:
                interval = band(one.low, one.high)
            cells.append([one.name, short(one.value), interval, "" if one.n is None else f"{one.n:,}"])
        program = ""
        if self.version:
            program = f"Relscope {self.version}"
        if origin := ", ".join(filter(None, (self.date, program, self.commit))):
            lines.append(f"made {origin}")
        scores = Table("scores", pd.DataFrame([asdict(score) for score in self.scores]), cells)
        return Report("; ".join(lines) + ".", [scores], {"card": asdict(self)})


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
    """Make the card, dated today, of an adapter that was fitted on the paired rows `new` (m, d_new) and `old`
    (m, d_old).
    """
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


FILE = "adapter.safetensors"
KEY = "relscope-adapter"
LAYOUT = 1
_KINDS: dict[str, type[Step]] = {"unit": Unit, "affine": AffineStep}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_SHAPES = {"matrix": ("d", "e"), "offset": ("e",)}  # d: width before the step; e: width after it
_MOST_STEPS = 16


@dataclass(frozen=True)
class StepPlan:
    layout: int
    queries: tuple[str, ...]
    corpus: tuple[str, ...]
    card: Card
    checksum: str = ""  # of the whole file; "" in files of version 0.1.0


class LoadedAdapter(Adapter):
    """An adapter that was read from a file, with its card. It can map rows, but cannot be fitted again."""

    def __init__(self, card: Card, queries: Steps, corpus: Steps) -> None:
        self.card = card
        self.query_steps_ = queries
        self.corpus_steps_ = corpus
        self.n_features_old_ = card.old_width
        one = np.zeros((1, card.new_width), np.float32)
        self._sees(None, card.new_width, apply_steps(queries, one).shape[1])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self.card.settings)

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        raise SpaceError("fit: expected an adapter that learns, got one that was loaded from a file")


def write_adapter(adapter: Adapter, card: Card, path: Path) -> None:
    """Write an adapter and its card to a file, atomically. Equal adapters and cards give equal bytes.

    Raises a SpaceError for a card whose widths differ from those of the adapter, and for numbers that are not
    finite.
    """
    sides = {"queries": adapter.query_steps_, "corpus": adapter.corpus_steps_}
    tensors = {
        f"{side}.{place}.{name}": np.ascontiguousarray(array, dtype="<f4")
        for side, steps in sides.items()
        for place, step in enumerate(steps)
        for name, array in vars(step).items()
    }
    plan = StepPlan(
        LAYOUT,
        **{side: tuple(_NAMES[type(step)] for step in steps) for side, steps in sides.items()},
        card=card,
    )
    _adapter(path.name, plan, dict(tensors))
    write(path, file_bytes(tensors, KEY, plan))


def load(path: str | Path) -> LoadedAdapter:
    """Read the adapter from a file, or from a folder that `export` wrote.

    Raises a SpaceError for another kind of file, a damaged file, contradictory shapes, and a file of a later
    version.
    """
    path = expand_home(path)
    path = path / FILE if path.is_dir() else path
    return _adapter(path.name, *checked_tensors(path, KEY, StepPlan, LAYOUT, "an adapter"))


def _adapter(name: str, plan: StepPlan, tensors: dict[str, np.ndarray]) -> LoadedAdapter:
    card = plan.card
    sides = [
        _steps(name, side, getattr(plan, side), width, card.width, tensors)
        for side, width in (("queries", card.new_width), ("corpus", card.old_width))
    ]
    if tensors:
        raise damaged_file(name, "the tensors of its steps only", f"also {quote(sorted(tensors)[:3])}")
    return LoadedAdapter(card, *sides)


def _step(name: str, kind: str, prefix: str, width: int, tensors: dict[str, np.ndarray]) -> tuple[Step, int]:
    """Build a step for rows of width `width` from its arrays, which are removed from `tensors`. Returns it
    and the width of the rows after it."""
    sizes = {"d": width}
    arrays = {}
    for part in fields(_KINDS[kind]):
        tensor = f"{prefix}.{part.name}"
        array = tensors.pop(tensor, np.empty(()))
        dims = _SHAPES[part.name]
        expected = tuple(sizes.get(dim, dim) for dim in dims)
        fits = array.ndim == len(dims) and all(
            sizes.get(dim, size) == size for dim, size in zip(dims, array.shape, strict=True)
        )
        if not fits or array.dtype != np.float32:
            raise damaged_file(name, f"the tensor {tensor} of shape {expected}", str(array.shape))
        if not np.isfinite(array).all():
            raise damaged_file(name, f"finite numbers in {tensor}", "NaN or infinity")
        sizes.update(zip(dims, array.shape, strict=True))
        arrays[part.name] = array
    return _KINDS[kind](**arrays), sizes.get("e", width)


def _steps(
    name: str, side: str, kinds: Sequence[str], width: int, end: int, tensors: dict[str, np.ndarray]
) -> Steps:
    """Build the steps of a side, "queries" or "corpus", from their arrays, which are removed from `tensors`.
    The steps map rows of width `width` to rows of width `end`.
    """
    if unknown := set(kinds) - set(_KINDS):
        got = f"{quote(sorted(unknown)[:3])}; update Relscope"
        raise SpaceError(f"{name}: expected steps among {quote(_KINDS)}, got {got}")
    if not kinds or kinds[0] != "unit" or kinds[-1] != "unit" or len(kinds) > _MOST_STEPS:
        expected = f"at most {_MOST_STEPS} steps of the {side}, the first and the last 'unit'"
        raise damaged_file(name, expected, quote(kinds[:6]) or "none")
    steps = []
    for place, kind in enumerate(kinds):
        step, width = _step(name, kind, f"{side}.{place}", width, tensors)
        steps.append(step)
    if width != end:
        raise damaged_file(name, f"{side} of width {end} after all steps", str(width))
    return tuple(steps)


OPSET = 18  # since this version, ReduceL2 takes axes as an input; onnxruntime supports it since 1.14
_IR = 8  # version of the ONNX file format that belongs to opset 18
_LEAST_LENGTH = 1e-30  # shorter rows count as zero rows, which stay zero


def graph_bytes(adapter: LoadedAdapter, side: str) -> bytes:
    """Convert the steps of a side, ``"queries"`` or ``"corpus"``, to an ONNX model, as bytes. This needs the
    package onnx.

    The input ``rows`` is float32 (n, d) for any n. The output ``mapped`` is float32 (n, width), with rows of
    length 1.
    """
    with extra("onnx"):
        from onnx import TensorProto, checker, helper, numpy_helper
    nodes = []
    tensors = []

    def node(kind: str, *inputs: str | np.ndarray, **attributes: Any) -> str:
        names = []
        for one in inputs:
            if isinstance(one, np.ndarray):
                tensors.append(numpy_helper.from_array(np.ascontiguousarray(one), f"tensor_{len(tensors)}"))
            names.append(one if isinstance(one, str) else tensors[-1].name)
        nodes.append(helper.make_node(kind, names, [f"{kind}_{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    card = adapter.card
    if side == "queries":
        steps = adapter.query_steps_
        width = card.new_width
    else:
        steps = adapter.corpus_steps_
        width = card.old_width
    rows = "rows"
    for step in steps:
        if isinstance(step, Unit):
            length = node("ReduceL2", rows, np.array([1], np.int64), keepdims=1)
            rows = node("Div", rows, node("Max", length, np.array(_LEAST_LENGTH, np.float32)))
        else:
            rows = node("Add", node("MatMul", rows, step.matrix), step.offset)
    nodes.append(helper.make_node("Identity", [rows], ["mapped"]))
    inputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", width])]
    outputs = [helper.make_tensor_value_info("mapped", TensorProto.FLOAT, ["n", card.width])]
    graph = helper.make_graph(nodes, f"relscope adapter, {side}", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="relscope", ir_version=_IR, opset_imports=opsets)
    checker.check_model(model, full_check=True)
    return model.SerializeToString()


SNIPPET = "apply.py"
CASCADE = "cascade.py"
GRAPHS = {"queries": "adapter.onnx", "corpus": "corpus.onnx"}


def export(adapter: Adapter, card: Card, folder: Path, *, replace: bool = False) -> tuple[Path, ...]:
    """Write the files of an adapter, and return their paths.

    ``adapter.safetensors`` holds the steps and the card. ``apply.py`` maps rows and needs only NumPy.
    ``cascade.py`` ranks the results of an old index by new vectors. ``adapter.onnx`` maps queries. If the
    adapter rewrites the corpus, ``corpus.onnx`` maps it. The ONNX files need the package onnx. For faiss, see
    `index_with_map`.

    Raises
    ------
    SpaceError
        A folder that already holds an adapter, unless `replace` is True; a card whose widths differ from
        those of the adapter.
    """
    folder = expand_home(folder)
    if (folder / FILE).exists() and not replace:
        raise SpaceError(
            f"{folder}: expected a folder without an adapter, got one with {FILE}; choose another"
        )
    with disk_errors(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder, last=FILE) as made:
        write_adapter(adapter, card, made / FILE)
        written = [FILE, SNIPPET, CASCADE]
        loaded = load(made)
        for name in (SNIPPET, CASCADE):
            write(made / name, files("relcore.migrate").joinpath(name).read_bytes())
        for side, name in GRAPHS.items():
            (folder / name).unlink(missing_ok=True)  # remove the file of a replaced adapter
            if find_spec("onnx") and (side == "queries" or loaded.rewrites_corpus):
                write(made / name, graph_bytes(loaded, side))
                written.append(name)
    return tuple(folder / name for name in written)


# A faiss index with an adapter in front. A search program needs no change except that its queries come from
# the new model.


def index_with_map(index: Any, adapter: Adapter, *, projected: bool = False) -> Any:
    """A `faiss.IndexPreTransform` that maps queries of the new model, and searches `index` with the result.

    The index is not copied. Search by inner product; if the rows have length 1, Euclidean distance also
    works. Add new rows to ``mapped.index``, because ``mapped.add`` would map them as queries.

    Parameters
    ----------
    index : faiss.Index
        An index of the old vectors. If the adapter rewrites the corpus, an index of the vectors after
        `Adapter.corpus`.
    projected : bool
        Whether the vectors in the index were mapped by `Adapter.corpus`. It must be True if the adapter
        rewrites the corpus.

    Raises
    ------
    SpaceError
        An index whose vectors must be mapped first; an index of another width.

    Examples
    --------
    >>> import faiss, numpy as np
    >>> from relcore.migrate.adapter_files import index_with_map
    >>> from relcore.migrate.adapters import ProcrustesAdapter
    >>> old = np.eye(4, 3, dtype=np.float32)[:3]
    >>> new = old[:, ::-1]
    >>> index = faiss.IndexFlatIP(3)
    >>> index.add(old)
    >>> mapped = index_with_map(index, ProcrustesAdapter().fit(new, old))
    >>> mapped.search(np.ascontiguousarray(new), 1)[1].ravel().tolist()
    [0, 1, 2]
    """
    import faiss

    if adapter.rewrites_corpus and not projected:
        raise SpaceError(
            "index: expected vectors projected by this adapter, got projected=False; write the index again"
            " with relscope adapt ADAPTER OLD NEW.faiss --corpus, and pass projected=True"
        )
    mapped = faiss.IndexPreTransform(index)
    width = index.d
    for step in reversed(adapter.query_steps_):
        transform = faiss.NormalizationTransform(width, 2.0)
        if isinstance(step, AffineStep):
            if step.matrix.shape[1] != width:
                expected = f"vectors of width {step.matrix.shape[1]}, to which the adapter maps queries"
                raise SpaceError(f"index: expected {expected}, got {width}")
            transform = faiss.LinearTransform(*step.matrix.shape, True)
            faiss.copy_array_to_vector(np.ascontiguousarray(step.matrix.T, np.float32).ravel(), transform.A)
            faiss.copy_array_to_vector(np.ascontiguousarray(step.offset, np.float32), transform.b)
            transform.is_trained = True
        mapped.prepend_transform(transform)
        width = transform.d_in
    return mapped
