"""`python -m relcore.papers`: measure the papers' rows that a study answers, and write them to
relcore/data/papers/ours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.papers.ours import SHIPPED, read_ours, write_ours
from relcore.papers.rows import find_row, load_rows
from relcore.papers.runs import RUNS, is_current, measure, study_runs
from relcore.runs.digest import StoreError
from relcore.runs.store import Store, in_use


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m relcore.papers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="ROW", help="rows (relative-table-1) or runs (words); default: list them"
    )
    parser.add_argument("--all", action="store_true", help="all runs that a study measures")
    parser.add_argument("--again", action="store_true", help="measure again what is there already")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED, help="the folder to write to (default: the project's)"
    )
    options = parser.parse_args(arguments)
    try:
        names = [name for name, run in RUNS.items() if run.study] if options.all else _runs_of(options.names)
        if not names:
            _list(read_ours(options.out))
        for name in names:
            _measure(name, options.again, options.out)
    except (SpaceError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _list(known: dict) -> None:
    for row in load_rows():
        runs = [
            f"{name} ({f'measured {known[name].date}' if name in known else 'not measured'})"
            for name in row.run_names()
        ]
        print(f"{row.id:24} {row.title}: {', '.join(runs) or 'nothing to run here'}")


def _runs_of(names: Sequence[str]) -> list[str]:
    return list(
        dict.fromkeys(
            run for name in names for run in ([name] if name in RUNS else find_row(name).run_names())
        )
    )


def _measure(name: str, again: bool, out: Path) -> None:
    known = read_ours(out).get(name)
    if known and is_current(known) and not again:
        print(f"{name}: measured on {known.date} already")
        return
    store = Store(finished=False)  # measured now, not read from what comes with Relscope
    if runs := study_runs(name):
        print(f"{name}: about {runs.seconds(store, own=True) / 60:.1f} min")
    with in_use():
        ours = measure(name, store, lambda done, total, message="", *more: print(f"  {message}"))
    write_ours(out, ours)
    print(f"{name}: {len(ours.numbers)} numbers, commit {ours.commit or 'unknown'}")


if __name__ == "__main__":
    sys.exit(main())
