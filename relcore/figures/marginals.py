"""A heat map with marginal bars: the average of each row and column, with marks to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.figures.export import Exportable, drawn
from relcore.figures.matrices import Matrices


@dataclass(frozen=True, eq=False)
class Margins:
    """One panel of `matrices`, and a bar for each of its rows (at the right) and columns (beneath).

    Attributes
    ----------
    matrices : Matrices
        Of one panel.
    rows, columns : arrays (r,) and (c,)
        Lengths of the bars on the scale of the matrix, 0 … 1; NaN for none.
    row_marks, column_marks : arrays, optional
        A line across each bar, such as what is not stitched.
    row_title, column_title, mark_title : str
        What the bars and the lines are.
    """

    matrices: Matrices
    rows: np.ndarray
    columns: np.ndarray
    row_marks: np.ndarray | None = None
    column_marks: np.ndarray | None = None
    row_title: str = "row mean"
    column_title: str = "column mean"
    mark_title: str = ""

    def __post_init__(self) -> None:
        if len(self.matrices.panels) != 1:
            raise ValueError(f"margins: expected one panel, got {len(self.matrices.panels)}")
        shape = self.matrices.panels[0].values.shape
        for name, expected in zip(("rows", "columns", "row_marks", "column_marks"), shape * 2, strict=True):
            values = getattr(self, name)
            if values is not None and len(values) != expected:
                raise ValueError(f"margins: expected {expected} {name}, got {len(values)}")


def margins_exportable(
    margins: Margins,
    recipe: Mapping[str, Any] | None = None,
    name: str = "margins",
    latex: Callable[[], pd.DataFrame] | None = None,
    table: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """The heat map with its bars in all forms; see `matrices_exportable`."""
    renderers = drawn("marginals_interactive:margins_figure", "marginals_publication:margins_figure", margins)
    return Exportable(name, *renderers, table or margins.matrices.table, recipe, latex)
