"""Hostile inputs: each is refused with a clear error, or is accepted and equals an independent reading.

`python -m tests.hostile` prints the table; README.md tells how to add inputs.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.corpus import FORMATS

ROOT = Path(__file__).parents[2]
FEWEST = 500
LONG = 150


class Judge:
    """A process that judges one format after the other, so that libraries are imported once."""

    def __init__(self, *options):
        command = [sys.executable, "-m", "tests.hostile", "--serve", *options]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._found = {}

    def verdicts(self, name):
        if name not in self._found:
            self._process.stdin.write(f"{name}\n")
            self._process.stdin.flush()
            self._found[name] = json.loads(self._process.stdout.readline())
        return self._found[name]

    def close(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def judge():
    one = Judge("--every", "30")
    yield one
    one.close()


def failures(found):
    return {
        one["case"]: f"{one['outcome']}. {one['said']}"
        for one in found
        if one["outcome"] not in ("refused", "accepted")
    }


@pytest.mark.slow
def test_the_judge_notices_every_outcome():
    judge = Judge()
    found = judge.verdicts("controls")
    judge.close()
    assert {one["case"]: one["outcome"] for one in found} == {
        one["case"]: one["case"].split(":")[0] for one in found
    }


@pytest.mark.parametrize("name", FORMATS)
def test_inputs_are_refused_with_a_clear_error_or_read_rightly(judge, name):
    assert failures(judge.verdicts(name)) == {}


@pytest.mark.slow
def test_the_whole_corpus():
    judge = Judge()
    found = {name: judge.verdicts(name) for name in FORMATS}
    judge.close()
    assert {name: wrong for name in FORMATS if (wrong := failures(found[name]))} == {}
    names = [(name, one["case"]) for name in FORMATS for one in found[name]]
    assert len(names) >= FEWEST
    fixed = [one for one in names if not one[1].startswith("drawn")]
    assert len(fixed) == len(set(fixed))


@pytest.mark.parametrize(("n", "state"), [(25, 1), pytest.param(2250, 0, marks=pytest.mark.slow)])
def test_new_inputs(n, state):
    command = [sys.executable, "-m", "tests.hostile", "--fresh", str(n), "--state", str(state)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert f"| **all** | {n:,} |" in told.stdout


@pytest.mark.slow
def test_inputs_drawn_at_random():
    judge = Judge("--long", str(LONG), "--state", "12")  # README tells how to draw others
    found = {name: failures(judge.verdicts(name)) for name in FORMATS}
    judge.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
