"""Teaching material of the story: a rotated plane, and pairs and anchors for which the comparison fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relcore.base.rows import directions
from relcore.engine.nearest import nearest_within
from relcore.represent.representations import ProjectionSpec, represent
from relcore.represent.similarity import mean_of
from relcore.scores.neighbours import without_fixed_points
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

# Words at the places that a model of two dimensions might give them, and the anchors among them.
_FIRST = [2.3, 2.9, 1.4, -2.4, -1.1, -2.8, -1.3, 0.6, 1.2]
_SECOND = [0.5, 1.5, 2, 1.8, 2.6, 0.4, -2.3, -1.7, -3]
PLANE = LatentSpace(
    np.stack([_FIRST, _SECOND], axis=1),
    ["cat", "dog", "wolf", "car", "bus", "bike", "oak", "rose", "fern"],
    labels=["animal"] * 3 + ["vehicle"] * 3 + ["plant"] * 3,
    name="plane",
)
PLANE_ANCHORS = ("wolf", "bus", "rose")


def moved_plane(degrees: float, mirrored: bool, scale: float) -> Match:
    """`PLANE` paired with its points, which are mirrored left to right, rotated counter-clockwise and
    scaled."""
    turn = np.deg2rad(degrees)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    points = scale * (PLANE.vectors * ([-1, 1] if mirrored else [1, 1])) @ rotation
    return _with_target(Match(PLANE, PLANE, 0, 0, 0), points)


def plane_similarities(pair: Match) -> tuple[np.ndarray, np.ndarray]:
    """Cosines (n, 3) of the points to the anchors, before and after the move, seen from the origin."""
    return represent(pair, "relative", PLANE_ANCHORS, ProjectionSpec(center=False))


def crowded_anchors(space: LatentSpace, around: str, n_anchors: int) -> tuple[str, ...]:
    """The row with the id `around` and the n_anchors − 1 rows nearest to it: anchors from one cluster."""
    row = space.rows([around])
    near = nearest_within(directions(space.vectors, mean_of(space)), row, n_anchors - 1)[0]
    return (around, *space.ids[near])


def with_wrong_pairs(pair: Match, anchors: tuple[str, ...], random_state: int = 0) -> Match:
    """The pair with the target rows of the anchors permuted; all other rows are unchanged."""
    rows, points = pair.target.rows(anchors), np.array(pair.target.vectors)
    points[rows] = points[rows[without_fixed_points(len(rows), np.random.default_rng(random_state))]]
    return _with_target(pair, points)


def with_unrelated_target(pair: Match, random_state: int = 0) -> Match:
    """The pair with a target of random numbers (standard normal)."""
    shape = len(pair), pair.target.dimension
    return _with_target(pair, np.random.default_rng(random_state).normal(size=shape))


def _with_target(pair: Match, points: np.ndarray) -> Match:
    target = pair.target
    columns = {"name": target.name, "labels": target.labels, "counts": target.counts}
    return replace(pair, target=LatentSpace(points, target.ids, **columns))
