"""Lists of pairs: sentences and their translations, or ids of two spaces, from a .csv or .tsv of two columns or more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relcore.sources.item_tables import SUFFIXES, open_table
from relcore.sources.row_values import checked_labels
from relcore.sources.table_dataset import item_columns
from relcore.spaces import SpaceError, quote

MOST_PAIRS = 100_000


@dataclass(frozen=True)
class PairList:
    """Columns of equal length; row i means the same in every column.

    Attributes
    ----------
    name : str
    columns : name → its cells
    """

    name: str
    columns: dict[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def pairs(self, first: str, second: str) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns[first], self.columns[second], strict=True))


def read_pair_list(path: Path) -> PairList:
    """The text columns of a table; if there are fewer than two, all of its columns.

    Raises
    ------
    SpaceError
        No table, fewer than two columns or rows, empty cells, with the first one's row.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise SpaceError(
            f"{path.name}: expected a list of pairs in a .csv, .tsv or .parquet file, got {path.suffix or 'no suffix'!r}; save "
            "the two columns as .tsv"
        )
    table = open_table([path])
    texts = [name for name in item_columns(table.columns) if table.columns[name] == "text"]
    names = texts if len(texts) > 1 else [name for name, kind in table.columns.items() if kind in ("text", "number")]
    if len(names) < 2:
        raise SpaceError(
            f"{path.name}: expected two columns, one per language, got {quote(table.columns) or 'none'}; name them in the "
            f"first line and separate cells by {'tabs' if path.suffix.lower() == '.tsv' else 'commas'}"
        )
    n = len(table)
    if n < 2:
        raise SpaceError(f"{path.name}: expected two pairs or more beneath the line of names, got {n}; add pairs")
    if n > MOST_PAIRS:
        raise SpaceError(f"{path.name}: expected at most {MOST_PAIRS:,} pairs, got {n:,}; keep the first ones")
    columns = {
        name: tuple(" ".join(cell.split()) for cell in checked_labels(table.read(name, 0, n), f"{path.name}, column {name!r}"))
        for name in names
    }
    for name, cells in columns.items():
        empty = [row for row, cell in enumerate(cells) if not cell]
        if empty:
            raise SpaceError(
                f"{path.name}: expected text in every cell of {name!r}, got {len(empty)} empty, first row {empty[0]}; fill it, "
                "or leave the line out"
            )
    return PairList(path.stem, columns)
