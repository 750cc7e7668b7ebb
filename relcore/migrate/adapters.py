"""Adapters: maps from the queries of a new model to the vectors of an old model. They consist of steps that
NumPy, ONNX and faiss can run, and are exported as files that work without Relscope.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from itertools import chain, compress
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.numbers import band, short
from relcore.base.records import checked_tensors, damaged_file, file_bytes
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import lengths, row_blocks, unit_rows
from relcore.base.settings import check, setting
from relcore.base.version import __version__
from relcore.base.writing import disk_errors, new_folder, write
from relcore.files.formats import checked_ids
from relcore.represent.similarity import AnchorAxes, Estimator, need_finite
from relcore.represent.translation import Procrustes
from relcore.runs.entries import digest_of
from relcore.runs.store import Progress, silent
from relcore.spaces.space import MatrixLike
from relcore.stores.index import (
    BLOCK,
    StoredRows,
    StorePlace,
    Target,
    VectorIndex,
    need_target,
    open_index,
    write_index,
)

# Adapters map queries of a new model to vectors of an old model, in steps that NumPy, ONNX and faiss can run.


@dataclass(frozen=True, eq=False)
class Unit:
    """The step that scales each row to length 1. A zero row stays zero."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return unit_rows(X)


@dataclass(frozen=True, eq=False)
class AffineStep:
    """The step x·matrix + offset in float32, with matrix (d_in, d_out) and offset (d_out,)."""

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def between(cls, matrix: np.ndarray, start: np.ndarray, end: np.ndarray | float = 0.0) -> AffineStep:
        """The step (x − start)·matrix + end. Its offset is computed in float64."""
        return cls(
            np.ascontiguousarray(matrix, dtype=np.float32), np.asarray(end - start @ matrix, dtype=np.float32)
        )

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X, dtype=np.float32) @ self.matrix + self.offset


Step = Unit | AffineStep
Steps = tuple[Step, ...]


def apply_steps(steps: Steps, X: np.ndarray) -> np.ndarray:
    """Apply all steps to the rows X (n, d_in), block by block. Returns rows (n, d_out) float32."""
    out = None
    for block in row_blocks(len(X)):
        rows = X[block]
        for step in steps:
            rows = step(rows)
        if out is None:
            out = np.empty((len(X), rows.shape[1]), dtype=np.float32)
        out[block] = rows
    return out


class Adapter(Estimator):
    """The base class of adapters. An adapter lets queries of a new model search the vectors of an old model:
    it maps both into a common space, which is searched by cosine. It is fitted on m rows that both models
    have embedded.

    Rows are first scaled to length 1, because retrieval uses the cosine, and varying lengths harm every
    method that centres. `query_steps_` map rows of the new model to the common space. `corpus_steps_` map
    rows of the old model; if these are searched unchanged, the only step is `Unit()`. To rewrite the corpus
    is to store the mapped old rows.
    """

    _needs_target: ClassVar[bool] = True

    @abstractmethod
    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        """Fit to paired unit rows, and return the steps for queries and the steps for the corpus. `fit` adds
        a `Unit()` before and after them.
        """

    def fit(self, new: MatrixLike, old: MatrixLike) -> Self:
        """Fit to paired rows (m, d_new) and (m, d_old). Raises a SpaceError for fewer than two pairs, and for
        numbers that are not finite.
        """
        given = new
        new, old = self._paired_matrices(("new", "old"), new, old)
        if len(new) < 2:
            raise SpaceError(f"pairs: expected two rows or more, got {len(new):,}")
        queries, corpus = self._solve(unit_rows(new), unit_rows(old))
        self.query_steps_ = (Unit(), *queries, Unit())
        if corpus:
            self.corpus_steps_ = (Unit(), *corpus, Unit())
        else:
            self.corpus_steps_ = (Unit(),)
        self._sees(given, new.shape[1], apply_steps(self.query_steps_, new[:1]).shape[1])
        self.n_features_old_ = old.shape[1]
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Map new queries (n, d_new) into the common space: rows (n, d) float32 of length 1."""
        rows = self._check_width(X)
        return self._as_output(self._mapped(self.query_steps_, rows), X)

    def corpus(self, X: MatrixLike) -> np.ndarray:
        """Map old vectors (n, d_old) into the common space: rows (n, d) float32 of length 1."""
        self._need_fitted()
        return self._mapped(self.corpus_steps_, self._check_width(X, self.n_features_old_))

    @property
    def rewrites_corpus(self) -> bool:
        """Whether the old vectors must be mapped, and stored again, before they can be searched."""
        self._need_fitted()
        return len(self.corpus_steps_) > 1

    def _mapped(self, steps: Steps, X: np.ndarray) -> np.ndarray:
        rows = apply_steps(steps, X)
        need_finite(rows[:, 0])
        return rows


class InPlaceAdapter(Adapter):
    """The base class of adapters that map queries linearly, and search the old vectors unchanged.

    A query x is mapped to ‖y‖ u + mean_y, where u is the direction of (x − mean_x)·matrix, scaled to length
    1, and ‖y‖ is the mean length of the centred old rows y.
    """

    @abstractmethod
    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Fit the linear map (d_new, d_old) from centred new rows to centred old rows. `new` and `old` are
        paired unit rows."""

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        matrix = self._matrix(new, old)
        start = new.mean(axis=0, dtype=np.float64)
        end = old.mean(axis=0, dtype=np.float64)
        # A fitted map shrinks rows towards the mean. Unless their length is restored, every query finds
        # documents near the mean. (Cranfield, ridge, 300 pairs: restoring it raises nDCG@10 from .276 to
        # .305.)
        length = float(lengths(old, end).mean(dtype=np.float64))
        towards = AffineStep(length * np.eye(old.shape[1], dtype=np.float32), end.astype(np.float32))
        return (AffineStep.between(matrix, start), Unit(), towards), ()


