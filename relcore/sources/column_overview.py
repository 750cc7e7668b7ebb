"""What the columns of a table are read as, in few lines: for the page and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from relcore.sources.columns import Column, Columns, Role

_ORDER: tuple[Role, ...] = ("unclear", "ids", "labels", "counts", "text", "pictures", "dimension", "left out")
_FEW = 4  # more columns of one kind beside each other are one line


def overview(found: Columns) -> list[tuple[str, str, str]]:
    """Column, what it is read as, and why, one line each; what needs a decision comes first.

    Examples
    --------
    >>> from relcore.sources.columns import Column, Columns
    >>> dimensions = [Column(f"d{place}", "dimension", "numbers") for place in range(300)]
    >>> overview(Columns((Column("id", "ids", "named 'id'"), *dimensions)))
    [('id', 'ids', "named 'id'"), ('d0 … d299', '300 dimensions', 'numbers')]
    """
    lines = []
    for (role, reason), group in groupby(found.columns, key=lambda column: (column.role, column.reason)):
        columns = list(group)
        parts = [columns] if len(columns) > _FEW and role in ("dimension", "left out") else [[column] for column in columns]
        for part in parts:
            where = f"{part[0].where}: " if part[0].where else ""
            lines.append((role, _title(part), _read_as(role, len(part), found), where + reason))
    return [line[1:] for line in sorted(lines, key=lambda line: _ORDER.index(line[0]))]


def what_loads(n: int | None, dimension: int | None, limit: int | None = None) -> str:
    """``"12 rows × 4 dimensions"``, as far as it is known."""
    n = n if n is None or limit is None else min(n, limit)
    rows = [] if n is None else [f"{n:,} row{'s' * (n != 1)}"]
    return " × ".join(rows + ([] if dimension is None else [f"{dimension:,} dimension{'s' * (dimension != 1)}"]))


def shown_name(name: str) -> str:
    """The name of a column, also where it has none."""
    return name or "(no name)"


def _title(columns: Sequence[Column]) -> str:
    first, last = shown_name(columns[0].name), shown_name(columns[-1].name)
    return first if len(columns) == 1 else f"{first} … {last}"


def _read_as(role: Role, n: int, found: Columns) -> str:
    if role == "unclear":
        return "⚠ unclear"
    if role == "dimension" and len(found.places("dimension")) == 1 and found.dimension != 1:
        return "dimensions" if found.dimension is None else f"{found.dimension:,} dimensions"
    return role if n == 1 else f"{n:,} dimensions" if role == "dimension" else f"{n:,} {role}"
