"""Two maps of the same rows, by the old and the new version: each row has the colour of how far it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.kinds import need_kinds
from relcore.base.numbers import counted, short
from relcore.base.rows import unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.drift.check import DriftCheck
from relcore.drift.measures import TIE, decompose, other_lengths
from relcore.figures.colorings import EDGES, ColorScale, Pane
from relcore.figures.export import Exportable
from relcore.figures.scene import Scene
from relcore.maps.principal_axes import ReductionSpec, principal_map
from relcore.panes.page import scene_exportable
from relcore.spaces.matching import distinct_names, known_rows, match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import smallest_keys

MOST_DRAWN = 5_000
N_MARKED = 8
_TITLE = "moved"


@dataclass(frozen=True, kw_only=True)
class DriftMap(Recipe, figure="drift-rows"):
    """A figure of the rows of two versions in the same axes, coloured by how far each row moved.

    Examples
    --------
    >>> from relcore import DriftMap, SpaceSpec
    >>> first, second = (SpaceSpec("file", name) for name in ("old.npy", "new.npy"))
    >>> DriftMap(old=first, new=second).figure
    'drift-rows'
    """

    old: SpaceSpec
    new: SpaceSpec
    digests: tuple[str, ...] = ()
    drift: DriftCheck = DriftCheck()

    def __post_init__(self) -> None:
        need_kinds(self)

    def draw(self, result: Scene | None = None) -> Exportable:
        scene = result or moved_scene(self.loaded(), self.drift)
        return scene_exportable(scene, self.to_json(), name="relscope-drift-rows")


def moved_scene(spaces: Sequence[LatentSpace], spec: DriftCheck) -> Scene:
    """The scene of an old and a new version of the same rows: the old rows after the shift, scale and
    rotation that fit the new ones best, and the new rows, both along the two longest axes of the old ones.

    A row's movement is the distance between the two, divided by the root mean square distance of the new rows
    from their mean. Of more than 5,000 rows, a sample is drawn, with the rows that moved most. Rows that
    moved by more than numeric noise are marked, at most eight.
    """
    pair = match(*known_rows(spaces))
    old = pair.source.vectors
    new = pair.target.vectors
    split = decompose(old, new)
    if other_lengths(old, new, split, spec.jitter) is not None:
        old = unit_rows(old)
        new = unit_rows(new)
        split = decompose(old, new)
    movement = np.sqrt(split.remaining)
    noise = TIE * spec.jitter * np.sqrt(split.lengths)
    farthest = np.argsort(-movement, kind="stable")[:N_MARKED]
    farthest = farthest[movement[farthest] > noise[farthest]]
    others = smallest_keys(len(pair), MOST_DRAWN - len(farthest), "map", spec.random_state, farthest)
    rows = np.sort(np.concatenate([farthest, others]))

    fitted = split.scale * ((old[rows] - old.mean(axis=0, dtype=np.float64)) @ split.rotation)
    arrived = new[rows] - new.mean(axis=0, dtype=np.float64)
    before, axes = principal_map(fitted, ReductionSpec())
    names = distinct_names((pair.source, pair.target))
    panes = (Pane(f"Before: {names[0]}", before), Pane(f"After: {names[1]}", axes(arrived)))
    # The scale reaches to the noise at least, so that versions without drift have one colour.
    low, high = np.percentile(movement, EDGES).tolist()
    if high <= noise.max():
        low = 0.0
        high = float(noise.max())
    scale = ColorScale(_TITLE, low, high)
    drawn = counted(len(pair), "row")
    if len(rows) < len(pair):
        drawn = f"{len(rows):,} of {drawn}"
    return Scene(
        panes,
        pair.ids[rows],
        scale.steps(movement[rows]),
        caption=(
            f"{drawn} before and after, in the same axes, coloured by how far each moved beyond the best"
            f" shift, scale and rotation: median {short(float(np.median(movement)))}, farthest"
            f" {short(float(movement.max()))} of the typical distance from the mean."
        ),
        scale=scale,
        values=movement[rows],
        color_title=_TITLE,
        marked=np.searchsorted(rows, np.sort(farthest)),
    )
