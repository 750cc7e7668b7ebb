"""npy, npz and safetensors: what is written comes back, and nothing dishonest is read."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
IDS = ["a", "b", "ç", "d e"]


def as_bytes(ids):
    return np.frombuffer("\n".join(ids).encode(), dtype=np.uint8)


@pytest.mark.parametrize("dtype", ["float16", ">f4", "int8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("limit", [None, 2, 99])
def test_npy_of_any_numbers_and_order(tmp_path, dtype, order, limit):
    np.save(tmp_path / "x.npy", np.asarray(VECTORS.astype(dtype), order=order))
    space = load_space(tmp_path / "x.npy", limit=limit)
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert list(space.ids) == ["0", "1", "2", "3"][:limit]
    assert space.name == "x"


def test_npy_takes_ids_and_labels_from_files_beside_it(tmp_path):
    np.save(tmp_path / "x.npy", VECTORS)
    (tmp_path / "x.ids.txt").write_text("\n".join(IDS) + "\n", encoding="utf-8")
    (tmp_path / "x.labels.txt").write_text("one\n\none\ntwo", encoding="utf-8")
    space = load_space(tmp_path / "x.npy")
    assert list(space.ids) == IDS
    assert list(space.labels) == ["one", "", "one", "two"]
    assert list(load_space(tmp_path / "x.npy", limit=2).ids) == IDS[:2]
    assert list(load_space(tmp_path / "x.npy", ids="wxyz").ids) == list("wxyz")
    with pytest.raises(SpaceError, match="expected 4 ids, one per row, got 3"):
        load_space(tmp_path / "x.npy", ids="wxy")


def test_npz_takes_the_only_matrix_and_asks_where_there_are_two(tmp_path):
    np.savez(tmp_path / "one.npz", embedding=VECTORS, ids=np.array([b"a", b"b", b"c", b"d"]))
    assert list(load_space(tmp_path / "one.npz").ids) == list("abcd")
    np.savez(tmp_path / "two.npz", left=VECTORS, right=VECTORS)
    with pytest.raises(SpaceError, match=r"expected one matrix, or one named 'vectors'.*left.*right"):
        load_space(tmp_path / "two.npz")


@pytest.mark.parametrize("limit", [None, 1])
def test_safetensors_with_ids_as_tensor_or_metadata(tmp_path, limit):
    counts = np.array([4, 3, 2, 1], dtype=np.int32)
    save_file(
        {"vectors": VECTORS.astype(np.float16), "ids": as_bytes(IDS), "counts": counts},
        tmp_path / "x.safetensors",
    )
    save_file(
        {"anything": VECTORS},
        tmp_path / "y.safetensors",
        metadata={"ids": "\n".join(IDS), "labels": "p\nq\np\nq"},
    )
    x, y = (load_space(tmp_path / name, limit=limit) for name in ("x.safetensors", "y.safetensors"))
    np.testing.assert_array_equal(x.vectors, VECTORS[:limit])
    np.testing.assert_array_equal(y.vectors, VECTORS[:limit])
    assert list(x.ids) == list(y.ids) == IDS[:limit]
    assert list(x.counts) == [4, 3, 2, 1][:limit]
    assert list(y.labels) == ["p", "q", "p", "q"][:limit]


class Tripwire:
    """Unpickling it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickled_objects_are_refused_unopened(tmp_path, suffix):
    objects = np.array([[Tripwire(tmp_path / "sprung")] * 2] * 2, dtype=object)
    save = np.save if suffix == "npy" else np.savez
    save(tmp_path / f"x.{suffix}", objects, allow_pickle=True)
    with pytest.raises(SpaceError, match=r"pickled objects, which can run code.*dtype=np.float32"):
        load_space(tmp_path / f"x.{suffix}")
    assert not (tmp_path / "sprung").exists()
