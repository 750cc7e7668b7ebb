"""Representations of a pair of spaces: absolute, relative to anchors, whitened, and rotated by Procrustes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from relcore.base.errors import need_one_of
from relcore.base.names import SIMILARITIES
from relcore.base.rows import centred, mean_row
from relcore.base.settings import check, setting
from relcore.represent.anchors import shared_anchors
from relcore.represent.similarity import RelativeProjection
from relcore.represent.translation import Procrustes
from relcore.spaces.matching import Match

RowMap = Callable[[np.ndarray], np.ndarray]
REPRESENTATIONS = ("absolute", "relative", "whitened", "procrustes")


@dataclass(frozen=True)
class ProjectionSpec:
    """The parameters of `RelativeProjection` except `whiten`, which is another representation.

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
        help="Of the quantised similarity: Ward distance at which the clustering is cut.",
    )

    __post_init__ = check

    def projection(self, whiten: bool = False) -> RelativeProjection:
        """An unfitted projection; a whitened one always uses the cosine."""
        similarity = "cosine" if whiten else self.similarity
        return RelativeProjection(similarity, self.center, whiten, self.ridge, self.threshold)


def represent(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[np.ndarray, ...]:
    """Each space as "absolute" (n, d), "relative" or "whitened" (n, k), or rotated into the target
    ("procrustes").

    Procrustes is a reference: it uses both spaces and the same anchors. The matrices are read-only, because
    caches share them.

    Raises
    ------
    SpaceError
        Anchors that a space lacks, repeated anchors, or none; an unknown representation.
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
    """A function for each space from rows (m, d) to their representation (m, w), as `represent` gives it."""
    need_one_of("representation", representation, REPRESENTATIONS)
    vectors = [space.vectors for space in match.spaces]
    if representation == "absolute":
        return (np.asarray,) * len(vectors)
    rows = match.source.rows(shared_anchors(anchor_ids, *match.spaces))
    if representation == "procrustes":
        target = vectors.pop(1)
        mean = mean_row(target)  # the same map as Invert uses
        first, *others = (
            partial(Procrustes().fit(X[rows], target[rows]).transform, less=mean) for X in vectors
        )
        return first, partial(centred, mean=mean), *others
    whiten = representation == "whitened"
    return tuple(spec.projection(whiten).fit(X, anchors=rows).transform for X in vectors)
