"""-o, --json and --quiet mean the same in every command: this walks their parsers, and prints by each."""

import argparse
import json

import numpy as np
import pandas as pd
import pytest

from relcore.base.report import Report, Table
from relcore.cli import COMMANDS, main, parser_of
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


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_a_result_names_the_file_of_o(form, capsys):
    rows = pd.DataFrame([{"n": 3, "score": 0.1 + 0.2}])
    finish(
        argparse.Namespace(format=form, output="new.npz"),
        Report("3 rows", [Table("rows", rows)], {"spaces": 2}),
    )
    out = capsys.readouterr().out
    if form == "table":
        assert out == "3 rows\nnew.npz\n"
    elif form == "json":
        assert json.loads(out) == {
            "sentence": "3 rows",
            "notes": [],
            "spaces": 2,
            "output": "new.npz",
            "rows": [{"n": 3, "score": 0.1 + 0.2}],
        }
    elif form == "jsonl":
        assert json.loads(out) == {"n": 3, "score": 0.1 + 0.2}
    else:
        assert out == "n,score\n3,0.30000000000000004\n"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".md", ".txt"])
def test_o_writes_report_where_command_writes_nothing_else(suffix, tmp_path, capsys):
    kind = {".md": "markdown", ".txt": "table"}.get(suffix, suffix[1:])
    np.save(tmp_path / "a.npy", np.eye(4))
    assert main(["available", str(tmp_path / "a.npy"), "--format", kind]) == 0
    printed, goal = capsys.readouterr().out, tmp_path / f"report{suffix}"
    assert main(["available", str(tmp_path / "a.npy"), "-o", str(goal)]) == 0
    assert goal.read_text().strip() == printed.strip()
    assert str(goal) in capsys.readouterr().out
    assert main(["available", str(tmp_path / "a.npy"), "-o", str(tmp_path / "report.pdf")]) == 2
    assert "expected a name that ends in one of" in capsys.readouterr().err
