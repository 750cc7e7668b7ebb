"""Comparisons that follow a dragged anchor: when an anchor moves, the maps and scores are updated instead of
computed again.

The relative rows are R = U B, but R is never held in memory. U (n, d) are the unit rows of a space; they stay
on the device. B (d, k) are the unit rows of its anchors. A moved anchor changes one column of B, and one row
and column of the scatter Bᵀ M B, where M (d, d) is the scatter of U. This scatter gives the axes of the PCA.
The map is U W, with W (d, 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import row_blocks
from relcore.compare.live_rows import AnchorColumns, LiveFrame, LiveRows, LiveScores, Overtaken
from relcore.engine.device import Array
from relcore.engine.engine import Engine
from relcore.engine.top_rows import top_rows
from relcore.maps.pane_maps import TWO
from relcore.maps.principal_axes import ReductionSpec, axis_signs, leading_axes
from relcore.maps.reduction import align_maps
from relcore.represent.representations import ProjectionSpec
from relcore.represent.similarity import inverse_root
from relcore.scores.cka import CkaSums, SpaceSums
from relcore.scores.metrics import has_majority_class
from relcore.spaces.split import Split

N_NEAR = 10  # number of nearest rows that are highlighted
_BELOW_COSINES = -2


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
    representations : some of `FOLLOWING`
        The maps to compute.
    shown : row numbers (s,), optional
        The rows whose coordinates are returned. By default, these are the rows on which the axes are fitted.
    steady : bool
        Whether each map is rotated onto the one before it (Procrustes), and so does not flip during a drag.
    """

    def __init__(
        self,
        held: LiveRows,
        anchors: Sequence[int],
        projection: ProjectionSpec | None = None,
        reduction: ReductionSpec | None = None,
        representations: Sequence[str] = ("relative",),
        shown: np.ndarray | None = None,
        *,
        steady: bool = False,
    ) -> None:
        projection = projection or ProjectionSpec()
        reduction = reduction or ReductionSpec(fit="first")
        self.held = held
        self.projection = projection
        self.reduction = reduction
        self.representations = tuple(representations)
        self.where = held.where.clone_for_thread()
        if shown is None:
            self.shown_subset = held.drawn_rows
        else:
            self.shown_subset = held.subset(shown)
        self.sides = [AnchorColumns(held, side) for side in range(len(held.spaces))]
        self.anchors: list[int] = []
        self._axes: dict[tuple[str, int], np.ndarray] = {}
        self._edges: np.ndarray | None = None
        self.steady = steady
        self._last: dict[str, np.ndarray] = {}  # weights of the last first map of each representation
        self.n_columns = 0  # number of columns computed so far; tests count the work by it
        self.set_anchors(anchors)
        for representation in self.representations:  # compute the axes of the maps before the first move
            self._weights(representation)

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
        for representation in self.representations:
            both = zip(self.shown, self._weights(representation), strict=True)
            pictures = [np.array(self.where.get(self._drawn(units, *weights))) for units, weights in both]
            if representation == TWO:
                found[representation] = pictures
            else:
                found[representation] = align_maps(pictures, self.reduction)
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
        unit_rows = self.shown
        if chosen is None:
            m = len(unit_rows[0])
        else:
            m = len(chosen)
        n_near = 0 if row is None else min(k, m)
        near = np.empty((len(self.sides), n_near), dtype=np.int64)
        weights: list[list[tuple[np.ndarray, np.ndarray]]] = []
        if not self.reduction.align:
            weights = [self._weights(name) for name in self.representations]
        drawn: list[list[Array]] = []
        for side, units in enumerate(unit_rows):
            # A single pass over the rows gives all maps and the similarities.
            columns = [both[side][0] for both in weights]
            if row is not None:
                columns.append(self.held.anchor(side, row)[:, None])
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
            drawn.append([axes[2 * i : 2 * i + 2] for i in range(len(weights))])
        if self.reduction.align:
            turned = [[where.put(picture.T) for picture in both] for both in self.maps().values()]
            if numbers is not None:
                turned = [[one[:, numbers] for one in both] for both in turned]
            drawn = [list(maps) for maps in zip(*turned, strict=True)]
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

    def _weights(self, representation: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each space, the weights W (d, 2) and the offset (2,) of its map U W − offset; U are the unit
        rows."""
        bases = [side.basis for side in self.sides]
        if representation == TWO:
            columns = [0, min(1, len(self.anchors) - 1)]
            return [(basis[:, columns], np.zeros(2)) for basis in bases]
        scatters = [side.scatter for side in self.sides]
        if representation == "whitened":
            roots = [inverse_root(basis.T, self.projection.ridge) for basis in bases]
            bases = [basis @ root for basis, root in zip(bases, roots, strict=True)]
            scatters = [root @ one @ root for one, root in zip(scatters, roots, strict=True)]
        weights: list[tuple[np.ndarray, np.ndarray]] = []
        for side, basis in enumerate(bases):
            if not (side and self.reduction.fit == "first"):  # then all spaces have the axes of the first
                axes = self._principal_axes(representation, side, basis, scatters[side])
                offset = self.held.moments[side].means[0] @ basis @ axes
            weights.append((basis @ axes, offset))
        turned = self._turn_onto_reference(weights)
        if self.steady:
            turned = self._turn_onto_last(representation, turned)
        return turned

    def _principal_axes(
        self, representation: str, side: int, basis: np.ndarray, scatter: np.ndarray
    ) -> np.ndarray:
        """The first two principal axes (k, 2) of the relative rows of a space. Their computation starts at
        those of the last call."""
        before = self._axes.get((representation, side))
        axes = leading_axes(scatter, before)
        if before is None and self.held.onto is None:  # later maps keep the signs of this first map
            mean = self.held.moments[side].means[0] @ basis
            scores = self._drawn(self.held.drawn[side], basis @ axes[:, :2], mean @ axes[:, :2])
            axes[:, :2] *= axis_signs(self.where.get(scores))
        self._axes[representation, side] = axes
        return axes[:, :2]

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

    def _turn_onto_last(
        self, representation: str, found: list[tuple[np.ndarray, np.ndarray]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The weights, changed so that the first map is rotated onto the last one of this representation, and
        the other maps in the same way. Without this, maps flip where they hardly agree with the
        reference."""
        first = found[0][0]
        last = self._last.get(representation)
        turned = found
        if last is not None:
            turn = _nearest_turn(first.T @ self.held.moments[0].products @ last)
            turned = [(weights @ turn, offset @ turn) for weights, offset in found]
        self._last[representation] = turned[0][0]
        return turned

    # The scores.

    def scores(
        self,
        k: int = 10,
        convention: str = "paper",
        n_queries: int | None = 300,
        overtaken: Callable[[], bool] = lambda: False,
    ) -> LiveScores:
        """The scores of the relative rows, equal to those of `score_representations` up to rounding.

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
        if classes is None:
            return np.nan
        known = classes[queries] >= 0
        if not known.any():
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
        out; 1 is the nearest. Also the numbers (q, k) of the k nearest labelled rows, without the query's own
        row; None without classes."""
        where = self.where
        source = self.held.all_units[one]
        target = self.held.all_units[other]
        turns, mixed = self._turns(one, other)
        target_turn = where.put(turns[1])
        with where.exact():
            numbers = where.put(queries)
            query_units = self._unit(source[numbers], where.put(turns[0]), "query units")
            query_rows = where.product(query_units, where.put(mixed), "queries")
            own_cosines = where.row_products(query_rows, self._unit(target[numbers], target_turn))
            n_nearer = np.zeros(len(queries), dtype=np.int64)
            labelled = self._labelled_rows(left_out)
            nearest = None
            if labelled is not None:
                nearest = top_rows(where, len(queries), max(1, min(k, np.count_nonzero(labelled) - 1)))
            # Blocks have half the usual size, because a move of the anchor waits for the end of a block.
            size = where.rows_at_once(where.search_rows // 2, 4 * (3 * len(queries) + sum(turns[1].shape)))
            for block in row_blocks(len(self.held.pair), size):
                if overtaken():
                    raise Overtaken
                rows = np.arange(block.start, block.stop)
                cosines = where.product(query_rows, self._unit(target[block], target_turn).T, "products")
                # Leave out each query's own row: here, rounding may differ from that in `own_cosines`.
                in_block = np.flatnonzero((queries >= block.start) & (queries < block.stop))
                cosines[where.put(in_block), where.put(queries[in_block] - block.start)] = _BELOW_COSINES
                cosines[:, where.put(np.flatnonzero(np.isin(rows, left_out)))] = _BELOW_COSINES
                n_nearer += where.get((cosines > own_cosines[:, None]).sum(1))
                if nearest is not None:
                    cosines[:, where.put(np.flatnonzero(~labelled[block]))] = _BELOW_COSINES
                    nearest.add(cosines, where.put(rows))
        if nearest is None:
            return n_nearer + 1, None
        return n_nearer + 1, nearest.fetched().rows

    def _labelled_rows(self, left_out: np.ndarray) -> np.ndarray | None:
        """Whether each row (n,) has a label and is not left out; None without classes."""
        if self.held.classes is None:
            return None
        labelled = self.held.classes >= 0
        labelled[left_out] = False
        return labelled

    def _unit(self, units: Array, turn: Array, memory: str = "turned units") -> Array:
        """The unit rows (m, d), multiplied by `turn` (d, w) and scaled to length 1. The result lies in the
        reused memory of this name."""
        where = self.where
        return where.unit(where.product(units, turn, f"{memory}, products"), memory)

    def _turns(self, one: int, other: int) -> tuple[list[np.ndarray], np.ndarray]:
        """A matrix T (d, w), w ≤ d, for each of two spaces, and a matrix P (w, w'). For unit rows u and v of
        the two spaces, u T P (v T')ᵀ is the inner product of their relative rows, which are not computed."""
        bases = [self.sides[side].basis for side in (one, other)]
        k = len(self.anchors)
        if k <= min(len(basis) for basis in bases):
            return [basis.astype(np.float32) for basis in bases], np.eye(k, dtype=np.float32)
        turns = []
        rights = []
        for basis in bases:
            left, values, right = Engine("cpu").svd(basis)
            turns.append((left * values).astype(np.float32))
            rights.append(right)
        return turns, (rights[0] @ rights[1].T).astype(np.float32)

    def _cka(self, left_out: np.ndarray) -> float:
        """Linear CKA of the relative rows, without the rows `left_out`. The sums of products of all rows are
        known, so only the left-out rows are read, and subtracted from them."""
        numbers = self.where.put(left_out)
        removed = [self.where.get(rows[numbers]).astype(np.float64) for rows in self.held.all_units]
        n = len(self.held.pair) - len(left_out)
        squares = {}
        for (one, other), whole in self.held.moments_of_all.items():
            mean, other_mean = whole.means
            X = removed[one] - mean
            Y = removed[other] - other_mean
            # The last term moves the centre to the mean of the rows that stay.
            products = whole.products - X.T @ Y - np.outer(X.sum(axis=0), Y.sum(axis=0)) / n
            first = self.sides[one].basis
            second = self.sides[other].basis
            squares[one, other] = float(np.sum((first.T @ products @ second) ** 2))
        sides = [SpaceSums(squares[side, side], None, 0.0, 0.0) for side in (0, 1)]
        return float(CkaSums(n, squares[0, 1], *sides).value())


def _nearest_turn(products: np.ndarray) -> np.ndarray:
    if products.any():
        return Engine("cpu").rotation(products)[0]
    return np.eye(len(products))
