"""available, and what the command line does for every command: version, store, warnings, errors."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from relcore.catalog.catalog import load
from relcore.catalog.naming import space_spec
from relcore.cli import main

ROOT = Path(__file__).parents[3]
RUN = "relcore.commands.encode.run_available.run"
STOPPED = "Stopped. Finished work is saved; rerun the command to resume."


def test_available_tells_what_is_here_from_what_needs_the_network(files, tmp_path, capsys):
    assert main(["available", "--data", str(tmp_path)]) == 0
    here, network = capsys.readouterr().out.split("Needs the network\n")
    assert here.startswith("On this machine\n")
    assert {"word2vec-novels", "fasttext-novels", "first.npz", "second.npz"} <= set(here.split())
    assert "glove-wiki-gigaword-50" in network.split()


def test_the_store_is_the_one_that_is_named_while_the_command_runs(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(RUN, lambda options: seen.append(os.environ["RELSCOPE_STORE"]))
    before = os.environ["RELSCOPE_STORE"]
    assert main(["available", "--store", "elsewhere"]) == 0
    assert seen == [str(tmp_path / "elsewhere")]
    assert os.environ["RELSCOPE_STORE"] == before


@pytest.mark.parametrize(("code", "told"), [(0, "3 rows were left out"), (130, STOPPED)])
def test_warnings_and_ctrl_c_are_one_line(monkeypatch, capsys, code, told):
    def run(options):
        if code:
            raise KeyboardInterrupt
        warnings.warn(told, stacklevel=1)

    monkeypatch.setattr(RUN, run)
    assert main(["available"]) == code
    assert capsys.readouterr().err == f"relscope: {told}\n"


def test_a_fault_of_ours_is_not_passed_off_as_the_users(monkeypatch):
    monkeypatch.setattr(RUN, lambda options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["available"])


def test_a_reader_may_stop_reading():
    command = ["bash", "-c", f"{sys.executable} -m relcore available | true"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_columns_are_chosen_after_the_name_of_a_table(refuse, tmp_path):
    for name in ("t.csv", "t#x=1.csv"):
        (tmp_path / name).write_text("name,group,x,y\na,p,1,2\nb,q,3,4\n")
    spec = space_spec("t.csv#label_column=group#ignore=y,x#duplicates=first")
    options = {"label_column": "group", "ignore": '["y", "x"]', "duplicates": "first"}
    assert (spec.name, dict(spec.options)) == ("t.csv", options)
    assert space_spec("t#x=1.csv").name == "t#x=1.csv"  # a file of that name
    assert "after '#', got 'idz'" in refuse("available", "t.csv#idz=name")
    assert load(space_spec("t.csv#id_column=group")).ids.tolist() == ["p", "q"]
