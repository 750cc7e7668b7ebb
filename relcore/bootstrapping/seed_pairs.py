"""Known pairs of ids as text, one per line: what is typed on the page, and the files that the command line reads."""

from __future__ import annotations

from relcore.spaces import SpaceError
from relcore.text_lines import lines_in


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of ids, one per line, separated by a tab or else by "="; blank lines and further columns are ignored.

    Raises
    ------
    SpaceError
        A line that does not have two sides.
    """
    pairs = []
    for number, line in enumerate(lines_in(text), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split("=", 1))]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            got = f"{line.strip()!r:.60}"
            raise SpaceError(f"line {number}: expected “id of the source = id of the target”, got {got}; mend or remove it")
        pairs.append((cells[0], cells[1]))
    return tuple(pairs)
