"""Adapters: maps from a new model's queries to an old model's vectors, as steps that NumPy, ONNX and faiss
can do.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd

from relcore.base.access import expanded
from relcore.base.errors import SpaceError, need_whole, quote
from relcore.base.libraries import extra
from relcore.base.magnitude import lengths
from relcore.base.names import INDEXES
from relcore.base.numbers import band, short
from relcore.base.report import Report, Reported, Table
from relcore.base.sealed import checked_tensors, damaged, sealed
from relcore.base.version import __version__
from relcore.base.writing import disk_errors, new_folder, write
from relcore.engine.rows import row_blocks, unit_rows
from relcore.files.formats import checked_ids
from relcore.represent.similarity import Estimator, need_finite
from relcore.represent.translation import Affine, Procrustes
from relcore.runs.digest import digest_of
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.spaces.space import MatrixLike
from relcore.stores.index import (
    BLOCK,
    StagedRows,
    StoredRows,
    StorePlace,
    Target,
    need_target,
    open_index,
    write_index,
)


@dataclass(frozen=True, eq=False)
class Unit:
    """Rows to length 1; a zero row stays zero."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return unit_rows(X)


@dataclass(frozen=True, eq=False)
class AffineStep:
    """x·matrix + offset, float32: matrix (d_in, d_out), offset (d_out,)."""

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def between(cls, matrix: np.ndarray, start: np.ndarray, end: np.ndarray | float = 0.0) -> AffineStep:
        """(x − start)·matrix + end, computed in float64."""
        return cls(
            np.ascontiguousarray(matrix, dtype=np.float32), np.asarray(end - start @ matrix, dtype=np.float32)
        )

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X, dtype=np.float32) @ self.matrix + self.offset


Step = Unit | AffineStep
Steps = tuple[Step, ...]


def apply_steps(steps: Steps, X: np.ndarray) -> np.ndarray:
    """Rows after all steps, (n, d_in) → (n, d_out) float32, block by block."""
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
    """New queries and old vectors in one space that is searched by cosine, learned from m paired rows.

    Rows are brought to length 1 first: retrieval is by cosine, and lengths break every centred method.
    `query_steps_` map a new model's row to that space, `corpus_steps_` an old model's; only `Unit()` where
    these are searched as they are.
    """

    _needs_target: ClassVar[bool] = True

    @abstractmethod
    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        """Steps of queries and of the corpus between the two `Unit()`, from float32 rows of length 1."""

    def fit(self, new: MatrixLike, old: MatrixLike) -> Self:
        """Learn from paired rows (m, d_new), (m, d_old); raises a SpaceError for fewer than two, or not
        finite ones.
        """
        given = new
        new, old = self._paired(("new", "old"), new, old)
        if len(new) != len(old) or len(new) < 2:
            raise SpaceError(
                f"pairs: expected as many new rows as old ones, two or more, got {len(new):,} and"
                f" {len(old):,}"
            )
        need_finite(new.sum(axis=0), "new")
        need_finite(old.sum(axis=0), "old")
        queries, corpus = self._solve(unit_rows(new), unit_rows(old))
        self.query_steps_ = (Unit(), *queries, Unit())
        self.corpus_steps_ = (Unit(), *corpus, Unit()) if corpus else (Unit(),)
        self._sees(given, new.shape[1], apply_steps(self.query_steps_, new[:1]).shape[1])
        self.n_features_old_ = old.shape[1]
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """New queries in the space that is searched, (n, d_new) → (n, d) float32 of length 1."""
        rows = self._check_width(X)
        return self._framed(self._mapped(self.query_steps_, rows), X)

    def corpus(self, X: MatrixLike) -> np.ndarray:
        """Old vectors in the space that is searched, (n, d_old) → (n, d) float32 of length 1."""
        self._need_fitted()
        return self._mapped(self.corpus_steps_, self._check_width(X, self.n_features_old_))

    def _mapped(self, steps: Steps, X: np.ndarray) -> np.ndarray:
        rows = apply_steps(steps, X)
        need_finite(rows[:, 0])
        return rows


def around_the_mean(matrix: np.ndarray, new: np.ndarray, old: np.ndarray) -> Steps:
    """The steps x → ‖y‖ u + mean_y, with u the direction of (x − mean_x)·matrix, (d_new, d_old).

    ‖y‖ is the mean length of centred old rows (m, d_old). A fitted map shrinks rows towards the mean. Without
    their length restored, documents near the mean would answer every query (Cranfield, ridge, 300 pairs:
    nDCG@10 .276 → .305).
    """
    start, end = new.mean(axis=0, dtype=np.float64), old.mean(axis=0, dtype=np.float64)
    length = float(lengths(old, end).mean(dtype=np.float64))
    towards = AffineStep(length * np.eye(old.shape[1], dtype=np.float32), end.astype(np.float32))
    return AffineStep.between(matrix, start), Unit(), towards


