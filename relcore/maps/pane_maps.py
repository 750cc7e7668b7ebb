"""Maps of the spaces of a pair, one pane for each representation, computed in blocks of rows.

With cosine similarity, the relative rows of a space are R = U B, where U (n, d) are the unit rows and B (d,
k) are the unit anchors. The moments of R follow from the moments of U, which do not depend on the anchors.
The scores of R on the axes V are U (B V), so R is never held in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import REDUCTIONS, SIMILARITIES
from relcore.base.numbers import counted
from relcore.base.rows import DerivedRows, Rows, row_blocks, unit_rows
from relcore.base.settings import check, setting
from relcore.engine.engine import Engine, Moments
from relcore.engine.nearest import nearest
from relcore.figures.colorings import ColorScale
from relcore.maps.principal_axes import (
    SAMPLED_ROWS,
    ReductionSpec,
    axis_signs,
    fitted_rows,
    n_fitted,
    need_drawable,
    principal_axes,
    random_rows,
)
from relcore.maps.reduction import align_maps, reduce_spaces
from relcore.represent.projection import RelativeProjection
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent, representation_maps
from relcore.represent.similarity import mean_of
from relcore.represent.strategies import shared_anchors
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

NUMBERS = ("counts", "source norm", "target norm", "agreement")
COLUMN = "column:"
MOST_PIVOTS = 20  # number of colours that people can distinguish
NEARLY_ALL = 0.99
_CLUSTERED = 20_000  # number of sampled rows from which default pivots are chosen
DEFAULT_PIVOTS = ("wine", "anger", "silver", "senate", "face")


@dataclass(frozen=True)
class ViewSpec:
    """The settings that choose which rows are drawn and how they are coloured.

    Attributes
    ----------
    pivots : tuple of str
        Ids of at most `MOST_PIVOTS` example rows. Each is drawn with its nearest rows in one colour.
    n_nearest : int
        The number of rows in each neighbourhood, including the pivot itself.
    everything : bool
        Whether all other rows are drawn, too, in grey.
    color_by : "pivots", "labels", one of `NUMBERS`, or "column:" and a name
        What the colour of a row shows: its nearest pivot, its label, a number, or a column of a space's
        table. `compare.columns.with_color_column` colours by numbers and columns, because these need both
        spaces.
    show_anchors : bool
        Whether anchors are drawn as stars. Anchors that the view lacks are added.
    """

    pivots: tuple[str, ...] = DEFAULT_PIVOTS
    n_nearest: int = setting(200, low=1)
    everything: bool = False
    color_by: str = "pivots"
    show_anchors: bool = False

    def __post_init__(self) -> None:
        check(self)
        if len(self.pivots) > MOST_PIVOTS:
            raise SpaceError(
                f"pivots: expected at most {MOST_PIVOTS}, one for each colour, got {len(self.pivots)}; take"
                " some out"
            )
        need_color("color_by", self.color_by)


def need_color(setting: str, color_by: str) -> None:
    if not (isinstance(color_by, str) and color_by.startswith(COLUMN) and len(color_by) > len(COLUMN)):
        need_one_of(setting, color_by, ("pivots", "labels", *NUMBERS, f"{COLUMN}…"))


@dataclass(frozen=True)
class View:
    """The drawn rows: their numbers (m,), ascending, and the class of each (m,), −1 for none. If colours show
    numbers, the classes are steps of the `scale` of `values` (m,)."""

    rows: np.ndarray
    categories: np.ndarray
    category_names: tuple[str, ...]
    scale: ColorScale | None = None
    values: np.ndarray | None = None
    about: str = ""  # more about the colours, for the caption
    column: str = ""  # the name of the column whose classes the colours show

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(np.ascontiguousarray(self.rows, dtype=np.int64), digest_size=16).hexdigest()


def make_view(space: LatentSpace, spec: ViewSpec, anchor_ids: Sequence[str] = ()) -> View:
    """The rows of this space that `spec` chooses, and their colours."""
    belongs = _nearest_pivots(space, spec)
    near = belongs >= 0
    # If nearly all rows are near a pivot, draw all, because readers would wonder which ones are left out.
    drawn = near
    if spec.everything or near.mean() > NEARLY_ALL:
        drawn = np.ones(len(space), dtype=bool)
    if spec.show_anchors and len(anchor_ids):
        drawn[space.rows(anchor_ids)] = True
    rows = np.flatnonzero(drawn)
    if not len(rows):
        raise SpaceError("nothing to draw: name at least one pivot, or draw everything")
    return _color_view(space, spec, rows, belongs)


def same_rows(space: LatentSpace, spec: ViewSpec, rows: np.ndarray) -> View:
    """The view of these rows, coloured by labels or pivots."""
    return _color_view(space, spec, rows, _nearest_pivots(space, spec))


def _color_view(space: LatentSpace, spec: ViewSpec, rows: np.ndarray, belongs: np.ndarray) -> View:
    if spec.color_by != "labels":
        # Do not show only the number of a pivot, which could be taken for the number of a colour.
        pivots = []
        for pivot in spec.pivots:
            if pivot.isdecimal():
                pivot = f"near row {pivot}"
            pivots.append(pivot)
        return View(rows, belongs[rows], tuple(pivots))
    if space.labels is None:
        raise SpaceError(f"color_by 'labels': {space.name!r} has no labels; colour by pivots")
    names = tuple(sorted(set(space.labels) - {""}))
    numbers = {name: number for number, name in enumerate(names)} | {"": -1}
    return View(rows, np.array([numbers[label] for label in space.labels[rows]]), names)


def sample_view(view: View, n_most: int, random_state: int = 0) -> View:
    """The view, reduced to a random sample of at most `n_most` rows."""
    if len(view.rows) <= n_most:
        return view
    kept = random_rows(len(view.rows), n_most, random_state)
    if view.values is None:
        values = None
    else:
        values = view.values[kept]
    return replace(view, rows=view.rows[kept], categories=view.categories[kept], values=values)


def _nearest_pivots(space: LatentSpace, spec: ViewSpec) -> np.ndarray:
    """For each row, (n,), the index of the nearest pivot that has it among its `n_nearest` rows; −1 for
    none."""
    belongs = np.full(len(space), -1)
    if not spec.pivots:
        return belongs
    mean = mean_of(space)
    n_nearest = min(spec.n_nearest, len(space))
    pivots = unit_rows(space.vectors[space.rows(spec.pivots)], mean)
    best = np.full(len(space), -np.inf, dtype=np.float32)
    cosines = Engine().map_rows(space.vectors, pivots.T, mean=mean, unit=True)
    for number, column in enumerate(cosines.T):
        near = np.argpartition(-column, n_nearest - 1)[:n_nearest]
        near = near[column[near] > best[near]]
        belongs[near] = number
        best[near] = column[near]
    return belongs


def default_pivots(space: LatentSpace) -> tuple[str, ...]:
    """The ids of five pivots: the usual words, if the space has them. Otherwise rows that are far from each
    other."""
    if space.index.isin(DEFAULT_PIVOTS).sum() == len(DEFAULT_PIVOTS):
        return DEFAULT_PIVOTS
    from relcore.represent.strategies import select_anchors

    strategy = "random"
    if len(space) > 100:
        strategy = "k-means"
    if len(space) > _CLUSTERED:  # on all rows, k-means would delay the first picture
        space = space.take(random_rows(len(space), _CLUSTERED, 0))
        strategy = "farthest-point"
    n_pivots = min(len(DEFAULT_PIVOTS), np.count_nonzero(space.norms))
    if n_pivots:
        return tuple(select_anchors(space, n_pivots, strategy))
    return ()


def default_view(space: LatentSpace) -> ViewSpec:
    """The settings of the first view. If the space has 2 to `MOST_PIVOTS` labels and no word counts, all rows
    are coloured by class. Otherwise a few pivots are drawn with their neighbours."""
    if space.labels is None or space.counts is not None:
        classes = set()
    else:
        classes = set(space.labels) - {""}
    labelled = 2 <= len(classes) <= MOST_PIVOTS
    return ViewSpec(default_pivots(space), everything=labelled, color_by="labels" if labelled else "pivots")


_FEW = 2**23  # maximum number of values in unit rows that are kept (32 MB)
Picture = tuple[list[np.ndarray], str]
_NEAR = 3  # number of nearest drawn rows that give the place of another row on a map that is not affine
OWN = "own"  # the pane of absolute rows, where each space has its own map
TWO = "two"  # the pane whose axes are the similarities to the first two anchors
PANES = (OWN, *REPRESENTATIONS, TWO)


@dataclass(frozen=True, eq=False)
class DrawnUnits:
    """What maps need to know about the drawn rows, whatever the anchors are: the mean (d,) of the space, the
    moments of the unit rows, and the unit rows (m, d) themselves if they are few."""

    mean: np.ndarray
    moments: Moments
    few: np.ndarray | None = None

    @classmethod
    def of(cls, space: LatentSpace, rows: np.ndarray, center: bool, random_state: int = 0) -> DrawnUnits:
        mean = mean_of(space)
        origin = mean if center else None
        units = DerivedRows(space.vectors, lambda X: unit_rows(X, origin), rows)
        few = None
        if len(rows) * space.dimension <= _FEW:
            few = units[:]
        fitted = fitted_rows(len(rows), space.dimension, random_state)
        return cls(mean, Engine().moments(units.of(fitted)), few)


DrawnUnitsOf = Callable[[LatentSpace, np.ndarray, bool, int], DrawnUnits]


def representation_of_pane(pane: str, spec: ReductionSpec) -> tuple[str, ReductionSpec]:
    """Return the representation that a pane shows, and the reduction of its maps."""
    if pane == OWN:
        return ("absolute", replace(spec, fit="apart"))
    return (pane, spec)


def drawn_panes(panes: Sequence[str], widths: Sequence[int], spec: ReductionSpec) -> tuple[str, ...]:
    """The distinct panes that are drawn. If the absolute spaces have no common map, each is drawn in its own
    map."""
    is_shared = fitting_reduction(widths, spec).fit == "first"
    drawn = []
    for pane in panes:
        if pane == "absolute" and not is_shared:
            pane = OWN
        drawn.append(pane)
    return tuple(dict.fromkeys(drawn))


def fitting_reduction(widths: Sequence[int], spec: ReductionSpec) -> ReductionSpec:
    """The reduction `spec`, changed to ``fit="apart"`` if the widths of the spaces differ."""
    if len(set(widths)) == 1:
        return spec
    return replace(spec, fit="apart")


def reduction_note(spec: ReductionSpec, n_sampled: int = 0, n_rows: int = 0) -> str:
    """A note that tells how the coordinates of a pane were computed. `n_sampled` is the number of rows in the
    sample on which PCA was fitted (0 if there was none), and `n_rows` is the number of all rows."""
    title = REDUCTIONS[spec.method].title
    fitted = n_fitted(n_rows, spec)
    placed = ""
    if fitted < n_rows:
        placed = f" fitted on {fitted:,} of {n_rows:,} rows, which also places the others"
    how = "fitted on each space separately"
    if spec.fit == "first":
        how = "fitted on the first space"
    sampled = ""
    if n_sampled:
        sampled = f", by a sample of {counted(n_sampled, 'row')}"
    aligned = ""
    if spec.align:
        aligned = ", aligned by Procrustes"
    return f"{title}{placed}, {how}{sampled}{aligned}"


def reduce_pair(matrices: Sequence[np.ndarray | DerivedRows], spec: ReductionSpec) -> Picture:
    spec = fitting_reduction([matrix.shape[1] for matrix in matrices], spec)
    n_rows = len(matrices[0])
    n_sampled = n_rows
    if spec.method == "pca":
        n_sampled = len(fitted_rows(*matrices[0].shape))
    note = reduction_note(spec, n_sampled if n_sampled < n_rows else 0, n_rows)
    return reduce_spaces(matrices, spec), note


def pane_matrices(
    matched: Match, rows: np.ndarray, anchors: Sequence[str], spec: ProjectionSpec, representation: str
) -> list[np.ndarray]:
    """The drawn rows of each space in one representation: [(m, d_source), (m, d_target), …]."""
    if len(rows) == len(matched):
        return list(represent(matched, representation, anchors, spec))
    maps = representation_maps(matched, representation, anchors, spec)
    return [bring(space.vectors[rows]) for bring, space in zip(maps, matched.spaces, strict=True)]


def pane_blocks(
    matched: Match, rows: np.ndarray, anchors: Sequence[str], spec: ProjectionSpec, representation: str
) -> list[Iterator[np.ndarray]]:
    """The matrices of `pane_matrices` as blocks of rows, so that no whole matrix is in memory."""
    spaces = matched.spaces
    maps = representation_maps(matched, representation, anchors, spec)

    def in_blocks(derived: DerivedRows) -> Iterator[np.ndarray]:
        return (derived[block] for block in row_blocks(len(derived)))

    return [in_blocks(DerivedRows(space.vectors, m, rows)) for m, space in zip(maps, spaces, strict=True)]


def pca_pair(
    matched: Match,
    rows: np.ndarray,
    pane: str,
    anchors: Sequence[str],
    projection: ProjectionSpec,
    spec: ReductionSpec,
    units_of: DrawnUnitsOf = DrawnUnits.of,
) -> Picture:
    """Return the coordinates (m, c) of the drawn rows of each space by PCA, and a note that tells how they
    were computed.

    If similarities are linear in the unit rows, PCA uses the moments of these rows, which `units_of` may
    cache. For other similarities, the whole matrix is computed if there are at most `SAMPLED_ROWS` rows. With
    more rows, the axes come from a sample, and scores are computed block by block. Raises a SpaceError for
    fewer than three rows, and the errors of `represent` and `reduce_spaces`.
    """
    representation, spec = representation_of_pane(pane, spec)
    if representation == TWO:
        return by_two_anchors(matched, rows, anchors, projection)
    spaces = matched.spaces
    linear = representation == "whitened" or SIMILARITIES[projection.similarity].load().linear
    if representation not in ("relative", "whitened") or (not linear and len(rows) <= SAMPLED_ROWS):
        return reduce_pair(pane_matrices(matched, rows, anchors, projection, representation), spec)
    anchor_rows = matched.source.rows(shared_anchors(anchors, *spaces))
    need_drawable([(len(rows), len(anchor_rows))] * len(spaces), spec)
    drawn = []
    for space in spaces:
        fitted = projection.projection(representation == "whitened")
        known = None
        if linear:
            known = units_of(space, rows, projection.center, spec.random_state)
        fitted.fit(space.vectors, anchors=anchor_rows, mean=known.mean if known else mean_of(space))
        drawn.append(_Drawn.of(space, rows, fitted, known, spec.random_state))
    pictures: list[np.ndarray] = []
    axes = None
    signs = None
    for one in drawn:
        if not (axes and spec.fit == "first"):
            axes = one.axes(spec.n_components)
        scores = one.scores(*axes)
        if not (pictures and spec.fit == "first"):
            signs = axis_signs(scores)
        pictures.append(scores * signs)
    return align_maps(pictures, spec), reduction_note(spec, drawn[0].n_sampled)


def by_two_anchors(
    matched: Match, rows: np.ndarray, anchors: Sequence[str], projection: ProjectionSpec
) -> Picture:
    """Return the similarities (m, 2) of the drawn rows of each space to the first two anchors, which are the
    axes of the map, and a note that names the anchors. If there is only one anchor, it is both axes.
    """
    two = tuple(anchors[:2])
    pictures = pane_matrices(matched, rows, two, projection, "relative")
    pictures = [picture[:, [0, -1]] for picture in pictures]
    return pictures, f"across: similarity to {two[0]!r} (★1), up: similarity to {two[-1]!r} (★{len(two)})"


def with_rows(
    matched: Match,
    rows: np.ndarray,
    others: np.ndarray,
    pane: str,
    picture: Picture,
    anchors: Sequence[str],
    projection: ProjectionSpec,
    spec: ReductionSpec,
) -> Picture:
    """The picture of a pane with the rows `others` (e,) added to its `rows` (m,), in ascending order. Rows
    that are drawn already keep their places.

    A map by PCA is an affine function of the rows, even after a rotation. The function is found by least
    squares. On other maps, each row is placed at the mean of its `_NEAR` nearest drawn rows.
    """
    maps, note = picture
    representation, _ = representation_of_pane(pane, ReductionSpec())
    affine = spec.method == "pca"
    if representation == TWO:
        added = by_two_anchors(matched, others, anchors, projection)[0]
    else:
        brings = representation_maps(matched, representation, anchors, projection)
        place = _by_least_squares if affine else _by_neighbours
        added = [
            place(bring, space.vectors, rows, others, known)
            for space, bring, known in zip(matched.spaces, brings, maps, strict=True)
        ]
    all_rows = np.union1d(rows, others)
    both = []
    for known, new in zip(maps, added, strict=True):
        coordinates = np.empty((len(all_rows), known.shape[1]), dtype=known.dtype)
        coordinates[np.searchsorted(all_rows, rows)] = known
        coordinates[np.searchsorted(all_rows, others)] = new
        both.append(coordinates)
    if not affine:
        note += f"; rows found by search stand at the mean place of their {_NEAR} nearest rows"
    return both, note


def _by_neighbours(
    bring: Callable[[Any], np.ndarray],
    vectors: Rows,
    rows: np.ndarray,
    others: np.ndarray,
    coordinates: np.ndarray,
) -> np.ndarray:
    new = bring(vectors[others]).astype(np.float64)
    known = bring(vectors[rows])
    origin = known.mean(axis=0)
    near = nearest(unit_rows(new, origin), unit_rows(known, origin), _NEAR).rows
    return coordinates[near].mean(axis=1).astype(np.float32)


def _by_least_squares(
    bring: Callable[[Any], np.ndarray],
    vectors: Rows,
    rows: np.ndarray,
    others: np.ndarray,
    coordinates: np.ndarray,
) -> np.ndarray:
    new = bring(vectors[others]).astype(np.float64)
    few = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), 2 * new.shape[1] + 50)).astype(int))
    known = bring(vectors[rows[few]]).astype(np.float64)
    middle = known.mean(axis=0)
    centre = coordinates[few].mean(axis=0)
    axes = Engine().lstsq(known - middle, coordinates[few] - centre)
    return ((new - middle) @ axes + centre).astype(np.float32)


def map_pair(
    matched: Match,
    rows: np.ndarray,
    pane: str,
    anchors: Sequence[str],
    projection: ProjectionSpec,
    spec: ReductionSpec,
) -> Picture:
    """Return coordinates and a note as `pca_pair` does, for any reduction method. UMAP places rows beyond its
    sample in the same blocks as the job of the app; other blocks would round differently, which is
    visible."""
    representation, spec = representation_of_pane(pane, spec)
    if spec.method == "pca" or representation == TWO:
        return pca_pair(matched, rows, representation, anchors, projection, spec)
    if n_fitted(len(rows), spec) == len(rows):
        return reduce_pair(pane_matrices(matched, rows, anchors, projection, representation), spec)

    def by_block(bring: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda X: np.concatenate([bring(X[block]) for block in row_blocks(len(X))])

    maps = representation_maps(matched, representation, anchors, projection)
    derived = (
        DerivedRows(one.vectors, by_block(m), rows) for m, one in zip(maps, matched.spaces, strict=True)
    )
    return reduce_pair(list(derived), spec)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The rows of a space that a map draws, as two factors: `rows` U times `basis` B, or U alone without a
    basis. The product is never held in memory. `moments` are those of U or of a sample of its rows."""

    rows: Rows
    moments: Moments
    basis: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        space: LatentSpace,
        rows: np.ndarray,
        fitted: RelativeProjection,
        known: DrawnUnits | None,
        random_state: int,
    ) -> _Drawn:
        """Make the drawn rows. If their `DrawnUnits` are not known, the moments are those of a sample, whose
        rows are computed twice: for the moments, and for the coordinates."""
        if known is not None:
            units = DerivedRows(space.vectors, lambda X: unit_rows(X, fitted.mean_), rows)
            return cls(units if known.few is None else known.few, known.moments, fitted.similarity_.basis_)
        drawn = DerivedRows(space.vectors, fitted.transform, rows)
        return cls(drawn, Engine().moments(drawn.of(random_rows(len(rows), SAMPLED_ROWS, random_state))))

    @property
    def n_sampled(self) -> int:
        if self.moments.n < len(self.rows):
            return self.moments.n
        return 0

    def axes(self, n_components: int) -> tuple[np.ndarray, np.ndarray]:
        axes = principal_axes(self.moments.products, n_components, self.basis)
        mean = self.moments.means[0]
        if self.basis is not None:
            mean = mean @ self.basis
        return axes, mean @ axes

    def scores(self, axes: np.ndarray, offset: np.ndarray) -> np.ndarray:
        if self.basis is None:
            weights = axes
        else:
            weights = self.basis @ axes
        return Engine().map_rows(self.rows, weights, shift=-offset)