class ProcrustesAdapter(InPlaceAdapter):
    """Adapter that rotates centred rows by orthogonal Procrustes (Schönemann 1966). The widths may differ.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import ProcrustesAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    >>> adapter = ProcrustesAdapter().fit(old @ rotation, old)
    >>> nearest = (adapter.transform(old @ rotation) @ adapter.corpus(old).T).argmax(axis=1)
    >>> bool((nearest == np.arange(60)).all())
    True
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return Procrustes(scale=False).fit(new, old).matrix_


PENALTIES = tuple(np.geomspace(1e-3, 1e2, 16).tolist())


class RidgeAdapter(InPlaceAdapter):
    """Adapter that predicts old vectors by ridge regression with an offset. The penalty λ (`penalty_`) is the
    value in `PENALTIES` with the smallest leave-one-out error.

    The leave-one-out error is Allen's PRESS: the sum of squares of the residuals (y − ŷ)ᵢ / (1 − hᵢ), where h
    is the diagonal of the hat matrix. Rows have length 1, so λ = 1 counts as much as one pair.
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        X, Y = (Z - Z.mean(axis=0, dtype=np.float64) for Z in (new, old))
        left, values, right = np.linalg.svd(X, full_matrices=False)
        onto = left.T @ Y

        def press(penalty: float) -> float:
            shrunk = values**2 / (values**2 + penalty)
            leverage = 1 / len(Y) + (left**2) @ shrunk  # 1 / len(Y) comes from the offset
            residual = Y - (left * shrunk) @ onto
            return float(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))

        self.penalty_ = float(min(PENALTIES, key=press))
        return (right.T * (values / (values**2 + self.penalty_))) @ onto


