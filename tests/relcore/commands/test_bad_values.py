"""Values that cannot be end a command with one line; `tests/hostile/command_lines.py` has more."""

import pytest

from relcore.runs.jobs import JobQueueError, connect

UNKNOWN = ("data://", "jupyter://", "reference://", "dask://x", "nosuch://x")
PROJECT = "project first.npz -o out.npz --anchors"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{PROJECT}=5 --ridge=nan", "--ridge: expected a"),
        (f"{PROJECT}=5 --random-state=１２", "--random-state: expected a"),
        (f"{PROJECT}=binary", "binary: expected UTF-8 text with one id per line, got byte 0x80 at 128"),
        (f"{PROJECT}=large.txt", "of at most 64 MB, got 4,096 MB"),
        (f"{PROJECT}=+2.5", "--anchors: expected a number from 0, ids, or a file of ids, got '+2.5'; write"),
        (f"{PROJECT}={'9' * 5000}", "--anchors: expected a number of at most 18 digits, got 5,000 digits"),
        *((f"adapt none {place} x.npy", place) for place in UNKNOWN),
        *((f"compare {place} {place} --shards", place) for place in UNKNOWN),
    ],
)
def test_a_value_that_cannot_be_is_one_line(line, said, files, refuse, tmp_path):
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with open("large.txt", "wb") as stream:
        stream.truncate(2**32)
    told = refuse(line)
    assert said in told
    assert len(told) < 500


@pytest.mark.parametrize("address", ["banana", "tls://127.0.0.1:1", "tcp://[::1"])
def test_a_scheduler_has_an_address(address):
    with pytest.raises(JobQueueError, match="expected the address of a Dask scheduler"):
        connect(address, 1, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("RELSCOPE_STORE_GB", value) for value in ("abc", "-1", "0", "nan", "inf", "1e400", "9" * 5000)),
        *((name, value) for name in ("RELSCOPE_SHARE", "RELSCOPE_CONFINED") for value in ("no", "2", "true")),
        ("RELSCOPE_DATA", "no-such-folder"),
    ],
)
def test_a_variable_of_the_environment_has_a_possible_value(name, value, files, monkeypatch, refuse):
    monkeypatch.setenv(name, value)
    assert f"{name}: expected " in refuse("compare", *files)
