"""-o, --json and --quiet mean the same in every command: this walks their parsers, and prints by each."""

import argparse
import json

import numpy as np
import pandas as pd
import pytest

from relcore.base.report import Report, Table
from relcore.cli import COMMANDS, parser_of
from relcore.commands.running import finish

ANSWER_NOTHING = {"app", "mcp"}  # they serve


def actions(name):
    return {flag: action for action in parser_of([name]).called._actions for flag in action.option_strings}


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_one_name_are_one_option(name):
    known = actions(name)
    assert {"--quiet", "--device", "--store"} <= set(known)
    reports = name not in ANSWER_NOTHING
    assert ("--json" in known) == ("-o" in known) == reports
    if reports:
        assert known["-o"].type("s3://bucket/folder") == "s3://bucket/folder"
    assert not {"-q", "-j", "--out", "--verbose", "--progress"} & set(known)


ROW = {"n": 3, "score": 0.1 + 0.2}
RECORD = {"sentence": "3 rows", "notes": [], "spaces": 2, "output": "new.npz", "rows": [ROW]}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("table", "3 rows\nnew.npz\n"),
        ("json", RECORD),
        ("jsonl", ROW),
        ("csv", "n,score\n3,0.30000000000000004\n"),
    ],
)
def test_a_result_names_the_file_of_o(form, expected, capsys):
    report = Report("3 rows", [Table("rows", pd.DataFrame([ROW]))], {"spaces": 2})
    finish(argparse.Namespace(format=form, output="new.npz"), report)
    out = capsys.readouterr().out
    assert (json.loads(out) if form.startswith("json") else out) == expected


@pytest.mark.parametrize("kind", ["csv", "jsonl", "markdown", "table"])
def test_o_writes_the_report_of_a_command_that_writes_nothing(kind, tmp_path, run, refuse):
    goal = "report." + {"markdown": "md", "table": "txt"}.get(kind, kind)
    np.save(tmp_path / "a.npy", np.eye(4))
    printed = run("available a.npy --format", kind)
    assert goal in run("available a.npy -o", goal)
    assert (tmp_path / goal).read_text().strip() == printed.strip()
    assert "expected a name that ends in one of" in refuse("available a.npy -o report.pdf")