def _whitened(rows: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean (d,) of unit rows (k, d), and two matrices from the singular value decomposition P S Qᵀ of the
    rows after centring and scaling to length 1: P (k, w), and Q S (S² + λ)^(−1/2) (d, w), where λ is `ridge`.
    Centred rows times the second matrix are whitened relative coordinates, up to a rotation.
    """
    if not 0 < ridge < np.inf:
        raise SpaceError(f"ridge: expected a number above 0, got {ridge}")
    mean = rows.mean(axis=0, dtype=np.float64)
    axes = AnchorAxes.of(unit_rows(rows, mean))
    return mean, axes.basis, axes.turn * (axes.stretch / np.sqrt(axes.stretch**2 + ridge))


@dataclass(eq=False)
class WhitenedRelativeAdapter(Adapter):
    """Adapter that maps the rows of both models to whitened relative coordinates, the decorrelated
    similarities to anchors: centred rows X to X Aᵀ (K + λI)^(−1/2). The anchors A are the paired rows,
    centred and scaled to length 1, and K = A Aᵀ.

    A search finds rows in the same order as with `RelativeProjection(whiten=True)`. `ridge` is λ, above 0; λ
    = 1 counts as much as one average anchor.
    """

    ridge: float = 0.3

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        (start, P, of_new), (end, R, of_old) = (_whitened(rows, self.ridge) for rows in (new, old))
        # With the SVD A = U S Vᵀ, Aᵀ (K + λI)^(−1/2) = V S (S² + λ)^(−1/2) Uᵀ. If queries and rows are
        # multiplied by U of the old model, inner products stay the same and mapped rows are at most as wide
        # as old ones.
        return (AffineStep.between(of_new @ (P.T @ R), start),), (AffineStep.between(of_old, end),)


@dataclass(eq=False)
class WhitenedInverseAdapter(InPlaceAdapter):
    """Adapter that maps new rows to whitened relative coordinates, and decodes these as old vectors: a
    centred row x is mapped to ‖a_y‖ xW / ‖xW‖ + mean_y, where ‖a_y‖ is the mean length of the centred old
    rows.

    Here W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y, as in `InverseRelativeProjection("whitened",
    lengths="mean")`. A_x and A_y are the paired new and old rows, centred and scaled to length 1; K_x = A_x
    A_xᵀ and K_y = A_y A_yᵀ. The computation time is linear in the number of pairs. `ridge` is λ, above 0.
    """

    ridge: float = 1.0

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        (_, P, of_new), (_, R, of_old) = (_whitened(rows, self.ridge) for rows in (new, old))
        return of_new @ (P.T @ R) @ of_old.T


@dataclass(frozen=True)
class CardScore:
    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Card(Reported):
    """The card of an adapter records how it was made: its method (from `relcore.base.names.ADAPTERS`), the
    pairs that it was fitted on, and its scores.

    `width` is the width of the searched space. The two digests are the `digest_of` the paired rows as float32
    arrays. `commit` is "" outside a git checkout. `candidates` and `n_candidates` say which search results
    the new model ranks in a cascade; see `relcore.migrate.evaluate.Candidates`. `weight` is the weight of the
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
        lines = [
            f"{self.adapter}{f' ({settings})' * bool(settings)}: {self.new_model or 'new model'},"
            f" {self.new_width:,} numbers per row → {self.old_model or 'old model'}, {self.old_width:,};"
            f" searched at width {self.width:,}",
            f"fitted on {self.n_pairs:,} pairs (new {self.new_digest[:8]}, old {self.old_digest[:8]})",
        ]
        shown = [["score", "value", "95 %", "n"]]
        for one in self.scores:
            if None in (one.low, one.high):
                interval = ""
            else:
                interval = band(one.low, one.high)
            shown.append([one.name, short(one.value), interval, "" if one.n is None else f"{one.n:,}"])
        origin = [*filter(None, (self.date, self.version and f"Relscope {self.version}", self.commit))]
        lines += [f"made {', '.join(origin)}"] * bool(origin)
        scores = Table("scores", pd.DataFrame([asdict(score) for score in self.scores]), shown)
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


def _steps(
    name: str, side: str, kinds: Sequence[str], width: int, end: int, tensors: dict[str, np.ndarray]
) -> Steps:
    """Build the steps of a side, "queries" or "corpus", from their arrays, which are removed from `tensors`.
    The steps map rows of width `width` to rows of width `end`.
    """
    if unknown := set(kinds) - set(_KINDS):
        got = f"{quote(sorted(unknown)[:3])}; update Relscope"
        raise SpaceError(f"{name}: expected steps among {quote(_KINDS)}, got {got}")
    if {*kinds[:1], *kinds[-1:]} != {"unit"} or len(kinds) > _MOST_STEPS:
        expected = f"at most {_MOST_STEPS} steps of the {side}, the first and the last 'unit'"
        raise damaged_file(name, expected, quote(kinds[:6]) or "none")
    steps = []
    for place, kind in enumerate(kinds):
        sizes = {"d": width}
        arrays = {}
        for part in fields(_KINDS[kind]):
            tensor = f"{side}.{place}.{part.name}"
            dims = _SHAPES[part.name]
            array = arrays[part.name] = tensors.pop(tensor, np.empty(()))
            if (
                array.ndim != len(dims)
                or array.dtype != np.float32
                or any(sizes.setdefault(*pair) != pair[1] for pair in zip(dims, array.shape, strict=True))
            ):
                expected = f"the tensor {tensor} of shape {tuple(sizes.get(dim, dim) for dim in dims)}"
                raise damaged_file(name, expected, str(array.shape))
            if not np.isfinite(array).all():
                raise damaged_file(name, f"finite numbers in {tensor}", "NaN or infinity")
        steps.append(_KINDS[kind](**arrays))
        width = sizes.get("e", width)
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

    is_query = side == "queries"
    card = adapter.card
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
    >>> from relcore.migrate.adapters import index_with_map
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


SIDES = ("queries", "corpus")


def adapt(
    adapter: Adapter | None,
    source: StorePlace,
    goal: StorePlace,
    *,
    side: str = "queries",
    add: bool = False,
    report: Progress = silent,
    block: int = BLOCK,
) -> Target:
    """Map all rows of a vector database or a file, and write them to another one with their ids and payload.

    Rows are mapped in blocks, so memory holds only one block, and eight bytes for each id. A file or a table
    gets its name only when it is complete.

    Parameters
    ----------
    adapter : Adapter, optional
        With None, rows are copied unchanged.
    add : bool
        Whether rows may be added to an existing collection or table. There they replace the rows with the
        same ids, so a job that was killed can be run again. The place records the digest of the adapter.

    Raises
    ------
    SpaceError
        Rows of another width; numbers that are not finite; ids that occur twice; a goal that already exists,
        or whose rows another adapter mapped; errors of `open_index`.
    """
    if source == goal:
        expected = "a target other than the source, got the same; choose another"
        raise SpaceError(f"{goal.text}: expected {expected}")
    with open_index(source) as index:
        mapped: Callable[[np.ndarray], np.ndarray] = np.asarray
        width = index.width
        if adapter is not None:
            need_width(adapter, side, index.width, index.name)
            if side == "queries":
                mapped = adapter.transform
            else:
                mapped = adapter.corpus
            width = mapped(np.ones((1, index.width), np.float32)).shape[1]
        target = Target(index.n, width, add, adapter_digest(adapter) if adapter else index.adapter)
        need_target(goal, target)

        def blocks() -> Iterator[StoredRows]:
            done = 0
            hashes = []
            for rows in index.blocks(block):
                finite = np.isfinite(rows.vectors).all(axis=1)
                if not finite.all():
                    raise SpaceError(
                        f"{index.name}, row {done + np.argmin(finite) + 1:,}: expected finite"
                        " float32 numbers, got others; mend or remove the row"
                    )
                ids = checked_ids(rows.ids, f"{index.name}, after row {done:,}" if done else index.name)
                hashes.append(_hash_ids(ids))
                done += len(ids)
                report(done, index.n, f"mapping {index.name}")
                yield StoredRows(ids, mapped(rows.vectors), rows.payload)
            # Check before the generator ends: if this raises an error, no file has the name of the goal yet.
            _need_distinct_ids(index, np.concatenate(hashes))

        write_index(goal, blocks(), target)
    return target


def adapter_digest(adapter: Adapter) -> str:
    """A digest of the numbers in an adapter's steps. Adapters with equal digests map into one space."""
    return digest_of("adapter", adapter.query_steps_, adapter.corpus_steps_)


def _hash_ids(ids: Sequence[str]) -> np.ndarray:
    return pd.util.hash_array(np.array(ids, dtype=object), categorize=False)


def _need_distinct_ids(index: VectorIndex, hashes: np.ndarray) -> None:
    """Raise a SpaceError that names the first repeated id, if there is one. Rows are read again only if two
    of the `hashes` of their ids are equal."""
    hashes.sort()
    alike = hashes[1:][hashes[1:] == hashes[:-1]]
    if not len(alike):
        return
    ids = (rows.ids for rows in index.blocks())
    times = Counter(chain.from_iterable(compress(some, np.isin(_hash_ids(some), alike)) for some in ids))
    if twice := [item for item, n in times.items() if n > 1]:
        raise SpaceError(
            f"{index.name}: ids must be distinct, {len(twice):,} occur more than once, first"
            f" {quote(twice[:3])}; make them distinct first"
        )


def need_width(adapter: Adapter, side: str, width: int, name: str) -> None:
    """Raise a SpaceError unless the adapter maps rows of this width. `side` tells the model of the rows:
    "queries" for the new model, "corpus" for the old one."""
    is_query = side == "queries"
    if is_query:
        model = "new"
        expected = adapter.n_features_in_
    else:
        model = "old"
        expected = adapter.n_features_old_
    if width != expected:
        raise SpaceError(
            f"{name}: expected rows of the {model} model, of width {expected}, got {width}; name its vectors"
            + ", or use --corpus for those of the old model" * is_query
        )
