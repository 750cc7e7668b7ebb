"""Arrow tables and the folders of `datasets.save_to_disk`: read without `datasets`, sizes first, in parts."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from relcore.base.errors import SpaceError
from relcore.files.reading import column_roles, load_space, shape_of

VECTORS = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
IDS = [f"wörd{row}" for row in range(30)]
LABELS = ["a", "b", "c"] * 10


def table(vectors=VECTORS, fixed=True):
    kind = pa.list_(pa.float32(), 4) if fixed else pa.list_(pa.float32())
    return pa.table(
        {"id": IDS[: len(vectors)], "label": LABELS[: len(vectors)], "vector": pa.array(list(vectors), kind)}
    )


def write(path, content, form=pa.ipc.new_stream, rows=7, **options):
    with pa.OSFile(str(path), "wb") as sink, form(sink, content.schema, **options) as writer:
        writer.write_table(content, max_chunksize=rows)
    return path


@pytest.mark.parametrize("form", [pa.ipc.new_stream, pa.ipc.new_file])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("limit", [None, 10])
def test_streams_and_files_come_back_exactly(tmp_path, form, fixed, limit):
    path = write(tmp_path / "x.arrow", table(fixed=fixed), form)
    assert shape_of(path)[0] == 30
    assert shape_of(path) == (30, 4 if fixed else None)
    space = load_space(path, limit=limit)
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert (list(space.ids), list(space.labels)) == (IDS[:limit], LABELS[:limit])
    assert [column.role for column in column_roles(path).columns] == ["ids", "labels", "dimension"]


def saved(folder, shards, n=30):
    from datasets import Dataset, Features, Sequence, Value

    features = Features(
        {"id": Value("string"), "text": Value("string"), "embedding": Sequence(Value("float32"), length=4)}
    )
    columns = {"id": IDS[:n], "text": ["a text"] * n, "embedding": list(VECTORS[:n])}
    Dataset.from_dict(columns, features=features).save_to_disk(folder, num_shards=shards)
    return folder


@pytest.mark.parametrize(("shards", "limit"), [(1, None), (3, 17)])
def test_a_saved_dataset_is_one_space(tmp_path, shards, limit):
    folder = saved(tmp_path / "mine", shards)
    assert shape_of(folder) == (30, 4)
    space = load_space(folder, limit=limit)
    assert space.name == "mine"
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert list(space.ids) == IDS[:limit]


def test_feather(tmp_path):
    wide = pa.table({"id": IDS, **{f"d{place}": column for place, column in enumerate(VECTORS.T)}})
    for name, content in (("lists", table()), ("numbers", wide)):
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
