"""python -m tests.hostile [FORMAT …]: judge the corpus and print what became of it, by format.

--every K    of the cases that are made by a rule only every K-th
--each       print every case with what was said
--serve      read names of formats from standard input, answer each with one line of JSON (for the tests)

RELSCOPE_HOSTILE_STATE=7 draws other random cases.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import asdict

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from tests.hostile.corpus import FORMATS, preload, verdicts  # noqa: E402, after the settings of libraries
from tests.hostile.judge import OUTCOMES, Verdict  # noqa: E402


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile", description=__doc__, formatter_class=about
    )
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--every", type=int, default=1, metavar="K")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    preload()
    if options.serve:
        for line in sys.stdin:
            found = verdicts(line.strip(), options.every)
            print(json.dumps([asdict(one) for one in found]), flush=True)
        return
    every = {name: verdicts(name, options.every) for name in options.formats or FORMATS}
    for name, found in every.items():
        for one in found:
            if options.each or not one.right:
                print(f"{name} · {one.case}: {one.outcome}. {one.said}", file=sys.stderr, flush=True)
    print(table(every))
    sys.exit(any(not one.right for found in every.values() for one in found))


def table(every: dict[str, list[Verdict]]) -> str:
    """Numbers of cases by format and outcome, with the longest and the largest, as Markdown."""
    lines = [["format", "cases", *OUTCOMES, "most s", "most MB"], ["---", *["--:"] * (len(OUTCOMES) + 3)]]
    for name, found in (every | {"**all**": [one for several in every.values() for one in several]}).items():
        counted = Counter(one.outcome for one in found)
        seconds, size = (
            max((getattr(one, what) for one in found), default=0) for what in ("seconds", "size")
        )
        numbers = [len(found), *(counted[outcome] for outcome in OUTCOMES)]
        lines.append([name, *(f"{one:,}" for one in numbers), f"{seconds:.1f}", f"{size / 1e6:.0f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