class ProcrustesAdapter(Adapter):
    """Centred orthogonal Procrustes (Schönemann 1966) between unit rows of any two widths.

    The corpus is centred, too, which matters where old vectors have a large common mean (Cranfield, 1,000
    pairs: nDCG@10 .395, and .375 with the old vectors as they are).

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import ProcrustesAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    >>> adapter = ProcrustesAdapter().fit(old @ rotation, old)
    >>> bool(np.allclose(adapter.transform(old @ rotation), adapter.corpus(old), atol=1e-4))
    True
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        fitted = Procrustes(scale=False).fit(new, old)
        queries = AffineStep.between(fitted.matrix_, fitted.source_mean_)
        return (queries,), (AffineStep.between(np.eye(old.shape[1]), fitted.target_mean_),)


class InPlaceAdapter(Adapter):
    """A linear map between centred rows, for old vectors that are searched as they are."""

    @abstractmethod
    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        """(d_new, d_old), from unit rows."""

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        return around_the_mean(self._matrix(new, old), new, old), ()


class InPlaceProcrustesAdapter(InPlaceAdapter):
    """Centred orthogonal Procrustes, for old vectors that are searched as they are."""

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return Procrustes(scale=False).fit(new, old).matrix_


class DiagonalAdapter(InPlaceAdapter):
    """Centred Procrustes with diagonal scaling, as in Drift-Adapter (EMNLP 2025).

    Factors are by least squares and at least 0: a coordinate that the new model lacks adds only noise.
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        fitted = Procrustes(scale=False).fit(new, old)
        rotated, wanted = (new - fitted.source_mean_) @ fitted.matrix_, old - fitted.target_mean_
        spread = np.vecdot(rotated.T, rotated.T)
        products = np.maximum(np.vecdot(rotated.T, wanted.T), 0)
        self.factors_ = np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0)
        return fitted.matrix_ * self.factors_


