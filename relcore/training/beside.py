"""What lies beside checkpoints that were saved as spaces: labels of their rows, and what the training
logged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from relcore.base.access import may_read
from relcore.base.errors import SpaceError, quote
from relcore.base.text import read_lines

LABELS = "labels.txt"
LOG = "metrics.csv"

Points = tuple[np.ndarray, np.ndarray]


def labels_beside(place: Path, n: int) -> np.ndarray | None:
    """The n lines of ``labels.txt`` in the folder of a run, or in the folder above it, which holds several
    runs. None if there is no such file. Raises a SpaceError for another number of lines."""
    for path in (place / LABELS, place.parent / LABELS):
        if path.is_file() and may_read(path):
            lines = read_lines(path, "labels")
            while len(lines) > n and not lines[-1]:
                lines.pop()
            if len(lines) != n:
                raise SpaceError(
                    f"{path}: expected {n:,} labels, one line for each row of the first checkpoint, got"
                    f" {len(lines):,}; write a label for each row"
                )
            return np.array(lines, object)
    return None


def metrics_beside(place: Path) -> Mapping[str, Points]:
    """The columns of ``metrics.csv`` in the folder of a run: the steps and values of each metric, such as
    ``accuracy``. The first line names the columns, one of which is ``step``. An empty cell is no value.

    {} if there is no such file. Raises a SpaceError for other content.
    """
    path = place / LOG
    if not path.is_file() or not may_read(path):
        return MappingProxyType({})
    first, *lines = [line.split(",") for line in read_lines(path, "metrics") if line.strip()] or [[""]]
    names = [name.strip() for name in first]
    expected = f"{path}: expected columns step and accuracy, or other metrics, of numbers"
    if "step" not in names or len(names) < 2:
        raise SpaceError(f"{expected}, got the columns {quote(names)}; name them in the first line")
    points: dict[str, dict[int, float]] = {name: {} for name in names if name != "step"}
    for cells in lines:
        try:
            row = dict(zip(names, cells, strict=True))
            step = int(row.pop("step"))
            values = {name: float(cell) for name, cell in row.items() if cell.strip()}
        except ValueError:
            raise SpaceError(f"{expected}, got {','.join(cells)!r:.80}; correct this line") from None
        for name, value in values.items():
            points[name][step] = value
    return MappingProxyType({name: _sorted(values) for name, values in points.items() if values})


def _sorted(values: Mapping[int, float]) -> Points:
    steps = sorted(values)
    return np.array(steps, np.int64), np.array([values[step] for step in steps])
