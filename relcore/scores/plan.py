"""Question: what is to be scored; RowNumbers: which rows are what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from relcore.base.magnitude import brought, scaled
from relcore.represent.projection import RelativeProjection
from relcore.represent.similarity import AnchorAxes, clustered_rows, rounded_mean, row_blocks, unit_rows
from relcore.represent.translation import Procrustes
from relcore.scores.cka import sampled_rows
from relcore.scores.comparison import ProjectionSpec
from relcore.scores.device import Array, NumpyDevice, TorchDevice
from relcore.scores.neighbours import order_seed
from relcore.scores.search import common_direction


@dataclass(frozen=True)
class Question:
    """What is to be scored.

    Attributes
    ----------
    forms : representations, of `comparison.REPRESENTATIONS`
    projection : ProjectionSpec
    k, convention : as `scores.neighbours.find_neighbours` takes them
    sums : bool
        Whether the scores that read all rows are wanted, too; False for further queries of the same rows.
    cosines : bool
        Whether the cosine of each row with its partner is wanted, n numbers.
    spare : int
        Further neighbours of each query: the k nearest are still known when up to this number of rows is left
        out afterwards.
    """

    forms: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    convention: str = "paper"
    sums: bool = True
    cosines: bool = False
    spare: int = 0

    @staticmethod
    def kind(form: str) -> str:
        """ "all" for the absolute representation, which uses no anchors and is scored on all rows; "held
        out" for others.
        """
        return "all" if form == "absolute" else "held out"

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(sorted(self.kind(form) for form in self.forms)))


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The rows 0 … n − 1 without a few that are `taken` (ascending), in their order; never all in memory."""

    n: int
    taken: np.ndarray

    def __len__(self) -> int:
        return self.n - len(self.taken)

    def at(self, places: np.ndarray) -> np.ndarray:
        """The row numbers at these places."""
        return places + np.searchsorted(self.taken - np.arange(len(self.taken)), places, side="right")

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        return self.at(places)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Where these rows are, which are not taken."""
        return rows - np.searchsorted(self.taken, rows)


@dataclass(frozen=True, eq=False)
class RowRoles:
    """Which of the n rows of a pair are what.

    Attributes
    ----------
    n : int
    anchors : array (a,)
        In the order of the anchors; empty for absolute scores alone.
    queries : array (q,) by `Question.kind`
    labelled : array (n,) bool, optional
        Rows with a class, where the classes of neighbours are wanted.
    left_out : array
        Rows that take no part, except in the means that a projection subtracts.
    """

    n: int
    anchors: np.ndarray
    queries: Mapping[str, np.ndarray]
    labelled: np.ndarray | None = None
    left_out: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def scored(self, kind: str) -> ScoredRows:
        """The rows that scores of a `Question.kind` use."""
        taken = np.unique(self.left_out) if kind == "all" else np.union1d(self.left_out, self.anchors)
        return ScoredRows(self.n, taken)

    def n_scored(self, kind: str) -> int:
        return len(self.scored(kind))

    def without(self, rows: np.ndarray) -> RowRoles:
        """With these rows left out, and no queries."""
        return replace(self, left_out=rows, queries=dict.fromkeys(self.queries, rows[:0]), labelled=None)


# What the rows of one space become in each representation, from coordinates that representations share.
#
# A representation is used in coordinates of its own that keep every inner product: the relative rows U Aᵀ, U
# the unit rows (n, d) and A the anchors (k, d) = P S Qᵀ, are the rows of U Q · S, turned by P, and the
# whitened ones those of U Q · S / √(S² + ridge). So both need one product with Q (d, min(d, k)), and no row
# of k similarities is formed. Procrustes turns the centred rows.


@dataclass(frozen=True, eq=False)
class Form:
    """One representation of one space: its rows are coordinates · factors, or centred coordinates @ matrix +
    shift.

    Attributes
    ----------
    frame : str
        Which coordinates: "raw" (the rows themselves), "turned" (unit rows times Q) or "own" (as the
        projection makes them).
    of_centred : bool
        Whether the rows come from the coordinates less their centre.
    factors : array (w,), matrix : array (w, w'), shift : array (w',), optional
    basis : array (out, w), optional
        The rows of the representation as it is shown are these rows times its transpose; None: they are the
        same.
    """

    frame: str
    of_centred: bool = False
    factors: np.ndarray | None = None
    matrix: np.ndarray | None = None
    shift: np.ndarray | None = None
    basis: np.ndarray | None = None

    def on(self, device: NumpyDevice | TorchDevice) -> Form:
        """With its numbers in float32 on a device."""
        return _on(device, self, ("factors", "matrix", "shift"))

    def mapped(self, vectors: np.ndarray) -> np.ndarray:
        """Differences of coordinates (m, w) or (w,), as differences of rows of the representation;
        float64.
        """
        if self.factors is not None:
            return vectors * self.factors
        return vectors if self.matrix is None else vectors @ self.matrix

    def mapped_products(self, products: np.ndarray, other: Form | None = None) -> np.ndarray:
        """XᵀX or XᵀY of coordinates, as that of the representations."""
        return (other or self).mapped(self.mapped(products.T).T)


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates of one space.

    Attributes
    ----------
    centre : array (w,)
        Close to their mean over the rows that are scored, float32 or float64; sums are taken about it.
    mean : array (d,), optional
        Of the space, which "turned" subtracts before it takes directions.
    turn : array (d, w), optional
        Q of "turned".
    projection : RelativeProjection, optional
        Makes "own".
    exponent : int
        Coordinates are divided by this power of two.
    stretch : array (w,), basis : array (k, w), optional
        S and P of "turned".
    """

    centre: np.ndarray
    mean: np.ndarray | None = None
    turn: np.ndarray | None = None
    projection: RelativeProjection | None = None
    exponent: int = 0
    stretch: np.ndarray | None = None
    basis: np.ndarray | None = None

    def on(self, device: NumpyDevice | TorchDevice) -> Frame:
        """With its numbers on a device."""
        return _on(device, self, ("centre", "mean", "turn"))


