import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from relcore.base import writing
from relcore.base.writing import NotWritten, new_folder, own_name, replacing, temporary, write


@pytest.fixture
def of_a_dead_process():
    """The name that a process gave to a file before it was killed."""
    script = "from relcore.base.writing import own_name; print(own_name())"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    path = tmp_path / "part-0.npy"
    with replacing(path) as first:
        first.write(b"first, longer")
        write(path, b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first, longer"
    assert names(tmp_path) == ["part-0.npy"]


@pytest.mark.parametrize("error", [ValueError("stop"), KeyboardInterrupt()])
def test_nothing_is_left_after_an_error(tmp_path, error):
    def file():
        with replacing(tmp_path / "a.npy") as stream:
            stream.write(b"half")
            raise error

    def folder():
        with new_folder(tmp_path / "folder") as made:
            write(made / "a", b"whole")
            raise error

    for half in (file, folder):
        with pytest.raises(type(error)):
            half()
    assert names(tmp_path) == []


def test_what_killed_writers_left_is_removed_by_next_one(tmp_path, of_a_dead_process):
    living = f".relscope~{own_name()}"
    foreign = ".relscope~elsewhere~1~2~3"
    (tmp_path / f".relscope~{of_a_dead_process}").mkdir()
    for name in (living, foreign, f".relscope~{of_a_dead_process}0"):
        (tmp_path / name).touch()
    write(tmp_path / "a.npy", b"whole")
    assert names(tmp_path) == sorted([living, foreign, "a.npy"])


def test_folder_appears_whole_and_its_files_join_those_that_are_there(tmp_path):
    with new_folder(tmp_path / "f") as made:
        write(made / "a", b"1")
        assert not (tmp_path / "f").exists()
    with new_folder(tmp_path / "f", last="a") as made:
        write(made / "a", b"2")
        write(made / "b", b"2")
        assert (tmp_path / "f" / "a").read_bytes() == b"1"
    assert [(tmp_path / "f" / name).read_bytes() for name in "ab"] == [b"2", b"2"]
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["a", "b"]


def test_links_permissions_and_devices_stay_what_they_are(tmp_path):
    (tmp_path / "real").write_bytes(b"1")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", b"2")
    write(tmp_path / "secret", b"3", mode=0o600)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"2"
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("real", "secret")] == [0o640, 0o600]
    read, into = os.pipe()
    with open(read, "rb") as stream:
        write(Path(f"/dev/fd/{into}"), b"4")
        os.close(into)
        assert stream.read() == b"4"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none/a.npz", "No such file or directory; create its folder"),
        ("folder", "Is a directory; choose a name that no folder has"),
    ],
)
def test_a_place_that_takes_no_file_is_named(tmp_path, name, said):
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotWritten, match=f"{name}: expected to write it, got: {said}"):
        write(tmp_path / name, b"")


def test_file_that_ends_up_shorter_than_what_was_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(writing.os, "fsync", lambda descriptor: os.truncate(descriptor, 4))
    with pytest.raises(NotWritten, match="shorter"):
        write(tmp_path / "a", b"0123456789")
    assert names(tmp_path) == []


def test_temporary_folders_of_killed_processes_are_swept(tmp_path, monkeypatch, of_a_dead_process):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / f"relscope-{of_a_dead_process}~x"
    own = temporary()
    alien = tmp_path / "relscope-x"
    for folder in (dead, alien):
        folder.mkdir()
    uid = os.getuid()
    monkeypatch.setattr(writing.os, "getuid", lambda: uid + 1)
    writing.sweep_temporary()
    assert dead.exists()  # of another account
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    writing.sweep_temporary()
    assert names(tmp_path) == sorted([os.path.basename(own.name), "relscope-x"])
    own.cleanup()
    assert names(tmp_path) == ["relscope-x"]
