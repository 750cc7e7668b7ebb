"""Read and write files of links: pairs of ids that describe the same item."""

from __future__ import annotations

import re
from itertools import compress
from pathlib import Path

import pandas as pd

from relcore.base.access import expand_home, regular_file
from relcore.base.earlier import KIND_OF_LINKS
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.report import delimited_text, json_lines
from relcore.base.text import lines_in, read_lines
from relcore.base.writing import replacing, write
from relcore.files.formats import checked_labels
from relcore.files.saving import write_parquet

Pairs = tuple[tuple[str, str], ...]  # (id of the source, id of the target)

CONFIRMED = "confirmed"  # kind of links that a user confirmed
NOT_KEPT = "not kept"  # kind of links below the requested precision
KNOWN = ("seed", "anchor", CONFIRMED)  # kinds of pairs that can be seeds of another run
SCORED = ("", "seed", CONFIRMED)  # kinds of pairs that scores may use; files without kinds have ""
LINK_FILES = (".parquet", ".tsv", ".csv", ".jsonl")
ENDS = ("source", "target")
KINDS = ("kind", KIND_OF_LINKS)  # columns of kinds
_MOST_LINKS = 10_000_000


def write_links(path: Path, links: pd.DataFrame) -> None:
    """Write a table of links as .parquet, .tsv, .csv or .jsonl. `read_links` reads these files."""
    if path.suffix.lower() == ".parquet":
        with extra():
            import pyarrow as pa
        table = pa.Table.from_pandas(links, preserve_index=False)
        with replacing(path) as stream:
            write_parquet(stream, table.schema, [table])
        return
    if path.suffix.lower() == ".jsonl":
        text = json_lines(links)
    else:
        text = delimited_text(links, "," if path.suffix.lower() == ".csv" else "\t")
        if "\0" in text:
            raise SpaceError(
                f"{path.name}: expected ids without zero bytes, got one with some; write .parquet or .jsonl"
            )
    write(path, text.encode())


def read_links(path: Path, option: str = "") -> tuple[Pairs, tuple[str, ...]]:
    """Read the pairs of ids in a file, and the kind of each pair, such as "seed" or "link" ("" if the file
    has no kinds). Pairs of the kind "not kept" are left out. `option` is named in errors.

    In a .parquet, .csv or .jsonl file, and in a .tsv file that `write_links` wrote, the ids are in the
    columns source and target; without such columns, in the first two. Other files have one pair per line; the
    ids are separated by a tab or "=".

    Raises
    ------
    SpaceError
        A missing file; a file without pairs; a line without two ids; an empty cell.
    """
    path = expand_home(path)
    where = f"{option}: " if option else ""
    if not path.is_file():
        got = f"{str(path)!r:.200}, where there is none"
        raise SpaceError(f"{where}expected a file of pairs, got {got}; check the spelling")
    suffix = path.suffix.lower()
    if suffix == ".csv" or is_links(path):
        if suffix not in LINK_FILES:
            raise SpaceError(f"{path.name}: expected links in a .tsv file, got {suffix!r}; rename it")
        pairs, kinds = _in_table(path)
    else:
        lines = read_lines(path, "one pair per line")
        try:
            pairs = read_pairs("\n".join(lines))
        except SpaceError as error:
            raise SpaceError(f"{path.name}, {error}") from error
        kinds = ("",) * len(pairs)
    kept = [kind != NOT_KEPT for kind in kinds]
    pairs = tuple(compress(pairs, kept))
    kinds = tuple(compress(kinds, kept))
    if not pairs:
        raise SpaceError(f"{path.name}: expected at least one pair, got none; write one pair per line")
    return pairs, kinds


def known_pairs(path: Path, option: str = "") -> Pairs:
    """The known pairs in a file: seeds, anchors and confirmed links, or all pairs if the file has no kinds.
    Raises the same errors as `read_links`.
    """
    pairs, kinds = read_links(path, option)
    known = tuple(pair for pair, kind in zip(pairs, kinds, strict=True) if kind in ("", *KNOWN))
    if not known:
        raise SpaceError(
            f"{path.name}: expected pairs of the kinds {quote(KNOWN)}, got none; write {CONFIRMED!r} as the"
            " kind of links that are right"
        )
    return known


def _in_table(path: Path) -> tuple[Pairs, tuple[str, ...]]:
    """The pairs of ids in a table, and the kind of each; "" if the table has no column of kinds."""
    from relcore.files.item_rows import open_table

    def cells(name: str) -> list[str]:
        return list(map(str, checked_labels(table.read(name, 0, n), f"{path.name}, column {name!r}")))

    table = open_table([path])
    n = len(table)
    names = list(table.columns)
    got = ""
    if len(names) < 2:
        got = quote(names) or "none"
    elif n > _MOST_LINKS:
        got = f"{n:,} rows"
    if got:
        raise SpaceError(
            f"{path.name}: expected two columns of ids, source and target, with at most {_MOST_LINKS:,} rows,"
            f" got {got}; name the columns in the first line"
        )
    source, target = names[:2]
    kind = None
    if set(ENDS) <= set(names):
        source, target = ENDS
        kind = next((name for name in KINDS if name in names), None)
    pairs = tuple(zip(cells(source), cells(target), strict=True))
    kinds = ("",) * n
    if kind:
        kinds = tuple(cells(kind))
    if empty := [row for row, pair in enumerate(pairs) if not all(pair)]:
        raise SpaceError(
            f"{path.name}: expected an id in every cell, got {len(empty)} rows without, first row {empty[0]};"
            " fill these rows, or leave them out"
        )
    return pairs, kinds


def is_links(path: Path) -> bool:
    """Whether a file holds links: a .parquet or .jsonl file, or a text whose first line names the columns
    that `link` and `audit` write.
    """
    if path.suffix.lower() in (".parquet", ".jsonl"):
        return True
    with regular_file(path).open("rb") as stream:
        head = re.split("[\t,\r\n]", stream.read(100).decode("utf-8-sig", "replace").replace('"', ""))
    return tuple(head[:2]) == ENDS and head[2:3] in [[kind] for kind in KINDS]


def read_pairs(text: str) -> Pairs:
    """The pairs of ids in a text with one pair per line. The ids are separated by a tab; if the line has no
    tab, by "=". Further columns are ignored. Raises a SpaceError for a line without two ids.
    """
    pairs = []
    for number, line in enumerate(lines_in(text), start=1):
        if not line.strip():
            continue
        if "\t" in line:
            cells = line.split("\t")
        else:
            cells = line.split("=", 1)
        cells = [cell.strip() for cell in cells]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            got = f"{line.strip()!r:.60}"
            raise SpaceError(
                f"line {number}: expected “id of the source = id of the target”, got {got}; mend or remove it"
            )
        pairs.append((cells[0], cells[1]))
    return tuple(pairs)
