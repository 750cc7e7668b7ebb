"""One pass over the rows of two spaces collects what all scores need: sums and nearest rows. It reads blocks
of rows, in any order and in any number of processes. The `Plan` of a pass is made before it, from the means
of both spaces and a few rows. In names, a form is a representation, and a frame is the coordinates from which
it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_sequence, need_whole
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import SIMILARITIES
from relcore.base.rows import Rows as RowSource
from relcore.base.rows import mean_row, row_blocks, unit_rows
from relcore.engine.device import Array, Device, NumpyDevice, in_threads, on_device
from relcore.engine.engine import (
    Engine,
    common_direction,
    many_coincide,
    need_k,
    on_grid,
    order_seed,
    top_rows,
    without_itself,
)
from relcore.represent.similarity import AnchorAxes, RelativeProjection, clustered_rows
from relcore.represent.translation import Procrustes, ProjectionSpec
from relcore.scores.cka import (
    CkaSums,
    RowSums,
    SpaceSums,
    cosine_score,
    decided_note,
    decisive_of_longest,
    power_near,
    sampled_rows,
)
from relcore.scores.neighbours import CONVENTIONS, Neighbours, widths_differ
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike, RowNumbers, checked_strings, ids_of, paired_matrices
from relcore.spaces.split import Split

NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class ScoreRequest:
    """A request to score representations (`forms`, from `REPRESENTATIONS`) with k neighbours. "absolute" has
    a request of its own, because it is scored on other rows.

    Attributes
    ----------
    sums : bool
        Whether to collect the sums for scores that read all rows. False if a pass only searches for further
        queries among the same rows.
    cosines : bool
        Whether to keep the cosine of each row with its partner (n numbers).
    extra_neighbours : int
        Number of additional neighbours per query, so that k remain if up to this many rows are left out
        later.
    """

    forms: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    convention: str = "paper"
    sums: bool = True
    cosines: bool = False
    extra_neighbours: int = 0


@dataclass(frozen=True, eq=False)
class RowRoles:
    """Which of the n rows of two paired spaces are anchors, which are queries, and which are left out.

    Attributes
    ----------
    n : int
    anchors, queries : arrays (a,), (q,)
        The row numbers of the anchors, in their order (empty for absolute scores), and of the queries.
    left_out : array (l,)
        The numbers of the rows that are not scored, such as anchors, ascending. The means that a projection
        subtracts include these rows.
    labelled : "", "some" or "all"
        Whether no row, some rows or all rows have a class. It is "" if classes are not needed.
    """

    n: int
    anchors: np.ndarray = field(default_factory=NO_ROWS.copy)
    queries: np.ndarray = field(default_factory=NO_ROWS.copy)
    left_out: np.ndarray = field(default_factory=NO_ROWS.copy)
    labelled: str = ""

    def __len__(self) -> int:
        return self.n - len(self.left_out)

    def without(self, rows: np.ndarray) -> RowRoles:
        """Return the same roles, but leave out these rows as well, and have no queries."""
        return replace(self, left_out=np.union1d(self.left_out, rows), queries=rows[:0], labelled="")


def to_full_index(places: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Convert positions to row numbers: `places` are positions among the rows that remain after the rows
    `without` (ascending) are removed."""
    return places + np.searchsorted(without - np.arange(len(without)), places, side="right")


