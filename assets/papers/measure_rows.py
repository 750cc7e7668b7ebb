"""Measure the rows of the papers' tables that a study covers, and write them to relcore/data/papers/ours.

    python assets/papers/measure_rows.py [ROW or RUN …] [--all] [--again] [--out FOLDER]

Without names, all rows are listed. Commit first, because the commit is stored with the numbers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of
from relcore.runs.store import Store, in_use
from relcore.studies.paper_runs import RUNS, commit_of, is_current, ours_of, study_runs
from relcore.studies.papers import find_row, load_rows
from relcore.studies.published import SHIPPED, Ours, read_ours
from relcore.studies.runs import finished_run


def measure(name: str, store: Store) -> Ours:
    """Compute the runs of the study that the store lacks. Returns the numbers of all its runs."""
    need_one_of("run", name, [name for name, run in RUNS.items() if run.study])
    runs = study_runs(name)
    # Read the commit before the runs, because they use the code that is loaded now.
    commit = commit_of()
    for number, settings in enumerate(runs.settings, start=1):
        print(f"  {name}: run {number} of {len(runs)}")
        finished_run(runs.study, settings, store, lambda *progress: None)
    return ours_of(name, runs, store, commit)


def write(folder: Path, ours: Ours) -> None:
    """Write the file of one run, such as ``words.json``, so that it is never incomplete."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{ours.run}.partial"
    text = json.dumps(records.to_json(ours), ensure_ascii=False, indent=1)
    partial.write_text(f"{text}\n", encoding="utf-8")
    partial.replace(partial.with_suffix(".json"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="ROW", help="rows (relative-table-1) or runs (words)")
    parser.add_argument("--all", action="store_true", help="all runs that a study measures")
    parser.add_argument("--again", action="store_true", help="measure runs again that were measured already")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the folder to write to")
    options = parser.parse_args()
    known = read_ours(options.out)
    names = []
    for name in options.names:
        if name in RUNS:
            names += [name]
        else:
            names += find_row(name).run_names()
    if options.all:
        names = [name for name, run in RUNS.items() if run.study]
    for row in load_rows() if not names else ():
        runs = ", ".join(f"{name} ({known[name].date if name in known else '–'})" for name in row.run_names())
        print(f"{row.id:24} {row.title}: {runs or 'nothing to run here'}")
    store = Store(finished=False)  # without the bundled results, so that everything is measured now
    for name in dict.fromkeys(names):
        if name in known and is_current(known[name]) and not options.again:
            print(f"{name}: measured on {known[name].date} already")
            continue
        with in_use():
            ours = measure(name, store)
        write(options.out, ours)
        print(f"{name}: {len(ours.numbers)} numbers, commit {ours.commit or 'unknown'}")


if __name__ == "__main__":
    try:
        main()
    except SpaceError as error:
        raise SystemExit(str(error)) from error