class AffineAdapter(InPlaceAdapter):
    """Least squares with an offset, of smallest norm.

    With about as many pairs as dimensions it fits their noise; `RidgeAdapter` does not.
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return Affine().fit(new, old).matrix_


PENALTIES = tuple(np.geomspace(1e-3, 1e2, 16).tolist())


def ridge_by_press(
    new: np.ndarray, old: np.ndarray, penalties: Sequence[float] = PENALTIES
) -> tuple[np.ndarray, float]:
    """The ridge map (d_new, d_old) between centred rows, float64, and its penalty λ.

    λ has the smallest leave-one-out error (Allen's PRESS): residuals (y − ŷ)ᵢ / (1 − hᵢ), with h the diagonal
    of the hat matrix. Rows have length 1, so λ = 1 counts as much as one pair.
    """
    if not len(penalties) or not min(penalties) > 0:
        raise SpaceError(f"penalties: expected numbers above 0, got {penalties!r:.80}")
    X, Y = (Z - Z.mean(axis=0, dtype=np.float64) for Z in (new, old))
    left, values, right = np.linalg.svd(X, full_matrices=False)
    onto = left.T @ Y

    def press(penalty: float) -> float:
        shrunk = values**2 / (values**2 + penalty)
        leverage = 1 / len(Y) + (left**2) @ shrunk
        residual = Y - (left * shrunk) @ onto
        return float(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))

    penalty = float(min(penalties, key=press))
    return (right.T * (values / (values**2 + penalty))) @ onto, penalty


@dataclass(eq=False)
class RidgeAdapter(InPlaceAdapter):
    """Ridge regression with an offset and the penalty `penalty_`; see `ridge_by_press`."""

    penalties: tuple[float, ...] = PENALTIES

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        matrix, self.penalty_ = ridge_by_press(new, old, self.penalties)
        return matrix


@dataclass(eq=False)
class LowRankAdapter(InPlaceAdapter):
    """Reduced-rank regression (Izenman 1975): the ridge map on `rank` principal directions of its
    predictions.

    The rank is smaller where the widths or the pairs allow less.
    """

    rank: int = 64

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        if self.rank < 1:
            raise SpaceError(f"rank: expected 1 or more, got {self.rank}")
        matrix, _ = ridge_by_press(new, old)
        predicted = (new - new.mean(axis=0, dtype=np.float64)) @ matrix
        directions = np.linalg.eigh(predicted.T @ predicted)[1][:, -self.rank :]
        return matrix @ directions @ directions.T


# Relative coordinates: with A = U S Vᵀ the old model's anchors, X Aᵀ = X V S Uᵀ has the products of X V S,
# whose width is at most that of the old model. So the corpus is projected to X V S, and queries to
# (Q A_newᵀ) U: the order of results is that of the full coordinates.


class AnchorBasis(NamedTuple):
    """Unit anchors (k, d) as left · diag(values) · rightᵀ, and the mean that was subtracted."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, center: bool) -> AnchorBasis:
        mean = rows.mean(axis=0, dtype=np.float64) if center else None
        left, values, right = np.linalg.svd(unit_rows(rows, mean).astype(np.float64), full_matrices=False)
        return cls(left, values, right.T, np.zeros(rows.shape[1]) if mean is None else mean)

    def whitened(self, ridge: float) -> np.ndarray:
        if not 0 < ridge < np.inf:
            raise SpaceError(f"ridge: expected a number above 0, got {ridge}")
        return self.right * (self.values / np.sqrt(self.values**2 + ridge))


class RelativeAdapter(Adapter):
    """Cosines to the anchors, not centred: relative representations as published (Moschella et al. 2023).

    The anchors are the pairs: queries are compared with their new vectors, documents with their old vectors.
    """

    _center: ClassVar[bool] = False

    def _directions(self, anchors: AnchorBasis) -> np.ndarray:
        return anchors.right * anchors.values

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        by_new, by_old = (AnchorBasis.of(rows, self._center) for rows in (new, old))
        queries = self._directions(by_new) @ (by_new.left.T @ by_old.left)
        corpus = AffineStep.between(self._directions(by_old), by_old.mean)
        return (AffineStep.between(queries, by_new.mean),), (corpus,)


@dataclass(eq=False)
class WhitenedRelativeAdapter(RelativeAdapter):
    """Whitened relative coordinates X Aᵀ (K + λI)^(−1/2), K = A Aᵀ, of centred rows: the best where pairs are
    few.

    As Aᵀ (K + λI)^(−1/2) = V S (S² + λ)^(−1/2) Uᵀ, results come in the order of
    `RelativeProjection(whiten=True)`. `ridge` is λ, above 0; 1 counts as much as one average anchor.
    """

    _center: ClassVar[bool] = True
    ridge: float = 0.3

    def _directions(self, anchors: AnchorBasis) -> np.ndarray:
        return anchors.whitened(self.ridge)


@dataclass(eq=False)
class WhitenedInverseAdapter(InPlaceAdapter):
    """The whitened inverse relative projection: y = ‖a_y‖ xW / ‖xW‖ + mean_y.

    W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y, as in `InverseRelativeProjection("whitened",
    lengths="mean")`, by decompositions whose work is linear in the number of pairs. `ridge` is λ, above 0.
    """

    ridge: float = 1.0

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        by_new, by_old = (AnchorBasis.of(rows, center=True) for rows in (new, old))
        return by_new.whitened(self.ridge) @ (by_new.left.T @ by_old.left) @ by_old.whitened(self.ridge).T


# An adapter as files that work without Relscope: safetensors with a card, a NumPy script, ONNX, a faiss map.


@dataclass(frozen=True)
class CardScore:
    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Card(Reported):
    """What an adapter, of `relcore.base.names.ADAPTERS`, was learned from, and how it scored.

    Widths are those of the new model, of the old one, and of the space that is searched; digests are
    `digest_of` of the paired rows as float32 arrays; the commit is "" outside a checkout.
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

    def report(self) -> Report:
        """What the adapter maps, the pairs it was fitted on, and its scores."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        models = f"{self.new_model or 'new model'}, {self.new_width:,} numbers per row → "
        models += f"{self.old_model or 'old model'}, {self.old_width:,}"
        lines = [
            f"{self.adapter}{f' ({settings})' * bool(settings)}: {models}; searched at width {self.width:,}",
            f"fitted on {self.n_pairs:,} pairs (new {self.new_digest[:8]}, old {self.old_digest[:8]})",
        ]
        shown = [["score", "value", "95 %", "n"]]
        for score in self.scores:
            known = score.low is not None and score.high is not None
            interval = band(score.low, score.high) if known else ""
            n = "" if score.n is None else f"{score.n:,}"
            shown.append([score.name, short(score.value), interval, n])
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
_MOST_STEPS = 16


@dataclass(frozen=True)
class StepPlan:
    layout: int
    queries: tuple[str, ...]
    corpus: tuple[str, ...]
    card: Card
    checksum: str = ""  # of the whole file; "" in files of version 0.1.0


class LoadedAdapter(Adapter):
    """An adapter from a file, with its card: it maps queries and the corpus, and learns nothing."""

    def __init__(self, card: Card, queries: Steps, corpus: Steps) -> None:
        self.card = card
        self.query_steps_, self.corpus_steps_ = queries, corpus
        self.n_features_old_ = card.old_width
        one = np.zeros((1, card.new_width), np.float32)
        self._sees(None, card.new_width, apply_steps(queries, one).shape[1])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self.card.settings)

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        raise SpaceError("fit: expected an adapter that learns, got one that was loaded from a file")


