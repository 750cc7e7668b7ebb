import json
from argparse import Namespace

import numpy as np
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.catalog.encodings import encode
from relcore.encode.command import dataset_spec, encoders_of
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.onnx_pictures import OnnxPictures
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import MiniLM, PretrainedText, PretrainedVision
from relcore.encoders.vision import SmallVision

pytestmark = pytest.mark.usefixtures("own_store")

NONE = dict.fromkeys(
    ("layers", "pooling", "width", "epochs", "image_size", "dimensions", "words", "weighting", "random_state")
)


def named(text, **options):
    usual = dict.fromkeys(("split", "config", "column", "label_column"), "") | {
        "limit": None,
        "id_column": None,
    }
    return dataset_spec(Namespace(dataset=text, **usual | options))


def chosen(*names, n=1000, kind="texts", **options):
    dataset = Dataset(
        lambda start, stop: [""] * (stop - start), list(map(str, range(n))), name="made", kind=kind
    )
    return encoders_of(Namespace(encoder=list(names), **NONE | options), dataset)


def test_datasets_by_name(tmp_path):
    (tmp_path / "texts.csv").write_text("text,label\nhello,a\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "spec.json").write_text(json.dumps(DatasetSpec("digits", limit=7).to_json()))
    assert named("digits", limit=50) == DatasetSpec("digits", limit=50)
    assert named("wikipedia") == DatasetSpec("wikipedia")
    assert named("wikipedia:16") == named("wikipedia, 16 articles")
    assert named("parallel:en") == named("everyday sentences, English") == DatasetSpec("parallel", "en")
    assert named("texts.csv", label_column="label") == DatasetSpec("file", "texts.csv", label_column="label")
    (tmp_path / "ids.csv").write_text("text,ID\nhello,a\nbye,b\n")
    kept = DatasetSpec("file", "ids.csv", options=(("id_column", "ID"),))
    assert named("ids.csv") == kept
    assert named("ids.csv", id_column="") == DatasetSpec("file", "ids.csv")
    (tmp_path / "kept.json").write_text(json.dumps(DatasetSpec("file", "ids.csv").to_json()))
    assert named("kept.json").options == ()  # a stored spec keeps its ids, table and row
    (tmp_path / "twice.csv").write_text("text,id\nhello,a\nbye,a\n")
    assert named("twice.csv") == DatasetSpec("file", "twice.csv")
    assert named("folder", split="test") == DatasetSpec("folder", "folder", "test")
    assert named("stanfordnlp/imdb") == DatasetSpec("huggingface", "stanfordnlp/imdb")
    small = DatasetSpec("huggingface", "owner/name", options=(("config", "small"),))
    assert named("owner/name", config="small") == small
    assert named("spec.json") == DatasetSpec("digits", limit=7)
    with pytest.raises(SpaceError, match="did you mean 'digits'"):
        named("digit")


def test_encoders_by_name():
    settings = {"width": 8, "epochs": 1, "random_state": 3, "image_size": 16}
    small = [SmallVision(name, 8, 1, 3, 16) for name in ("mlp", "cnn")]
    assert chosen("mlp,cnn", "mlp", kind="images", **settings) == small
    assert chosen("minilm") == [MiniLM((6,))]
    assert chosen("minilm", layers="2,4") == [MiniLM((2, 4))]
    assert chosen("tfidf", n=200) == [TfidfSvd(50)]
    assert chosen("tfidf", dimensions=9, random_state=1) == [TfidfSvd(9, random_state=1)]
    assert chosen("words", weighting="idf") == [PooledWords(weighting="idf")]
    bert = PretrainedText("owner/bert", (4, -1), "cls")
    assert chosen("owner/bert", layers="4, -1", pooling="cls") == [bert]
    assert chosen("owner/vit", kind="images") == [PretrainedVision("owner/vit")]
    assert chosen("small-vision:mlp", kind="images") == [SmallVision("mlp")]
    assert chosen("onnx") == [OnnxText()]  # the same short name means the encoder for the data
    assert chosen("onnx:folder", kind="images") == [OnnxPictures("folder")]
    assert chosen("onnx:folder", kind="images", pooling="cls") == [OnnxPictures("folder", "cls")]


def test_two_encodings_in_the_store_and_in_files(run, one_queue, own_store, tmp_path):
    command = "encode parallel:en --limit 40 --encoder tfidf --encoder words --dimensions 4"
    first = json.loads(run(command, "-o texts.npz --json"))
    dataset = DatasetSpec("parallel", "en", limit=40)
    assert DatasetSpec.from_json(first["dataset"]) == dataset
    expected = [encode(dataset, encoder, own_store)[0] for encoder in (TfidfSvd(4), PooledWords())]
    found = [(row["name"], row["n"], row["d"]) for row in first["rows"]]
    assert found == [(space.name, 40, space.dimension) for space in expected]
    assert [row["file"] for row in first["rows"]] == ["texts-1.npz", "texts-2.npz"]
    assert [load_space(row["file"]).digest for row in first["rows"]] == [space.digest for space in expected]
    assert all(own_store.has(row["key"]) for row in first["rows"])
    again = run(command)
    assert all(row["key"] in again and row["name"] in again for row in first["rows"])
    assert "4 anchors" in run("compare", *(row["key"][:10] for row in first["rows"]), "--anchors 4")


def test_encoded_table_keeps_its_ids(run, tmp_path):
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(30)])
    rows = [f"d{number},{' '.join(rng.choice(words, 12))}\n" for number in range(80)]
    (tmp_path / "docs.csv").write_text("doc_id,text\n" + "".join(rows))
    command = "encode docs.csv --encoder tfidf-svd --dimensions 8 --json"
    (row,) = json.loads(run(command, "-o docs.npz"))["rows"]
    assert load_space("docs.npz").ids.tolist() == [f"d{number}" for number in range(80)]
    (numbered,) = json.loads(run(command, "-o rows.npz --id-column="))["rows"]
    assert load_space("rows.npz").ids[0] == "docs/0"
    assert np.array_equal(load_space("docs.npz").vectors, load_space("rows.npz").vectors)
    assert numbered["key"] != row["key"]
