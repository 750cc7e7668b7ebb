"""What a pass over the rows of a pair must know before it begins: coordinates, queries and samples, from a
few gathered rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from relcore.base.magnitude import brought, scaled
from relcore.represent.similarity import (
    AnchorAxes,
    RelativeProjection,
    clustered_rows,
    rounded_mean,
    row_blocks,
    unit_rows,
)
from relcore.represent.translation import Procrustes
from relcore.scores.cka import sampled_rows
from relcore.scores.comparison import ProjectionSpec
from relcore.scores.device import Array, NumpyDevice, TorchDevice
from relcore.scores.neighbours import order_seed
from relcore.scores.search import common_direction

NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Question:
    """What is to be scored.

    Attributes
    ----------
    forms : representations, of `comparison.REPRESENTATIONS`; "absolute" alone, as it is scored on other rows
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


@dataclass(frozen=True, eq=False)
class RowRoles:
    """Which of the n rows of a pair are what.

    Attributes
    ----------
    n : int
    anchors : array (a,)
        In the order of the anchors; empty for absolute scores.
    queries : array (q,)
    left_out : array (l,)
        Ascending: rows that are not scored, such as anchors. They take part in the means that a projection
        subtracts.
    labelled : "", "some" or "all"
        Which rows have a class, where the classes of neighbours are wanted.
    """

    n: int
    anchors: np.ndarray = field(default_factory=NO_ROWS.copy)
    queries: np.ndarray = field(default_factory=NO_ROWS.copy)
    left_out: np.ndarray = field(default_factory=NO_ROWS.copy)
    labelled: str = ""

    def __len__(self) -> int:
        """The number of rows that are scored."""
        return self.n - len(self.left_out)

    def at(self, places: np.ndarray) -> np.ndarray:
        """The row numbers at these places among the rows that are scored."""
        return rows_beside(places, self.left_out)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Where these rows are among the rows that are scored."""
        return places_beside(rows, self.left_out)

    def without(self, rows: np.ndarray) -> RowRoles:
        """With these rows left out, too, and no queries."""
        return replace(self, left_out=np.union1d(self.left_out, rows), queries=rows[:0], labelled="")


def rows_beside(places: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Row numbers of places among the rows that are left when those `without` (ascending) are taken out."""
    return places + np.searchsorted(without - np.arange(len(without)), places, side="right")