def _on(device: NumpyDevice | TorchDevice, facts: Form | Frame, names: tuple[str, ...]):
    given = {name: array for name in names if (array := getattr(facts, name)) is not None}
    kept = {
        name: array if name in ("centre", "mean") else array.astype(np.float32)
        for name, array in given.items()
    }
    return replace(facts, **{name: device.put(array) for name, array in kept.items()})


class BlockRows:
    """A block of rows of one space (m, d) in its coordinates and representations, each computed when it is
    first needed.

    On NumPy they are buffers, good until the next block of the side; the unit rows until those of the next
    representation.
    """

    def __init__(
        self, device: NumpyDevice | TorchDevice, frames: Mapping[str, Frame], X: np.ndarray, side: int
    ) -> None:
        self.device, self.frames, self.given, self.side = device, frames, X, side
        self._held: dict[str, Array] = {}

    def coordinates(self, name: str) -> Array:
        """(m, w), not centred."""
        return self._once(name, lambda buffer: self._coordinates(self.frames[name], buffer))

    def centred(self, name: str) -> Array:
        """(m, w) less the centre."""
        centre = self.frames[name].centre
        return self._once(
            f"{name} centred", lambda buffer: self.device.centred(self.coordinates(name), centre, buffer)
        )

    def directions(self, form: Form) -> Array:
        """The rows of a representation scaled to length 1, (m, w)."""
        rows, buffer = self.coordinates(form.frame), f"moved {self.side}"
        if form.factors is not None:
            rows = self.device.stretched(rows, form.factors, buffer)
        elif form.of_centred:
            rows = self._turned(form)
        if form.shift is not None:
            rows = self.device.centred(rows, -form.shift, buffer)
        return self.device.directions(rows, None, f"unit {self.side}")

    def squares(self, form: Form) -> Array:
        """Squared lengths (m,) of the rows of a representation about its centre."""
        if form.factors is None:
            return self.device.squares(self._turned(form))
        rows = self.centred(form.frame)
        squared = self._once(
            f"{form.frame} squared", lambda buffer: self.device.stretched(rows, rows, buffer)
        )
        return squared @ (form.factors * form.factors)

    def _turned(self, form: Form) -> Array:
        """Centred coordinates @ matrix."""
        rows = self.centred(form.frame)
        if form.matrix is None:
            return rows
        return self._once("by matrix", lambda buffer: self.device.product(rows, form.matrix, buffer))

    def _coordinates(self, frame: Frame, buffer: str) -> Array:
        if frame.turn is not None:
            unit = self.device.directions(self.coordinates("raw"), frame.mean, f"moved {self.side}")
            return self.device.product(unit, frame.turn, buffer)
        if frame.projection is not None:
            return self.device.block(
                frame.projection.transform(np.asarray(self.given, dtype=np.float32)), frame.exponent
            )
        return self.device.block(self.given, frame.exponent)

    def _once(self, name: str, make: Callable[[str], Array]) -> Array:
        if name not in self._held:
            self._held[name] = make(f"{name} {self.side}")
        return self._held[name]