def to_kept_index(rows: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Convert row numbers to positions among the rows that remain after the rows `without` (ascending) are
    removed."""
    return rows - np.searchsorted(without, rows)


class Search(NamedTuple):
    """A search for the k nearest rows in the space `base`, with queries from the space `queries` (0 source, 1
    target).

    If `alone`, the query is one of the searched rows and is left out of its k nearest rows. Then equally near
    rows have a random order, which differs between the spaces; ordered by row number, they would agree
    between unrelated spaces. If `labelled`, only rows with a label are searched.
    """

    name: str
    queries: int
    base: int
    k: int
    alone: bool = False
    labelled: bool = False


# The rows of one space in each representation, computed from common coordinates that preserve all inner
# products. Let U (n, d) be the unit rows and A = P S Qᵀ (k, d) the anchors. Then the relative rows U Aᵀ are U
# Q · S, rotated by P, and the whitened rows are U Q · S / √(S² + ridge). So both representations need only
# the product with Q (d, min(d, k)), and no row of k similarities is computed. Procrustes rotates the centred
# rows.


@dataclass(frozen=True, eq=False)
class Representation:
    """How the rows of one space are computed in a representation: coordinates · factors, or centred
    coordinates @ matrix + shift.

    Attributes
    ----------
    frame : str
        The name of the coordinates: "raw" (the rows themselves), "turned" (unit rows times Q) or "own" (the
        output of the projection).
    size : float
        A power of two near the mean squared length of the centred rows.
    of_centred : bool
        Whether the centre is subtracted from the coordinates first.
    factors : array (w,), matrix : array (w, w'), shift : array (w',), optional
    basis : array (out, w), optional
        The rows of the representation, as users see them, are these rows times the transpose of `basis`. None
        if they are the same.
    """

    frame: str
    of_centred: bool = False
    size: float = 1.0
    factors: np.ndarray | None = None
    matrix: np.ndarray | None = None
    shift: np.ndarray | None = None
    basis: np.ndarray | None = None

    def mapped(self, vectors: np.ndarray) -> np.ndarray:
        """Convert differences between coordinates, (m, w) or (w,), to differences between rows of the
        representation, as float64."""
        if self.factors is not None:
            return vectors * self.factors
        if self.matrix is None:
            return vectors
        return vectors @ self.matrix


@dataclass(frozen=True, eq=False)
class Coordinates:
    """How coordinates of one space are computed from its rows.

    Attributes
    ----------
    centre : array (w,)
        A point close to the mean of the scored rows, float32 or float64. It is subtracted before rows are
        summed.
    mean : array (d,), optional
        The mean of the space. It is subtracted before rows are scaled to length 1.
    turn : array (d, w), stretch : array (w,), basis : array (k, w), optional
        For "turned": Q, S and P of the SVD P S Qᵀ of the unit anchors.
    spec, anchors, known
        For "own": the projection, its anchors (k, d), and rows (m, d) that it may learn from.
    """

    centre: np.ndarray
    mean: np.ndarray | None = None
    turn: np.ndarray | None = None
    stretch: np.ndarray | None = None
    basis: np.ndarray | None = None
    spec: ProjectionSpec | None = None
    anchors: np.ndarray | None = None
    known: np.ndarray | None = None

    @cached_property
    def projection(self) -> RelativeProjection:
        return self.spec.projection().fit_from(self.mean, self.anchors, self.known)


CoordinatesByName = dict[str, Coordinates]


def to_device(device: Device, facts: Representation | Coordinates) -> Representation | Coordinates:
    names = ["factors", "matrix", "shift", "centre", "turn"]
    if getattr(facts, "turn", None) is not None:
        names.append("mean")
    arrays = {name: getattr(facts, name, None) for name in names}
    return replace(facts, **{name: device.put(array) for name, array in arrays.items() if array is not None})


class BlockRows:
    """The rows `kept` of a block (m, d) of one space, in each system of coordinates and each representation.
    Each result is computed when it is first needed.

    With NumPy, results are buffers, which the next block of the same space overwrites. The buffer of unit
    rows is overwritten for each representation.
    """

    def __init__(
        self,
        device: Device,
        frames: CoordinatesByName,
        side: int,
        X: RowSource,
        block: slice = slice(None),
        kept: np.ndarray | None = None,
    ) -> None:
        self.device = device
        self.frames = frames
        self.side = side
        self._source = X
        self._block = block
        self._kept = kept
        self._held: dict[str, Array] = {}

    def coordinates(self, name: str) -> Array:
        return self._once(name, self._coordinates, self.frames[name])

    def centred(self, name: str) -> Array:
        rows = self.coordinates(name)
        centre = self.frames[name].centre
        return self._once(f"{name} centred", self.device.centred, rows, centre)

    def directions(self, form: Representation) -> Array:
        """The rows of a representation scaled to length 1, (m, w)."""
        rows = self.coordinates(form.frame)
        buffer = f"moved {self.side}"
        if form.factors is not None:
            rows = self.device.scaled(rows, form.factors, buffer)
        elif form.of_centred:
            rows = self._turned(form)
        if form.shift is not None:
            rows = self.device.centred(rows, -form.shift, buffer)
        return self.device.unit(rows, f"unit {self.side}")

    def squares(self, form: Representation) -> Array:
        """The squared lengths (m,) of the centred rows of a representation."""
        if form.factors is None:
            turned = self._turned(form)
            return self.device.row_products(turned, turned)
        rows = self.centred(form.frame)
        name = f"{form.frame} squared"
        squares = self._once(name, self.device.scaled, rows, rows)
        return squares @ (form.factors * form.factors)

    def _turned(self, form: Representation) -> Array:
        rows = self.centred(form.frame)
        if form.matrix is None:
            return rows
        return self._once("by matrix", self.device.product, rows, form.matrix)

    def _coordinates(self, frame: Coordinates, buffer: str) -> Array:
        if frame.turn is not None:
            rows = self.coordinates("raw")
            moved = f"moved {self.side}"
            if frame.mean is not None:
                rows = self.device.centred(rows, frame.mean, moved)
            return self.device.product(self.device.unit(rows, moved), frame.turn, buffer)
        if frame.spec is not None:
            rows = np.asarray(self._source[self._block], dtype=np.float32)
            return self.device.rows(
                frame.projection.transform(rows if self._kept is None else rows[self._kept])
            )
        rows = self.device.block_on_device(self._source, self._block)
        if self._kept is None:
            return rows
        return rows[self.device.put(self._kept)]

    def _once(self, name: str, make: Callable[..., Array], *given: Any) -> Array:
        if name not in self._held:
            self._held[name] = make(*given, f"{name} {self.side}")
        return self._held[name]


# The coordinates of both spaces of a pair, from which the representations are computed.

Take = Callable[[int, np.ndarray], np.ndarray]  # side (0 source, 1 target), row numbers (m,) → rows (m, d)


def frames_of(
    request: ScoreRequest, roles: RowRoles, mean: np.ndarray, gathered: Mapping[str, np.ndarray], side: int
) -> CoordinatesByName:
    forms = set(request.forms)
    spec = request.projection
    sample = gathered["centre"]
    total = roles.n * mean
    centre = mean = mean_row(sample, mean)
    if len(roles.left_out):  # an anchor can be so long that the mean is far from all rows that are no anchors
        rest = total - gathered["left out"].sum(axis=0, dtype=np.float64)
        centre = mean_row(sample, rest / len(roles))
    frames = {"raw": Coordinates(centre)}
    if "whitened" in forms or ("relative" in forms and spec.similarity == "cosine"):
        axes = AnchorAxes.of(unit_rows(gathered["anchors"], mean if spec.center else None))
        moved = mean if spec.center else None
        frames["turned"] = Coordinates(
            np.zeros(1), moved, axes.turn.astype(np.float32), axes.stretch, axes.basis
        )
    if "relative" in forms and spec.similarity != "cosine":
        known = gathered.get("clustered", sample[:0])
        frames["own"] = Coordinates(np.zeros(1), mean, spec=spec, anchors=gathered["anchors"], known=known)
    rows = BlockRows(NumpyDevice(), frames, side, sample)
    for name in [*frames][1:]:  # means of a sample: exact for few rows, otherwise corrected after the pass
        some = rows.coordinates(name)
        frames[name] = replace(frames[name], centre=mean_row(some))
    return frames


def _relative(frames: CoordinatesByName, name: str, ridge: float) -> Representation:
    if name == "relative" and "own" in frames:
        return Representation("own")
    factors = stretch = frames["turned"].stretch
    if name == "whitened":
        factors = stretch / np.sqrt(stretch**2 + ridge)
    return Representation("turned", factors=factors.astype(np.float32), basis=frames["turned"].basis)


def _procrustes(
    frames: tuple[CoordinatesByName, CoordinatesByName],
    mean: np.ndarray,
    anchors: tuple[np.ndarray, np.ndarray],
) -> tuple[Representation, Representation]:
    """The representation "procrustes" of both spaces. The rotation maps the anchors of the source onto those
    of the target. Both spaces are centred by the mean of the target, as in `represent`.
    """
    fitted = Procrustes().fit(*anchors)
    (source, target) = (side["raw"] for side in frames)
    centre = source.centre.astype(np.float64)
    shift = (centre - fitted.source_mean_) @ fitted.matrix_ + fitted.target_mean_ - mean
    matrix = fitted.matrix_.astype(np.float32)
    left = target.centre - mean
    return (
        Representation("raw", True, matrix=matrix, shift=shift.astype(np.float32)),
        Representation("raw", True, shift=left.astype(np.float32) if left.any() else None),
    )


# number of sampled rows for a centre, with and without sums
_CENTRE_ROWS = 4096
_FEW_CENTRE_ROWS = 1024


def needed_rows(request: ScoreRequest, roles: RowRoles) -> dict[str, np.ndarray]:
    """The numbers of the rows that must be read to make a plan, by their use: the queries, and a few thousand
    others."""
    n = len(roles)
    n_centre = _CENTRE_ROWS if request.sums else _FEW_CENTRE_ROWS
    rows = {"anchors": roles.anchors, "left out": roles.left_out, "queries": roles.queries}
    for name, places in (("sample", sampled_rows(n)), ("centre", np.arange(0, n, max(1, n // n_centre)))):
        rows[name] = to_full_index(places, roles.left_out)
    if SIMILARITIES[request.projection.similarity].load().learns and "relative" in request.forms:
        rows["clustered"] = clustered_rows(roles.n, len(roles.anchors))
    return rows


@dataclass(frozen=True, eq=False)
class Searches:
    """All searches among the rows of one space in one representation, made by a single matrix product with
    the rows.

    `queries` (q', w) are the unit vectors of all searches, one search after the other, in the coordinates of
    the space. If all rows have nearly the same direction, their products differ only in the last digits. Then
    `common` (w,) is subtracted from queries and rows, and rows are ordered by distance. `seed` orders equally
    near rows at random. If many rows are equal (`tied`), products are rounded so that those of equal rows are
    equal.
    """

    each: tuple[Search, ...]
    queries: np.ndarray
    seed: int
    common: np.ndarray | None = None
    tied: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a pass needs besides the blocks of rows. It takes a few megabytes for any n.

    Attributes
    ----------
    widths : (int, int)
        The widths of the spaces.
    frames : two of {name: Coordinates}
        The coordinates of each space.
    forms : {name: two of Representation}
    searches : {name: two of Searches or None}
        The searches in each space; None if there is no search.
    samples : two arrays
        Some rows of each space, from which the chance level of linear CKA is computed.
    """

    request: ScoreRequest
    roles: RowRoles
    widths: tuple[int, int]
    frames: tuple[CoordinatesByName, CoordinatesByName]
    forms: dict[str, tuple[Representation, Representation]]
    searches: dict[str, tuple[Searches | None, Searches | None]]
    samples: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls, request: ScoreRequest, roles: RowRoles, means: tuple[np.ndarray, np.ndarray], take: Take
    ) -> Plan:
        needed = needed_rows(request, roles)
        gathered = {name: (take(0, rows), take(1, rows)) for name, rows in needed.items()}
        sides = [{name: both[side] for name, both in gathered.items()} for side in (0, 1)]
        frames = tuple(frames_of(request, roles, means[side], sides[side], side) for side in (0, 1))
        forms = {}
        for name in request.forms:
            if name == "absolute":
                forms[name] = Representation("raw"), Representation("raw")
            elif name == "procrustes":
                mean = mean_row(gathered["centre"][1], means[1])
                forms[name] = _procrustes(frames, mean, gathered["anchors"])
            else:
                forms[name] = tuple(_relative(side, name, request.projection.ridge) for side in frames)
        widths = tuple(map(len, means))
        for name, both in forms.items():
            blocks = (BlockRows(NumpyDevice(), frames[side], side, sides[side]["centre"]) for side in (0, 1))
            sizes = (power_near(block.squares(form)) for form, block in zip(both, blocks, strict=True))
            forms[name] = tuple(replace(form, size=size) for form, size in zip(both, sizes, strict=True))
        plan = cls(request, roles, widths, frames, forms, {}, gathered["sample"])
        if len(roles.queries):
            plan.searches.update({name: plan._searches(name, gathered) for name in forms})
        return plan

    def block(self, side: int, X: np.ndarray) -> BlockRows:
        return BlockRows(NumpyDevice(), self.frames[side], side, X)

    def directions(self, name: str, side: int, X: np.ndarray) -> np.ndarray:
        """The rows X of one space in the coordinates of a representation, scaled to length 1."""
        return self.block(side, X).directions(self.forms[name][side])

    def same_width(self, name: str) -> bool:
        """Whether the rows of both spaces have the same width in a representation, so that they can be
        compared."""
        return name != "absolute" or self.widths[0] == self.widths[1]

    def between(self, name: str) -> np.ndarray | None:
        """The matrix (w_source, w_target) that maps source coordinates to target coordinates; None if they
        are the same.
        """
        source, target = self.forms[name]
        if source.basis is None:
            return None
        return source.basis.T @ target.basis

    def searched(self, name: str) -> list[Search]:
        """The searches that the scores of a representation need. For a vote of classes, they find k + 1 rows,
        because the query is removed later."""
        k = self.request.k + self.request.extra_neighbours
        labelled = self.roles.labelled
        mutual = self.request.convention == "mutual"
        searches = []
        if mutual:
            searches = [Search("own", 0, 0, k, True), Search("other", 1, 1, k, True)]
        if not self.same_width(name):
            return searches
        searches = searches or [Search("own", 1, 1, k)]
        for direction, queries, base in (("forward", 0, 1), ("backward", 1, 0))[: 1 + mutual]:
            searches.append(Search(direction, queries, base, k + bool(labelled)))
            if labelled == "some":
                searches.append(Search(f"{direction} labelled", queries, base, k + 1, labelled=True))
        return searches

    def _searches(self, name: str, gathered: Mapping) -> tuple[Searches | None, Searches | None]:
        queries, some = (
            [self.directions(name, side, gathered[what][side]) for side in (0, 1)]
            for what in ("queries", "centre")
        )
        crossing = self.between(name)
        sides = []
        for side in (0, 1):
            each = tuple(search for search in self.searched(name) if search.base == side)
            vectors = []
            for search in each:
                rows = queries[search.queries]
                if search.queries != side and crossing is not None:
                    rows = rows @ (crossing.T if side == 0 else crossing)
                vectors.append(rows)
            if each:
                stacked = np.concatenate(vectors)
                common = common_direction(some[side])
                stacked = (stacked if common is None else stacked - common).astype(np.float32)
                tied = common is None and many_coincide(some[side], len(self.roles), self.request.k)
            sides.append(Searches(each, stacked, order_seed(some[side]), common, tied) if each else None)
        return tuple(sides)


# The sums and nearest rows that a pass collects.

LONGEST = 11  # number of the longest rows of each space, which may decide a score


class Sums:
    """The sums and the nearest rows over all blocks that were added so far.

    Every row of the pair must be added once, in blocks of both spaces with their row numbers. `merge` adds
    the sums over other rows that were collected with the same plan. `to_arrays` and `from_arrays` move sums
    (a few MB) to another process. If a thread has several sums, they share the buffers of a device.
    """

    def __init__(self, plan: Plan, device: Device | None = None) -> None:
        self.plan = plan
        self.device = device or NumpyDevice()
        put = self.device.put
        request = plan.request
        self._frames = [
            {name: to_device(self.device, frame) for name, frame in side.items()} for side in plan.frames
        ]
        self._forms = {
            name: [to_device(self.device, form) for form in both] for name, both in plan.forms.items()
        }
        self.n = 0
        self._sums = {}
        self.tops = {}
        self._searched = {}
        self._crossing = {}
        for name, both in plan.searches.items():
            for side, searches in enumerate(both):
                if searches is not None:
                    if searches.common is None:
                        common = None
                    else:
                        common = put(searches.common)
                    self._searched[name, side] = put(searches.queries), common
                    for search in searches.each:
                        seed = searches.seed if search.alone else None
                        n_queries = len(plan.roles.queries)
                        top = top_rows(self.device, n_queries, search.k + search.alone, seed)
                        self.tops[f"{name}/{search.name}"] = top
        for name in plan.forms:
            if request.sums:
                self.tops |= {f"{name}/longest/{side}": top_rows(self.device, 1, LONGEST) for side in (0, 1)}
            if request.cosines and plan.same_width(name):
                between = plan.between(name)
                if between is None:
                    self._crossing[name] = None
                else:
                    self._crossing[name] = put(between.astype(np.float32))
        self._cosines: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in self._crossing}

    def add(
        self,
        source: RowSource,
        target: RowSource,
        rows: np.ndarray,
        labelled: np.ndarray | None = None,
        block: slice = slice(None),
    ) -> None:
        """Add a block of rows of both spaces, of any real type, with their numbers `rows` (m,). If only some
        rows have a label, `labelled` (m,) says which.
        """
        scored = np.flatnonzero(~np.isin(rows, self.plan.roles.left_out))
        kept = None
        if len(scored) < len(rows):
            kept = scored
            rows = rows[scored]
            if labelled is None:
                labelled = None
            else:
                labelled = labelled[scored]
        if not len(rows):
            return
        self.n += len(rows)
        with self.device.exact():
            blocks = [
                BlockRows(self.device, self._frames[side], side, X, block, kept)
                for side, X in enumerate((source, target))
            ]
            if self.plan.request.sums:
                for frame in {form.frame: None for forms in self._forms.values() for form in forms}:
                    centred = [block.centred(frame) for block in blocks]
                    for side, X in enumerate(centred):
                        self._sum(f"{frame}/sum/{side}", X.sum(0))
                        self._sum(f"{frame}/gram/{side}", X.T @ X)
                    self._sum(f"{frame}/cross", centred[0].T @ centred[1])
            for name, forms in self._forms.items():
                self._add_form(name, forms, blocks, rows, labelled)

    def _add_form(
        self,
        name: str,
        forms: Sequence[Representation],
        blocks: Sequence[BlockRows],
        rows: np.ndarray,
        labelled: np.ndarray | None,
    ) -> None:
        sums = self.plan.request.sums
        if sums:
            for side in (0, 1):
                self._add_lengths(name, side, blocks[side], forms[side], rows)
        paired = name in self._crossing or (sums and self.plan.same_width(name))
        unit = [
            blocks[side].directions(forms[side]) if paired or (name, side) in self._searched else None
            for side in (0, 1)
        ]
        if paired and sums:
            for side, X in enumerate(unit):
                self._sum(f"{name}/unit sum/{side}", X.sum(0))
                self._sum(f"{name}/unit gram/{side}", X.T @ X)
        if name in self._crossing:
            crossing = self._crossing[name]
            if crossing is None:
                moved = unit[0]
            else:
                moved = self.device.product(unit[0], crossing, "crossed")
            self._cosines[name].append((rows, self.device.row_products(moved, unit[1])))
        elif paired:
            is_moved = forms[0].basis is not None
            if is_moved:
                products = unit[0].T @ unit[1]
            else:
                products = self.device.row_products(*unit).sum()
            self._sum(f"{name}/paired", products)
        for side in (0, 1):
            if (name, side) in self._searched:
                self._search(name, side, unit[side], rows, labelled)

    def _add_lengths(
        self, name: str, side: int, block: BlockRows, form: Representation, rows: np.ndarray
    ) -> None:
        """Add powers of the squared lengths of the centred rows, and sums of coordinates weighted by these
        powers."""
        lengths = block.squares(form)
        centred = block.centred(form.frame)
        self.tops[f"{name}/longest/{side}"].add(lengths[None], rows)
        double = power = self.device.double(lengths)
        for exponent in (1, 2, 3):
            self._sum(f"{name}/power {exponent}/{side}", power.sum())
            power = power * double
        # Scale lengths to about 1, because fourth powers of large numbers exceed the range of float32.
        lengths = lengths * np.float32(1 / form.size)
        self._sum(f"{name}/weighted/{side}", lengths @ centred)
        self._sum(f"{name}/weighted twice/{side}", (lengths * lengths) @ centred)

    def _search(
        self, name: str, side: int, unit: Array, rows: np.ndarray, labelled: np.ndarray | None
    ) -> None:
        queries, common = self._searched[name, side]
        q = len(self.plan.roles.queries)
        size = self.device.rows_at_once(self.device.search_rows, 8 * len(queries))
        for part in row_blocks(len(rows), size):
            if common is None:
                block = unit[part]
            else:
                block = self.device.centred(unit[part], common, "apart")
            scores = self.device.product(queries, block.T, "scores")
            if common is not None:
                scores -= self.device.row_products(block, block) / 2
            if self.plan.searches[name][side].tied:
                scores = on_grid(scores)
            numbers = self.device.put(rows[part])
            for place, search in enumerate(self.plan.searches[name][side].each):
                mine = scores[place * q : (place + 1) * q]
                of_mine = numbers
                if search.labelled:
                    chosen = self.device.put(np.flatnonzero(labelled[part]))
                    mine = mine[:, chosen]
                    of_mine = numbers[chosen]
                self.tops[f"{name}/{search.name}"].add(mine, of_mine)

    def _sum(self, name: str, array: Array) -> None:
        if name in self._sums:
            self._sums[name] += array
        else:
            self._sums[name] = self.device.double(array)

    def merge(self, other: Sums) -> None:
        self.n += other.n
        for name, array in other._sums.items():
            self._sum(name, array)
        for name, top in other.tops.items():
            self.tops[name].merge(top)
        for name, parts in other._cosines.items():
            self._cosines[name] += parts

    def fetched(self) -> Sums:
        """Copy the sums from the device to NumPy arrays, and return self."""
        get = self.device.get
        self._sums = {name: get(array) for name, array in self._sums.items()}
        self.tops = {name: top.fetched() for name, top in self.tops.items()}
        self._cosines = {
            name: [(rows, np.array(get(values))) for rows, values in parts]
            for name, parts in self._cosines.items()
        }
        self.device, self._searched, self._crossing = NumpyDevice(), {}, dict.fromkeys(self._crossing)
        return self

    def joined(self, others: Sequence[Sums]) -> Sums:
        """Add the nearest rows of further queries from other passes over the same rows, and return self."""
        every = (self, *others)
        for name, top in self.tops.items():
            parts = [sums.tops[name] for sums in every if name in sums.tops]
            top.rows = np.concatenate([part.rows for part in parts])
            top.values = np.concatenate([part.values for part in parts])
        queries = np.concatenate([sums.plan.roles.queries for sums in every])
        self.plan = replace(self.plan, roles=replace(self.plan.roles, queries=queries))
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        self.fetched()
        arrays = {"n": np.array(self.n)}
        arrays |= {f"sum/{name}": array for name, array in self._sums.items()}
        arrays |= {f"rows/{name}": top.rows for name, top in self.tops.items()}
        return arrays | {f"values/{name}": top.values for name, top in self.tops.items()}

    @classmethod
    def from_arrays(cls, plan: Plan, arrays: Mapping[str, np.ndarray]) -> Sums:
        """Read the sums from the result of `to_arrays`, which has no cosines of the rows."""
        sums = cls(plan)
        sums.n = int(arrays["n"])
        sums._sums = {name[4:]: np.array(array) for name, array in arrays.items() if name.startswith("sum/")}
        for name, top in sums.tops.items():
            top.rows, top.values = np.array(arrays[f"rows/{name}"]), np.array(arrays[f"values/{name}"])
        return sums

    def slim(self) -> None:
        """Keep only the nearest rows, about a megabyte, and drop the sums."""
        self._sums.clear()
        self.plan = replace(self.plan, searches={}, samples=())

    def narrowed(self, removed: np.ndarray, queries: np.ndarray) -> Sums:
        """A copy with the nearest rows of these queries only, from which the rows `removed` (at most
        `extra_neighbours`) are left out."""
        sums = copy(self)
        plan = self.plan
        places = np.searchsorted(plan.roles.queries, queries)
        extra_neighbours = plan.request.extra_neighbours
        roles = replace(plan.roles, left_out=np.union1d(plan.roles.left_out, removed), queries=queries)
        sums.plan = replace(plan, request=replace(plan.request, extra_neighbours=0), roles=roles)
        lists = {name: top for name, top in self.tops.items() if "/longest/" not in name}
        sums.tops = {name: top.without(removed, places, extra_neighbours) for name, top in lists.items()}
        return sums

    def nearest(self, form: str, search: Search) -> np.ndarray | None:
        """The row numbers (q, k) of the nearest rows of a search, including the query."""
        rows = self.tops[f"{form}/{search.name}"].rows
        return rows[:, : rows.shape[1] - self.plan.request.extra_neighbours]

    def cosines(self, form: str) -> np.ndarray:
        """The cosine of each row with its partner, (n,) float32; NaN for rows that are not scored."""
        every = np.full(self.plan.roles.n, np.nan, dtype=np.float32)
        for rows, values in self._cosines[form]:
            every[rows] = values
        return every

    def linear_cka(self, form: str) -> CkaSums:
        """The sums that linear CKA needs in a representation, over rows minus their mean."""
        n = self.n
        (source, target) = self.plan.forms[form]
        offsets = [self._sums[f"{source.frame}/sum/{side}"] / n for side in (0, 1)]
        cross = self._sums[f"{source.frame}/cross"] - n * np.outer(*offsets)
        cross = target.mapped(source.mapped(cross.T).T)
        return CkaSums(n, float(np.vdot(cross, cross)), self._space_sums(form, 0), self._space_sums(form, 1))

    def mean_cosine(self, form: str) -> Score:
        between = self.plan.between(form)
        if form in self._crossing:
            paired = float(np.nansum(self.cosines(form), dtype=np.float64))
        else:
            paired = self._sums[f"{form}/paired"]
            paired = float(paired if between is None else np.vdot(paired, between))
        sums, grams = (
            [self._sums[f"{form}/unit {what}/{side}"] for side in (0, 1)] for what in ("sum", "gram")
        )
        return cosine_score(self.n, float(paired), sums, grams, between)

    def decisive_rows(self, form: str) -> np.ndarray:
        """The row numbers that `scores.cka.decisive_rows` selects."""
        rows = []
        n = self.n
        for side in (0, 1):
            top = self.tops[f"{form}/longest/{side}"]
            fourth = float(self._sums[f"{form}/power 2/{side}"])
            rows.append(decisive_of_longest(n, top.rows[0], top.values[0].astype(np.float64), fourth))
        rows = np.unique(np.concatenate(rows))
        return rows if n - len(rows) >= 4 else rows[:0]

    def _space_sums(self, name: str, side: int) -> SpaceSums:
        """The sums over rows minus their mean, computed from those over rows x minus a centre close to the
        mean.

        Let e = mean − centre, l = ‖x‖² and c = ‖e‖² − 2 e·x, so that ‖x − e‖² = l + c. Then every sum except
        Σ l c² is exact. For this sum, l and c are assumed to be uncorrelated, which causes an error of second
        order in e.
        """
        n = self.n
        plan = self.plan
        form = self.plan.forms[name][side]
        total, gram = (self._sums[f"{form.frame}/{what}/{side}"] for what in ("sum", "gram"))
        weighted, twice = (
            form.size**power * form.mapped(self._sums[f"{name}/{what}/{side}"])
            for power, what in ((1, "weighted"), (2, "weighted twice"))
        )
        first, second, third = (float(self._sums[f"{name}/power {power}/{side}"]) for power in (1, 2, 3))
        e = form.mapped(total / n)
        gram = form.mapped(form.mapped(gram.T).T)
        ee = e @ e
        change = -n * ee  # the sum of c = ‖e‖² − 2 e·x over the rows
        squared = 4 * e @ gram @ e - 3 * n * ee**2  # the sum of c² over the rows
        powers = (
            first + change,
            second + 2 * (ee * first - 2 * e @ weighted) + squared,
            third + 3 * (ee * second - 2 * e @ twice) + 3 * first / n * squared,
        )
        weighted = weighted - e * first + (n * ee * e - 2 * gram @ e) - e * change
        gram = gram - n * np.outer(e, e)
        differ = powers[0] > 0  # if all rows are equal, rounding can make this sum of squares negative
        square = differ * float(np.vdot(gram, gram))
        spread = float(np.sqrt(max(powers[0], 0) / n))
        if form.of_centred:  # this representation subtracts the centre from the coordinates
            if form.shift is None:
                origin = np.zeros(1)
            else:
                origin = form.shift.astype(np.float64)
        else:
            origin = form.mapped(plan.frames[side][form.frame].centre.astype(np.float64))
        sums = None
        if square > 0 and n > 1:
            centred = plan.block(side, plan.samples[side]).centred(form.frame)
            rows = form.mapped(centred.astype(np.float64)) - e
            sums = RowSums.from_sums(n, powers, rows, np.vecdot(rows, rows), gram, weighted)
        return SpaceSums(square, sums, spread, float(np.linalg.norm(origin + e)))


