"""Picture grid: pictures and their reconstructions, a row per encoder and decoder, a block per family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.figures.export import Exportable, drawn
from relcore.figures.style import Theme

_CELL = 40  # units a picture's longer side takes, about: small ones are enlarged by a whole factor
_GAP, _GROUP_GAP = 3, 12
_TITLE = 40  # above the first row, on the screen


@dataclass(frozen=True)
class PictureRow:
    """One encoder with one decoder: its pictures of all originals.

    Attributes
    ----------
    family, name : str
        The block in which it stands; what its row is called, the same in every block.
    stitched : bool
        The second row of a pair.
    pictures : array (m, height, width), 0 … 1
    error : float
        MSE × 10³ over all test pictures, shown next to the row.
    """

    family: str
    name: str
    stitched: bool
    pictures: np.ndarray
    error: float

    @property
    def label(self) -> str:
        return f"{self.name}, stitched" if self.stitched else self.name


@dataclass(frozen=True)
class PictureGrid:
    """Originals (m, height, width), and rows of the same pictures; `note` says whose encoder and decoder,
    and over how many.
    """

    originals: np.ndarray
    rows: tuple[PictureRow, ...]
    note: str = ""

    def __post_init__(self) -> None:
        if not self.rows:
            raise SpaceError("picture grid: expected one row of pictures or more, got none")
        for row in self.rows:
            if row.pictures.shape != self.originals.shape:
                shapes = f"{self.originals.shape} as the originals, got {row.pictures.shape}"
                raise SpaceError(
                    f"picture grid: expected pictures of shape {shapes} in {row.family}, {row.label}"
                )

    @cached_property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.family for row in self.rows))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Of the rows of a block, after the originals."""
        return tuple(dict.fromkeys(row.label for row in self.rows))

    def table(self) -> pd.DataFrame:
        """One line a picture: family, name, stitched, picture (from 1), its mse × 10³, mean_mse (over all
        test pictures).
        """
        parts = []
        for row in self.rows:
            errors = 1000 * np.mean((row.pictures - self.originals) ** 2, axis=(1, 2), dtype=np.float64)
            facts = {
                "family": row.family,
                "name": row.name,
                "stitched": row.stitched,
                "picture": np.arange(len(errors)) + 1,
            }
            parts.append(pd.DataFrame(facts | {"mse": errors, "mean_mse": row.error}))
        return pd.concat(parts, ignore_index=True)

    def alt(self) -> str:
        told = "; ".join(f"{row.family} {row.label}: {error_text(row.error)}" for row in self.rows)
        return (
            f"Grid of {len(self.originals)} pictures and their reconstructions. Mean squared error × 1000:"
            f" {told}. {self.note}"
        )


@dataclass(frozen=True)
class Layout:
    """Where everything stands, in units: x to the right, y down, from the mosaic's corner; texts as (x, y,
    text).

    `mosaic` is uint8 (height, width, 3), `cells` the places of the pictures with their hover texts, `cell`
    the height of a picture.
    """

    mosaic: np.ndarray
    titles: list[tuple[float, float, str]]
    labels: list[tuple[float, float, str]]
    errors: list[tuple[float, float, str]]
    cells: list[tuple[float, float, str]]
    cell: int


def grid_layout(grid: PictureGrid, theme: Theme, above: float = _TITLE) -> Layout:
    """A block per family, one above the other, with `above` units for each title."""
    height, width = grid.originals.shape[1:]
    factor = max(1, round(_CELL / max(height, width)))
    high, wide, above = height * factor, width * factor, int(above)
    offsets = _row_offsets(len(grid.labels), high)
    block_wide = len(grid.originals) * (wide + _GAP) - _GAP
    block_high = above + offsets[-1] + high + _GROUP_GAP
    mosaic = np.empty((len(grid.families) * block_high, block_wide, 3), dtype=np.uint8)
    mosaic[:] = [int(theme.surface[i : i + 2], 16) for i in (1, 3, 5)]
    layout = Layout(mosaic, [], [], [], [], high)
    by_place = {(row.family, row.label): row for row in grid.rows}
    for number, family in enumerate(grid.families):
        top = number * block_high + above
        layout.titles.append((0, top - above / 2, family))
        for label, offset in zip(("original", *grid.labels), offsets, strict=True):
            row, y = by_place.get((family, label)), top + offset
            layout.labels.append((-8, y + high / 2, label))
            if row is None and label != "original":
                continue
            if row:
                layout.errors.append((block_wide + 8, y + high / 2, error_text(row.error)))
            for i, picture in enumerate(row.pictures if row else grid.originals):
                x = i * (wide + _GAP)
                mosaic[y : y + high, x : x + wide] = _enlarged(picture, factor)[..., None]
                layout.cells.append((x + wide / 2, y + high / 2, _hover(grid, row, i)))
    return layout


def error_text(error: float) -> str:
    """Three digits: ``".66"``, ``"9.58"``, ``"97.8"``, ``"156"``."""
    return short(error, 2 if error < 10 else 1 if error < 100 else 0)


def grid_exportable(
    grid: PictureGrid,
    recipe: Mapping[str, Any] | None = None,
    name: str = "pictures",
    latex: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """The grid in all its forms."""
    renderers = drawn("picture_grid_drawn:interactive_figure", "picture_grid_drawn:publication_figure", grid)
    return Exportable(name, *renderers, grid.table, recipe, latex)


def _row_offsets(n_rows: int, high: int) -> list[int]:
    """Tops of the originals and of the rows, which stand in pairs: own and stitched."""
    tops, y = [0], high + _GROUP_GAP
    for number in range(n_rows):
        tops.append(y)
        y += high + (_GAP if number % 2 == 0 else _GROUP_GAP)
    return tops


def _enlarged(picture: np.ndarray, factor: int) -> np.ndarray:
    return np.kron(np.round(255 * picture).astype(np.uint8), np.ones((factor, factor), dtype=np.uint8))


def _hover(grid: PictureGrid, row: PictureRow | None, i: int) -> str:
    if row is None:
        return f"original {i + 1}"
    error = 1000 * float(np.mean((row.pictures[i] - grid.originals[i]) ** 2))
    return (
        f"{row.family}, {row.label}<br>MSE × 10³ of this picture {error_text(error)}, of all"
        f" {error_text(row.error)}"
    )
