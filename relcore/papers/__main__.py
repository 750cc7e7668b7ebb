"""`python -m relcore.papers`: measure our numbers for the papers' tables, and write them to
relcore/data/papers/ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.papers.ours import SHIPPED, read_ours, write_ours
from relcore.papers.rows import find_row, load_rows
from relcore.papers.runs import RUNS, expected, is_current, measure, what_is_missing
from relcore.runs import pace
from relcore.runs.digest import StoreError
from relcore.runs.store import Store, in_use


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m relcore.papers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="ROW", help="rows (relative-table-1) or runs (words); default: list them"
    )
    parser.add_argument("--all", action="store_true", help="all runs whose data are on this machine")
    parser.add_argument("--again", action="store_true", help="measure again what is there already")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED, help="the folder to write to (default: the project's)"
    )
    asked = parser.parse_args(arguments)
    try:
        found = read_ours(asked.out)
        if not asked.names and not asked.all:
            _list(found)
            return 0
        return _measure(list(RUNS) if asked.all else _runs_of(asked.names), asked.again, asked.out)
    except (SpaceError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2


def _list(found: dict) -> None:
    store = Store(finished=False)  # measured now, not read from what comes with Relscope
    for row in load_rows():
        told = []
        for name in row.run_names():
            known = (
                f"measured {found[name].date}"
                if name in found
                else f"about {expected(name, store).likely / 60:.1f} min"
            )
            told.append(f"{name} ({known})")
        print(f"{row.id:24} {row.title}: {', '.join(told) or 'nothing to run here'}")


def _runs_of(names: Sequence[str]) -> list[str]:
    runs = [run for name in names for run in ([name] if name in RUNS else find_row(name).run_names())]
    return list(dict.fromkeys(runs))


def _measure(names: Sequence[str], again: bool, out: Path) -> int:
    store, failed = Store(finished=False), 0
    for name in names:
        known = read_ours(out).get(name)
        if known and is_current(known) and not again:
            print(f"{name}: measured on {known.date} already")
            continue
        if missing := what_is_missing(name):
            print(missing)
            continue
        likely = expected(name, store)
        told = ", as the last runs here took" if likely.learned else ""
        print(f"{name}: about {likely.likely / 60:.1f} min{told}")
        began = time.perf_counter()
        try:
            with in_use():
                made = measure(name, store, _Bar())
        except SpaceError as error:
            print(f"\r{name}: {error}", file=sys.stderr)
            failed += 1
            continue
        pace.note(store, likely.kind, likely.seconds, time.perf_counter() - began)
        write_ours(out, made)
        told = f"{len(made.numbers)} numbers in {made.seconds:.0f} s, commit {made.commit or 'unknown'}"
        print(f"\r{name}: {told}{' ' * 60}")
    return 1 if failed else 0


class _Bar:
    """Progress on one line of a terminal, at most four times per second."""

    def __init__(self) -> None:
        self.told = 0.0

    def __call__(self, done: int, total: int, message: str = "", *measured) -> None:
        if sys.stderr.isatty() and time.monotonic() - self.told > 0.25:
            self.told = time.monotonic()
            print(
                f"\r  {100 * done / max(total, 1):3.0f} %  {message:.70}{' ' * 20}",
                end="",
                file=sys.stderr,
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