def places_beside(rows: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Where these rows are among the rows that are left when those `without` (ascending) are taken out."""
    return rows - np.searchsorted(without, rows)


class Search(NamedTuple):
    """Rows of one space as queries among those of one, the k nearest each.

    Attributes
    ----------
    name : str
    queries, base : int
        0 for the source, 1 for the target.
    k : int
    alone : bool
        Whether the query itself is among the rows that are searched, and is to be left out of its k nearest.
        Rows that are equally near are then ordered at random, differently in the two spaces: else they would
        agree because of the order of their rows.
    labelled : bool
        Whether only rows with a label take part.
    """

    name: str
    queries: int
    base: int
    k: int
    alone: bool = False
    labelled: bool = False


def searches_of(convention: str, k: int, same_width: bool, labelled: str, spare: int = 0) -> list[Search]:
    """The searches that the scores of a pair need. A vote of classes takes one more row: the query is left
    out."""
    k += spare
    mutual = convention == "mutual"
    if not same_width and not mutual:
        return []
    own = (
        [Search("own", 0, 0, k, True), Search("other", 1, 1, k, True)] if mutual else [Search("own", 1, 1, k)]
    )
    if not same_width:
        return own
    for name, queries, base in (("forward", 0, 1), ("backward", 1, 0))[: 1 + mutual]:
        own.append(Search(name, queries, base, k + bool(labelled)))
        if labelled == "some":
            own.append(Search(f"{name} labelled", queries, base, k + 1, labelled=True))
    return own


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
        Of the space, which is subtracted before directions are taken.
    turn : array (d, w), optional
        Q of "turned".
    stretch : array (w,), basis : array (k, w), optional
        S and P of "turned".
    spec, anchors, known
        What makes "own": the projection on anchors (k, d), and rows (m, d) that it may learn from.
    exponent : int
        Coordinates are divided by this power of two.
    """

    centre: np.ndarray
    mean: np.ndarray | None = None
    turn: np.ndarray | None = None
    stretch: np.ndarray | None = None
    basis: np.ndarray | None = None
    spec: ProjectionSpec | None = None
    anchors: np.ndarray | None = None
    known: np.ndarray | None = None
    exponent: int = 0

    @cached_property
    def projection(self) -> RelativeProjection:
        return self.spec.projection().fit_from(self.mean, self.anchors, self.known)


def placed(device: NumpyDevice | TorchDevice, facts: Form | Frame) -> Form | Frame:
    """A form or a frame with what a block needs of it on a device."""
    names = ("factors", "matrix", "shift", "centre", "turn") + ("mean",) * (
        getattr(facts, "turn", None) is not None
    )
    arrays = {name: getattr(facts, name, None) for name in names}
    return replace(facts, **{name: device.put(one) for name, one in arrays.items() if one is not None})


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
        if frame.spec is not None:
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
    """Sums of the columns of one space (d,) in float64, its number of rows, and its largest |x|; `packed` as
    one array (d + 2,).
    """

    def __init__(self, width: int) -> None:
        self.n, self.total, self.largest = 0, np.zeros(width), 0.0

    def add(self, X: np.ndarray) -> None:
        for block in row_blocks(len(X), _ROWS):
            rows = np.asarray(X[block], dtype=np.float32)
            self.total += rows.sum(axis=0, dtype=np.float64)
            self.largest = max(self.largest, float(rows.max()), -float(rows.min()))
        self.n += len(X)

    def merge(self, other: ColumnSums) -> ColumnSums:
        self.n, self.total = self.n + other.n, self.total + other.total
        self.largest = max(self.largest, other.largest)
        return self

    @property
    def exponent(self) -> int:
        """Of the power of two by which the space is divided before anything is squared; 0 for ordinary
        numbers.
        """
        exponent = int(np.frexp(self.largest if np.isfinite(self.largest) else 0)[1])
        return 0 if abs(exponent) <= 12 else exponent

    def packed(self) -> np.ndarray:
        return np.array([*self.total, self.largest, self.n])

    @classmethod
    def unpacked(cls, array: np.ndarray) -> ColumnSums:
        sums = cls(len(array) - 2)
        sums.total, sums.largest, sums.n = array[:-2], float(array[-2]), int(array[-1])
        return sums


# The coordinates of both spaces of a pair, and the representations in them.


Frames = dict[str, Frame]
Gathered = Mapping[str, tuple[np.ndarray, np.ndarray]]  # name → rows of both spaces
Take = Callable[[int, np.ndarray], np.ndarray]  # side (0 source, 1 target), row numbers (m,) → rows (m, d)


def frames_of(
    question: Question, roles: RowRoles, sums: ColumnSums, gathered: Mapping[str, np.ndarray], side: int
) -> Frames:
    """The coordinates of one space that the representations need."""
    forms, spec, sample = set(question.forms), question.projection, gathered["centre"]
    mean, exponent = rounded_mean(sums.total / sums.n, sample), sums.exponent
    centre = mean
    if len(roles.left_out):  # one of these may be so long that the mean is far from all others
        rest = sums.total - gathered["left out"].sum(axis=0, dtype=np.float64)
        centre = rounded_mean(rest / len(roles), sample)
    frames = {"raw": Frame(scaled(centre, exponent), exponent=exponent)}
    if "whitened" in forms or ("relative" in forms and spec.similarity == "cosine"):
        axes = AnchorAxes.of(unit_rows(gathered["anchors"], mean if spec.center else None))
        moved = scaled(mean, exponent) if spec.center else None
        turn = axes.turn.astype(np.float32)
        frames["turned"] = Frame(np.zeros(1), moved, turn, axes.stretch, axes.basis)
    if "relative" in forms and spec.similarity != "cosine":
        known = gathered.get("clustered", sample[:0])
        own = Frame(np.zeros(1), mean, spec=spec, anchors=gathered["anchors"], known=known)
        frames["own"] = replace(own, exponent=brought(own.projection.transform(sample))[1])
    rows = BlockRows(NumpyDevice(), frames, sample, side)
    for name in frames.keys() - {
        "raw"
    }:  # by a sample: exact where rows are few, else corrected after the pass
        made = rows.coordinates(name)
        frames[name] = replace(frames[name], centre=rounded_mean(made.mean(axis=0, dtype=np.float64), made))
    return frames


def forms_of(
    question: Question, frames: tuple[Frames, Frames], sums: tuple[ColumnSums, ColumnSums], gathered: Gathered
) -> dict[str, tuple[Form, Form]]:
    """Each representation in either space."""
    forms = {}
    for name in question.forms:
        if name == "absolute":
            forms[name] = Form("raw"), Form("raw")
        elif name == "procrustes":
            forms[name] = _procrustes(frames, sums, gathered)
        else:
            ridge = question.projection.ridge if name == "whitened" else 0.0
            forms[name] = tuple(_relative(one, name, ridge) for one in frames)
    return forms


def _relative(frames: Frames, name: str, ridge: float) -> Form:
    if name == "relative" and "own" in frames:
        return Form("own")
    stretch = frames["turned"].stretch
    factors = stretch / np.sqrt(stretch**2 + ridge) if name == "whitened" else stretch
    return Form("turned", factors=factors.astype(np.float32), basis=frames["turned"].basis)


def _procrustes(
    frames: tuple[Frames, Frames], sums: tuple[ColumnSums, ColumnSums], gathered: Gathered
) -> tuple[Form, Form]:
    """The map of the anchors; both spaces are then centred by the mean of the target, as
    `comparison.represent` does.
    """
    fitted = Procrustes().fit(*gathered["anchors"])
    source, target = (one["raw"] for one in frames)
    mean = rounded_mean(sums[1].total / sums[1].n, gathered["centre"][1])
    centre = np.ldexp(source.centre.astype(np.float64), source.exponent)
    shift = (centre - fitted.source_mean_) @ fitted.matrix_ + fitted.target_mean_ - mean
    matrix = scaled(fitted.matrix_, target.exponent - source.exponent).astype(np.float32)
    left = target.centre - scaled(mean, target.exponent)
    return (
        Form("raw", True, matrix=matrix, shift=scaled(shift, target.exponent).astype(np.float32)),
        Form("raw", True, shift=left.astype(np.float32) if left.any() else None),
    )


_CENTRE_ROWS = 4096
_FEW_CENTRE_ROWS = 1024  # where no sums are taken about the centre


def needed_rows(question: Question, roles: RowRoles) -> dict[str, np.ndarray]:
    """The numbers of the rows that a plan gathers, by name: some thousand in all, and the queries."""
    n, n_centre = len(roles), _CENTRE_ROWS if question.sums else _FEW_CENTRE_ROWS
    rows = {"anchors": roles.anchors, "left out": roles.left_out, "queries": roles.queries}
    rows |= {"sample": roles.at(sampled_rows(n)), "centre": roles.at(np.arange(0, n, max(1, n // n_centre)))}
    if question.projection.similarity == "quantised" and "relative" in question.forms:
        rows["clustered"] = clustered_rows(roles.n, len(roles.anchors))
    return rows


@dataclass(frozen=True, eq=False)
class Searches:
    """All searches among the rows of one space in one representation, of which one product serves all.

    Attributes
    ----------
    each : searches
    queries : array (q', w)
        The unit vectors that are looked for, of all searches one after the other, in the coordinates of the
        space; less `common`.
    seed : int
        Orders equally near rows at random.
    common : array (w,), optional
        What is subtracted from rows, too, where all rows point in nearly one direction: their products then
        differ in the last digits alone, and the distances order them.
    """

    each: tuple[Search, ...]
    queries: np.ndarray
    seed: int
    common: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a pass needs beside the blocks: a few megabytes, whatever n is.

    Attributes
    ----------
    widths : (int, int)
        Of the spaces.
    frames : coordinates by name, of either space
    forms : representation → its form in either space
    searches : representation → the searches in either space, None where there are none
    samples : some rows of either space, for the chance level of linear CKA
    """

    question: Question
    roles: RowRoles
    widths: tuple[int, int]
    frames: tuple[Frames, Frames]
    forms: dict[str, tuple[Form, Form]]
    searches: dict[str, tuple[Searches | None, Searches | None]]
    samples: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, question: Question, roles: RowRoles, sums: tuple[ColumnSums, ColumnSums], take: Take) -> Plan:
        """With the rows that it needs, from wherever they are."""
        gathered = {
            name: (take(0, rows), take(1, rows)) for name, rows in needed_rows(question, roles).items()
        }
        sides = [{name: both[side] for name, both in gathered.items()} for side in (0, 1)]
        frames = tuple(frames_of(question, roles, sums[side], sides[side], side) for side in (0, 1))
        forms = forms_of(question, frames, sums, gathered)
        widths = tuple(len(one.total) for one in sums)
        plan = cls(question, roles, widths, frames, forms, {}, gathered["sample"])
        if len(roles.queries):
            plan.searches.update({name: plan._searches(name, gathered) for name in forms})
        return plan

    def block(self, side: int, X: np.ndarray) -> BlockRows:
        """Some rows of one space in memory."""
        return BlockRows(NumpyDevice(), self.frames[side], X, side)

    def directions(self, name: str, side: int, X: np.ndarray) -> np.ndarray:
        """Rows of one space in the coordinates of a representation, scaled to length 1."""
        return self.block(side, X).directions(self.forms[name][side])

    def same_width(self, name: str) -> bool:
        """Whether rows of both spaces can be compared with each other in a representation."""
        return name != "absolute" or self.widths[0] == self.widths[1]

    def between(self, name: str) -> np.ndarray | None:
        """The matrix (w_source, w_target) whose product with a row of the source is read in the target's
        coordinates.
        """
        source, target = self.forms[name]
        return None if source.basis is None else source.basis.T @ target.basis

    def searched(self, name: str) -> list[Search]:
        """The searches of a representation."""
        question = self.question
        facts = question.convention, question.k, self.same_width(name), self.roles.labelled, question.spare
        return searches_of(*facts)

    def _searches(self, name: str, gathered: Gathered) -> tuple[Searches | None, Searches | None]:
        queries, some = (
            [self.directions(name, side, gathered[what][side]) for side in (0, 1)]
            for what in ("queries", "centre")
        )
        crossing = self.between(name)
        sides = []
        for side in (0, 1):
            each = tuple(search for search in self.searched(name) if search.base == side)
            if not each:
                sides.append(None)
                continue
            vectors = []
            for search in each:
                rows = queries[search.queries]
                if search.queries != side and crossing is not None:
                    rows = rows @ (crossing.T if side == 0 else crossing)
                vectors.append(rows)
            stacked, common = np.concatenate(vectors), common_direction(some[side])
            stacked = (stacked if common is None else stacked - common).astype(np.float32)
            sides.append(Searches(each, stacked, order_seed(some[side]), common))
        return tuple(sides)
