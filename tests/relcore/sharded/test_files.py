import os
import socket
import subprocess
import sys

import pytest

from relcore.sharded.space import replacing


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    url = str(tmp_path / "part-0.npy")
    with replacing(url) as first:
        first.write(b"first, longer")
        with replacing(url) as second:
            second.write(b"second")
        assert (tmp_path / "part-0.npy").read_bytes() == b"second"
    assert (tmp_path / "part-0.npy").read_bytes() == b"first, longer"
    assert [path.name for path in tmp_path.iterdir()] == ["part-0.npy"]


def test_nothing_is_left_after_an_error(tmp_path):
    with pytest.raises(ValueError, match="stop"), replacing(str(tmp_path / "part-0.npy")):
        raise ValueError("stop")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("alive", "left"), [(True, 2), (False, 1)])
def test_what_a_killed_writer_of_the_same_file_left_is_removed(tmp_path, alive, left):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    partial = (
        tmp_path / f".part-0.npy.{os.getpid() if alive else ended.pid}~0f~{socket.gethostname()}.partial"
    )
    partial.write_bytes(b"half")
    with replacing(str(tmp_path / "part-0.npy")) as stream:
        stream.write(b"whole")
    assert len(list(tmp_path.iterdir())) == left
    assert partial.exists() == alive
