"""Two maps of the same rows, by the old and the new version: each row has the colour of how far it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.kinds import need_kinds
from relcore.base.numbers import counted, short
from relcore.base.rows import lengths, row_blocks, unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.drift.broken_rows import out_of_place
from relcore.drift.check import DriftCheck
from relcore.drift.measures import BLOCK_ROWS, TIE, Decomposition, decompose, other_lengths
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

    Rows out of place (see `out_of_place`) do not count for the fit. A row's movement is the distance between
    the two, divided by the root mean square distance of the new rows from their mean. Of more than 5,000
    rows, a sample is drawn, with the rows that moved most. Rows that moved by more than numeric noise are
    marked, at most eight.
    """
    pair = match(*known_rows(spaces))
    fit = _fit_of(pair.source.vectors, pair.target.vectors, spec.jitter)
    movement = fit.movement
    farthest = np.argsort(-movement, kind="stable")[:N_MARKED]
    farthest = farthest[movement[farthest] > fit.noise[farthest]]
    others = smallest_keys(len(pair), MOST_DRAWN - len(farthest), "map", spec.random_state, farthest)
    rows = np.sort(np.concatenate([farthest, others]))

    before, axes = principal_map(fit.fitted(rows), ReductionSpec())
    after = axes(fit.centred_new(rows))
    names = distinct_names((pair.source, pair.target))
    panes = (Pane(f"Before: {names[0]}", before), Pane(f"After: {names[1]}", after))
    # The scale reaches to the noise at least, so that versions without drift have one colour.
    low, high = np.percentile(movement, EDGES).tolist()
    if high <= fit.noise.max():
        low = 0.0
        high = float(fit.noise.max())
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


@dataclass
class _Fit:
    """The shift, scale and rotation of old rows (n, d) that fit the new rows (n, e) best.

    `movement` (n,) is the distance of each new row from the fit of its old row, and `noise` (n,) the largest
    distance that numeric noise explains. Both are divided by the root mean square distance of the new rows
    from their mean.
    """

    old: np.ndarray
    new: np.ndarray
    split: Decomposition
    mean_old: np.ndarray
    mean_new: np.ndarray
    movement: np.ndarray
    noise: np.ndarray

    def fitted(self, rows: np.ndarray | slice) -> np.ndarray:
        return self.split.scale * ((self.old[rows] - self.mean_old) @ self.split.rotation)

    def centred_new(self, rows: np.ndarray | slice) -> np.ndarray:
        return self.new[rows] - self.mean_new


def _fit_of(old: np.ndarray, new: np.ndarray, jitter: float) -> _Fit:
    split = decompose(old, new)
    if other_lengths(old, new, split, jitter) is not None:
        old = unit_rows(old)
        new = unit_rows(new)
        split = decompose(old, new)
    # Rows out of place are not fitted, so that they do not move the others.
    stays = ~out_of_place(old, new, jitter)[0]
    mean_old = old[stays].mean(axis=0, dtype=np.float64)
    mean_new = new[stays].mean(axis=0, dtype=np.float64)
    noise = TIE * jitter * np.sqrt(split.lengths)
    fit = _Fit(old, new, split, mean_old, mean_new, np.sqrt(split.remaining), noise)
    if stays.all():
        return fit
    fit.split = decompose(old[stays], new[stays])
    size = float(np.sqrt(np.square(lengths(new, new.mean(axis=0)), dtype=np.float64).mean()))
    for block in row_blocks(len(old), BLOCK_ROWS):
        residuals = fit.centred_new(block) - fit.fitted(block)
        fit.movement[block] = np.linalg.norm(residuals, axis=1) / size
    return fit