# The pass before the pass: what the mean and the size of a space need.

_ROWS = 2048  # a block that stays in cache for both of its readings


class ColumnSums:
    """Sums of the columns of one space, in float64, and its largest |x|.

    `add` blocks of rows (m, d) in any order, `merge` the sums of other rows; `to_arrays` and `from_arrays`
    carry them to another process.

    Attributes
    ----------
    n : int
    total : array (d,) float64
    largest : float
    """

    def __init__(self, width: int) -> None:
        self.n, self.total, self.largest = 0, np.zeros(width), 0.0

    def add(self, X: np.ndarray) -> None:
        for block in row_blocks(len(X), _ROWS):
            rows = np.asarray(X[block], dtype=np.float32)
            self.total += rows.sum(axis=0, dtype=np.float64)
            self.largest = max(self.largest, float(rows.max()), -float(rows.min()))
        self.n += len(X)

    def merge(self, other: ColumnSums) -> None:
        self.n, self.total = self.n + other.n, self.total + other.total
        self.largest = max(self.largest, other.largest)

    @property
    def mean(self) -> np.ndarray:
        """(d,) float64."""
        return self.total / self.n

    @property
    def exponent(self) -> int:
        """Of the power of two by which the space is divided before anything is squared; 0 for ordinary
        numbers.
        """
        exponent = int(np.frexp(self.largest if np.isfinite(self.largest) else 0)[1])
        return 0 if abs(exponent) <= 12 else exponent

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"n": np.array(self.n), "total": self.total, "largest": np.array(self.largest)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ColumnSums:
        found = cls(len(arrays["total"]))
        found.n, found.total, found.largest = int(arrays["n"]), arrays["total"], float(arrays["largest"])
        return found


# The coordinates of both spaces of a pair, and the representations in them.

Frames = dict[str, Frame]


def coordinates_of(
    question: Question,
    rows: RowRoles,
    sums: Sequence[ColumnSums],
    gathered: Mapping[str, Sequence[np.ndarray]],
) -> tuple[Frames, Frames]:
    """The coordinates that the representations need, in either space."""
    gathered = dict(gathered) | {"centre": gathered[_centre(gathered)]}
    sides = ({name: found[side] for name, found in gathered.items()} for side in (0, 1))
    return tuple(_frames(question, rows, one, side) for one, side in zip(sums, sides, strict=True))


def forms_of(
    question: Question,
    frames: Sequence[Frames],
    sums: Sequence[ColumnSums],
    gathered: Mapping[str, Sequence[np.ndarray]],
) -> dict[str, tuple[Form, Form]]:
    """Each representation in either space."""
    made = {
        "absolute": lambda: (Form("raw"), Form("raw")),
        "procrustes": lambda: _procrustes(frames, sums, gathered),
        "relative": lambda: tuple(_relative(one, None) for one in frames),
        "whitened": lambda: tuple(_relative(one, question.projection.ridge) for one in frames),
    }
    return {name: made[name]() for name in question.forms}


def _frames(
    question: Question, rows: RowRoles, sums: ColumnSums, gathered: Mapping[str, np.ndarray]
) -> Frames:
    mean, exponent = rounded_mean(sums.mean, gathered["centre"]), sums.exponent
    centre = mean
    if len(rows.left_out):  # a row that is left out may be so long that the mean is far from all others
        rest = sums.total - gathered["left out"].sum(axis=0, dtype=np.float64)
        centre = rounded_mean(rest / (sums.n - len(rows.left_out)), gathered["centre"])
    frames = {"raw": Frame(scaled(centre, exponent), exponent=exponent)}
    if wanted := {"relative", "whitened"} & set(question.forms):
        spec = question.projection
        if wanted != {"relative"} or spec.similarity == "cosine":
            axes = AnchorAxes.of(unit_rows(gathered["anchors"], mean if spec.center else None))
            moved = scaled(mean, exponent) if spec.center else None
            frames["turned"] = Frame(
                np.zeros(len(axes.stretch)), moved, axes.turn, stretch=axes.stretch, basis=axes.basis
            )
        if "relative" in wanted and spec.similarity != "cosine":
            known = gathered.get("clustered", gathered["centre"])
            frames["own"] = Frame(
                np.zeros(1), projection=spec.projection().fit_from(mean, gathered["anchors"], known)
            )
    return _with_centres(frames, gathered["centre"])


