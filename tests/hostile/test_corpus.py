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


class Judge:
    """A process that judges one format after the other, so that libraries are imported once."""

    def __init__(self, *options):
        command = [sys.executable, "-m", "tests.hostile", "--serve", *options]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def verdicts(self, name):
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def sample():
    """Judges all that are written by hand, and every thirtieth of those made by a rule."""
    judge = Judge("--every", "30")
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def whole():
    judge = Judge()
    yield judge
    judge.close()


def failures(found):
    return {
        one["case"]: f"{one['outcome']}. {one['said']}"
        for one in found
        if one["outcome"] not in ("refused", "accepted")
    }


@pytest.mark.parametrize("name", FORMATS)
def test_inputs_are_refused_with_a_clear_error_or_read_rightly(sample, name):
    assert failures(sample.verdicts(name)) == {}


@pytest.mark.slow
def test_the_judge_notices_every_outcome(whole):
    found = whole.verdicts("controls")
    assert {one["case"]: one["outcome"] for one in found} == {
        one["case"]: one["case"].split(":")[0] for one in found
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_all_inputs_of_a_format(whole, name):
    found = whole.verdicts(name)
    assert failures(found) == {}
    assert len(found) == len({one["case"] for one in found}) > 10
