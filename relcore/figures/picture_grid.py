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
    """Where everything stands, in units: x to the right, y down, from the mosaic's corner.

    Attributes
    ----------
    mosaic : uint8 array (height, width, 3)
    left, right : float
        Room beside the mosaic for labels and for the last block's errors.
    titles : tuple of (x, y, text)
    labels : tuple of (x, y, text)
    errors : tuple of (x, y, text)
    cells : tuple of (x, y, hover text)
    cell : int
        Height of a picture.
    """

    mosaic: np.ndarray
    left: float
    right: float
    titles: tuple[tuple[float, float, str], ...]
    labels: tuple[tuple[float, float, str], ...]
    errors: tuple[tuple[float, float, str], ...]
    cells: tuple[tuple[float, float, str], ...]
    cell: int


def grid_layout(
    grid: PictureGrid, theme: Theme, stacked: bool, left: float, right: float, above: float = _TITLE
) -> Layout:
    """Blocks beside each other, or stacked; units `left` for labels, `right` for errors, `above` for each
    title.
    """
    height, width = grid.originals.shape[1:]
    factor = max(1, round(_CELL / max(height, width)))
    high, wide = height * factor, width * factor
    offsets = _row_offsets(len(grid.labels), high)
    block_wide = len(grid.originals) * (wide + _GAP) - _GAP
    above = int(above)
    block_high = above + offsets[-1] + high
    n = len(grid.families)
    size = (
        (n * (block_high + _GROUP_GAP), block_wide)
        if stacked
        else (block_high, n * (block_wide + right) - right)
    )
    surface = [int(theme.surface[i : i + 2], 16) for i in (1, 3, 5)]
    mosaic = np.empty((int(size[0]), int(size[1]), 3), dtype=np.uint8)
    mosaic[:] = surface
    titles, labels, errors, cells = [], [], [], []
    by_place = {(row.family, row.label): row for row in grid.rows}
    for number, family in enumerate(grid.families):
        x0, y0 = (
            (0, number * (block_high + _GROUP_GAP)) if stacked else (int(number * (block_wide + right)), 0)
        )
        titles.append((x0, y0 + above / 2, family))
        for label, offset in zip(("original", *grid.labels), offsets, strict=True):
            row, y = by_place.get((family, label)), y0 + above + offset
            if number == 0 or stacked:
                labels.append((-8, y + high / 2, label))
            if row is None and label != "original":
                continue
            pictures = grid.originals if row is None else row.pictures
            if row:
                errors.append((x0 + block_wide + 8, y + high / 2, error_text(row.error)))
            for i, picture in enumerate(pictures):
                x = x0 + i * (wide + _GAP)
                mosaic[y : y + high, x : x + wide] = _enlarged(picture, factor)[..., None]
                cells.append((x + wide / 2, y + high / 2, _hover(grid, row, i)))
    return Layout(mosaic, left, right, tuple(titles), tuple(labels), tuple(errors), tuple(cells), high)


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
