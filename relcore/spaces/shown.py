"""What a notebook shows of a space or a match."""

from __future__ import annotations

from typing import Any

import numpy as np

from relcore.base.numbers import counted
from relcore.base.report import Report, Table
from relcore.base.text import visible
from relcore.spaces.ids import Texts

_FIRST = 5  # number of rows that are shown
_MOST = 80  # characters of an id or a label


def shape_text(name: str, n: int, dimension: int) -> str:
    return f"{visible(name)}: {counted(n, 'row')} × {counted(dimension, 'dimension')}"


def rows_html(sentence: str, ids: Texts, columns: dict[str, Any], note: str = "") -> str:
    """The sentence as HTML, with a table of the ids and columns of the first rows. A column that the
    space lacks is None; one that is empty in these rows is not shown."""
    shown = {"id": list(map(_cell, ids[:_FIRST]))}
    for name, column in columns.items():
        if column is not None and any(cells := list(map(_cell, column[:_FIRST]))):
            shown[name] = cells
    table = [[*shown], *map(list, zip(*shown.values(), strict=True))]
    caption = ""
    if len(ids) > _FIRST:
        caption = f"The first {_FIRST} of {len(ids):,} rows."
    return Report(sentence, [Table(shown=table, caption=caption)], notes=[note] if note else []).html()


def _cell(value: Any) -> str:
    if isinstance(value, np.integer):
        return f"{value:,}"
    return visible(value, _MOST)
