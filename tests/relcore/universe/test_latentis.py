"""A space in the layout of latentis opens with its keys, and nothing pickled is opened."""

import numpy as np
import pandas as pd
import pytest

from relcore import load_space


@pytest.mark.filterwarnings("ignore:mapping.tsv is joined")
def test_vectors_and_keys_of_its_folder_are_read(tmp_path):
    torch = pytest.importorskip("torch")
    folder = tmp_path / "vectors"
    folder.mkdir()
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    keys = [f"key {i}" for i in range(30)]
    torch.save(torch.from_numpy(vectors), folder / "vectors.pt")
    pd.DataFrame({"x": keys, "y": range(30)}).to_csv(folder / "mapping.tsv", sep="\t", index=False)
    (tmp_path / "model.pt").write_bytes(b"never opened")
    space = load_space(folder / "vectors.pt", metadata=folder / "mapping.tsv", id_column="x")
    assert space.ids.tolist() == keys
    np.testing.assert_array_equal(space.vectors, vectors)
