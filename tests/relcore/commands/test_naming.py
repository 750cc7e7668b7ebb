"""Spaces by every name that they have; anchors by number, file and id."""

import json

import pytest

from relcore.catalog.catalog import SpaceSpec, encode, load
from relcore.catalog.naming import space_spec
from relcore.commands.running import number_or_ids
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.sentences import TfidfSvd


@pytest.fixture
def encoded(own_store):
    for dimensions in (5, 6):
        encode(DatasetSpec("parallel", "en", limit=60), TfidfSvd(dimensions), own_store)
    return {one.metadata["name"]: one.key for one in own_store.summaries() if "encoder" in one.metadata}


def test_bundled_gensim_file_and_json(files, tmp_path):
    assert space_spec("word2vec-novels") == SpaceSpec("bundled", "word2vec-novels")
    assert space_spec("first.npz") == SpaceSpec("file", "first.npz")
    limited = SpaceSpec("file", "first.npz", 10, (("invalid", "drop"),))
    (tmp_path / "spec.json").write_text(json.dumps(limited.to_json()))
    assert space_spec("spec.json") == limited


def test_encoding_by_key_start_of_key_and_name(encoded):
    assert len(encoded) == 2
    for name, key in encoded.items():
        spec = space_spec(key)
        assert spec == space_spec(key[:8]) == space_spec(name)
        assert (spec.source, spec.name, spec.option("key")) == ("encoding", name, key)
        assert load(spec).name == name
        assert spec.dataset == DatasetSpec("parallel", "en", limit=60)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("word2vec-novel", "did you mean 'word2vec-novels'"),
        ("frst.npz", "'frst.npz', where there is none"),
        ("list.json", "expected a space's spec as a JSON object, got list"),
    ],
)
def test_what_is_no_space_is_told(refuse, files, tmp_path, name, message):
    (tmp_path / "list.json").write_text("[]")
    assert message in refuse("compare", name, "second.npz")


def test_anchors_by_number_file_and_ids(tmp_path):
    (tmp_path / "list.txt").write_text("\ufeffking\n\n river \nking\n", encoding="utf-8")
    assert number_or_ids("300") == 300
    assert number_or_ids("list.txt") == ("king", "river")
    assert number_or_ids("sea, king,sea") == ("sea", "king")
