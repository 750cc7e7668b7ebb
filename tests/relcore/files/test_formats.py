"""load_space: what holds for every format."""

import gzip

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from gensim.models import KeyedVectors
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space


@pytest.fixture
def table(tmp_path):
    def write(*rows):
        (tmp_path / "t.csv").write_text("\n".join(["id,x,y,label,count", *rows]) + "\n")
        return tmp_path / "t.csv"

    return write


@pytest.mark.parametrize("bad", ["nan,1", "1e300,1"])
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


def test_duplicate_ids_are_an_error_or_the_first_is_kept(table):
    path = table("a,1,2,p,9", "b,3,4,q,8", "a,5,6,r,7")
    with pytest.raises(SpaceError, match=r"1 occur more than once, first 'a'; .*duplicates='first'"):
        load_space(path)
    with pytest.warns(UserWarning, match="left out 1 of 3 rows with ids seen before"):
        space = load_space(path, duplicates="first")
    assert (list(space.ids), list(space.labels)) == (["a", "b"], ["p", "q"])


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
        ({"invalid": "ignore"}, "invalid: expected one of error, drop, got 'ignore'"),
    ],
)
def test_choices_that_are_none(table, choice, message):
    with pytest.raises(SpaceError, match=message):
        load_space(table("a,1,2,p,9"), **choice)


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
