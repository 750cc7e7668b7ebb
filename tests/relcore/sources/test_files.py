"""load_space: what holds for every format."""

import gzip
import warnings

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from gensim.models import KeyedVectors
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.base.names import FORMATS
from relcore.files.formats import suffix_of
from relcore.files.reading import load_space


@pytest.fixture
def table(tmp_path):
    def write(*rows):
        (tmp_path / "t.csv").write_text("\n".join(["id,x,y,label,count", *rows]) + "\n")
        return tmp_path / "t.csv"

    return write


@pytest.mark.parametrize("bad", ["nan,1", ",1", "inf,1", "1e300,1"])
def test_nan_and_infinite_rows_are_an_error_or_dropped_and_counted(table, bad):
    path = table("a,1,2,p,9", f"b,{bad},q,8", "c,3,4,p,7")
    with pytest.raises(
        SpaceError, match=r"1 of 3 rows hold NaN or infinite values, first 'b'; .*invalid='drop'"
    ):
        load_space(path)
    with pytest.warns(UserWarning, match="t: left out 1 of 3 rows with NaN or infinite values"):
        space = load_space(path, invalid="drop")
    assert (list(space.ids), list(space.labels), list(space.counts)) == (["a", "c"], ["p", "p"], [9, 7])
    np.testing.assert_array_equal(space.vectors, [[1, 2], [3, 4]])


def test_nothing_left_after_dropping(table):
    with (
        pytest.warns(UserWarning, match="left out 1 of 1"),
        pytest.raises(SpaceError, match="expected rows of numbers, got none"),
    ):
        load_space(table("a,nan,2,p,9"), invalid="drop")


def test_duplicate_ids_are_an_error_or_the_first_is_kept(table):
    path = table("a,1,2,p,9", "b,3,4,q,8", "a,5,6,r,7")
    with pytest.raises(SpaceError, match=r"1 occur more than once, first 'a'; .*duplicates='first'"):
        load_space(path)
    with pytest.warns(UserWarning, match="left out 1 of 3 rows with ids seen before"):
        space = load_space(path, duplicates="first")
    assert (list(space.ids), list(space.labels)) == (["a", "b"], ["p", "q"])


def test_the_first_of_duplicates_is_the_first_that_is_valid(table):
    path = table("a,nan,2,p,9", "a,3,4,q,8")
    with pytest.warns(UserWarning, match="left out 1 of 2 rows with NaN"):
        space = load_space(path, duplicates="first", invalid="drop")
    assert list(space.labels) == ["q"]


def test_zero_vectors_are_kept_and_counted_and_a_clean_file_says_nothing(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space = load_space(table("a,0,0,p,9", "b,3,4,q,8"), invalid="drop", duplicates="first")
    assert list(space.zero_rows) == [0]


@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if "gz" not in suffix])
def test_an_empty_file_of_any_format(tmp_path, suffix):
    (tmp_path / f"x{suffix}").touch()
    with pytest.raises(SpaceError, match="expected vectors, got an empty file"):
        load_space(tmp_path / f"x{suffix}")


def test_no_file_a_folder_and_an_unknown_suffix(tmp_path):
    with pytest.raises(SpaceError, match=r"expected a file, got '.*nowhere\.npy', where there is none"):
        load_space(tmp_path / "nowhere.npy")
    with pytest.raises(SpaceError, match="got the folder"):
        load_space(tmp_path)
    (tmp_path / "x.docx").write_text("?")
    with pytest.raises(SpaceError, match=r"ends in \.npy, \.npz, \.safetensors, .*\.pth; got '\.docx'"):
        load_space(tmp_path / "x.docx")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"limit": 0}, "limit: expected a whole number of rows, at least 1, got 0"),
        ({"limit": 1.5}, "limit: .* got 1.5"),
        ({"invalid": "ignore"}, "invalid: expected one of error, drop, got 'ignore'"),
        ({"duplicates": "last"}, "duplicates: expected one of error, first, got 'last'"),
    ],
)
def test_choices_that_are_none(table, choice, message):
    with pytest.raises(SpaceError, match=message):
        load_space(table("a,1,2,p,9"), **choice)


def test_columns_are_for_tables(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(SpaceError, match=r"only for .*, got 'w' for \.npy"):
        load_space(tmp_path / "x.npy", id_column="w")


def test_names_come_from_the_file_or_the_caller(tmp_path, table):
    assert suffix_of(tmp_path / "cc.en.300.VEC.gz") == ".vec.gz"
    path = table("a,1,2,p,9")
    assert load_space(path).name == "t"
    assert load_space(path, name="mine").name == "mine"


def write_every_format(folder):
    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    model = KeyedVectors(3)
    model.add_vectors(list("abcd"), vectors)
    model.save_word2vec_format(str(folder / "x.bin"), binary=True)
    model.save_word2vec_format(str(folder / "x.vec"))
    (folder / "x.vec.gz").write_bytes(gzip.compress((folder / "x.vec").read_bytes()))
    np.save(folder / "x.npy", vectors)
    np.savez_compressed(folder / "x.npz", vectors=vectors, ids=np.array(list("abcd")))
    save_file(
        {"vectors": vectors, "ids": np.frombuffer(b"a\nb\nc\nd", dtype=np.uint8)}, folder / "x.safetensors"
    )
    frame = pd.DataFrame(vectors, columns=list("xyz"), index=pd.Index(list("abcd"), name="id")).reset_index()
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_parquet(folder / "x.parquet", index=False)
    index = faiss.IndexFlatL2(3)
    index.add(vectors)
    faiss.write_index(index, str(folder / "x.faiss"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.OSFile(str(folder / "x.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def test_damage_of_any_kind_ends_in_a_space_or_a_space_error(tmp_path):
    write_every_format(tmp_path)
    rng = np.random.default_rng(3)
    refused = 0
    for path in sorted(tmp_path.glob("x.*")):
        whole = path.read_bytes()
        assert len(load_space(path)) == 4
        for _ in range(40):
            damaged = bytearray(whole[: rng.integers(1, len(whole))] if rng.random() < 0.3 else whole)
            damaged[rng.integers(len(damaged))] = rng.integers(256)
            path.write_bytes(damaged)
            try:
                load_space(path, max_bytes=1 << 28)
            except SpaceError:
                refused += 1
    assert refused > 100
