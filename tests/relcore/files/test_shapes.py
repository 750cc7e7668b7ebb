"""The matrices of a file from its headers, and which of them is read where none is chosen."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import available
from relcore.files.reading import description_of, load_space, shape_of

ARRAYS = {"a": np.ones((6, 3), np.float32), "b": np.ones((6, 2), np.float32), "flat": np.ones(6, np.float32)}


def write(folder, suffix, arrays):
    path = folder / f"x{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    elif suffix == ".safetensors":
        save_file(arrays, path)
    else:
        torch = pytest.importorskip("torch")
        torch.save({name: torch.tensor(one) for name, one in arrays.items()}, path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt"])
def test_all_matrices_are_listed_and_one_has_to_be_chosen_unless_its_name_says_it(tmp_path, suffix):
    path = write(tmp_path, suffix, ARRAYS)
    assert description_of(path).choosable == {"a": (6, 3), "b": (6, 2)}
    assert description_of(path).usual is None
    with pytest.raises(SpaceError, match="choose one with the option matrix"):
        load_space(path)
    assert [entry.name for entry in available(tmp_path) if entry.kind.endswith("file")] == [path.name]
    path = write(tmp_path, suffix, ARRAYS | {"vectors": np.ones((6, 4), np.float32)})
    assert description_of(path).usual == "vectors"
    assert load_space(path).dimension == 4
    assert shape_of(path) in ((6, 4), (None, None))