def write_adapter(adapter: Adapter, card: Card, path: Path) -> None:
    """Write the file as a whole or not at all; equal adapters and cards give equal bytes.

    Raises a SpaceError for a card of other widths, or numbers that are not finite.
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
    write(path, sealed(tensors, KEY, plan))


def load(path: str | Path) -> LoadedAdapter:
    """The adapter in a file, or in a folder that `export` wrote.

    Raises a SpaceError for another or damaged file, shapes that do not fit, or a later layout.
    """
    path = expanded(path)
    path = path / FILE if path.is_dir() else path
    return _adapter(path.name, *checked_tensors(path, KEY, StepPlan, LAYOUT, "an adapter"))


def _adapter(name: str, plan: StepPlan, tensors: dict[str, np.ndarray]) -> LoadedAdapter:
    card = plan.card
    sides = [
        _steps(name, side, getattr(plan, side), width, card.width, tensors)
        for side, width in (("queries", card.new_width), ("corpus", card.old_width))
    ]
    if tensors:
        raise damaged(name, "the tensors of its steps only", f"also {quote(sorted(tensors)[:3])}")
    return LoadedAdapter(card, *sides)


def _steps(
    name: str, side: str, kinds: Sequence[str], width: int, end: int, tensors: dict[str, np.ndarray]
) -> Steps:
    """The steps of one side from rows of `width` to rows of width `end`; pops their tensors."""
    if unknown := set(kinds) - set(_KINDS):
        got = f"{quote(sorted(unknown)[:3])}; update Relscope"
        raise SpaceError(f"{name}: expected steps among {quote(_KINDS)}, got {got}")
    if {*kinds[:1], *kinds[-1:]} != {"unit"} or len(kinds) > _MOST_STEPS:
        expected = f"at most {_MOST_STEPS} steps of the {side}, the first and the last 'unit'"
        raise damaged(name, expected, quote(kinds[:6]) or "none")
    steps = []
    for place, kind in enumerate(kinds):
        sizes, arrays = {"d": width}, {}
        for part in fields(_KINDS[kind]):
            tensor, dims = f"{side}.{place}.{part.name}", _SHAPES[part.name]
            array = arrays[part.name] = tensors.pop(tensor, np.empty(()))
            if (
                array.ndim != len(dims)
                or array.dtype != np.float32
                or any(sizes.setdefault(*pair) != pair[1] for pair in zip(dims, array.shape, strict=True))
            ):
                expected = f"the tensor {tensor} of shape {tuple(sizes.get(dim, dim) for dim in dims)}"
                raise damaged(name, expected, str(array.shape))
            if not np.isfinite(array).all():
                raise damaged(name, f"finite numbers in {tensor}", "NaN or infinity")
        steps.append(_KINDS[kind](**arrays))
        width = sizes.get("e", width)
    if width != end:
        raise damaged(name, f"{side} of width {end} after all steps", str(width))
    return tuple(steps)


# ONNX

OPSET = 18  # ReduceL2 takes its axes as an input from here on; onnxruntime knows it since 1.14
_IR = 8  # of the same time
_LEAST_LENGTH = 1e-30  # a shorter row counts as zero, which stays zero


def graph_bytes(adapter: LoadedAdapter, side: str) -> bytes:
    """The steps of one side, ``"queries"`` or ``"corpus"``, as a checked ONNX graph; needs the package onnx.

    Input ``rows``, float32 (n, d) for any n; output ``mapped``, float32 (n, width) of length 1.
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

    ``adapter.safetensors`` holds steps and card, ``apply.py`` maps rows with NumPy alone, ``adapter.onnx``
    maps queries, and ``corpus.onnx`` the corpus where the adapter projects it. Graphs need the package onnx.
    For faiss see `index_with_map`.

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
    with disk_errors(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder, last=FILE) as made:
        write_adapter(adapter, card, made / FILE)
        write(made / SNIPPET, files("relcore.migrate").joinpath(SNIPPET).read_bytes())
        written, loaded = [FILE, SNIPPET], load(made)
        for side, name in GRAPHS.items():
            (folder / name).unlink(missing_ok=True)  # of an adapter that is replaced
            if find_spec("onnx") and (side == "queries" or len(loaded.corpus_steps_) > 1):
                write(made / name, graph_bytes(loaded, side))
                written.append(name)
    return tuple(folder / name for name in written)


