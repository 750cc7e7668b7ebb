import numpy as np
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.files.saving import save_space
from relcore.spaces.space import LatentSpace


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_ids_of_any_length_survive_in_little_space(tmp_path, suffix):
    ids = ["a\0", "a", "\ufeffb", "ü" * 20_000, *map(str, range(1000))]
    space = LatentSpace(np.ones((len(ids), 2)), ids, name="odd", labels=[*ids[:5], *[""] * (len(ids) - 5)])
    save_space(space, tmp_path / f"odd{suffix}")
    assert (tmp_path / f"odd{suffix}").stat().st_size < 150_000
    assert load_space(tmp_path / f"odd{suffix}").digest == space.digest


@pytest.mark.parametrize("odd", ["a\n", "a\r"])
def test_line_ends_in_ids_are_refused_where_lines_are_written(tmp_path, odd):
    with pytest.raises(SpaceError, match="without line breaks"):
        save_space(LatentSpace(np.eye(2), [odd, "b"], name="odd"), tmp_path / "odd.safetensors")


def test_space_is_saved_under_path_as_text_and_overwritten(tmp_path):
    path = str(tmp_path / "rows.npz")
    for space in (
        LatentSpace(np.eye(2), ["a", "b"], labels=["x", "y"], counts=[3, 4]),
        LatentSpace(np.eye(3)),
    ):
        save_space(space, path)
        assert load_space(path).digest == LatentSpace(space, labels=space.labels, counts=space.counts).digest
    with pytest.raises(SpaceError, match="ends in one of"):
        save_space(np.eye(2), str(tmp_path / "rows.npy"))


def test_ids_that_numpy_pickled_are_read_as_others(tmp_path):
    space = LatentSpace(np.eye(3), ["a", "bé", "c" * 400], name="odd")
    np.savez(tmp_path / "odd.npz", vectors=space.vectors, ids=space.ids)
    assert load_space(tmp_path / "odd.npz").digest == space.digest
    np.savez(tmp_path / "odd.npz", vectors=space.vectors, ids=space.ids.astype(str))
    assert load_space(tmp_path / "odd.npz").digest == space.digest
