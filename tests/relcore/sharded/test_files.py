import pytest

from relcore.sharded.files import replacing


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
