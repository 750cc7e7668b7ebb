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
from relcore.catalog.row_items import row_items
from relcore.catalog.tables_beside import by_rows, is_metadata, is_numbered, joined, pairs_by_rows
from relcore.files.columns import Choices
from relcore.files.metadata import metadata_columns
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


def test_ids_are_guessed_only_where_all_rows_differ(folder):
    rows = [f"n{row}" for row in range(400)]
    (folder / "names.csv").write_text("name\n" + "\n".join(rows) + "\n")
    assert roles(folder / "names.csv") == {"name": "ids"}
    rows[399] = "n0"  # beyond the rows that are looked at first
    (folder / "names.csv").write_text("name\n" + "\n".join(rows) + "\n")
    assert roles(folder / "names.csv") == {"name": "left out"}


def test_choices_come_before_guesses(folder):
    found = roles(folder / "meta.csv", id_column="body", label_column="year", ignore=("freq",))
    assert found == {
        "doc_id": "left out",
        "topic": "left out",
        "body": "ids",
        "freq": "left out",
        "year": "labels",
    }
    with pytest.raises(SpaceError, match="label_column expects one of 'doc_id'"):
        roles(folder / "meta.csv", label_column="gone")


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


def test_metadata_of_a_table_leave_out_its_own_texts(folder):
    table = "name,x,y\n" + "".join(f"row {row},{row},1\n" for row in range(N))
    (folder / "own.csv").write_text(table)
    found = load_space(folder / "own.csv", metadata=folder / "meta.csv", label_column="year")
    assert (found.dimension, found.ids[0], found.labels[0]) == (2, "d0", "1990")


def test_a_limit_takes_the_first_rows_of_both(folder):
    found = load_space(folder / "a.npy", metadata=folder / "meta.csv", limit=7)
    assert found.ids.tolist() == [f"d{row}" for row in range(7)]


def test_rows_that_are_left_out_take_their_metadata_with_them(folder):
    vectors = np.ones((N, 2))
    vectors[3] = np.nan
    np.save(folder / "holes.npy", vectors)
    with pytest.warns(UserWarning, match="left out 1 of 40 rows"):
        found = load_space(folder / "holes.npy", metadata=folder / "meta.csv", invalid="drop")
    assert found.ids[2:4].tolist() == ["d2", "d4"]
    assert found.labels[2:4].tolist() == ["p", "p"]


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


def test_ids_by_row_keep_the_names_as_payload(folder):
    pair = by_rows(file(folder / "a.npy"), file(folder / "b.parquet"))
    first, second = map(load, pair)
    assert len(match(first, second)) == N
    assert second.ids[:2].tolist() == ["0", "1"]
    assert second.payload[:2] == ("d39", "d38")
    assert first.payload is None
    assert by_rows(*pair) == pair
    with pytest.raises(SpaceError, match="ids: expected one of , rows"):
        file(folder / "a.npy", ids="words")


def test_bundled_words_pair_with_a_file_by_row_order(folder):
    words = SpaceSpec("bundled", "word2vec-novels", limit=N)
    first, second = by_rows(words, file(folder / "a.npy"))
    assert by_rows(first, second) == (first, second)
    assert first.rows_of == words
    assert SpaceSpec.from_json(json.loads(json.dumps(first.to_json()))) == first
    pair, plain = match(load(first), load(second)), load(words)
    assert len(pair) == N
    np.testing.assert_array_equal(pair.source.vectors, plain.vectors)
    assert pair.source.payload == tuple(plain.ids)
    (texts,) = row_items(first, load(first))
    assert texts.items(0, 2) == plain.ids[:2].tolist()


def test_row_order_is_likely_only_where_one_side_has_no_ids(folder):
    numbered, named = load(file(folder / "a.npy")), load(file(folder / "b.parquet"))
    assert is_numbered(numbered)
    assert not is_numbered(named)
    assert pairs_by_rows(numbered, named)
    assert not pairs_by_rows(named, named)
    assert not pairs_by_rows(numbered, numbered)
    assert not pairs_by_rows(numbered, named.take(np.arange(N - 1)))


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


def test_tables_of_vectors_are_no_metadata(folder):
    (folder / "wide.csv").write_text("id,d0,d1,d2\na,1,2,3\nb,4,5,6\n")
    assert not is_metadata(folder / "wide.csv")
    assert not is_metadata(folder / "b.parquet")
    assert not is_metadata(folder / "a.npy")
    assert not is_metadata(folder / "gone.csv")
    assert is_metadata(folder / "meta.csv")


def test_metadata_of_parquet_have_the_names_of_classes(folder):
    features = {"info": {"features": {"label": {"names": ["cat", "dog"]}}}}
    table = pa.table({"label": [0, 1, -1, 1], "text": ["a", "b", "c", "d"]})
    table = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    parquet.write_table(table, folder / "m.parquet")
    np.save(folder / "four.npy", np.eye(4))
    assert load_space(folder / "four.npy", metadata=folder / "m.parquet").labels.tolist() == [
        "cat",
        "dog",
        "",
        "dog",
    ]


def test_recipes_name_metadata_without_their_folder(folder):
    spec = file(folder / "a.npy", metadata=str(folder / "meta.csv"))
    told = without_paths(spec.to_json())
    assert str(folder) not in json.dumps(told)
    assert told["options"] == {"metadata": "meta.csv"}
    assert SpaceSpec.from_json(with_paths(told, finder([folder]))) == spec
    with pytest.raises(SpaceError, match=r"expected a file, got 'meta\.csv'"):
        with_paths(told | {"name": str(folder / "a.npy")}, finder([folder.parent]))