# The orientation of maps, for display only. The signs and the rotation of a map have no meaning, and one more
# anchor may change them. So each map is rotated onto the PCA map of the absolute source rows, which does not
# depend on anchors. Then maps before and after a change of anchors look alike.

NOTE = "turned for display"


def turn_onto(coordinates: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The orthogonal matrix R (c, c) that minimises ‖(X − x̄) R − (T − t̄)‖ for two maps, `coordinates` X and
    `reference` T, (n, c). Rows that are NaN in one of them are ignored."""
    known = np.isfinite(coordinates).all(axis=1) & np.isfinite(reference).all(axis=1)
    if not known.any():
        return np.eye(coordinates.shape[1])
    moved = np.asarray(coordinates[known], dtype=np.float64)
    goal = np.asarray(reference[known], dtype=np.float64)
    product = (moved - moved.mean(axis=0)).T @ (goal - goal.mean(axis=0))
    if product.any():
        return Engine().rotation(product)[0]
    return np.eye(len(product))


def orient_pairs(
    pairs: Mapping[str, tuple[Sequence[np.ndarray], str]],
    reference: np.ndarray,
    pair: Match,
    spec: ReductionSpec,
) -> dict[str, tuple[list[np.ndarray], str]]:
    """For each pane, its maps, rotated onto `reference` (n, c), and their note with `NOTE` added. Maps whose
    axes are anchors stay as they are.

    The source's map is rotated onto the reference. If all spaces are on one map, the same rotation is applied
    to all, so that equal coordinates stay equal. Otherwise each other map is rotated onto the source's map.
    """
    oriented = {}
    for pane, ((source, *others), note) in pairs.items():
        if pane == TWO:
            oriented[pane] = ([source, *others], note)
            continue
        turn = turn_onto(source, reference)
        still = np.allclose(turn, np.eye(len(turn)), atol=1e-6)
        turn = np.eye(len(turn)) if still else turn
        turned = _rotate(source, turn)
        own = pane == OWN or (pane == "absolute" and len({space.dimension for space in pair.spaces}) > 1)
        is_one_map = spec.align or (spec.fit == "first" and not own)
        others = [_rotate(other, turn if is_one_map else turn_onto(other, turned)) for other in others]
        if not (still and is_one_map):
            note = f"{note}, {NOTE}"
        oriented[pane] = ([turned, *others], note)
    return oriented


def _rotate(coordinates: np.ndarray, turn: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(coordinates @ turn.astype(np.float32))


GRID = ("absolute", "relative")  # representations in the rows of the 2 × 2 grid
