"""What a pass collects: which products, sums and searches the scores need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.base.names import SIMILARITIES
from relcore.base.rows import mean_row
from relcore.engine.device import NumpyDevice
from relcore.engine.nearest import common_direction, many_coincide, order_seed
from relcore.represent.similarity import clustered_rows
from relcore.represent.translation import Procrustes
from relcore.scores.blocks import BlockRows, CoordinatesByName, Representation, frames_of
from relcore.scores.cka import power_near, sampled_rows
from relcore.scores.roles import RowRoles, ScoreRequest, Search, to_full_index

# The coordinates of both spaces of a pair, from which the representations are computed.

Take = Callable[[int, np.ndarray], np.ndarray]  # side (0 source, 1 target), row numbers (m,) → rows (m, d)


def _relative(frames: CoordinatesByName, name: str, ridge: float) -> Representation:
    if name == "relative" and "own" in frames:
        return Representation("own")
    turned = frames["turned"]
    assert turned.stretch is not None, "turned coordinates have their singular values"
    factors = turned.stretch
    if name == "whitened":
        factors = turned.stretch / np.sqrt(turned.stretch**2 + ridge)
    return Representation("turned", factors=factors.astype(np.float32), basis=turned.basis)


def _procrustes(
    frames: tuple[CoordinatesByName, CoordinatesByName],
    mean: np.ndarray,
    anchors: tuple[np.ndarray, np.ndarray],
) -> tuple[Representation, Representation]:
    """The representation "procrustes" of both spaces. The rotation maps the anchors of the source onto those
    of the target. Both spaces are centred by the mean of the target, as in `represent`.
    """
    fitted = Procrustes().fit(*anchors)
    source = frames[0]["raw"]
    target = frames[1]["raw"]
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
    if SIMILARITIES[request.projection.similarity].load().learns and "relative" in request.representations:
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
    representations : {name: two of Representation}
    searches : {name: two of Searches or None}
        The searches in each space; None if there is no search.
    samples : two arrays
        Some rows of each space, from which the chance level of linear CKA is computed.
    """

    request: ScoreRequest
    roles: RowRoles
    widths: tuple[int, int]
    frames: tuple[CoordinatesByName, CoordinatesByName]
    representations: dict[str, tuple[Representation, Representation]]
    searches: dict[str, tuple[Searches | None, Searches | None]]
    samples: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls, request: ScoreRequest, roles: RowRoles, means: tuple[np.ndarray, np.ndarray], take: Take
    ) -> Plan:
        needed = needed_rows(request, roles)
        gathered = {name: (take(0, rows), take(1, rows)) for name, rows in needed.items()}
        sides = [{name: both[side] for name, both in gathered.items()} for side in (0, 1)]
        frames = (
            frames_of(request, roles, means[0], sides[0], 0),
            frames_of(request, roles, means[1], sides[1], 1),
        )
        representations: dict[str, tuple[Representation, Representation]] = {}
        for name in request.representations:
            if name == "absolute":
                representations[name] = Representation("raw"), Representation("raw")
            elif name == "procrustes":
                mean = mean_row(gathered["centre"][1], means[1])
                representations[name] = _procrustes(frames, mean, gathered["anchors"])
            else:
                ridge = request.projection.ridge
                representations[name] = _relative(frames[0], name, ridge), _relative(frames[1], name, ridge)
        widths = len(means[0]), len(means[1])
        for name, both in representations.items():
            sized = []
            for side, representation in enumerate(both):
                block = BlockRows(NumpyDevice(), frames[side], side, sides[side]["centre"])
                sized.append(replace(representation, size=power_near(block.squares(representation))))
            representations[name] = sized[0], sized[1]
        plan = cls(request, roles, widths, frames, representations, {}, gathered["sample"])
        if len(roles.queries):
            plan.searches.update({name: plan._searches(name, gathered) for name in representations})
        return plan

    def block(self, side: int, X: np.ndarray) -> BlockRows:
        return BlockRows(NumpyDevice(), self.frames[side], side, X)

    def directions(self, name: str, side: int, X: np.ndarray) -> np.ndarray:
        """The rows X of one space in the coordinates of a representation, scaled to length 1."""
        return self.block(side, X).directions(self.representations[name][side])

    def same_width(self, name: str) -> bool:
        """Whether the rows of both spaces have the same width in a representation, so that they can be
        compared."""
        return name != "absolute" or self.widths[0] == self.widths[1]

    def between(self, name: str) -> np.ndarray | None:
        """The matrix (w_source, w_target) that maps source coordinates to target coordinates; None if they
        are the same.
        """
        source, target = self.representations[name]
        if source.basis is None:
            return None
        return source.basis.T @ target.basis

    def searched(self, name: str) -> list[Search]:
        """The searches that the scores of a representation need. For a vote of classes, they find k + 1 rows,
        because the query is removed later."""
        k = self.request.k + self.request.extra_neighbours
        labelled = self.roles.labelled
        if self.request.convention == "mutual":
            searches = [Search("own", 0, 0, k, True), Search("other", 1, 1, k, True)]
            directions = [("forward", 0, 1), ("backward", 1, 0)]
        else:
            searches = []
            if self.same_width(name):
                searches = [Search("own", 1, 1, k)]
            directions = [("forward", 0, 1)]
        if not self.same_width(name):
            return searches
        k_across = k
        if labelled:
            k_across = k + 1
        for direction, queries, base in directions:
            searches.append(Search(direction, queries, base, k_across))
            if labelled == "some":
                searches.append(Search(f"{direction} labelled", queries, base, k + 1, labelled=True))
        return searches

    def _searches(
        self, name: str, gathered: Mapping[str, tuple[np.ndarray, np.ndarray]]
    ) -> tuple[Searches | None, Searches | None]:
        queries = [self.directions(name, side, gathered["queries"][side]) for side in (0, 1)]
        sample = [self.directions(name, side, gathered["centre"][side]) for side in (0, 1)]
        return self._searches_in(name, 0, queries, sample[0]), self._searches_in(name, 1, queries, sample[1])

    def _searches_in(
        self, name: str, side: int, queries: Sequence[np.ndarray], sample: np.ndarray
    ) -> Searches | None:
        """The searches in one space. `queries` are unit rows of both spaces, `sample` some of this one."""
        each = tuple(search for search in self.searched(name) if search.base == side)
        if not each:
            return None
        to_this_space = self.between(name)  # from the coordinates of the other space
        if to_this_space is not None and side == 0:
            to_this_space = to_this_space.T
        vectors = []
        for search in each:
            rows = queries[search.queries]
            if search.queries != side and to_this_space is not None:
                rows = rows @ to_this_space
            vectors.append(rows)
        stacked = np.concatenate(vectors)
        common = common_direction(sample)
        tied = False
        if common is None:
            tied = many_coincide(sample, len(self.roles), self.request.k)
        else:
            stacked = stacked - common
        return Searches(each, stacked.astype(np.float32), order_seed(sample), common, tied)