def _with_centres(frames: Frames, sample: np.ndarray) -> Frames:
    """Close to the mean of the rows, by a sample: exact where they are few. The rest is corrected after
    the pass.
    """
    if "own" in frames:
        _, exponent = brought(frames["own"].projection.transform(sample))
        frames["own"] = replace(frames["own"], exponent=exponent)
    rows = BlockRows(NumpyDevice(), frames, sample, 0)
    for name in frames.keys() - {"raw"}:
        found = rows.coordinates(name)
        frames[name] = replace(frames[name], centre=rounded_mean(found.mean(axis=0, dtype=np.float64), found))
    return frames


def _relative(frames: Frames, ridge: float | None) -> Form:
    """Relative, or whitened with a ridge."""
    if ridge is None and "own" in frames:
        return Form("own")
    frame = frames["turned"]
    factors = frame.stretch if ridge is None else frame.stretch / np.sqrt(frame.stretch**2 + ridge)
    return Form("turned", factors=factors, basis=frame.basis)


def _procrustes(frames: Sequence[Frames], sums: Sequence[ColumnSums], gathered: Mapping) -> tuple[Form, Form]:
    """The map of the anchors; both spaces are then centred by the mean of the target, as
    `comparison.represent` does.
    """
    fitted = Procrustes().fit(*gathered["anchors"])
    (source, target), (to_source, to_target) = (
        (frame["raw"] for frame in frames),
        (one.exponent for one in sums),
    )
    mean = rounded_mean(sums[1].mean, gathered[_centre(gathered)][1])
    centre = np.ldexp(source.centre.astype(np.float64), to_source)
    shift = (centre - fitted.source_mean_) @ fitted.matrix_ + fitted.target_mean_ - mean
    turned = Form(
        "raw", True, matrix=scaled(fitted.matrix_, to_target - to_source), shift=scaled(shift, to_target)
    )
    left = target.centre - scaled(mean, to_target)
    return turned, Form("raw", True, shift=left if left.any() else None)


def _centre(gathered: Mapping[str, Sequence[np.ndarray]]) -> str:
    """The name of the sample of rows that the centres come from."""
    return "centre held out" if "centre held out" in gathered else "centre all"


# What a pass over the rows must know before it begins: coordinates, queries and samples, from a few gathered
# rows.

Take = Callable[[int, np.ndarray], np.ndarray]  # side (0 source, 1 target), row numbers (m,) → rows (m, d)
Gathered = Mapping[str, tuple[np.ndarray, np.ndarray]]  # name → rows of both spaces
FrameArrays = Mapping[str, Mapping[str, np.ndarray]]  # frame → attribute → array
_CENTRE_ROWS = 4096
_FEW_CENTRE_ROWS = 1024  # where no sums are taken about the centre


