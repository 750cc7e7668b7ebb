"""Feather files and the folders of `datasets.save_to_disk`. tests/hostile has the controls of .arrow files."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.files.reading import shape_of

VECTORS = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
IDS = [f"wörd{row}" for row in range(30)]
LISTS = pa.array(list(VECTORS), pa.list_(pa.float32(), 4))


@pytest.mark.parametrize(("shards", "limit"), [(1, None), (3, 17)])
def test_a_saved_dataset_is_one_space(tmp_path, shards, limit):
    from datasets import Dataset

    table = pa.table({"id": IDS, "text": ["a text"] * 30, "embedding": LISTS})
    Dataset(table).save_to_disk(tmp_path / "mine", num_shards=shards)
    assert shape_of(tmp_path / "mine") == (30, 4)
    space = load_space(tmp_path / "mine", limit=limit)
    assert (space.name, list(space.ids)) == ("mine", IDS[:limit])
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])


def test_feather(tmp_path):
    wide = pa.table({"id": IDS, **{f"d{place}": column for place, column in enumerate(VECTORS.T)}})
    for name, content in (("lists", pa.table({"id": IDS, "vector": LISTS})), ("numbers", wide)):
        path = tmp_path / f"{name}.feather"
        feather.write_feather(content, path, compression="uncompressed", chunksize=7)
        space = load_space(path)
        assert shape_of(path) == (30, 4)
        np.testing.assert_array_equal(space.vectors, VECTORS)
        assert space.ids.tolist() == IDS
    wide.to_pandas().to_feather(path)  # compressed by default
    np.testing.assert_array_equal(load_space(path).vectors, VECTORS)
    feather.write_feather(wide, path, version=1)
    with pytest.raises(SpaceError, match=r"numbers\.feather: expected a \.feather file that can be read"):
        load_space(path)
