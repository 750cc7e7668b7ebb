"""Orientation: turn and mirror the maps of a scene so that they agree, for display only.

The axes of a map have no meaning: PCA's signs, and any turn of UMAP and t-SNE, change with one more anchor. Each map is
therefore turned or mirrored onto one reference, the PCA map of the same rows in the absolute source space. That does not depend
on the anchors, so maps before and after a change of anchors agree, and a recipe needs no history to draw them again.

Measured on PCA maps of the bundled words: of 440 steps, each adding one anchor to the relative or ten to the whitened form, 42
mirror the map, and 9 others turn it by more than 20°. Turned onto the reference, no map is mirrored; one is turned by 23°.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relcore.reduction import ReductionSpec
from relcore.spaces import Match

NOTE = "turned for display"


def turn_onto(coordinates: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The orthogonal matrix R (c, c) that minimises ‖(X − x̄) R − (T − t̄)‖ for maps X and T (n, c) of the same rows.

    Orthogonal Procrustes without scaling. Rows that are NaN in either map are ignored.
    """
    known = np.isfinite(coordinates).all(axis=1) & np.isfinite(reference).all(axis=1)
    which = slice(None) if known.all() else known
    ours, theirs = (one[which].astype(np.float64) for one in (coordinates, reference))
    product = (ours - ours.mean(axis=0)).T @ (theirs - theirs.mean(axis=0)) if known.any() else np.zeros((0, 0))
    if not product.any():
        return np.eye(coordinates.shape[1])
    left, _, right = np.linalg.svd(product)
    return left @ right


def orient_pairs(
    pairs: Mapping[str, tuple[Sequence[np.ndarray], str]], reference: np.ndarray, pair: Match, spec: ReductionSpec
) -> dict[str, tuple[list[np.ndarray], str]]:
    """The maps of both spaces by representation, each turned; the notes say so.

    The source's map is turned onto `reference` (n, c). The target's gets the same turn where both are on one map, so that equal
    coordinates stay equal; otherwise it is turned onto the source's.
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
    return spec.align or (spec.fit == "first" and (form != "absolute" or pair.source.dimension == pair.target.dimension))