class SeveralSums:
    """The `Sums` of several plans, to which the same blocks are added."""

    def __init__(self, plans: Sequence[Plan], device: Device | None = None) -> None:
        device = device or NumpyDevice()
        self.each = [Sums(plan, device) for plan in plans]

    def add(self, *block: Any) -> None:
        for sums in self.each:
            sums.add(*block)

    def merge(self, other: SeveralSums) -> SeveralSums:
        for sums, more in zip(self.each, other.each, strict=True):
            sums.merge(more)
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        numbered = enumerate(sums.to_arrays() for sums in self.each)
        return {f"{number}/{name}": array for number, arrays in numbered for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, plans: Sequence[Plan], arrays: Mapping[str, np.ndarray]) -> SeveralSums:
        several = cls(())
        for number, plan in enumerate(plans):
            start = f"{number}/"
            own = {
                name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
            }
            several.each.append(Sums.from_arrays(plan, own))
        return several


_COPIES = 6  # number of copies of a row in memory: its coordinates and representations
_QUERIES = 2048  # number of queries per pass; more queries take several passes
Done = Callable[[int, int], None]


class RowPair:
    """Two spaces with the same rows, (n, d_source) and (n, d_target), and the passes over them. Ids and
    labels (n,) are given if they are known. Subclasses for other sources of rows override the methods that
    read rows.
    """

    def __init__(
        self,
        source: RowSource,
        target: RowSource,
        ids: Sequence[str] | None = None,
        labels: np.ndarray | None = None,
        device: str | None = None,
        done: Done = lambda parts, n_parts: None,
    ) -> None:
        self.spaces = (source, target)
        self.ids = ids
        self.labels = labels
        self.device = device
        self._done = done
        self._passes = (0, 1)
        if labels is None:
            self._classes = None
        else:
            self._classes = np.where(labels == "", -1, pd.factorize(labels)[0])
        if labels is None:
            self.labelled = ""
        elif (self._classes < 0).any():
            self.labelled = "some"
        else:
            self.labelled = "all"

    def __len__(self) -> int:
        return len(self.spaces[0])

    def names(self, rows: np.ndarray) -> Sequence[str]:
        """The ids of these rows."""
        return self.ids[rows]

    def classes_of(self, rows: np.ndarray) -> np.ndarray:
        """The class number of each of these rows, in the shape of `rows`; −1 for rows without a class."""
        return self._classes[rows]

    def class_sizes(self, left_out: np.ndarray) -> np.ndarray:
        """For each class, the number of rows that are not left out. Classes without such rows are omitted."""
        classes = np.delete(self._classes, left_out)
        sizes = np.bincount(classes[classes >= 0])
        return sizes[sizes > 0]

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.spaces[side][rows], dtype=np.float32)

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean row of each space, (d,) float64."""
        return tuple(map(Engine(self.device).mean, self.spaces))

    def sums_of(self, parts: Sequence[tuple[ScoreRequest, RowRoles]]) -> list[Sums]:
        """The sums for all requests, from one pass. If there are more than 2,048 queries, each further 2,048
        take another pass."""
        starts = range(0, max(1, *(len(roles.queries) for _, roles in parts)), _QUERIES)
        batches = []
        for number, start in enumerate(starts):
            self._passes = (number, len(starts))
            plans = []
            for request, roles in parts:
                queries = roles.queries[start : start + _QUERIES]
                part_request = replace(request, sums=not start and request.sums)
                plans.append(self.plan(part_request, replace(roles, queries=queries)))
            batches.append(self.one_pass(plans))
        return [first.joined(others) if others else first for first, *others in zip(*batches, strict=True)]

    def plan(self, request: ScoreRequest, roles: RowRoles) -> Plan:
        return Plan.of(request, roles, self.means, self.take)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        """The sums of a pass over all rows. If a GPU runs out of memory, the pass is repeated on the CPU,
        with a warning."""
        return on_device(lambda where: self._pass_on(plans, where), self.device)

    def _pass_on(self, plans: Sequence[Plan], where: Device) -> list[Sums]:
        source, target = self.spaces
        widths = source.shape[1] + target.shape[1] + 2 * max(len(plan.roles.anchors) for plan in plans)
        block_rows = where.rows_at_once(where.block_rows, 4 * _COPIES * widths)

        def add(several: SeveralSums, block: slice) -> None:
            if self._classes is None:
                labelled = None
            else:
                labelled = self._classes[block] >= 0
            several.add(source, target, np.arange(block.start, block.stop), labelled, block)

        number, n_passes = self._passes

        def done(parts: int, n_parts: int) -> None:
            self._done(number * n_parts + parts, n_passes * n_parts)

        # On a GPU, two threads help only if copies and kernels take longer than their start.
        alone = where.threads is not None and len(source) <= block_rows // 2
        if alone:
            blocks = [slice(0, len(source))]
        else:
            blocks = _blocks(len(source), block_rows)
        several = in_threads(
            blocks, lambda: SeveralSums(plans, where.clone_for_thread()), add, done, where.threads
        )
        return [sums.fetched() for sums in several.each]


def _blocks(n: int, block_rows: int = NumpyDevice.block_rows) -> list[slice]:
    """Blocks of equal size. If there are few, their number is even, so that two threads get equal work."""
    return list(row_blocks(n, -(-n // (2 * -(-n // (2 * block_rows))))))


# Maximum number of rows left out of a cached pass. If one step adds more anchors, another pass is made.
EXTRA_NEIGHBOURS = 8


class _Directions:
    """The scored rows of one space as unit rows (t, w) of a representation. They are computed when they are
    indexed."""

    def __init__(self, plan: Plan, form: str, side: int, take: Take) -> None:
        self.plan = plan
        self.form = form
        self.side = side
        self.take = take

    def __len__(self) -> int:
        return len(self.plan.roles)

    def __getitem__(self, places: np.ndarray | slice) -> np.ndarray:
        places = np.arange(len(self))[places]
        rows = self.take(self.side, to_full_index(places.ravel(), self.plan.roles.left_out))
        directions = self.plan.directions(self.form, self.side, rows)
        return directions.reshape(*places.shape, directions.shape[1])


class LabelledNeighbours(NamedTuple):
    """The nearest neighbours of m queries among the n labelled rows of the other space. `own` (m,) are the
    classes of the `queries` (m,), as numbers. `lists` are the k + 1 nearest rows of each query and `classes`
    their classes, both with one array (m, k + 1) per direction."""

    n: int
    queries: np.ndarray
    own: np.ndarray
    lists: tuple[np.ndarray, ...]
    classes: tuple[np.ndarray, ...]


@dataclass(eq=False)
class AlignedPair:
    """Two spaces in one representation, with everything that metrics read: rows, neighbour lists and sums.
    Each is computed when a metric first reads it.

    Attributes
    ----------
    rows : RowPair
        All rows of both spaces.
    request : ScoreRequest
        A request for scores in this representation only.
    roles : RowRoles
        Which rows are scored, and which are queries.
    split : Split, optional
        The split into anchors and scored rows, if the ids of all rows are in memory.
    made : function, optional
        A function that returns all rows of both spaces in the representation. Without it, the pair has only
        lists and sums.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import METRICS, AlignedPair, Split
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> pair = AlignedPair.of(X, 3 * X, Split.held_out([f"row {row}" for row in range(60)]))
    >>> round(METRICS["rsa"].load()().score(pair), 3)
    1.0
    """

    rows: RowPair
    request: ScoreRequest
    roles: RowRoles
    split: Split | None = None
    made: Callable[[], tuple[RowSource, RowSource]] | None = None
    known: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        source: MatrixLike | RowSource,
        target: MatrixLike | RowSource,
        split: Split,
        labels: Sequence[str] | np.ndarray | None = None,
        *,
        k: int = 10,
        convention: str = "paper",
        n_queries: int | None = None,
    ) -> AlignedPair:
        """A pair of two spaces, in the representation that they have. `labels` (n,) are "" for rows without a
        label. The test rows of the split are scored. All of them are queries, unless `n_queries` is given.

        Raises
        ------
        SpaceError
            The number of rows differs from that of the split; ids that differ between the spaces, or from
            those of the split; numbers that are not finite.
        """
        need_kind("split", split, Split)
        n = len(split.ids)
        rows = paired_matrices(source, target, ("source", "target"), by_block=True)
        own = ids_of(source)
        if own is None:
            own = ids_of(target)
        known = own is not None and not isinstance(own, RowNumbers)
        if known and not np.array_equal(np.asarray(own, dtype=object), split.ids):
            raise SpaceError(
                f"split: expected the ids of the rows, {quote(own[:3])}, …, got {quote(split.ids[:3])}, …;"
                " draw the split from these ids"
            )
        if labels is not None:
            need_sequence("labels", labels, "labels", n)
            labels = checked_strings(labels, n, "labels", "labels")
        need_whole("k", k)
        return cls.of_arrays(*rows, split, labels, k=k, convention=convention, n_queries=n_queries)

    @classmethod
    def of_arrays(
        cls,
        source: RowSource,
        target: RowSource,
        split: Split,
        labels: np.ndarray | None = None,
        *,
        k: int = 10,
        convention: str = "paper",
        n_queries: int | None = None,
    ) -> AlignedPair:
        """The pair of `of` for row-aligned rows of finite numbers."""
        n = len(split.ids)
        if not len(source) == len(target) == n:
            raise SpaceError(
                f"expected {n:,} rows in both spaces, those of the split, got {len(source):,} and"
                f" {len(target):,}"
            )
        need_one_of("convention", convention, CONVENTIONS)
        rows = RowPair(source, target, split.ids, labels)
        request = ScoreRequest(("absolute",), k=k, convention=convention)
        roles = RowRoles(n, NO_ROWS, split.queries(n_queries), split.untested, rows.labelled)
        return cls(rows, request, roles, split, lambda: (source, target))

    @classmethod
    def passed(
        cls, rows: RowPair, form: str, seen: Sums, split: Split | None = None, made: Any = None
    ) -> AlignedPair:
        """A pair in one representation, whose sums and nearest rows are those `seen` by a pass."""
        plan = seen.plan
        pair = cls(rows, replace(plan.request, forms=(form,)), plan.roles, split, made)
        pair.searched = pair.summed = seen
        return pair

    @property
    def form(self) -> str:
        return self.request.forms[0]

    @property
    def k(self) -> int:
        return self.request.k

    @property
    def convention(self) -> str:
        return self.request.convention

    @property
    def labels(self) -> np.ndarray | None:
        """The class of each scored row, (t,); "" for rows without a class."""
        if self.rows.labels is None:
            return None
        return self.rows.labels[self.split.test]

    @cached_property
    def same_width(self) -> bool:
        """Whether rows of one space can be compared with rows of the other space."""
        source, target = self.rows.spaces
        return self.form != "absolute" or source.shape[1] == target.shape[1]

    @cached_property
    def source(self) -> np.ndarray:
        """The scored rows of the first space, (t, d_source)."""
        return self._scored(0)

    @cached_property
    def target(self) -> np.ndarray:
        return self._scored(1)

    def _scored(self, side: int) -> np.ndarray:
        if self.made is None:
            raise SpaceError(
                f"{self.form}: expected a metric that reads sums and neighbours, got one that reads all rows;"
                " declare its `reads` as 'rows'"
            )
        rows = self.made()[side]
        if len(self.roles.left_out):
            return rows[self.split.test]
        return rows

    @cached_property
    def searched(self) -> Sums:
        """The result of a pass that searches for the neighbours of the queries."""
        t = len(self.roles)
        mutual = self.convention == "mutual"
        need_k(self.k, t, t - mutual)
        if not mutual and not self.same_width:
            raise widths_differ(*(space.shape[1] for space in self.rows.spaces))
        return self.rows.sums_of([(replace(self.request, sums=False), self.roles)])[0]

    @cached_property
    def summed(self) -> Sums:
        """The sums of a pass over all scored rows."""
        request = replace(self.request, cosines=self.same_width)
        return self.rows.sums_of([(request, replace(self.roles, queries=NO_ROWS, labelled=""))])[0]

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbour lists of the queries. Row numbers are positions among the scored rows."""
        plan = self.searched.plan
        lists = {}
        left_out = plan.roles.left_out
        queries = to_kept_index(plan.roles.queries, left_out)
        for search in plan.searched(self.form):
            if not search.labelled:
                rows = to_kept_index(self.searched.nearest(self.form, search), left_out)
                if search.alone:
                    lists[search.name] = without_itself(queries, rows)
                else:
                    lists[search.name] = rows
        sides = [_Directions(plan, self.form, side, self.rows.take) for side in (0, 1)]
        return Neighbours.listed(sides, queries, lists, self.k, self.convention)

    @cached_property
    def cosines(self) -> np.ndarray:
        """The cosine of each scored row with its partner, (t,). The spaces must have the same width."""
        return self.summed.cosines(self.form)[self.split.test]

    def linear_cka(self) -> Score:
        seen = self.summed
        form = self.form
        note = ""
        sums = seen.linear_cka(form)
        decisive = seen.decisive_rows(form)
        if len(decisive):
            others = self.rows.sums_of([(replace(self.request, sums=True), self.roles.without(decisive))])[0]
            without = others.linear_cka(form).value()
            names = lambda: self.rows.names(decisive[:3])  # noqa: E731
            note = decided_note(sums.value(), without, len(decisive), names)
        return sums.score(note)

    def mean_cosine(self) -> Score:
        return self.summed.mean_cosine(self.form)

    def some_rows(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scored rows at these positions (m,) in both spaces. They may be rotated, shifted and scaled,
        which does not change linear CKA."""
        plan = self.summed.plan
        numbers = self.split.test[places]
        blocks = [plan.block(side, self.rows.take(side, numbers)) for side in (0, 1)]
        pairs = zip(plan.forms[self.form], blocks, strict=True)
        return tuple(form.mapped(block.centred(form.frame)).astype(np.float32) for form, block in pairs)

    def of_some_rows(self, make: Callable[[np.ndarray, np.ndarray], Any], places: np.ndarray) -> Any:
        """The result of `make` for `some_rows` at these positions. It is cached, and shared with pairs that
        `narrowed` returns."""
        key = make, self.split.test[places].tobytes()
        if key not in self.known:
            self.known[key] = make(*self.some_rows(places))
        return self.known[key]

    def labelled_neighbours(self) -> LabelledNeighbours | None:
        """The classes of the labelled queries and of their neighbours. None in four cases: there are no
        labels; the widths differ; all labelled rows have the same class; most rows have at most k / 2 other
        rows of their class, too few for a majority."""
        if not self.rows.labelled or not self.same_width:
            return None
        queries = self.roles.queries
        own = self.rows.classes_of(queries)
        sizes = self.rows.class_sizes(self.roles.left_out)
        labelled = own >= 0
        n = int(sizes.sum())
        if not 1 < len(sizes) < n or not labelled.any():
            return None
        k = min(self.k, n - 1)
        if sizes[sizes - 1 > k / 2].sum() < n / 2:
            return None
        searches = self.searched.plan.searched(self.form)
        # The search among labelled rows comes after the search among all rows.
        last = {search.base: search for search in searches if search.base != search.queries}
        lists = tuple(self.searched.nearest(self.form, one)[labelled, : k + 1] for one in last.values())
        classes = tuple(map(self.rows.classes_of, lists))
        return LabelledNeighbours(n, queries[labelled], own[labelled], lists, classes)

    def narrowed(self, request: ScoreRequest, split: Split, queries: np.ndarray) -> AlignedPair | None:
        """This pair, reduced to the rows of `split`, which must be some of its rows. `queries` are row
        numbers.

        None if another pass is needed, because the request differs, a query is new, or too many rows are left
        out.
        """
        plan = self.searched.plan
        roles = self.searched.plan.roles
        removed = np.setdiff1d(split.untested, roles.left_out)
        known = replace(plan.request, forms=request.forms, sums=request.sums, extra_neighbours=0)
        inside = len(split.test) + len(removed) == len(self.split.test)
        fits = known == request and len(removed) <= plan.request.extra_neighbours and inside
        if not (fits and np.isin(queries, roles.queries).all()):
            return None
        pair = self.passed(self.rows, self.form, self.searched.narrowed(removed, queries), split)
        pair.known = self.known
        return pair
