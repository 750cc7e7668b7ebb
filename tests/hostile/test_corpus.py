"""Hostile inputs: each is refused with a clear error, or is accepted and equals an independent reading.

`python -m tests.hostile` prints the table; README.md tells how to add inputs.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.hostile.corpus import FORMATS

# The slow tests judge all formats. To make these loads a large library, so the sample has none.
SAMPLED = [name for name in FORMATS if name not in ("model_folders", "torch_file")]


@cache
def verdicts(every):
    """Format → verdicts on one in n cases that are made by a rule, and on ten times as large a share of those
    written by hand. With all cases, also the verdicts on the judge's own controls.
    """
    formats = SAMPLED
    if every == 1:
        formats = [*FORMATS, "controls"]
    command = [sys.executable, "-m", "tests.hostile", "--json", f"--every={every}", *formats]
    ran = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, check=True)
    found = {name: [] for name in formats}
    for line in ran.stdout.splitlines():
        name, *verdict = json.loads(line)
        found[name].append(verdict)
    return found


def failures(found):
    return [one for one in found if one[1] not in ("refused", "accepted")]


@pytest.mark.parametrize("name", SAMPLED)
def test_inputs_are_refused_with_a_clear_error_or_read_rightly(name):
    found = verdicts(90)[name]
    assert found
    assert failures(found) == []


@pytest.mark.slow
def test_the_judge_notices_every_outcome():
    for case, outcome, *_ in verdicts(1)["controls"]:
        assert case.split(":")[0] == outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_all_inputs_of_a_format(name):
    found = verdicts(1)[name]
    assert failures(found) == []
    assert len(found) == len({case for case, *_ in found})
