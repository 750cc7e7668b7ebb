"""Comparisons that follow a dragged anchor: when an anchor moves, the maps and scores are updated instead of
computed again.

The relative rows are R = U B, but R is never held in memory. U (n, d) are the unit rows of a space; they stay
on the device. B (d, k) are the unit rows of its anchors. A moved anchor changes one column of B, and one row
and column of the scatter Bᵀ M B, where M (d, d) is the scatter of U. This scatter gives the axes of the PCA.
The map is U W, with W (d, 2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from relcore.base.environment import resolve
from relcore.base.errors import SpaceError
from relcore.base.names import REDUCTIONS
from relcore.base.rows import DerivedRows, row_blocks, unit_rows
from relcore.engine.device import Array, NumpyDevice, device_of, release
from relcore.engine.engine import Engine, Moments, top_rows
from relcore.maps.pane_maps import OWN, TWO, Directions, DirectionsOf
from relcore.maps.reduction import ReductionSpec, align_maps, axis_signs, leading_axes
from relcore.panes.channel import PROBE, SCORE, maps_answer, read_request, sampled_places
from relcore.panes.page import PageUnits
from relcore.represent.similarity import inverse_root, mean_of
from relcore.represent.translation import ProjectionSpec
from relcore.scores.cka import CkaSums, SpaceSums
from relcore.scores.comparison import LIVE_QUERIES, class_labels, has_majority_class
from relcore.spaces.space import Match
from relcore.spaces.split import Split

FORMS = ("relative", "whitened", TWO)  # representations whose maps follow a moved anchor
N_NEAR = 10  # number of nearest rows that are highlighted
MOST_NUMBERS = 2**26  # number of values in a space's unit rows without a GPU: 268 MB


class LiveScores(NamedTuple):
    """Four scores of the held-out relative rows, as in Explore. `top1` is the share of queries whose own row
    is the nearest row of the other space (NaN for the convention "mutual"). The others are the mean
    reciprocal rank, linear CKA, and class agreement (NaN without labels). With a single anchor, all but CKA
    are NaN.
    """

    top1: float
    mrr: float
    cka: float
    classes: float = np.nan


class LiveFrame(NamedTuple):
    """One frame of the maps while an anchor is dragged. `maps` are ordered by representation and space; each
    is the bytes of a little-endian float16 array (2, m). `near` (spaces, k) int64 are the shown rows that are
    nearest to one row in each space, nearest first."""

    maps: list[bytes]
    near: np.ndarray


class Overtaken(Exception):
    """The exception that stops computing scores if an anchor has moved again."""


class UnitRowsKey(NamedTuple):
    """The key by which unit rows are kept on a device: the digest of their space, whether its mean is
    subtracted, and a digest of the row numbers ("" for all rows)."""

    space: str
    center: bool
    rows: str


def release_other_rows(digests: Collection[str]) -> None:
    """Free the memory of the unit rows of all spaces whose digests are not in `digests`."""
    release(lambda content: isinstance(content, UnitRowsKey) and content.space not in digests)


class RowSubset(NamedTuple):
    """The numbers of some rows of a pair (None for all rows), and the digest of these numbers."""

    numbers: np.ndarray | None
    digest: str


class LiveRows:
    """The part of a comparison that does not depend on the anchors: the unit rows of each space on the
    device, and their moments.

    Parameters
    ----------
    pair : Match
    rows : array (m,)
        The rows that are drawn.
    center : bool
        Whether each space's mean is subtracted first.
    reference : array (m, 2), optional
        A map onto which all maps are rotated, as by `orient_pairs`.
    """

    def __init__(
        self,
        pair: Match,
        rows: np.ndarray,
        center: bool = True,
        reference: np.ndarray | None = None,
        random_state: int = 0,
        directions_of: DirectionsOf = Directions.of,
    ) -> None:
        self.pair = pair
        self.rows = rows
        self.where = device_of()
        self.spaces = pair.spaces
        known = [directions_of(space, rows, center, random_state) for space in self.spaces]
        self.origins = [one.mean if center else None for one in known]
        self.moments = [one.moments for one in known]
        self.center = center
        self._few = [one.few for one in known]
        self.drawn_rows = self.subset(rows)
        if reference is None:
            self.onto = None
        else:
            self.onto = self._products(self.drawn[0], reference)

    def anchor(self, side: int, row: int) -> np.ndarray:
        """The unit row (d,) of an anchor in one space, float64."""
        return unit_rows(self.spaces[side].vectors[row : row + 1], self.origins[side])[0].astype(np.float64)

    @property
    def drawn(self) -> list[Array]:
        """The unit rows of the drawn rows of each space, (m, d), on the device."""
        return [self.units(side, self.drawn_rows) for side in range(len(self.spaces))]

    @property
    def all_units(self) -> list[Array]:
        """The unit rows of the source and the target, (n, d) each, on the device."""
        return [self.units(side, self.subset(None)) for side in (0, 1)]

    @cached_property
    def cross_moments(self) -> list[np.ndarray]:
        """For each space except the source, the sum Σ y (x − x̄)ᵀ over the drawn rows, where x are rows of
        the source and y rows of this space: (d', d) float64."""
        first, *others = self.drawn
        return [Engine().moments(other, first).products for other in others]

    @cached_property
    def moments_of_all(self) -> dict[tuple[int, int], Moments]:
        """The moments of all rows: of the source, of the target, and of their pairs of rows."""
        X, Y = self.all_units
        return {(0, 0): Engine().moments(X), (1, 1): Engine().moments(Y), (0, 1): Engine().moments(X, Y)}

    @cached_property
    def classes(self) -> np.ndarray | None:
        """The class number of each row, (n,), −1 for rows without a class. None without labels, with a single
        class, or if each row has a class of its own."""
        labels = class_labels(self.pair)
        if labels is None:
            names = None
            codes = None
        else:
            names, codes = np.unique(labels, return_inverse=True)
        if names is None or not 1 < np.count_nonzero(names != "") < np.count_nonzero(labels != ""):
            return None
        return np.where(labels == "", -1, codes)

    def subset(self, rows: np.ndarray | None) -> RowSubset:
        if rows is None or len(rows) == len(self.pair):
            return RowSubset(None, "")
        return RowSubset(rows, hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest())

    def units(self, side: int, some: RowSubset) -> Array:
        """The unit rows (r, d) of a subset of a space. They stay on the device for all sessions."""
        space = self.spaces[side]
        origin = self.origins[side]
        if some.numbers is None:
            n = len(space)
        else:
            n = len(some.numbers)
        if isinstance(self.where, NumpyDevice):
            if self._few[side] is not None and some.digest == self.drawn_rows.digest:
                return self._few[side]
            if n * space.dimension > MOST_NUMBERS:
                raise SpaceError(
                    f"live: expected at most {MOST_NUMBERS // space.dimension:,} rows without a GPU, got"
                    f" {n:,}; draw fewer rows"
                )
        units = DerivedRows(space.vectors, lambda X: unit_rows(X, origin), some.numbers)
        return self.where.cached(UnitRowsKey(space.digest, self.center, some.digest), units)

    def _products(self, units: Array, reference: np.ndarray) -> np.ndarray:
        """The sum Σ u (t − t̄)ᵀ over unit rows u and rows t of the reference, (d, 2) float64."""
        goal = (reference - reference.mean(axis=0, dtype=np.float64)).astype(np.float32)
        return Engine().moments(units, self.where.put(goal)).products


class AnchorColumns:
    """The matrices B (d, k), M B (d, k) and Bᵀ M B (k, k) of one space, for its unit anchors B and the
    scatter M (d, d) of its unit rows. If an anchor moves, only its column is computed again."""

    def __init__(self, held: LiveRows, side: int) -> None:
        self.held = held
        self.side = side
        d = held.spaces[side].dimension
        self.basis = np.empty((d, 0))
        self.moved = np.empty((d, 0))
        self.scatter = np.empty((0, 0))

    def resize(self, k: int) -> None:
        keep = min(k, self.basis.shape[1])
        grown = max(0, k - self.basis.shape[1])
        self.basis, self.moved = (
            np.pad(one[:, :keep], ((0, 0), (0, grown))) for one in (self.basis, self.moved)
        )
        self.scatter = np.pad(self.scatter[:keep, :keep], ((0, grown), (0, grown)))

    def put(self, column: int, row: int) -> None:
        unit = self.held.anchor(self.side, row)
        self.basis[:, column] = unit
        self.moved[:, column] = self.held.moments[self.side].products @ unit
        self.scatter[:, column] = self.scatter[column] = self.moved.T @ unit


class LiveComparison:
    """Updates the maps of all matched spaces, and the scores of the source and the target, each time an
    anchor changes.

    Parameters
    ----------
    held : LiveRows
    anchors : row numbers (k,) of the pair
    projection : ProjectionSpec, optional
        Settings of the similarity, which must be the cosine.
    reduction : ReductionSpec, optional
        Settings of PCA in two dimensions. By default, all maps have the axes of the first space.
    forms : names of `FORMS`
        The maps to compute.
    shown : row numbers (s,), optional
        The rows whose coordinates are returned. By default, these are the rows on which the axes are fitted.
    """

    def __init__(
        self,
        held: LiveRows,
        anchors: Sequence[int],
        projection: ProjectionSpec | None = None,
        reduction: ReductionSpec | None = None,
        forms: Sequence[str] = ("relative",),
        shown: np.ndarray | None = None,
    ) -> None:
        projection = projection or ProjectionSpec()
        reduction = reduction or ReductionSpec(fit="first")
        self.held = held
        self.projection = projection
        self.reduction = reduction
        self.forms = tuple(forms)
        self.where = held.where.clone_for_thread()
        if shown is None:
            self.shown_subset = held.drawn_rows
        else:
            self.shown_subset = held.subset(shown)
        self.sides = [AnchorColumns(held, side) for side in range(len(held.spaces))]
        self.anchors: list[int] = []
        self._axes: dict[tuple[str, int], np.ndarray] = {}
        self._edges: np.ndarray | None = None
        self.n_columns = 0  # number of columns computed so far; tests count the work by it
        self.set_anchors(anchors)
        for form in self.forms:  # compute the axes of the maps before the first move
            self._weights(form)

    @property
    def shown(self) -> list[Array]:
        """The unit rows of the shown rows of each space, on the device."""
        return [self.held.units(side, self.shown_subset) for side in range(len(self.sides))]

    def set_anchors(self, anchors: Sequence[int]) -> None:
        """Replace the anchors. Only the columns of new or moved anchors are computed."""
        anchors = list(map(int, anchors))
        if not anchors:
            raise SpaceError("anchors: expected one or more, got none; choose some")
        for side in self.sides:
            if len(anchors) != len(self.anchors):
                side.resize(len(anchors))
            for column, row in enumerate(anchors):
                if column >= len(self.anchors) or self.anchors[column] != row:
                    side.put(column, row)
                    self.n_columns += 1
        self.anchors = anchors

    def maps(self) -> dict[str, list[np.ndarray]]:
        """For each representation, the coordinates (m, 2) float32 of the shown rows of each space, as from
        `pca_pair`. If there is a reference, maps are rotated onto it as by `orient_pairs`."""
        found = {}
        for form in self.forms:
            both = zip(self.shown, self._weights(form), strict=True)
            pictures = [np.array(self.where.get(self._drawn(units, *weights))) for units, weights in both]
            if form == TWO:
                found[form] = pictures
            else:
                found[form] = align_maps(pictures, self.reduction)
        return found

    def frame(self, chosen: np.ndarray | None = None, row: int | None = None, k: int = N_NEAR) -> LiveFrame:
        """The maps as the panes draw them. Each axis is scaled to −1 … 1 by its range over the shown rows.
        The maps have all shown rows, or only those at the positions `chosen` (m,). With `chosen`, the range
        is that of the chosen rows and of the rows at the edges of the last complete maps.

        If `row` is given, its k nearest rows among these are found, by cosine in each space.
        """
        where = self.where
        numbers = None
        if chosen is not None:
            if self._edges is None:
                self.frame()
            numbers = where.put(np.concatenate([chosen, self._edges]))
        shown = self.shown
        if chosen is None:
            m = len(shown[0])
        else:
            m = len(chosen)
        n_near = 0 if row is None else min(k, m)
        sides = range(len(self.sides))
        asked = [[] if row is None else [self.held.anchor(side, row)[:, None]] for side in sides]
        near = np.empty((len(sides), n_near), dtype=np.int64)
        weights = [[] if self.reduction.align else self._weights(form) for form in self.forms]
        drawn: list[list[Array]] = []
        for side, units in enumerate(shown):
            # A single pass over the rows gives all maps and the similarities.
            columns = [*(both[side][0] for both in weights if both), *asked[side]]
            if columns:
                made = where.put(np.hstack(columns).T.astype(np.float32))
                if numbers is None:
                    rows = units
                else:
                    rows = units[numbers]
                with where.exact():
                    axes = where.product(made, rows.T, f"axes {side}")
                if n_near:
                    found = where.largest(axes[-1, :m], n_near)
                    if chosen is None:
                        near[side] = found
                    else:
                        near[side] = chosen[found]
            drawn.append([axes[2 * i : 2 * i + 2] for i, both in enumerate(weights) if both])
        if self.reduction.align:
            turned = ([where.put(picture.T) for picture in both] for both in self.maps().values())
            all_rows = [[one if numbers is None else one[:, numbers] for one in both] for both in turned]
            drawn = list(map(list, zip(*all_rows, strict=True)))
        in_order = [one for both in zip(*drawn, strict=True) for one in both]
        if chosen is None:
            ends = [where.get(end) for one in in_order for end in (one.argmin(1), one.argmax(1))]
            if ends:
                self._edges = np.unique(np.concatenate(ends))
            else:
                self._edges = np.empty(0, np.intp)
        return LiveFrame([where.full_range(one, m).tobytes() for one in in_order], near)

    def _drawn(self, units: Array, weights: np.ndarray, offset: np.ndarray) -> Array:
        where = self.where
        with where.exact():
            mapped = where.product(units, where.put(weights.astype(np.float32)), "map")
        mapped -= where.put(offset.astype(np.float32))
        return mapped

    def _weights(self, form: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each space, the weights W (d, 2) and the offset (2,) of its map U W − offset; U are the unit
        rows."""
        bases = [side.basis for side in self.sides]
        if form == TWO:
            columns = [0, min(1, len(self.anchors) - 1)]
            return [(basis[:, columns], np.zeros(2)) for basis in bases]
        scatters = [side.scatter for side in self.sides]
        if form == "whitened":
            roots = [inverse_root(basis.T, self.projection.ridge) for basis in bases]
            bases = [basis @ root for basis, root in zip(bases, roots, strict=True)]
            scatters = [root @ one @ root for one, root in zip(scatters, roots, strict=True)]
        found: list[tuple[np.ndarray, np.ndarray]] = []
        shared = self.reduction.fit == "first"
        for side, (basis, scatter) in enumerate(zip(bases, scatters, strict=True)):
            if not (shared and side):
                before = self._axes.get((form, side))
                axes = leading_axes(scatter, before)
                mean = self.held.moments[side].means[0] @ basis
                if before is None and self.held.onto is None:  # later maps keep the signs of this first map
                    scores = self._drawn(self.held.drawn[side], basis @ axes[:, :2], mean @ axes[:, :2])
                    axes[:, :2] *= axis_signs(self.where.get(scores))
                self._axes[form, side] = axes
                axes, mean = axes[:, :2], mean @ axes[:, :2]
            found.append((basis @ axes, mean))
        return self._turn_onto_reference(found)

    def _turn_onto_reference(
        self, found: list[tuple[np.ndarray, np.ndarray]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The weights, changed so that the maps are rotated onto the reference as by `orient_pairs`. The
        rotation follows from products of the unit rows with the reference, so no map is computed."""
        onto = self.held.onto
        if onto is None:
            return found
        (first, offset), *others = found
        turn = _nearest_turn(first.T @ onto)
        first = first @ turn
        turns = [turn] * len(others)
        if self.reduction.fit != "first" and not self.reduction.align:
            crossed = zip(others, self.held.cross_moments, strict=True)
            turns = [_nearest_turn(other.T @ products @ first) for (other, _), products in crossed]
        turned = zip(others, turns, strict=True)
        return [
            (first, offset @ turn),
            *((one @ turn, its_offset @ turn) for (one, its_offset), turn in turned),
        ]

    # The scores.

    def scores(
        self,
        k: int = 10,
        convention: str = "paper",
        n_queries: int | None = 300,
        overtaken: Callable[[], bool] = lambda: False,
    ) -> LiveScores:
        """The scores of the relative rows, equal to those of `score_forms` up to rounding.

        Raises Overtaken once `overtaken()` is true.
        """
        ids = self.held.pair.ids
        if len(self.anchors) == 1:  # all relative rows are ±1, so their distances have ties
            return LiveScores(np.nan, np.nan, self._cka(Split.held_out(ids, np.array(self.anchors)).untested))
        split = Split.held_out(ids, np.array(self.anchors))
        queries = split.queries(n_queries)
        left_out = split.untested
        if convention == "mutual":
            ways = [(0, 1), (1, 0)]
        else:
            ways = [(0, 1)]
        found = [self._ranks(*way, queries, left_out, k, overtaken) for way in ways]
        ranks = [rank for rank, _ in found]
        reciprocal = np.mean([np.where(rank <= k, 1 / rank, 0.0) for rank in ranks], axis=0)
        if convention == "paper":
            top1 = float(np.mean(ranks[0] == 1))
        else:
            top1 = np.nan
        classes = self._classes_won(queries, [near for _, near in found])
        return LiveScores(top1, float(reciprocal.mean()), self._cka(left_out), classes)

    def _classes_won(self, queries: np.ndarray, lists: Sequence[np.ndarray | None]) -> float:
        """The share of the labelled queries whose class wins the vote of the rows in `lists` (q, k); NaN
        without labels."""
        classes = self.held.classes
        if classes is None or not (known := classes[queries] >= 0).any():
            return np.nan
        own = classes[queries[known]]
        return float(np.mean([has_majority_class(own, classes[near[known]]) for near in lists]))

    def _ranks(
        self,
        one: int,
        other: int,
        queries: np.ndarray,
        left_out: np.ndarray,
        k: int,
        overtaken: Callable[[], bool],
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """For each query, the rank (q,) of its own row in the other space, among the rows that are not left
        out; 1 is the nearest. The second value is the k nearest labelled rows, without the query's own row,
        (q, k); None without classes."""
        where = self.where
        every = self.held.all_units
        turns, mixed = self._turns(one, other)
        with where.exact():
            numbers = where.put(queries)
            asked = where.unit(where.product(every[one][numbers], where.put(turns[0]), "asked"), "asked unit")
            asked = where.product(asked, where.put(mixed), "queries")
            turn = where.put(turns[1])
            own = where.row_products(asked, self._unit(every[other][numbers], turn))
            above = np.zeros(len(queries), dtype=np.int64)
            labelled = None
            near = None
            if self.held.classes is not None:
                labelled = self.held.classes >= 0
                labelled[left_out] = False
                near = top_rows(where, len(queries), max(1, min(k, np.count_nonzero(labelled) - 1)))
            # Blocks have half the usual size, because a move of the anchor waits for the end of a block.
            size = where.rows_at_once(where.search_rows // 2, 4 * (3 * len(queries) + sum(turns[1].shape)))
            for block in row_blocks(len(self.held.pair), size):
                if overtaken():
                    raise Overtaken
                products = where.product(asked, self._unit(every[other][block], turn).T, "products")
                here = np.flatnonzero((queries >= block.start) & (queries < block.stop))
                # Leave out each query's own row, because rounding here may differ from that in `own`.
                products[where.put(here), where.put(queries[here] - block.start)] = -2
                rows = np.arange(block.start, block.stop)
                products[:, where.put(np.flatnonzero(np.isin(rows, left_out)))] = -2
                above += where.get((products > own[:, None]).sum(1))
                if near is not None:
                    products[:, where.put(np.flatnonzero(~labelled[block]))] = -2
                    near.add(products, where.put(rows))
        return above + 1, near and near.fetched().rows

    def _unit(self, units: Array, turn: Array) -> Array:
        where = self.where
        return where.unit(where.product(units, turn, "turned"), "turned unit")

    def _turns(self, one: int, other: int) -> tuple[list[np.ndarray], np.ndarray]:
        """A matrix T (d, w), w ≤ d, for each of two spaces, and a matrix P (w, w'). For unit rows u and v of
        the two spaces, u T P (v T')ᵀ is the inner product of their relative rows, which are not computed."""
        bases = [self.sides[side].basis for side in (one, other)]
        k = len(self.anchors)
        if k <= min(len(basis) for basis in bases):
            return [basis.astype(np.float32) for basis in bases], np.eye(k, dtype=np.float32)
        solved = [Engine("cpu").svd(basis) for basis in bases]
        turns = [(left * values).astype(np.float32) for left, values, _ in solved]
        return turns, (solved[0][2] @ solved[1][2].T).astype(np.float32)

    def _cka(self, left_out: np.ndarray) -> float:
        where = self.where
        numbers = self.where.put(left_out)
        removed = [where.get(rows[numbers]).astype(np.float64) for rows in self.held.all_units]
        squares = {}
        n = len(self.held.pair) - len(left_out)
        for pair, whole in self.held.moments_of_all.items():
            (X, Y) = (removed[side] - mean for side, mean in zip(pair, whole.means, strict=True))
            n = whole.n - len(left_out)
            products = whole.products - X.T @ Y - np.outer(X.sum(axis=0), Y.sum(axis=0)) / n
            first, second = (self.sides[side].basis for side in pair)
            squares[pair] = float(np.sum((first.T @ products @ second) ** 2))
        sides = [SpaceSums(squares[side, side], None, 0.0, 0.0) for side in (0, 1)]
        return float(CkaSums(n, squares[0, 1], *sides).value())


@dataclass(frozen=True)
class LiveAnswers:
    """Answers the requests that panes send while an anchor is dragged.

    `shown` and `anchors` are the numbers of the rows that the panes show, and of the anchors.
    """

    following: LiveComparison
    anchors: Sequence[int]
    shown: np.ndarray
    k: int = 10
    convention: str = "paper"

    def read(self, message: bytes) -> np.ndarray | None:
        """Read a request by `read_request`; None if the message is no request."""
        return read_request(message, len(self.shown))

    def answer(self, request: np.ndarray, overtaken: Callable[[], bool] = lambda: False) -> bytes:
        """The answer as bytes. It begins with the serial number and the kind of the request. For scores, four
        float32 numbers follow; if a later move has `overtaken()` the request, the answer is empty. For maps,
        it continues with the number of near rows and of placed rows as int32, the near rows of each space,
        the similarities of the watched row to the anchor as float32, and the maps as float16."""
        _, kind, anchor, place, watched, most, *more = map(int, request)
        following = self.following
        head = request[:2].tobytes()
        if kind == SCORE:
            try:
                scores = following.scores(self.k, self.convention, LIVE_QUERIES, overtaken)
            except Overtaken:
                return b""
            return head + np.array(scores, "<f4").tobytes()
        row = int(self.shown[place])
        moved = int(self.shown[anchor])
        if kind == PROBE:
            anchors = [*self.anchors, row]
        else:
            anchors = [row if one == moved else one for one in self.anchors]
        if len(set(anchors)) == len(anchors):  # if a dragged anchor lies on another anchor, nothing changes
            following.set_anchors(anchors)
        n = len(self.shown)
        chosen = None
        if 0 < most < n:
            chosen = np.array([*sampled_places(n, most), *more])
        maps, near = following.frame(chosen, row)
        sides = range(len(following.sides))
        similar = [np.nan] * len(sides)
        if watched < len(following.held.pair) and watched >= 0:
            anchor_of = following.held.anchor
            similar = [anchor_of(side, row) @ anchor_of(side, watched) for side in sides]
        return maps_answer(request, n if chosen is None else len(chosen), maps, near, similar)


# with more anchors than FEW, moving one hardly changes a map
FEW = 16
SPREAD = "farthest-point"
N_SPREAD = 8


def live_header(panes: Sequence[str], n_anchors: int, n_spaces: int = 2) -> dict[str, Any]:
    """What the browser must know before an anchor is dragged, if each representation has one pane per space:
    which panes follow the anchor, the number of anchors (0 if there are at most `FEW`), and the number of
    anchors in a selection by `SPREAD`."""
    following = np.repeat([form in FORMS for form in panes], n_spaces)
    many = n_anchors if n_anchors > FEW else 0
    return {"panes": np.flatnonzero(following).tolist(), "many": many, "spread": N_SPREAD}


MOST_IN_A_PAGE = 20_000  # number of rows drawn on a page whose anchors can be dragged
_IN_A_PAGE = (OWN, "absolute", "relative", TWO)  # representations on a page whose anchors can be dragged


def page_units(
    pair: Match,
    rows: np.ndarray,
    panes: Sequence[str],
    n_anchors: int,
    projection: ProjectionSpec,
    reduction: ReductionSpec,
) -> PageUnits | None:
    """The data that an HTML page needs so that anchors can be dragged on it. `rows` (m,) are the drawn rows.
    None if there are more than `MOST_IN_A_PAGE` rows or more than `FEW` anchors, or if the maps cannot
    follow."""
    followed = [form for form in panes if form in FORMS]
    if why_not(pair, projection, reduction) or reduction.align or not set(panes) <= set(_IN_A_PAGE):
        return None
    if not (followed and 0 < n_anchors <= FEW and len(rows) <= MOST_IN_A_PAGE):
        return None
    spaces = pair.spaces
    origins = [mean_of(space) if projection.center else None for space in spaces]
    units = (unit_rows(space.vectors[rows], origin) for space, origin in zip(spaces, origins, strict=True))
    about = live_header(panes, n_anchors, len(spaces))
    about |= {"widths": [space.dimension for space in spaces], "shared": reduction.fit == "first"}
    return PageUnits(about | {"forms": np.repeat(followed, len(spaces)).tolist()}, tuple(units))


def why_not(pair: Match, projection: ProjectionSpec, reduction: ReductionSpec) -> str:
    """The reason why the maps of this pair, with these settings and on the chosen device, cannot follow a
    dragged anchor; "" if they can."""
    widest = max(space.dimension for space in pair.spaces)
    if reduction.method != "pca":
        title = REDUCTIONS[reduction.method].title
        return f"{title} takes too long to follow a star. Choose PCA as the map to drag anchors."
    if reduction.n_components != 2:
        return "In three dimensions stars cannot be dragged. Choose a map of two dimensions."
    if projection.similarity != "cosine":
        return "Maps follow a star only if the similarity is the cosine: ★ anchors, Method details."
    if len(pair) * widest > MOST_NUMBERS and resolve() == "cpu":
        return "Without a GPU these are too many rows to follow a star: add and remove anchors instead."
    return ""


def _nearest_turn(products: np.ndarray) -> np.ndarray:
    if products.any():
        return Engine("cpu").rotation(products)[0]
    return np.eye(len(products))