# A faiss index with an adapter in front: search programs give it the new model's queries and change nothing.


def index_with_map(index: Any, adapter: Adapter, *, projected: bool = False) -> Any:
    """A `faiss.IndexPreTransform` that maps queries of the new model and searches `index` with them.

    The index is not copied. Search by inner product, or by Euclidean distance where its rows have length 1.
    Add rows to ``mapped.index``: ``mapped.add`` would map them as queries.

    Parameters
    ----------
    index : faiss.Index
        Of the old vectors; for an adapter that projects the corpus, of projected ones (`Adapter.corpus`).
    projected : bool
        Whether the vectors in the index went through `Adapter.corpus`; required by adapters that project.

    Raises
    ------
    SpaceError
        An index of other rows, or of another width.

    Examples
    --------
    >>> import faiss, numpy as np
    >>> from relcore.migrate.adapters import InPlaceProcrustesAdapter, index_with_map
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
    source: StorePlace,
    goal: StorePlace,
    *,
    side: str = "queries",
    add: bool = False,
    report: Progress = silent,
    block: int = BLOCK,
) -> Target:
    """Map all rows of a store and write them to another one, with their ids and payload.

    Memory holds one block. Mapped blocks wait in `staging_folder`, so the disk needs room for the result
    twice, and the same call resumes after a kill. A file gets its name only when it is whole.

    Parameters
    ----------
    adapter : Adapter, optional
        None copies the rows as they are.
    add : bool
        Whether rows may be added to a collection or table that is there.

    Raises
    ------
    SpaceError
        Rows of another width, or not finite; a goal that is taken; as `open_index`.
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
        written = [] if source.address else _files(source.path)
        key = digest_of(2, [*steps], side, source.text, goal.text, index.n, index.width, written, add)
        staged = StagedRows(staging_folder(goal), key)
        target = Target(index.n, width, add, staged.writing, staged.before)
        store = INDEXES[goal.kind].load()
        if staged.writing and store.is_written(goal, target):  # killed after the last step but one
            staged.remove()
            return target
        need_target(goal, target)
        for rows in index.blocks(block, staged.done) if staged.done < index.n else ():
            finite = np.isfinite(rows.vectors).all(axis=1)
            if not finite.all():
                row = f"{index.name}, row {staged.done + np.argmin(finite) + 1:,}"
                raise SpaceError(
                    f"{row}: expected finite numbers, as float32 holds them, got others; mend or remove it"
                )
            where = f"{index.name}, after row {staged.done:,}" if staged.done else index.name
            ids = checked_ids(rows.ids, where)
            staged.append(StoredRows(ids, mapped(rows.vectors), rows.payload))
            report(staged.done, index.n, f"mapping {index.name}")
    staged.need_distinct_ids(index.name)
    if not staged.writing:
        target = replace(target, before=store.n_before(goal))
        staged.begin_writing(target.before)
    write_index(goal, staged.blocks(), target, report)
    staged.remove()
    return target


def staging_folder(goal: StorePlace) -> Path:
    if goal.address or INDEXES[goal.kind].plugin:  # such a path may be that of a socket
        return Store().root / "adapting" / digest_of(goal.text)
    path = Path(os.path.abspath(goal.path))
    return path.parent / f"{path.name}{f'-{Path(goal.table).name}' * bool(goal.table)}.adapting"


def need_width(adapter: Adapter, side: str, width: int, name: str) -> None:
    """Raise a SpaceError where an adapter takes no rows of this width on this side."""
    is_query = side == "queries"
    model, expected = ("new", adapter.n_features_in_) if is_query else ("old", adapter.n_features_old_)
    if width != expected:
        raise SpaceError(
            f"{name}: expected rows of the {model} model, of width {expected}, got {width}; name its vectors"
            + ", or use --corpus for those of the old model" * is_query
        )


def _files(path: Path) -> list[tuple[str, int, int]]:
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    known = [(file.name, file.stat()) for file in ([path] if path.is_file() else files)]
    return [(name, status.st_size, status.st_mtime_ns) for name, status in known]
