"""python -m tests.hostile [FORMAT …]: judge the corpus and print the outcomes by format; failures go to
stderr.

--every K    of the cases that are made by a rule only every K-th, and ten times as many of the others
--json       print each verdict as a line of JSON (for the tests)

RELSCOPE_HOSTILE_STATE=7 draws other random cases.
"""

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import astuple

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from tests.hostile.corpus import FORMATS, preload, verdicts  # noqa: E402, after the settings of libraries
from tests.hostile.judge import OUTCOMES, RIGHT  # noqa: E402


def main():
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.hostile", description=__doc__, formatter_class=about)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--every", type=int, default=1, metavar="K")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    preload()
    every = []
    failed = False
    if not options.json:
        print("|".join(["", "format", "cases", *OUTCOMES, "most s", "most MB", ""]))
        print("|".join(["", "---", *["--:"] * (len(OUTCOMES) + 3), ""]))
    for name in options.formats or FORMATS:
        found = verdicts(name, options.every)
        every += found
        for one in found:
            if options.json:
                print(json.dumps([name, *astuple(one)]))
            elif one.outcome not in RIGHT:
                failed = True
                print(f"{name} · {one.case}: {one.outcome}. {one.said}", file=sys.stderr)
        if not options.json:
            print(line(name, found), flush=True)
    if not options.json:
        print(line("**all**", every))
    sys.exit(failed)


def line(name, found):
    """A row of Markdown: the number of cases by outcome, the longest time and the largest memory."""
    counted = Counter(one.outcome for one in found)
    numbers = [f"{n:,}" for n in (len(found), *(counted[outcome] for outcome in OUTCOMES))]
    seconds = max(one.seconds for one in found)
    size = max(one.size for one in found)
    return "|".join(["", name, *numbers, f"{seconds:.1f}", f"{size / 1e6:.0f}", ""])


if __name__ == "__main__":
    main()
