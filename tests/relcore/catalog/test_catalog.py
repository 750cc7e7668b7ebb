"""The catalogue: what is here, what is not, without reading files or asking the network."""

import json

import numpy as np
import pandas as pd
import pytest
from gensim.models import KeyedVectors
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, available, encode, encoding_key, encoding_spec, load
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SmallVision
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
