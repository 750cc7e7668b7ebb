"""adapter.safetensors: the steps of an adapter as tensors, and its card as JSON in the file's metadata.

The metadata have one key, ``relscope-adapter``: a JSON object with the version of this layout, the kinds of
the steps of queries and of the corpus, and the card. Tensors are float32 and named by their place:
``queries.1.matrix``. The file is read here, not by the library, which maps it into memory and takes more
forms than an adapter has.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relcore import __version__
from relcore.base.access import expanded, regular_file
from relcore.base.errors import SpaceError, need_whole, quote
from relcore.base.libraries import extra
from relcore.base.records import from_json, parse, to_json
from relcore.migrate.adapters import Adapter, AffineStep, Residual, Step, Unit
from relcore.runs.digest import digest_of

# Card: what an adapter is, what it was learned from, and how it scored; it travels inside the adapter's file.


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
    """What a stranger needs to know before they use an adapter.

    Attributes
    ----------
    adapter : str
        Its method, a name of `relcore.base.names.ADAPTERS`.
    new_width, old_width, width : int
        Numbers per row of the new model, of the old one, and of the space that is searched.
    n_pairs : int
        Rows that both models have embedded, and from which it was learned.
    new_digest, old_digest : str
        Digests of these rows (`relcore.runs.digest.digest_of` of the float32 arrays): equal rows, equal
        digests.
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
    """The card of an adapter that was fitted on these pairs, new (m, d_new) and old (m, d_old), dated today.

    Raises
    ------
    SpaceError
        The adapter is not fitted, or was fitted on rows of other widths.
    """
    widths = getattr(adapter, "n_features_in_", None), getattr(adapter, "n_features_old_", None)
    if widths != (new.shape[1], old.shape[1]):
        raise SpaceError(
            f"card: expected an adapter fitted on these pairs, of widths {new.shape[1]} and {old.shape[1]},"
            f" got one of {widths[0]} and {widths[1]}; fit it on them"
        )
    return Card(
        method,
        *widths,
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
_KINDS: dict[str, type[Step]] = {"unit": Unit, "affine": AffineStep, "residual": Residual}
_SHAPES = {
    "matrix": ("d", "e"),
    "offset": ("e",),
    "inner": ("d", "h"),
    "inner_offset": ("h",),
    "outer": ("h", "d"),
    "outer_offset": ("d",),
}
_MOST_STEPS, _MOST_HEADER, _MOST_BYTES = 16, 1 << 20, 1 << 30
_AGAIN = "export or copy it again"


@dataclass(frozen=True)
class Plan:
    """What the metadata hold."""

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

    def __init__(self, card: Card, queries: tuple[Step, ...], corpus: tuple[Step, ...]) -> None:
        self.card = card
        self.query_steps_, self.corpus_steps_ = queries, corpus
        self.n_features_in_, self.n_features_old_ = card.new_width, card.old_width

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings with which it was learned."""
        return dict(self.card.settings)

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        raise SpaceError(
            "fit: expected an adapter that learns, got one that was loaded from a file; make one of its"
            " method"
        )


def write_adapter(adapter: Adapter, card: Card, path: Path) -> None:
    """Write the file as a whole or not at all; equal adapters and cards give equal bytes.

    Raises
    ------
    SpaceError
        A card of other widths, or numbers that are not finite.
    """
    from safetensors.numpy import save

    steps = {"queries": adapter.query_steps_, "corpus": adapter.corpus_steps_}
    kinds = {side: tuple(_kind(step) for step in found) for side, found in steps.items()}
    tensors = {
        f"{side}.{place}.{one.name}": np.ascontiguousarray(getattr(step, one.name), dtype="<f4")
        for side, found in steps.items()
        for place, step in enumerate(found)
        for one in fields(step)
    }
    _check(path.name, card, *(_steps(path.name, side, kinds[side], dict(tensors)) for side in steps))
    plan = json.dumps(to_json(Plan(LAYOUT, **kinds, card=card)), ensure_ascii=False, sort_keys=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(save(tensors, metadata={KEY: plan}))
    os.replace(partial, path)


def read_adapter(path: Path) -> LoadedAdapter:
    """The adapter in a file, or in a folder that `take_away.write` made.

    Raises
    ------
    SpaceError
        Another file, a damaged one, shapes that do not fit together, numbers that are not finite, a later
        layout.
    """
    path = expanded(path)
    path = regular_file(path / FILE if path.is_dir() else path)
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise SpaceError(
            f"{path.name}: expected an adapter of at most {_MOST_BYTES >> 20} MB, got {size >> 20} MB;"
            f" {_AGAIN}"
        )
    with path.open("rb") as stream:
        with _described(path.name):
            header = _header(path.name, stream, size)
            plan = _plan(path.name, header.pop("__metadata__", None))
        tensors = _tensors(path.name, header, stream, size - stream.tell())
    queries, corpus = (
        _steps(path.name, side, getattr(plan, side), tensors) for side in ("queries", "corpus")
    )
    if tensors:
        raise SpaceError(
            f"{path.name}: expected the tensors of its steps only, got also {quote(sorted(tensors)[:3])};"
            f" {_AGAIN}"
        )
    _check(path.name, plan.card, queries, corpus)
    return LoadedAdapter(plan.card, queries, corpus)


def _kind(step: Step) -> str:
    return next(name for name, kind in _KINDS.items() if type(step) is kind)


@contextmanager
def _described(name: str) -> Iterator[None]:
    """Errors about JSON with the name of the file and what to do about it."""
    try:
        yield
    except SpaceError as error:
        said = str(error) if str(error).startswith(name) else f"{name}: {error}"
        raise SpaceError(said if "; " in said else f"{said:.700}; {_AGAIN}") from None


def _header(name: str, stream: BinaryIO, size: int) -> dict[str, Any]:
    length = int.from_bytes(stream.read(8), "little")
    if not 0 < length <= min(size - 8, _MOST_HEADER):
        raise SpaceError(
            f"{name}: expected an adapter as safetensors, got another file or a damaged one; {_AGAIN}"
        )
    header = parse(stream.read(length), name, "the header of a safetensors file")
    if not isinstance(header, dict):
        raise SpaceError(f"{name}: expected a header as a JSON object, got {type(header).__name__}; {_AGAIN}")
    return header


def _plan(name: str, metadata: Any) -> Plan:
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get(KEY), str):
        raise SpaceError(
            f"{name}: expected an adapter with its card, got a safetensors file without {KEY!r}; {_AGAIN}"
        )
    described = parse(metadata[KEY], f"{name}, {KEY}")
    if isinstance(described, dict) and type(layout := described.get("layout")) is int and layout > LAYOUT:
        raise SpaceError(
            f"{name}: expected layout {LAYOUT}, got {layout} of a later version; update Relscope"
        )
    plan = from_json(Plan, described, name)
    for side in ("queries", "corpus"):
        kinds = getattr(plan, side)
        ends = {kinds[0], kinds[-1]} if kinds else set()
        if unknown := set(kinds) - set(_KINDS):
            raise SpaceError(
                f"{name}: expected steps among {quote(_KINDS)}, got {quote(sorted(unknown)[:3])}; update"
                " Relscope"
            )
        if ends != {"unit"} or len(kinds) > _MOST_STEPS:
            raise SpaceError(
                f"{name}: expected at most {_MOST_STEPS} steps of the {side}, the first and the last 'unit',"
                f" got {quote(kinds[:6]) or 'none'}; {_AGAIN}"
            )
    return plan


def _tensors(name: str, header: Mapping[str, Any], stream: BinaryIO, left: int) -> dict[str, np.ndarray]:
    """Every tensor of the header, which must cover the rest of the file without gaps; nothing is read
    before that is known.
    """
    shapes, end = {}, 0
    try:
        for tensor, part in sorted(header.items(), key=lambda item: tuple(item[1]["data_offsets"])):
            (start, stop), shape = part["data_offsets"], part["shape"]
            whole = all(type(one) is int for one in (start, stop, *shape)) and min(shape) > 0
            if part["dtype"] != "F32" or not whole or start != end or stop - start != 4 * math.prod(shape):
                raise ValueError
            shapes[tensor], end = shape, stop
        if end != left:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise SpaceError(
            f"{name}: expected float32 tensors that fill the file, got other sizes; {_AGAIN}"
        ) from None
    return {
        tensor: np.frombuffer(stream.read(4 * math.prod(shape)), "<f4").reshape(shape)
        for tensor, shape in shapes.items()
    }


def _steps(name: str, side: str, kinds: tuple[str, ...], tensors: dict[str, np.ndarray]) -> tuple[Step, ...]:
    """The steps of one side; takes their tensors out of the dict."""
    return tuple(_step(name, f"{side}.{place}", _KINDS[kind], tensors) for place, kind in enumerate(kinds))


def _step(name: str, place: str, kind: type[Step], tensors: dict[str, np.ndarray]) -> Step:
    lengths: dict[str, int] = {}
    arrays = {}
    for one in fields(kind):
        array = tensors.pop(f"{place}.{one.name}", None)
        dims = _SHAPES[one.name]
        shape = () if array is None else array.shape
        if len(shape) != len(dims) or any(
            lengths.setdefault(dim, n) != n for dim, n in zip(dims, shape, strict=True)
        ):
            expected = tuple(lengths.get(dim, dim) for dim in dims)
            raise SpaceError(
                f"{name}: expected the tensor {place}.{one.name} of shape {expected}, got {shape}; {_AGAIN}"
            )
        if not np.isfinite(array).all():
            raise SpaceError(
                f"{name}: expected finite numbers in {place}.{one.name}, got NaN or infinity; {_AGAIN}"
            )
        arrays[one.name] = array
    return kind(**arrays)


def _check(name: str, card: Card, queries: tuple[Step, ...], corpus: tuple[Step, ...]) -> None:
    """The widths of the steps against those of the card."""
    for side, width, steps in (("queries", card.new_width, queries), ("corpus", card.old_width, corpus)):
        found = _width_after(name, side, width, steps)
        if found != card.width:
            raise SpaceError(
                f"{name}: expected {side} of width {card.width} after all steps, got {found}; {_AGAIN}"
            )


def _width_after(name: str, side: str, width: int, steps: tuple[Step, ...]) -> int:
    for place, step in enumerate(steps):
        if isinstance(step, Unit):
            continue
        taken, given = (
            step.matrix.shape if isinstance(step, AffineStep) else (len(step.inner), len(step.inner))
        )
        if taken != width:
            raise SpaceError(
                f"{name}: expected {side}.{place} to take rows of width {width}, got {taken}; {_AGAIN}"
            )
        width = given
    return width


# An adapter as ONNX: the same steps as a graph that onnxruntime and other programs run.

OPSET = 18  # ReduceL2 takes its axes as an input from here on; onnxruntime knows it since 1.14
_IR = 8  # of the same time
_LEAST_LENGTH = 1e-30  # a shorter row is taken for a zero row, which stays zero


def graph_bytes(adapter: LoadedAdapter, side: str) -> bytes:
    """The graph of one side, ``"queries"`` or ``"corpus"``, checked by the package onnx.

    Input ``rows``, float32 (n, d) for any n; output ``mapped``, float32 (n, width) of length 1. The opset is
    `OPSET`.

    Raises
    ------
    SpaceError
        The package onnx is not installed.
    """
    with extra("onnx"):
        import onnx
    steps, width = {
        "queries": (adapter.query_steps_, adapter.card.new_width),
        "corpus": (adapter.corpus_steps_, adapter.card.old_width),
    }[side]
    graph = _Graph()
    for step in steps:
        graph.add(step)
    made = onnx.helper.make_graph(
        [*graph.nodes, onnx.helper.make_node("Identity", [graph.value], ["mapped"])],
        f"relscope adapter, {side}",
        [onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, ["n", width])],
        [onnx.helper.make_tensor_value_info("mapped", onnx.TensorProto.FLOAT, ["n", adapter.card.width])],
        graph.tensors,
    )
    model = onnx.helper.make_model(
        made, producer_name="relscope", ir_version=_IR, opset_imports=[onnx.helper.make_opsetid("", OPSET)]
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """Nodes and tensors so far; `value` is the name of the rows after the last one."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.value = "rows"

    def add(self, step: Step) -> None:
        if isinstance(step, Unit):
            length = self._node("ReduceL2", self.value, self._tensor(np.array([1], np.int64)), keepdims=1)
            floor = self._node("Max", length, self._tensor(np.array(_LEAST_LENGTH, np.float32)))
            self.value = self._node("Div", self.value, floor)
        elif isinstance(step, AffineStep):
            self.value = self._affine(self.value, step.matrix, step.offset)
        else:
            hidden = self._node("Relu", self._affine(self.value, step.inner, step.inner_offset))
            change = self._affine(hidden, step.outer, step.outer_offset)
            self.value = self._node("Add", self.value, change)

    def _affine(self, value: str, matrix: np.ndarray, offset: np.ndarray) -> str:
        product = self._node("MatMul", value, self._tensor(matrix))
        return self._node("Add", product, self._tensor(offset))

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx.helper import make_node

        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(make_node(kind, inputs, [name], **attributes))
        return name

    def _tensor(self, array: np.ndarray) -> str:
        from onnx.numpy_helper import from_array

        name = f"tensor_{len(self.tensors)}"
        self.tensors.append(from_array(np.ascontiguousarray(array), name))
        return name


# Take-away: an adapter as files that people use without Relscope.

SNIPPET = "apply.py"
GRAPHS = {"queries": "adapter.onnx", "corpus": "corpus.onnx"}


def write(adapter: Adapter, card: Card, folder: Path, *, replace: bool = False) -> tuple[Path, ...]:
    """Write what people take away, and return the paths.

    ``adapter.safetensors`` holds the steps and the card; ``apply.py`` maps rows with NumPy alone;
    ``adapter.onnx`` maps queries, and ``corpus.onnx`` the corpus where the adapter projects it. The graphs
    are left out where the package onnx (extra ``onnx``) is not installed. For faiss see
    `faiss_map.index_with_map`.

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
    written = [folder / FILE, folder / SNIPPET]
    finished = load(folder)
    for side, name in GRAPHS.items():
        (folder / name).unlink(missing_ok=True)  # of an adapter that was replaced
        if find_spec("onnx") and (side == "queries" or len(finished.corpus_steps_) > 1):
            (folder / name).write_bytes(graph_bytes(finished, side))
            written.append(folder / name)
    return tuple(written)


def load(path: Path) -> LoadedAdapter:
    """The adapter of a folder that `write` made, or of its file; errors as in `adapter_file.read_adapter`."""
    return read_adapter(path)


# A faiss index with an adapter in front: programs that search it give it the new model's queries and change
# nothing else.


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
        A residual step, which faiss cannot hold; an index of other rows, or of another width.

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

    if any(isinstance(step, Residual) for step in adapter.query_steps_):
        raise SpaceError(
            "index: expected steps that are linear, which is all that faiss can hold, got a residual network;"
            " map the queries with apply.py or adapter.onnx, and search the index with the result"
        )
    if len(adapter.corpus_steps_) > 1 and not projected:
        raise SpaceError(
            "index: expected vectors projected by this adapter, which searches no vectors as they are; write"
            " the index again with relscope adapt ADAPTER OLD NEW.faiss --corpus, and pass projected=True"
        )
    maps, width = [], adapter.n_features_in_
    for step in adapter.query_steps_:
        made = _transform(step, width)
        maps.append(made)
        width = made.d_out
    if index.d != width:
        raise SpaceError(
            f"index: expected vectors of width {width}, to which the adapter maps queries, got {index.d}"
        )
    mapped = faiss.IndexPreTransform(index)
    for made in reversed(maps):
        mapped.prepend_transform(made)
    return mapped


def _transform(step: Step, width: int) -> Any:
    import faiss

    if not isinstance(step, AffineStep):
        return faiss.NormalizationTransform(width, 2.0)
    made = faiss.LinearTransform(*step.matrix.shape, True)
    faiss.copy_array_to_vector(np.ascontiguousarray(step.matrix.T, dtype=np.float32).ravel(), made.A)
    faiss.copy_array_to_vector(np.ascontiguousarray(step.offset, dtype=np.float32), made.b)
    made.is_trained = True
    return made
