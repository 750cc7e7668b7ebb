"""Representations of a pair of spaces, and stitching methods, which translate one space into another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from relcore.base.errors import need_one_of
from relcore.base.names import DELTA, METHODS, SIMILARITIES
from relcore.base.rows import centred, mean_row
from relcore.base.settings import check, setting
from relcore.represent.inverse import MOST_PRUNINGS, Inverse, InverseRelativeProjection
from relcore.represent.projection import RelativeProjection
from relcore.represent.strategies import shared_anchors
from relcore.represent.translation import Affine, LeastSquares, Procrustes
from relcore.spaces.matching import Match

# Representations of a pair of spaces, and stitching methods, which translate one space into another.

RowMap = Callable[[np.ndarray], np.ndarray]
REPRESENTATIONS = ("absolute", "relative", "whitened", "procrustes")
COMPARED = REPRESENTATIONS[:3]  # those of each space by itself


@dataclass(frozen=True)
class ProjectionSpec:
    """The parameters of `RelativeProjection` except `whiten`. (Whitened rows are a representation of their
    own.)

    Examples
    --------
    >>> from relcore import ProjectionSpec
    >>> ProjectionSpec(center=False).center
    False
    """

    similarity: str = setting(
        "cosine",
        choices=SIMILARITIES,
        help="Similarity of a row to an anchor. Quantised: cosine after clustering (Moschella et al.).",
    )
    center: bool = setting(
        True,
        label="Centre first",
        help="Subtract each space's mean row first, so that shifts have no effect (Maiorca et al. 2024).",
    )
    ridge: float = setting(
        0.3,
        label="Whitening ridge λ",
        above=0,
        metavar="λ",
        step=0.1,
        help="λ of the whitened form; λ = 1 counts as much as one average anchor.",
    )
    threshold: float = setting(
        1.5,
        label="Cut of the clustering",
        above=0,
        step=0.5,
        help="For the quantised similarity: Ward distance at which the clustering is cut.",
    )

    def __post_init__(self) -> None:
        check(self)

    def projection(self, whiten: bool = False) -> RelativeProjection:
        """An unfitted projection with these parameters. If it whitens, its similarity is always the
        cosine."""
        similarity = "cosine" if whiten else self.similarity
        return RelativeProjection(similarity, self.center, whiten, self.ridge, self.threshold)


def represent(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[np.ndarray, ...]:
    """The representation of each space: "absolute" (n, d), "relative" or "whitened" (n, k), or "procrustes",
    where the spaces are rotated into the target.

    "procrustes" is a reference that uses both spaces and the same anchors. The matrices are read-only,
    because caches share them.

    Raises
    ------
    SpaceError
        Anchors that a space lacks; repeated anchors; no anchors; an unknown representation.
    """
    vectors = tuple(space.vectors for space in match.spaces)
    maps = representation_maps(match, representation, anchor_ids, spec)
    if representation == "absolute":
        return vectors
    rows = tuple(bring(X) for bring, X in zip(maps, vectors, strict=True))
    for matrix in rows:
        matrix.flags.writeable = False
    return rows


def representation_maps(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[RowMap, ...]:
    """For each space, a function that maps rows (m, d) to their representation (m, w), see `represent`."""
    need_one_of("representation", representation, REPRESENTATIONS)
    vectors = [space.vectors for space in match.spaces]
    if representation == "absolute":
        return (np.asarray,) * len(vectors)
    rows = match.source.rows(shared_anchors(anchor_ids, *match.spaces))
    if representation == "procrustes":
        target = vectors.pop(1)
        mean = mean_row(target)  # as in Invert, so that both use the same map
        maps = [partial(Procrustes().fit(X[rows], target[rows]).transform, less=mean) for X in vectors]
        maps.insert(1, partial(centred, mean=mean))
        return tuple(maps)
    whiten = representation == "whitened"
    return tuple(spec.projection(whiten).fit(X, anchors=rows).transform for X in vectors)


# Stitching methods (`names.METHODS`): maps from the rows of one encoder to the input of another encoder's
# head.

Rows = Callable[[np.ndarray], np.ndarray]  # rows (m, d) → (m, d′)


@dataclass(frozen=True)
class MethodSettings:
    """Settings of the projections and the inverses. `ridge` is for whitening and the whitened inverse."""

    center: bool = setting(True, label="Centre first", help="Subtract each space's mean row first.")
    ridge: float = setting(0.3, label="Whitening ridge λ", above=0, metavar="λ", help="Of the whitening.")
    omega: int = setting(
        8,
        label="Prunings ω",
        low=1,
        high=MOST_PRUNINGS,
        metavar="ω",
        help="Number of prunings of the inverse to average.",
    )
    delta: float = setting(
        DELTA, label="Distance δ", low=0, high=1, metavar="δ", help="Pruning distance of the inverse."
    )
    inverse_ridge: float = setting(
        1.0, label="Inverse ridge λ", above=0, metavar="λ", help="Ridge of the ridge inverse."
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class FittedSpace:
    """The data of a space from which maps are fitted: training rows (n, d), anchors (k, d), and the mean of
    the training rows (d,)."""

    train: np.ndarray
    anchors: np.ndarray
    mean: np.ndarray


def fit_representation(name: str, side: FittedSpace, settings: MethodSettings) -> Rows:
    """A function that maps rows of a space to a representation on which heads are trained
    (`families.Method.representation`)."""
    if name == "absolute":
        return lambda X: X
    return METHODS[name].load()(side, settings)


def fit_translation(
    method: str, source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows | None:
    """A function that translates absolute rows of the source into rows of the target. None if the method
    translates no rows."""
    return METHODS[method].load()(source, target, settings, random_state)


def relative(side: FittedSpace, settings: MethodSettings, whiten: bool = False) -> Rows:
    projection = RelativeProjection(center=settings.center, whiten=whiten, ridge=settings.ridge)
    return projection.fit(side.train, anchors=side.anchors).transform


def identity_map(
    source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows | None:
    if source.anchors.shape[1] == target.anchors.shape[1]:
        return lambda X: X
    return None


def _inverse(
    kind: Inverse, source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows:
    if kind == "whitened":
        ridge = settings.ridge
    else:
        ridge = settings.inverse_ridge
    inverse = InverseRelativeProjection(kind, settings.omega, settings.delta, ridge, random_state)
    means = {"source_mean": source.mean, "target_mean": target.mean}
    return inverse.fit(source.anchors, target.anchors, **means).transform


def _direct(
    kind: type, source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows:
    return kind().fit(source.anchors, target.anchors).transform


whitened = partial(relative, whiten=True)
pruned_inverse = partial(_inverse, "pruned")
ridge_inverse = partial(_inverse, "ridge")
whitened_inverse = partial(_inverse, "whitened")
procrustes = partial(_direct, Procrustes)
least_squares = partial(_direct, LeastSquares)
affine = partial(_direct, Affine)
