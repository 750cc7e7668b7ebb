"""Maps of a pair in one representation, of many rows in blocks: neither space's matrix (n, k) of
similarities is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from relcore.base.magnitude import brought, scaled
from relcore.base.names import REDUCTIONS, SIMILARITIES
from relcore.base.numbers import counted
from relcore.maps.pca import (
    SAMPLED_ROWS,
    Moments,
    blocks_of,
    direction_moments,
    direction_scores,
    facing,
    fitted_rows,
)
from relcore.maps.reduction import ReductionSpec, aligned, n_fitted, need_drawable, reduce_spaces
from relcore.represent.anchors import shared_anchors
from relcore.represent.similarity import RelativeProjection, mean_of, row_blocks, unit_rows
from relcore.scores.comparison import ProjectionSpec, RowMap, represent, representation_maps
from relcore.spaces.space import LatentSpace, MadeRows, Match

_FEW = 2**23  # numbers in the directions that are kept: 32 MB
Picture = tuple[list[np.ndarray], str]


@dataclass(frozen=True, eq=False)
class Directions:
    """What the maps of all anchors share: the mean of a space (d,), the moments of the directions of its
    drawn rows, and these directions (m, d) themselves where they are few."""

    mean: np.ndarray
    moments: Moments
    few: np.ndarray | None = None

    @classmethod
    def of(cls, space: LatentSpace, rows: np.ndarray, center: bool, random_state: int = 0) -> Directions:
        mean = mean_of(space)
        origin = mean if center else None
        few = None
        if len(rows) * space.dimension <= _FEW:
            few = np.concatenate([unit_rows(block, origin) for block in blocks_of(space.vectors, rows)])
        return cls(mean, direction_moments(space.vectors, rows, origin, random_state), few)


DirectionsOf = Callable[[LatentSpace, np.ndarray, bool, int], Directions]


def fitting_reduction(widths: Sequence[int], spec: ReductionSpec) -> ReductionSpec:
    """`spec`, but each space fitted apart where the widths differ: the first one's map cannot take the
    second.
    """
    return spec if len(set(widths)) == 1 else replace(spec, fit="apart")


def reduction_note(spec: ReductionSpec, n_sampled: int = 0, n_rows: int = 0) -> str:
    """How the coordinates of a pane came about, in a few words; `n_sampled` where a sample of the rows was
    fitted for PCA.

    Of `n_rows` rows UMAP may be fitted on a part only, see `relcore.maps.reduction.n_fitted`.
    """
    title, fitted = REDUCTIONS[spec.method].title, n_fitted(n_rows, spec)
    placed = f" fitted on {fitted:,} of {n_rows:,} rows, the others placed by it" if fitted < n_rows else ""
    how = "fitted on the first space" if spec.fit == "first" else "each space fitted apart"
    sampled = f", by a sample of {counted(n_sampled, 'row')}" if n_sampled else ""
    return f"{title}{placed}, {how}{sampled}{', aligned by Procrustes' if spec.align else ''}"


def reduce_pair(matrices: Sequence[np.ndarray | MadeRows], spec: ReductionSpec) -> Picture:
    """Coordinates of a pair of matrices, and a note on how they came about."""
    fitting = fitting_reduction([matrix.shape[1] for matrix in matrices], spec)
    n_rows = len(matrices[0])
    n_sampled = len(fitted_rows(*matrices[0].shape)) if spec.method == "pca" else n_rows
    return reduce_spaces(matrices, fitting), reduction_note(
        fitting, n_sampled if n_sampled < n_rows else 0, n_rows
    )


def pane_matrices(
    matched: Match, rows: np.ndarray, anchors: Sequence[str], spec: ProjectionSpec, pane: str
) -> list[np.ndarray]:
    """The drawn rows of both spaces in one representation, [(m, d_source), (m, d_target)]; the other rows
    are not made.
    """
    if len(rows) == len(matched):
        return list(represent(matched, pane, anchors, spec))
    maps = representation_maps(matched, pane, anchors, spec)
    return [
        each(space.vectors[rows]) for each, space in zip(maps, (matched.source, matched.target), strict=True)
    ]


def pane_blocks(
    matched: Match, rows: np.ndarray, anchors: Sequence[str], spec: ProjectionSpec, pane: str
) -> list[Iterator[np.ndarray]]:
    """`pane_matrices` in blocks of rows, of the source and of the target: neither matrix is formed."""
    spaces = matched.source.vectors, matched.target.vectors
    maps = representation_maps(matched, pane, anchors, spec)
    return [map(each, blocks_of(X, rows)) for each, X in zip(maps, spaces, strict=True)]


def pca_pair(
    matched: Match,
    rows: np.ndarray,
    pane: str,
    anchors: Sequence[str],
    projection: ProjectionSpec,
    spec: ReductionSpec,
    directions_of: DirectionsOf = Directions.of,
) -> Picture:
    """Coordinates (m, c) of the drawn rows of both spaces by PCA, and a note on how they came about.

    Similarities that are linear in the directions of the rows go by the moments of these; `directions_of` may
    keep them. Others are reduced as a matrix up to `SAMPLED_ROWS` rows. Above, their axes come from a sample,
    and their scores by block.

    Raises
    ------
    SpaceError
        Fewer than three rows, and as `represent` and `reduce_spaces`.
    """
    spaces = matched.source, matched.target
    linear = pane == "whitened" or SIMILARITIES[projection.similarity].load().linear
    if pane not in ("relative", "whitened") or (not linear and len(rows) <= SAMPLED_ROWS):
        return reduce_pair(pane_matrices(matched, rows, anchors, projection, pane), spec)
    anchor_rows = matched.source.rows(shared_anchors(anchors, *spaces))
    need_drawable([(len(rows), len(anchor_rows))] * len(spaces), spec)
    forms = []
    for space in spaces:
        fitted = projection.projection(pane == "whitened")
        if linear:
            known = directions_of(space, rows, projection.center, spec.random_state)
            fitted.fit(space.vectors, anchors=anchor_rows, mean=known.mean)
            forms.append(_Linear(space.vectors, rows, fitted, known))
        else:
            fitted.fit(space.vectors, anchors=anchor_rows, mean=mean_of(space))
            forms.append(_Blocked(space.vectors, rows, fitted, spec.random_state))
    if spec.fit == "first":
        axes = forms[0].axes(spec.n_components)
        pictures = [form.scores(*axes) for form in forms]
        signs = [facing(pictures[0])] * len(forms)
    else:
        pictures = [form.scores(*form.axes(spec.n_components)) for form in forms]
        signs = [facing(picture) for picture in pictures]
    pictures = [picture * sign for picture, sign in zip(pictures, signs, strict=True)]
    return aligned(pictures, spec), reduction_note(spec, forms[0].n_sampled)


def map_pair(
    matched: Match,
    rows: np.ndarray,
    pane: str,
    anchors: Sequence[str],
    projection: ProjectionSpec,
    spec: ReductionSpec,
) -> Picture:
    """Coordinates (m, c) of the drawn rows of both spaces by any method, and a note; errors as in `pca_pair`.

    UMAP of more rows than it is fitted on takes them block by block, to the same numbers as the app's job.
    """
    if spec.method == "pca":
        return pca_pair(matched, rows, pane, anchors, projection, spec)
    if n_fitted(len(rows), spec) == len(rows):
        return reduce_pair(pane_matrices(matched, rows, anchors, projection, pane), spec)
    spaces, maps = (matched.source, matched.target), representation_maps(matched, pane, anchors, projection)
    made = [
        MadeRows(space.vectors, partial(_by_block, each), rows)
        for each, space in zip(maps, spaces, strict=True)
    ]
    return reduce_pair(made, spec)


def _by_block(made: RowMap, X: np.ndarray) -> np.ndarray:
    """`made(X)` in the blocks of `pane_blocks`: larger ones take machine code that rounds otherwise, and
    UMAP shows it.
    """
    return np.concatenate([made(X[block]) for block in row_blocks(len(X))])


@dataclass(frozen=True, eq=False)
class _Linear:
    """The drawn rows of a space, relative to anchors by directions U times a basis B."""

    X: np.ndarray
    rows: np.ndarray
    fitted: RelativeProjection
    known: Directions

    @property
    def n_sampled(self) -> int:
        n = self.known.moments.n
        return n if n < len(self.rows) else 0

    def axes(self, n_components: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the relative rows the leading axes V (k, c), and the scores (c,) of their mean."""
        basis = self.fitted.similarity_.basis_
        moments = self.known.moments
        axes = moments.axes(n_components, basis)
        return axes, moments.mean @ basis @ axes

    def scores(self, axes: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """(m, c): one product with B V."""
        weights = self.fitted.similarity_.basis_ @ axes
        if self.known.few is not None:
            return self.known.few @ weights.astype(np.float32) - offset.astype(np.float32)
        return direction_scores(self.X, self.rows, self.fitted.mean_, weights, offset)


@dataclass(frozen=True, eq=False)
class _Blocked:
    """The same by any similarity. It is computed by block, twice for the sample that the axes are fitted
    on.
    """

    X: np.ndarray
    rows: np.ndarray
    fitted: RelativeProjection
    random_state: int

    @property
    def n_sampled(self) -> int:
        return SAMPLED_ROWS

    def axes(self, n_components: int) -> tuple[np.ndarray, np.ndarray]:
        sample = np.random.default_rng(self.random_state).choice(self.rows, SAMPLED_ROWS, replace=False)
        moments = Moments.of(scaled(block, self._exponent) for block in self._blocks(np.sort(sample)))
        axes = moments.axes(n_components)
        return axes, np.ldexp(moments.mean @ axes, self._exponent)

    def scores(self, axes: np.ndarray, offset: np.ndarray) -> np.ndarray:
        parts = [scaled(block, self._exponent) @ axes.astype(np.float32) for block in self._blocks(self.rows)]
        return scaled(np.concatenate(parts), -self._exponent) - offset.astype(np.float32)

    def _blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        return map(self.fitted.transform, blocks_of(self.X, rows))

    @cached_property
    def _exponent(self) -> int:
        """Of two, by which products of the similarities stay within float32: distances may be as long as
        the rows.
        """
        return brought(next(self._blocks(self.rows)))[1]


# Orientation: turn and mirror the maps of a scene so that they agree, for display only.
#
# The axes of a map have no meaning: PCA's signs, and any turn of UMAP and t-SNE, change with one more anchor.
# Each map is therefore turned or mirrored onto one reference, the PCA map of the same rows in the absolute
# source space. That does not depend on the anchors, so maps before and after a change of anchors agree, and a
# recipe needs no history to draw them again.
#
# Measured on PCA maps of the bundled words: of 440 steps, each adding one anchor to the relative or ten to
# the whitened form, 42 mirror the map, and 9 others turn it by more than 20°. Turned onto the reference, no
# map is mirrored; one is turned by 23°.

NOTE = "turned for display"


def turn_onto(coordinates: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The orthogonal matrix R (c, c) that minimises ‖(X − x̄) R − (T − t̄)‖ for maps X and T (n, c) of the
    same rows.

    Orthogonal Procrustes without scaling. Rows that are NaN in either map are ignored.
    """
    known = np.isfinite(coordinates).all(axis=1) & np.isfinite(reference).all(axis=1)
    which = slice(None) if known.all() else known
    ours, theirs = (one[which].astype(np.float64) for one in (coordinates, reference))
    product = (
        (ours - ours.mean(axis=0)).T @ (theirs - theirs.mean(axis=0)) if known.any() else np.zeros((0, 0))
    )
    if not product.any():
        return np.eye(coordinates.shape[1])
    left, _, right = np.linalg.svd(product)
    return left @ right


def orient_pairs(
    pairs: Mapping[str, tuple[Sequence[np.ndarray], str]],
    reference: np.ndarray,
    pair: Match,
    spec: ReductionSpec,
) -> dict[str, tuple[list[np.ndarray], str]]:
    """The maps of both spaces by representation, each turned; the notes say so.

    The source's map is turned onto `reference` (n, c). The target's gets the same turn where both are on one
    map, so that equal coordinates stay equal; otherwise it is turned onto the source's.
    """
    oriented = {}
    for form, ((source, target), note) in pairs.items():
        turn = turn_onto(source, reference)
        if np.allclose(turn, np.eye(len(turn)), atol=1e-6):
            turn = np.eye(len(turn))
        turned = _turned(source, turn)
        own = turn if _on_one_map(form, pair, spec) else turn_onto(target, turned)
        same = np.array_equal(turn, np.eye(len(turn))) and own is turn
        oriented[form] = ([turned, _turned(target, own)], note if same else f"{note}, {NOTE}")
    return oriented


def _turned(coordinates: np.ndarray, turn: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(coordinates @ turn.astype(np.float32))


def _on_one_map(form: str, pair: Match, spec: ReductionSpec) -> bool:
    """Whether the coordinates of both spaces can be compared: fitted on the first, or aligned already."""
    return spec.align or (
        spec.fit == "first" and (form != "absolute" or pair.source.dimension == pair.target.dimension)
    )
