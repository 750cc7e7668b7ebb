"""The catalogue: what is here, series of checkpoints, and the columns, texts and pictures of rows."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from gensim.models import KeyedVectors
from PIL import Image
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, available, encoding_spec, load
from relcore.catalog.encodings import encode, encoding_key
from relcore.catalog.naming import space_specs
from relcore.catalog.row_tables import TableColumns, row_items
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset, with_options
from relcore.encoders.vision import SmallVision
from relcore.launch.command import specs_of_names
from relcore.runs.store import Store

VECTORS = np.arange(1, 7, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GENSIM_DATA_DIR", str(tmp_path / "gensim"))
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    data = tmp_path / "data"
    (data / "deep" / "er" / "est").mkdir(parents=True)
    return data


def files(folder):
    return {entry.name: entry for entry in available(folder) if entry.kind == "file"}


def test_files_that_are_spaces_with_their_shapes_and_each_loads(folder, monkeypatch):
    np.save(folder / "a.npy", VECTORS)
    save_file({"vectors": VECTORS}, folder / "c.safetensors")
    frame = pd.DataFrame({"w": ["p", "q", "r"], "x": VECTORS[:, 0], "y": VECTORS[:, 1]})
    frame.to_csv(folder / "d.csv", index=False)
    frame.to_parquet(folder / "deep" / "e.parquet", index=False)
    model = KeyedVectors(2)
    model.add_vectors(["p", "q", "r"], VECTORS)
    model.save_word2vec_format(str(folder / "deep" / "er" / "f.bin"), binary=True)
    model.save_word2vec_format(str(folder / "g.txt"), write_header=False)
    found = files(folder)
    assert {name: (entry.n, entry.dimension) for name, entry in found.items()} == {
        "a.npy": (3, 2),
        "c.safetensors": (3, 2),
        "d.csv": (None, None),
        "deep/e.parquet": (3, 2),
        "deep/er/f.bin": (3, 2),
        "g.txt": (None, 2),
    }
    for entry in found.values():
        np.testing.assert_array_equal(load(entry.spec).vectors, VECTORS)
    monkeypatch.setenv("RELSCOPE_DATA", str(folder))
    assert [entry for entry in available() if entry.kind == "file"] == list(found.values())


def test_files_that_are_no_spaces_are_left_out(folder):
    (folder / "prose.txt").write_text("It was the best of times\n")
    (folder / "names.csv").write_text("first,last\nAda,Lovelace\n")
    (folder / "broken.npy").write_bytes(b"?")
    (folder / "noise.bin").write_bytes(b"\0" * 100)
    (folder / "empty.csv").touch()
    np.save(folder / "list.npy", np.ones(3))
    pd.DataFrame({"text": ["a"], "label": [1]}).to_parquet(folder / "texts.parquet")
    np.save(folder / "deep" / "er" / "est" / "deeper.npy", VECTORS)
    assert files(folder) == {}
    assert files(folder / "nowhere") == {}


def test_spec_of_encoding_holds_what_made_it_and_loads_what_is_stored(tmp_path):
    dataset = DatasetSpec("digits", limit=30)
    encoder = SmallVision("mlp", width=8, epochs=1)
    store = Store(tmp_path)
    (space,) = encode(dataset, encoder, store)
    key = encoding_key(load_dataset(dataset).digest, encoder)
    spec = encoding_spec(dataset, encoder, "", key, space.name)
    assert SpaceSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert (spec.dataset, spec.encoder) == (dataset, encoder)
    assert load(spec, store).digest == space.digest
    store.remove(key)
    with pytest.raises(SpaceError, match=r"expected the encoding .*, got none .*encode it again"):
        load(spec, store)


STEPS = (5, 20, 100, 1000)


def names(folder, text=None):
    return [spec.name.removeprefix(f"{folder}/") for spec in space_specs(text or str(folder))]


def test_files_in_natural_order_without_what_lies_beside_them(tmp_path):
    for step in STEPS:
        np.save(tmp_path / f"step-{step}.npy", np.eye(3))
        (tmp_path / f"step-{step}.ids.txt").write_text("a\nb\nc\n")
    (tmp_path / "metrics.csv").write_text("step,loss\n5,1.5\n20,1.2\n")
    (tmp_path / "notes.md").write_text("?")
    (tmp_path / ".hidden.npy").write_bytes((tmp_path / "step-5.npy").read_bytes())
    assert names(tmp_path) == [f"step-{step}.npy" for step in STEPS]
    listed = [entry.name for entry in available(tmp_path) if entry.name.startswith("step")]
    assert listed == [f"step-{step}.npy" for step in STEPS]
    specs = specs_of_names([str(tmp_path)])
    assert [spec.name for spec in specs] == [str((tmp_path / f"step-{step}.npy").resolve()) for step in STEPS]


@pytest.fixture
def described(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 3)))
    lines = [
        "code,genre,year,note,text",
        "r1,jazz,1959,,one long line of words here",
        "r2,rock,1971,x,another long line of words",
        "r3,jazz,NA,x,and one more long line of words",
        "r4,rock,1975,y,the last line of many words",
    ]
    (tmp_path / "meta.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.filterwarnings("ignore:meta.csv is joined to a.npy by row order")
def test_columns_of_metadata_without_role_are_on_offer_and_belong_to_their_rows(described):
    spec = SpaceSpec("file", str(described / "a.npy"), options=(("metadata", str(described / "meta.csv")),))
    assert TableColumns(spec).names == ("year", "note")
    year = TableColumns(spec).read("year", load(spec))
    assert year.to_dict() == {"r1": "1959", "r2": "1971", "r3": None, "r4": "1975"}
    with pytest.raises(SpaceError, match="column: expected one of 'year', 'note' for 'a', got 'genre'"):
        TableColumns(spec).read("genre", load(spec))


def test_encoding_offers_other_columns_of_its_table(tmp_path, make_space):
    path = tmp_path / "news.csv"
    path.write_text("text,label,year\nfirst words,a,1990\nmore words,b,1991\n")
    dataset = DatasetSpec("file", str(path), column="text", label_column="label")

    def spec_of(dataset):
        dataset = json.dumps(dataset.to_json())
        encoder = json.dumps({"kind": "tfidf"})
        options = {"dataset": dataset, "encoder": encoder, "key": "k", "output": "latent"}
        return SpaceSpec("encoding", "news", options=tuple(options.items()))

    spec = spec_of(dataset)
    assert TableColumns(spec).names == ("year",)
    space = make_space(np.eye(2), ids=["news/1", "news/0"])
    assert TableColumns(spec).read("year", space).to_dict() == {"news/1": "1991", "news/0": "1990"}
    spec = spec_of(with_options(dataset, id_column="text"))
    space = space.with_columns(ids=["more words", "first words"])
    assert TableColumns(spec).read("year", space).to_dict() == {"more words": "1991", "first words": "1990"}
    with pytest.raises(SpaceError, match="expected the ids that were encoded"):
        TableColumns(spec).read("year", space.with_columns(ids=["more words", "x"]))


@pytest.fixture
def with_items(tmp_path):
    vectors = np.eye(4)
    vectors[1] = np.nan
    np.save(tmp_path / "holes.npy", vectors)
    np.save(tmp_path / "a.npy", np.eye(4))
    for row in range(4):
        Image.new("L", (8, 8), 10 * row).save(tmp_path / f"{row}.png")
    lines = "".join(f"d{row},text {row},{row}.png\n" for row in range(4))
    (tmp_path / "meta.csv").write_text(f"id,text,file\n{lines}")
    return tmp_path


def items(path, **options):
    spec = SpaceSpec("file", str(path), options=tuple(options.items()))
    return {dataset.kind: dataset for dataset in row_items(spec, load(spec))}


@pytest.mark.filterwarnings("ignore:meta.csv is joined to a.npy by row order")
def test_texts_and_pictures_of_metadata(with_items):
    found = items(with_items / "a.npy", metadata=str(with_items / "meta.csv"))
    assert found["texts"].ids.tolist() == ["d0", "d1", "d2", "d3"]
    assert found["texts"].items(1, 3) == ["text 1", "text 2"]
    assert found["images"].item(3).getpixel((0, 0)) == 30


@pytest.mark.filterwarnings("ignore:holes", "ignore:meta.csv is joined to holes.npy by row order")
def test_rows_that_are_left_out_shift_nothing(with_items):
    options = {"metadata": str(with_items / "meta.csv"), "invalid": "drop"}
    for more, row in (({}, "d2"), ({"ids": "rows"}, "2")):
        found = items(with_items / "holes.npy", **options, **more)["texts"]
        assert dict(zip(found.ids, found.items(0, 3), strict=True))[row] == "text 2"


def test_a_table_of_vectors_has_texts_of_its_own(with_items):
    texts = {"id": list("wxyz"), "text": ["a b", "c d", None, "g h"], "more": list("abcd")}
    parquet.write_table(pa.table(texts | {"vector": np.eye(4).tolist()}), with_items / "own.parquet")
    assert items(with_items / "own.parquet")["texts"].items(1, 3) == ["c d", ""]
    assert items(with_items / "own.parquet", text_column="more")["texts"].items(0, 2) == ["a", "b"]
