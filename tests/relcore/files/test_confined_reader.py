"""The confined reader: what it reads equals reading in place; what a file could do there is ended."""

import os
import re
import socket
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.cli import main
from relcore.files import confined
from relcore.files.confined_process import landlock_version, refuses_calls
from relcore.files.reading import descriptions_of
from tests.relcore.files import calls, pickled
from tests.relcore.files.test_on_disk import is_map

landlock = pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
seccomp = pytest.mark.skipif(not refuses_calls(), reason="this system has no seccomp filters")


@pytest.fixture(autouse=True)
def _confined(monkeypatch):
    monkeypatch.setenv(confined.CONFINED, "1")


def call(name, path, **arguments):
    return confined.run(getattr(calls, name), path, libraries=(calls.__name__,), **arguments)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.faiss").write_bytes(b"content")
    return tmp_path / "x.faiss"


def test_large_files_are_mapped_and_decoded_as_in_place(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    vectors = np.random.default_rng(0).normal(size=(5000, 8)).astype(np.float32)
    np.save(tmp_path / "a.npy", vectors)
    frame = pd.DataFrame({"id": [f"w{row}" for row in range(5000)], "vector": list(vectors)})
    for name, write in (("b.parquet", frame.to_parquet), ("c.feather", frame.to_feather)):
        write(tmp_path / name, **({"compression": "uncompressed"} if "feather" in name else {}))
        os.utime(tmp_path / name, (1, 1))
    for name in ("a.npy", "b.parquet", "c.feather"):
        space = load_space(tmp_path / name, map_from=1)
        assert is_map(space)
        np.testing.assert_array_equal(np.asarray(space.vectors), vectors)


@pytest.mark.parametrize("name", ["crash", "fill_memory"])
def test_crash_or_too_much_memory_is_one_error_and_next_file_is_read(name, path):
    with pytest.raises(SpaceError, match=r"x\.faiss: expected a \.faiss file that can be read, got a file"):
        call(name, path)
    with pytest.raises(SpaceError, match=r"x\.faiss: expected a \.faiss file"):
        load_space(path)


def test_process_that_was_ended_from_outside_is_started_again(path):
    confined.start()
    confined._ready.process.kill()
    confined._ready.process.wait()
    assert call("parent", path) == confined._ready.process.pid


@landlock
def test_nothing_is_written_and_nothing_else_is_read(path, tmp_path):
    (tmp_path / "secret").write_text("secret")
    assert call("read", path, other=str(path)) == "content"  # the control
    for name, arguments in (
        ("write", {}),
        ("overwrite", {}),
        ("read", {"other": str(tmp_path / "secret")}),
        ("read", {"other": str(os.path.expanduser("~/.profile"))}),
        ("folder", {}),
        ("environment", {}),
    ):
        with pytest.raises(SpaceError, match=r"Permission denied|No such file"):
            call(name, path, **arguments)
    assert path.read_text() == "content"
    assert not (tmp_path / "written").exists()


@seccomp
def test_nothing_is_connected_started_or_signalled(path):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        for name, arguments in (
            ("connect", {"port": listening.getsockname()[1]}),
            ("execute", {}),
            ("signal", {"process": os.getpid()}),
        ):
            with pytest.raises(SpaceError, match=r"not permitted|Permission denied"):
                call(name, path, **arguments)


def test_stream_gives_what_was_read_before_error(path):
    values = confined.stream(calls.raise_many, path, (calls.__name__,), n=3)
    assert [next(values) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(SpaceError, match=r"x\.faiss: .* got the end"):
        next(values)


@pytest.mark.parametrize("name", pickled.CASES)
def test_a_pickle_of_ten_bytes_takes_no_14_gb(name, tmp_path):
    case = pickled.CASES[name]
    path = case.write(tmp_path, None)
    case.load(tmp_path)  # the control
    assert case.write(tmp_path, pickled.BOMB) == path
    with pytest.raises(SpaceError, match=re.escape(path.name)):
        case.load(tmp_path)


def test_one_long_id_makes_no_column_of_long_ids(tmp_path):
    """300 kB of CSV, whose ids would be 2.4 GB as strings of one width."""
    path = tmp_path / "long.csv"
    n = 30_000
    lines = [f"{row},1,{row % 7}" for row in range(n - 1)]
    path.write_text("\n".join(["id,a,b", *lines, f"{'x' * 20_000},1,2"]))
    tracemalloc.start()
    try:
        space = load_space(path)
        assert space.take(np.array([n - 1])).ids.tolist() == ["x" * 20_000]
        assert space.digest
        assert main(["project", str(path), "--anchors", "5", "-o", str(tmp_path / "p.npz")]) == 0
        assert len(load_space(tmp_path / "p.npz")) == n
        assert tracemalloc.get_traced_memory()[1] < 1 << 28
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_small_csv_takes_no_gigabytes(tmp_path):
    path = tmp_path / "wide.csv"
    n = 40_000
    head = ",".join(f"a{place}" for place in range(n))
    path.write_text(f"id,{head}\n" + "".join(f"{one}{',1' * n}\n" for one in "xy"))
    assert path.stat().st_size < 500_000
    assert load_space(path).dimension == n


@pytest.mark.parametrize(
    ("platform", "version", "refuses", "told"),
    [
        ("linux", 7, True, "limits on memory and time, Landlock 7, seccomp"),
        ("darwin", 0, False, "a limit on time; without Landlock and seccomp, which this system does not"),
    ],
)
def test_what_this_system_offers_is_told(platform, version, refuses, told, monkeypatch):
    monkeypatch.setattr(confined, "landlock_version", lambda: version)
    monkeypatch.setattr(confined, "refuses_calls", lambda: refuses)
    monkeypatch.setattr(sys, "platform", platform)
    assert told in confined.offers()


def test_many_files_are_described_in_one_process(tmp_path, monkeypatch):
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.eye(number + 2))
    (tmp_path / "2.txt").write_bytes(b"a text\n")
    started = []
    begin = confined.Process.__init__
    monkeypatch.setattr(
        confined.Process, "__init__", lambda *given, **named: started.append(begin(*given, **named))
    )
    shapes = {path.name: one.shape for path, one in descriptions_of(sorted(tmp_path.iterdir())).items()}
    assert shapes == {"0.npy": (2, 2), "1.npy": (3, 3), "2.npy": (4, 4), "2.txt": None, "3.npy": (5, 5)}
    assert len(started) == 1
