"""Vectors in one file, their ids, labels, counts and texts in another: what belongs together, and what
each column is.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.errors import SpaceError
from relcore.base.portable import finder, with_paths, without_paths
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.row_tables import joined
from relcore.files.columns import Choices
from relcore.files.items import metadata_columns
from relcore.files.reading import load_space
from relcore.spaces.space import match

N = 40
META = "doc_id,topic,body,freq,year\n" + "".join(
    f"d{row},{'pq'[row % 2]},a longer sentence that is about number {row},{row + 1},{1990 + row % 7}\n"
    for row in range(N)
)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(N, 3)))
    (tmp_path / "meta.csv").write_text(META)
    vectors = np.random.default_rng(1).normal(size=(N, 5))
    names = [f"d{row}" for row in reversed(range(N))]
    parquet.write_table(pa.table({"id": names, "vector": vectors.tolist()}), tmp_path / "b.parquet")
    return tmp_path


def file(path, **options):
    return SpaceSpec("file", str(path), options=tuple(options.items()))


def roles(path, **choices):
    return {column.name: column.role for column in metadata_columns(path, Choices(**choices)).columns}


def test_roles_are_guessed_by_names_and_cells(folder):
    assert roles(folder / "meta.csv") == {
        "doc_id": "ids",
        "topic": "labels",
        "body": "text",
        "freq": "counts",
        "year": "left out",
    }
    (folder / "pictures.csv").write_text(
        "file,kind,n\n" + "".join(f"{row}.png,{'xyz'[row % 3]},{row}\n" for row in range(9))
    )
    assert roles(folder / "pictures.csv") == {"file": "pictures", "kind": "labels", "n": "left out"}


def test_a_matrix_takes_ids_labels_and_counts_from_its_table_and_pairs_by_them(folder):
    first = load(file(folder / "a.npy", metadata=str(folder / "meta.csv")))
    assert first.ids[:2].tolist() == ["d0", "d1"]
    assert first.labels[:3].tolist() == ["p", "q", "p"]
    assert first.counts[:2].tolist() == [1, 2]
    pair = match(first, load(file(folder / "b.parquet")))
    assert len(pair) == N
    assert pair.target.vectors[0].tolist() == load(file(folder / "b.parquet")).vectors[-1].tolist()
    plain = load(file(folder / "a.npy"))
    assert plain.digest != first.digest  # a recipe notices other metadata
    assert plain.vectors.tolist() == first.vectors.tolist()


def test_another_number_of_rows_is_an_error(folder):
    np.save(folder / "short.npy", np.ones((N - 1, 2)))
    with pytest.raises(
        SpaceError, match=r"meta\.csv: expected 39 rows, one per vector of short\.npy, got 40"
    ):
        load_space(folder / "short.npy", metadata=folder / "meta.csv")
    with pytest.raises(
        SpaceError, match="expected columns to be chosen only for"
    ):  # columns of a file that has none
        load_space(folder / "short.npy", label_column="topic")


def test_a_table_goes_with_the_vectors_before_it(folder):
    np.save(folder / "c.npy", np.ones((N, 2)))
    np.save(folder / "short.npy", np.ones((N - 1, 2)))

    def told(*names):
        found = joined([file(folder / name) for name in names])
        return [(one.name.rsplit("/", 1)[1], one.option("metadata").rsplit("/", 1)[-1]) for one in found]

    assert told("a.npy", "meta.csv", "b.parquet") == [("a.npy", "meta.csv"), ("b.parquet", "")]
    assert told("a.npy", "c.npy", "meta.csv") == [("a.npy", "meta.csv"), ("c.npy", "meta.csv")]
    assert told("b.parquet", "c.npy", "meta.csv") == [("b.parquet", ""), ("c.npy", "meta.csv")]
    assert told("short.npy", "meta.csv") == [("short.npy", ""), ("meta.csv", "")]
    (folder / "a_meta.csv").write_text(META)
    assert told("a.npy", "c.npy", "a_meta.csv") == [("a.npy", "a_meta.csv"), ("c.npy", "")]


def test_recipes_name_metadata_without_their_folder(folder):
    spec = file(folder / "a.npy", metadata=str(folder / "meta.csv"))
    told = without_paths(spec.to_json())
    assert str(folder) not in json.dumps(told)
    assert told["options"] == {"metadata": "meta.csv"}
    assert SpaceSpec.from_json(with_paths(told, finder([folder]))) == spec
    with pytest.raises(SpaceError, match=r"expected a file, got 'meta\.csv'"):
        with_paths(told | {"name": str(folder / "a.npy")}, finder([folder.parent]))
