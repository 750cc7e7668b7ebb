"""Arrow tables and the folders of `datasets.save_to_disk`: read without `datasets`, sizes first, in parts."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from datasets import Dataset, Features, Sequence, Value

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import available
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


def test_number_columns_and_a_dictionary_of_ids(tmp_path):
    columns = {f"d{number}": VECTORS[:, number] for number in range(4)} | {
        "word": pa.array(IDS).dictionary_encode()
    }
    space = load_space(write(tmp_path / "x.arrow", pa.table(columns)))
    np.testing.assert_array_equal(space.vectors, VECTORS)
    assert list(space.ids) == IDS


def saved(folder, shards, n=30):
    features = Features(
        {"id": Value("string"), "text": Value("string"), "embedding": Sequence(Value("float32"), length=4)}
    )
    columns = {"id": IDS[:n], "text": ["a text"] * n, "embedding": list(VECTORS[:n])}
    Dataset.from_dict(columns, features=features).save_to_disk(folder, num_shards=shards)
    return folder


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("limit", [None, 4, 17])
def test_a_saved_dataset_is_one_space(tmp_path, shards, limit):
    folder = saved(tmp_path / "mine", shards)
    assert shape_of(folder) == (30, 4)
    space = load_space(folder, limit=limit)
    assert space.name == "mine"
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert list(space.ids) == IDS[:limit]


def test_the_catalogue_lists_the_folder_and_not_its_files(tmp_path):
    saved(tmp_path / "mine", 3)
    (entry,) = [one for one in available(tmp_path) if one.kind == "file"]
    assert (entry.name, entry.n, entry.dimension, entry.description) == ("mine", 30, 4, "folder of a dataset")


def test_shards_of_one_parquet_table_are_one_space(tmp_path):
    import pyarrow.parquet as parquet

    for number, part in enumerate((table().slice(0, 12), table().slice(12))):
        parquet.write_table(part, tmp_path / f"train-{number:05d}-of-00002.parquet")
    np.testing.assert_array_equal(load_space(tmp_path).vectors, VECTORS)
    parquet.write_table(table(), tmp_path / "test-00000-of-00001.parquet")
    with pytest.raises(SpaceError, match="expected a file, got the folder"):
        load_space(tmp_path)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"_data_files": [{"filename": "../data-00000-of-00001.arrow"}]}, "got another list of files"),
        ({"_data_files": [{"filename": "gone.arrow"}]}, r"got 'gone\.arrow', which are not there"),
        ({"_data_files": []}, "got another list of files"),
        ({"_data_files": [3]}, "got another list of files"),
        ([], "got another list of files"),
    ],
)
def test_a_state_that_names_no_files_beside_it(tmp_path, state, message):
    folder = saved(tmp_path / "mine", 1)
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(SpaceError, match=f"mine/state.json: expected the .arrow files .*{message}"):
        load_space(folder)
    assert shape_of(folder) is None


def test_parts_of_unequal_width_are_refused(tmp_path):
    write(tmp_path / "x-00000-of-00002.arrow", table(fixed=False))
    other = pa.table(
        {"id": ["other"], "label": ["a"], "vector": pa.array([[1.0, 2.0]], pa.list_(pa.float32()))}
    )
    write(tmp_path / "x-00001-of-00002.arrow", other)
    with pytest.raises(
        SpaceError,
        match=r"x-00001-of-00002\.arrow: expected vectors of 4 numbers as in the files before it, got 2",
    ):
        load_space(tmp_path)


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