def needed_rows(question: Question, rows: RowRoles) -> dict[str, np.ndarray]:
    """The numbers of the rows that a plan gathers, by name: some thousand in all, and the queries."""
    found = {"anchors": rows.anchors, "left out": rows.left_out}
    n_centre = _CENTRE_ROWS if question.sums else _FEW_CENTRE_ROWS
    for kind in question.kinds:
        scored = rows.scored(kind)
        found[f"queries {kind}"] = rows.queries[kind]
        found[f"sample {kind}"] = scored.at(sampled_rows(len(scored)))
        found[f"centre {kind}"] = scored.at(np.arange(0, len(scored), max(1, len(scored) // n_centre)))
    if question.projection.similarity == "quantised" and "relative" in question.forms:
        found["clustered"] = clustered_rows(rows.n, len(rows.anchors))
    return found


@dataclass(frozen=True, eq=False)
class QuerySearch:
    """One search among the rows of a space: the unit vectors (q, w) that are looked for, in its
    coordinates, and how.
    """

    name: str
    queries: np.ndarray
    k: int
    seed: int | None = None
    labelled: bool = False


@dataclass(frozen=True, eq=False)
class Searches:
    """All searches among the rows of one space in one representation, of which one product serves all.

    `common` (w,) is subtracted from rows and queries where all rows point in nearly one direction: their
    products then differ in the last digits alone, and the distances order them.
    """

    each: tuple[QuerySearch, ...]
    common: np.ndarray | None = None
    stacked: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        stacked = np.concatenate([search.queries for search in self.each])
        stacked = stacked if self.common is None else stacked - self.common
        object.__setattr__(self, "stacked", np.ascontiguousarray(stacked, dtype=np.float32))


class BlockPlan:
    """Everything that a pass needs beside the blocks. A few megabytes, whatever n is, apart from n bits for
    labels.

    Parameters
    ----------
    question : Question
    rows : RowNumbers
    sums : ColumnSums of either space, all rows
    gathered : the rows of both spaces by the names of `needed_rows`
    given : the arrays of the frames of either space by name and attribute, where they were worked out
    elsewhere

    Attributes
    ----------
    frames : coordinates by name, of either space
    forms : representation → its form in either space
    searches : representation → the searches in either space, None where there are none
    """

    def __init__(
        self,
        question: Question,
        rows: RowRoles,
        sums: tuple[ColumnSums, ColumnSums],
        gathered: Gathered,
        given: tuple[FrameArrays, FrameArrays] = ({}, {}),
    ) -> None:
        self.question, self.rows, self.sums, self.gathered = question, rows, sums, gathered
        here = NumpyDevice()
        found = coordinates_of(question, rows, sums, gathered)
        frames = tuple(
            {name: replace(frame, **known.get(name, {})) for name, frame in one.items()}
            for one, known in zip(found, given, strict=True)
        )
        forms = forms_of(question, frames, sums, gathered)
        self.frames = tuple({name: frame.on(here) for name, frame in one.items()} for one in frames)
        self.forms = {name: tuple(form.on(here) for form in pair) for name, pair in forms.items()}
        self.searches = {name: self._searches(name) for name in question.forms}

    @classmethod
    def of(
        cls, question: Question, rows: RowRoles, sums: tuple[ColumnSums, ColumnSums], take: Take
    ) -> BlockPlan:
        """With the rows that it needs, from wherever they are."""
        numbers = needed_rows(question, rows)
        return cls(
            question, rows, sums, {name: (take(0, one), take(1, one)) for name, one in numbers.items()}
        )

    def block(self, side: int, X: np.ndarray) -> BlockRows:
        """Some rows of one space in memory."""
        return BlockRows(NumpyDevice(), self.frames[side], X, side)

    def directions(self, name: str, side: int, X: np.ndarray) -> np.ndarray:
        """Rows of one space in the coordinates of a representation, scaled to length 1."""
        return self.block(side, X).directions(self.forms[name][side])

    def same_width(self, name: str) -> bool:
        """Whether rows of both spaces can be compared with each other in a representation."""
        return name != "absolute" or len(self.sums[0].total) == len(self.sums[1].total)

    def between(self, name: str) -> np.ndarray | None:
        """The matrix (w_source, w_target) whose product with a row of the source is read in the target's
        coordinates.
        """
        source, target = self.forms[name]
        return None if source.basis is None else source.basis.T @ target.basis

    def _searches(self, name: str) -> tuple[Searches | None, Searches | None]:
        question, kind = self.question, self.question.kind(name)
        paired, mutual = self.same_width(name), question.convention == "mutual"
        if not len(self.rows.queries[kind]) or not (paired or mutual):
            return None, None
        queries = [self.directions(name, side, self.gathered[f"queries {kind}"][side]) for side in (0, 1)]
        some = [self.directions(name, side, self.gathered[f"centre {kind}"][side]) for side in (0, 1)]
        seeds = [order_seed(rows) for rows in some]
        crossing = self.between(name)
        k, labelled = question.k + question.spare, self.rows.labelled
        found: tuple[list[QuerySearch], list[QuerySearch]] = ([], [])
        if mutual:
            found[0].append(QuerySearch("own", queries[0], k + 1, seeds[0]))
            found[1].append(QuerySearch("other", queries[1], k + 1, seeds[1]))
        else:
            found[1].append(QuerySearch("own", queries[1], k))
        if paired:
            moved = queries[0] if crossing is None else queries[0] @ crossing
            back = queries[1] if crossing is None else queries[1] @ crossing.T
            for side, title, vectors in ((1, "forward", moved), (0, "backward", back))[: 1 + mutual]:
                found[side].append(QuerySearch(title, vectors, k + (labelled is not None)))
                if labelled is not None and not labelled.all():
                    found[side].append(QuerySearch(f"{title} labelled", vectors, k + 1, labelled=True))
        return tuple(
            Searches(tuple(one), common_direction(some[side])) if one else None
            for side, one in enumerate(found)
        )
