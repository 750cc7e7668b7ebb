"""Ids that `np.savez` pickles are read like others, and any other pickle is refused; `tests/hostile/npz.py` has
more of those."""

import io
import pickle

import numpy as np
import pytest

from relcore import LatentSpace, SpaceError, load_space
from relcore.files.object_texts import object_texts


@pytest.mark.parametrize("n", [1, 2, 1000, 1001, 2002])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_ids_and_labels_of_a_space_saved_by_numpy_are_read(n, save, tmp_path):
    ids = [*map(str, range(n - 1)), "é" * 300]
    labels = ["red", "blü", ""] * n
    space = LatentSpace(np.ones((n, 2)), ids, labels=labels[:n])
    save(tmp_path / "x.npz", vectors=space.vectors, ids=space.ids, labels=space.labels)
    read = load_space(tmp_path / "x.npz")
    assert read.ids.tolist() == ids
    assert read.labels.tolist() == labels[:n]
    assert load_space(tmp_path / "x.npz", limit=1).ids.tolist() == ids[:1]


class Unpickler(pickle.Unpickler):
    """The independent reading: a real unpickler that knows only what NumPy needs."""

    def find_class(self, module, name):
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")} or name == "_reconstruct":
            return super().find_class(module, name)
        raise pickle.UnpicklingError(name)


def really(content, n):
    array = Unpickler(io.BytesIO(content)).load()
    assert array.shape == (n,)
    return array.tolist()


@pytest.mark.parametrize("protocol", [3, 4])
def test_of_each_changed_byte_it_reads_what_pickle_reads_or_refuses(protocol):
    texts = ["a", "word", "a", "é", "x" * 300]
    whole = pickle.dumps(np.array(texts, dtype=object), protocol)
    assert object_texts(io.BytesIO(whole), 5) == texts
    n_read = 0
    for place in range(len(whole)):
        for value in {whole[place] ^ 1, whole[place] ^ 128, 0, 255, ord("R"), ord("c")} - {whole[place]}:
            changed = whole[:place] + bytes([value]) + whole[place + 1 :]
            try:
                read = object_texts(io.BytesIO(changed), 5)
            except Exception:
                continue
            assert read == texts or read == really(changed, 5), (place, value)  # a frame has no meaning
            n_read += 1
    assert n_read > 300  # most changes of a text are another text


def test_a_pickle_of_something_else_is_refused_with_the_remedy(tmp_path):
    np.savez(tmp_path / "x.npz", vectors=np.eye(2), ids=np.array(["a", None], dtype=object))
    with pytest.raises(SpaceError, match=r"never loaded; save them .* as ids=space\.ids\.astype\(str\)"):
        load_space(tmp_path / "x.npz")
