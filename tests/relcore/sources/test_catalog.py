"""The catalogue: what is here, what is not, without reading files or asking the network."""

import json
import socket

import numpy as np
import pandas as pd
import pytest
from gensim.models import KeyedVectors
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.catalog import catalog
from relcore.catalog.catalog import CatalogEntry, SpaceSpec, available, encoding_key, encoding_spec, load
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.small_vision import SmallVision
from relcore.encoders.words import load_words
from relcore.files.reading import load_space
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


def test_bundled_first_and_gensim_data_needs_the_network(folder, monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("asked the network"))
    monkeypatch.setattr(catalog, "load_words", lambda *_, **__: pytest.fail("read more than a header"))
    entries = available()
    assert [(entry.name, entry.where, entry.n, entry.dimension) for entry in entries[:2]] == [
        ("word2vec-novels", "here", 20_000, 100),
        ("fasttext-novels", "here", 20_000, 100),
    ]
    google = next(entry for entry in entries if entry.name == "word2vec-google-news-300")
    assert (google.where, google.n, google.dimension, google.size_bytes) == (
        "needs the network",
        3_000_000,
        300,
        1_743_563_840,
    )
    assert len(entries) == 2 + 12


def test_gensim_data_that_was_downloaded_is_here(folder, tmp_path):
    (tmp_path / "gensim" / "glove-twitter-25").mkdir(parents=True)
    (tmp_path / "gensim" / "glove-twitter-25" / "glove-twitter-25.gz").write_bytes(b"?")
    assert [entry.name for entry in available() if entry.where == "here"][2:] == ["glove-twitter-25"]


def test_files_that_are_spaces_with_their_shapes_and_each_loads(folder, monkeypatch):
    np.save(folder / "a.npy", VECTORS)
    np.savez(folder / "b.npz", vectors=VECTORS)
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
        "b.npz": (3, 2),
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


@pytest.mark.parametrize(
    "spec",
    [
        SpaceSpec("bundled", "word2vec-novels"),
        SpaceSpec("gensim-data", "glove-twitter-25", limit=10),
        SpaceSpec("file", "x.csv", 5, (("id_column", "w"), ("invalid", "drop"))),
    ],
)
def test_specs_go_to_json_and_back_and_hash(spec):
    back = SpaceSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert back == spec
    assert hash(back) == hash(spec)


def test_columns_of_a_table_travel_with_its_spec(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,n,x,y\np,q,1,2,3\nr,s,4,5,6\n")
    options = (("id_column", "b"), ("count_column", "n"), ("ignore", '["a", "y"]'))
    spec = SpaceSpec.from_json(SpaceSpec("file", str(tmp_path / "t.csv"), options=options).to_json())
    space = load(spec)
    assert (space.ids.tolist(), space.counts.tolist(), space.vectors.tolist()) == (
        ["q", "s"],
        [1, 4],
        [[2], [5]],
    )
    for bad in ("a", "{}", "[1]"):
        with pytest.raises(SpaceError, match="ignore: expected a list of columns"):
            load(SpaceSpec("file", str(tmp_path / "t.csv"), options=(("ignore", bad),)))


def test_load_goes_where_the_names_go(folder):
    assert (
        load(SpaceSpec("bundled", "word2vec-novels", 100)).digest
        == load_words("word2vec-novels", limit=100).digest
    )
    (folder / "x.csv").write_text("w,v,x\na,b,1\nc,d,2\n")
    spec = SpaceSpec("file", str(folder / "x.csv"), 1, (("id_column", "v"),))
    assert list(load(spec).ids) == ["b"]
    assert load(spec).digest == load_space(folder / "x.csv", limit=1, id_column="v").digest


def test_specs_that_are_none():
    known = "'bundled', 'file', 'index', 'gensim-data', 'encoding', 'renamed', 'sample'"
    with pytest.raises(SpaceError, match=f"source: expected one of {known}, got 'hub'"):
        SpaceSpec("hub", "x")
    with pytest.raises(SpaceError, match="options: expected none for 'bundled', got 'invalid'"):
        SpaceSpec("bundled", "word2vec-novels", options=(("invalid", "drop"),))
    with pytest.raises(SpaceError, match=r"the setting 'source' is missing"):
        SpaceSpec.from_json({"name": "x", "origin": "y"})
    with pytest.raises(SpaceError, match=r"bundled: expected one of 'word2vec-novels'.*got 'x'"):
        load(SpaceSpec("bundled", "x"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": 5}, "name: expected a string, got 5"),
        ({"name": ""}, "name: expected .*, got ''"),
        ({"limit": "x"}, "limit: expected a whole number or null, got 'x'"),
        ({"limit": 0}, "limit: .*got 0"),
        ({"limit": True}, "limit: .*got True"),
        ({"limit": 2.0}, "limit: .*got 2.0"),
        (
            {"options": {"colour": "red"}},
            (
                "options: expected some of 'id_column', .*'duplicates', each with a string for 'file', got"
                " 'colour'"
            ),
        ),
        ({"options": {"max_bytes": 1 << 60}}, "options: .*got 'max_bytes'"),
        ({"options": {"id_column": ["w"]}}, "options: .*each with a string for 'file', got 'id_column'"),
    ],
)
def test_specs_with_a_wrong_setting_are_refused(settings, message):
    with pytest.raises(SpaceError, match=message):
        SpaceSpec.from_json({"source": "file", "name": "x.csv"} | settings)


def test_every_option_reaches_the_reader(folder):
    (folder / "x.csv").write_text("a,b,c,x\n1,p,k,1\n2,q,l,2\n2,q,l,3\n3,r,m,nan\n")
    options = {"id_column": "b", "label_column": "c", "invalid": "drop", "duplicates": "first"}
    spec = SpaceSpec.from_json({"source": "file", "name": str(folder / "x.csv"), "options": options})
    with pytest.warns(UserWarning, match="x: left out 1 of"):
        space = load(spec)
    assert (space.ids.tolist(), space.labels.tolist()) == (["p", "q"], ["k", "l"])


def test_entries_are_frozen():
    entry = available()[0]
    assert isinstance(entry, CatalogEntry)
    with pytest.raises(AttributeError):
        entry.name = "other"


def test_the_spec_of_an_encoding_holds_what_made_it_and_loads_what_is_stored(tmp_path):
    dataset, encoder = DatasetSpec("digits", limit=30), SmallVision("mlp", width=8, epochs=1)
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected all of 'dataset', 'encoder', 'key', 'output' for an encoding, got "),
        (
            {"dataset": "{}", "encoder": "{}", "key": "k", "output": "", "more": "x"},
            "expected some of .* got 'more'",
        ),
        (
            {"dataset": 3, "encoder": "{}", "key": "k", "output": ""},
            "each with a string for 'encoding', got 'dataset'",
        ),
    ],
)
def test_specs_of_encodings_that_lack_what_made_them(options, message):
    with pytest.raises(SpaceError, match=message):
        SpaceSpec.from_json({"source": "encoding", "name": "digits", "options": options})


def test_an_encoding_whose_dataset_is_no_json_says_so():
    options = (("dataset", "digits"), ("encoder", "{}"), ("key", "k"), ("output", ""))
    with pytest.raises(SpaceError, match="expected a dataset and an encoder as JSON, got 'digits'"):
        _ = SpaceSpec("encoding", "digits", options=options).dataset
