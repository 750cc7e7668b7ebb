"""Values of options that cannot be: each command ends with code 2 and one line that says what was
expected.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from relcore.cli import main
from relcore.runs.jobs import JobQueueError, connect

COMPARE, PROJECT = ["compare", "a.npz", "a.npz"], ["project", "a.npz", "-o", "out.npz"]


@pytest.fixture(autouse=True)
def folder(own_store):
    vectors = np.random.default_rng(0).normal(size=(40, 4))
    np.savez("a.npz", vectors=vectors, ids=[f"row {number}" for number in range(40)])
    Path("binary").write_bytes(bytes(range(256)))
    Path("zeros.txt").write_bytes(bytes(10))
    with open("large.txt", "wb") as stream:
        stream.truncate(2**32)
    os.mkfifo("pipe.json")


def refused(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 500
    return said


@pytest.mark.parametrize("number", ["nan", "1e400", "１２", "9" * 5000])
@pytest.mark.parametrize("option", ["--ridge", "--random-state"])
def test_numbers_are_finite_and_in_plain_digits(option, number, capsys):
    last = refused([*PROJECT, "--anchors", "5", f"{option}={number}"], capsys)
    assert f"{option}: expected a" in last


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("binary", "binary: expected UTF-8 text with one id per line, got byte 0x80 at 128"),
        ("large.txt", "of at most 64 MB, got 4,096 MB"),
        ("-3", "--anchors: expected a number from 0, ids, or a file of ids, got '-3'; write"),
        ("+2.5", "--anchors: expected a number from 0, ids, or a file of ids, got '+2.5'; write"),
        ("9" * 5000, "--anchors: expected a number of at most 18 digits, got 5,000 digits"),
    ],
)
def test_a_list_of_anchors_is_text(given, said, capsys):
    assert said in refused([*PROJECT, f"--anchors={given}"], capsys)


@pytest.mark.parametrize("path", ["pipe.json", "~nosuchuser-here/x.json", "/dev/zero"])
def test_recipes_and_specs_are_files(path, capsys):
    for arguments in (["figure", path], ["compare", path, "a.npz"]):
        assert "; " in refused(arguments, capsys)


@pytest.mark.parametrize("address", ["banana", "tls://127.0.0.1:1", "tcp://[::1"])
def test_a_scheduler_has_an_address(address):
    with pytest.raises(
        JobQueueError, match=r"expected the address of a Dask scheduler, such as tcp://127.0.0.1:8786, got "
    ):
        connect(address, 1, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("RELSCOPE_STORE_GB", value) for value in ("abc", "-1", "0", "nan", "inf", "1e400", "9" * 5000)),
        *((name, value) for name in ("RELSCOPE_SHARE", "RELSCOPE_CONFINED") for value in ("no", "2", "true")),
        ("RELSCOPE_DATA", "no-such-folder"),
    ],
)
def test_a_variable_of_the_environment_has_a_value_that_it_can_have(name, value, monkeypatch, capsys):
    monkeypatch.setenv(name, value)
    assert f"{name}: expected " in refused(COMPARE, capsys)


@pytest.mark.parametrize("place", ["data://", "jupyter://", "reference://", "dask://x", "nosuch://x"])
def test_an_address_that_nothing_opens(place, capsys):
    for arguments in (["adapt", "none", place, "x.npy"], ["compare", place, place, "--shards"]):
        assert place in refused(arguments, capsys)
