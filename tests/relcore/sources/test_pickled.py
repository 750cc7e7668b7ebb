"""gensim's .kv: read like gensim reads it, and harmful pickles do nothing at all."""

import os
import pickle

import numpy as np
import pytest
from gensim.models import FastText, KeyedVectors, Word2Vec

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space

WORDS = [f"wörd{i}" for i in range(40)]
VECTORS = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def model(dtype=np.float32):
    keyed = KeyedVectors(6, dtype=dtype)
    keyed.add_vectors(WORDS, VECTORS.astype(dtype))
    for i, word in enumerate(WORDS):
        keyed.set_vecattr(word, "count", 100 - i)
    return keyed


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("sep_limit", [10**9, 1], ids=["inline", "beside"])
@pytest.mark.parametrize("limit", [None, 7])
def test_what_gensim_saved_comes_back(tmp_path, protocol, sep_limit, limit):
    model().save(str(tmp_path / "x.kv"), pickle_protocol=protocol, sep_limit=sep_limit)
    assert (tmp_path / "x.kv.vectors.npy").exists() == (sep_limit == 1)
    space = load_space(tmp_path / "x.kv", limit=limit)
    assert list(space.ids) == WORDS[:limit]
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert list(space.counts) == list(range(100, 60, -1))[:limit]


def test_double_precision_and_fortran_order(tmp_path):
    keyed = model(np.float64)
    keyed.vectors = np.asfortranarray(keyed.vectors)
    keyed.save(str(tmp_path / "x.kv"))
    np.testing.assert_array_equal(load_space(tmp_path / "x.kv").vectors, VECTORS)


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    model().save(str(tmp_path / "x.kv"))

    def forbidden(*_, **__):
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    assert len(load_space(tmp_path / "x.kv")) == 40


class Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("place", ["whole", "attribute"])
@pytest.mark.parametrize("kind", ["system", "eval", "open"])
def test_harmful_pickles_are_refused_and_do_nothing(tmp_path, protocol, place, kind):
    sprung = tmp_path / "sprung"
    harm = {
        "system": Call(os.system, f"touch {sprung}"),
        "eval": Call(eval, f"open({str(sprung)!r}, 'w')"),
        "open": Call(open, str(sprung), "w"),
    }[kind]
    if place == "attribute":
        keyed = model()
        keyed.expandos["harm"] = harm
        harm = keyed
    content = pickle.dumps(harm, protocol=protocol)
    (tmp_path / "x.kv").write_bytes(content)
    with pytest.raises(SpaceError, match=r"refused, the pickle asks for .*nothing of it was run"):
        load_space(tmp_path / "x.kv")
    assert not sprung.exists()
    pickle.loads(content)  # the same bytes do harm where they are run
    assert sprung.exists()


def test_other_pickles_and_whole_models_are_named(tmp_path):
    (tmp_path / "x.kv").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(SpaceError, match=r"pickle of something else; .*save_word2vec_format"):
        load_space(tmp_path / "x.kv")
    sentences = [["a", "b", "c"]] * 5
    Word2Vec(sentences, vector_size=4, min_count=1).save(str(tmp_path / "w.kv"))
    with pytest.raises(SpaceError, match=r"got a whole Word2Vec; save its \.wv alone"):
        load_space(tmp_path / "w.kv")
    FastText(sentences, vector_size=4, min_count=1, bucket=50).wv.save(str(tmp_path / "f.kv"))
    with pytest.raises(SpaceError, match="FastText files of gensim 4"):
        load_space(tmp_path / "f.kv")


def test_vectors_beside_that_are_missing(tmp_path):
    model().save(str(tmp_path / "x.kv"), sep_limit=1)
    (tmp_path / "x.kv.vectors.npy").unlink()
    with pytest.raises(SpaceError, match=r"x\.kv\.vectors\.npy beside it, got no such file"):
        load_space(tmp_path / "x.kv")


def test_every_cut_and_many_flips_end_in_a_space_or_an_error(tmp_path):
    keyed = KeyedVectors(2)
    keyed.add_vectors(["a", "b"], VECTORS[:2, :2])
    keyed.save(str(tmp_path / "x.kv"))
    whole = (tmp_path / "x.kv").read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for cut in rng.choice(len(whole), 60, replace=False):
        damaged = bytearray(whole)
        damaged[cut] ^= int(rng.integers(1, 256))
        for content in (whole[:cut], bytes(damaged)):
            (tmp_path / "x.kv").write_bytes(content)
            try:
                load_space(tmp_path / "x.kv")
            except SpaceError:
                refused += 1
    assert refused >= 60  # every cut; a flip inside a number or a date changes nothing that can be told


def test_a_nest_that_doubles_at_each_level_is_refused_quickly(tmp_path):
    nest = (
        b"\x80\x04"
        + b")\x94"
        + b"".join(b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86\x94" for i in range(60))
    )
    content = nest + b"}" + b"h\x3c" + b"K\x01s."  # the nest as a key: hashing it would take 2^60 steps
    (tmp_path / "x.kv").write_bytes(content)
    with pytest.raises(SpaceError, match="expected words as keys, got tuple"):
        load_space(tmp_path / "x.kv")


@pytest.mark.parametrize("protocol", [4, 5])
def test_a_lost_byte_never_shifts_the_numbers(tmp_path, protocol):
    model().save(str(tmp_path / "x.kv"), pickle_protocol=protocol)
    whole = (tmp_path / "x.kv").read_bytes()
    at = whole.index(VECTORS.tobytes())
    for place in range(at, at + 40):
        (tmp_path / "x.kv").write_bytes(whole[:place] + whole[place + 1 :])
        with pytest.raises(SpaceError, match=r"x\.kv: "):
            load_space(tmp_path / "x.kv")


@pytest.mark.parametrize("protocol", [4, 5])
def test_arrays_outside_of_frames_come_back(tmp_path, protocol):
    vectors = (
        np.random.default_rng(0).normal(size=(300, 80)).astype(np.float32)
    )  # 96 kB: pickle writes it outside of a frame
    keyed = KeyedVectors(80)
    keyed.add_vectors([f"w{row}" for row in range(300)], vectors)
    keyed.save(str(tmp_path / "x.kv"), pickle_protocol=protocol)
    np.testing.assert_array_equal(load_space(tmp_path / "x.kv").vectors, vectors)
