"""A matrix chosen among several; token embeddings of a model with its vocabulary; bfloat16; pickles
refused with a remedy.
"""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space, shape_of

WORDS = ["[PAD]", "the", "river", "##s", "sea"]
WEIGHTS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
NAME = "embeddings.word_embeddings.weight"


@pytest.fixture
def model(tmp_path):
    tensors = {
        f"bert.{NAME}": WEIGHTS,
        "bert.embeddings.position_embeddings.weight": np.ones((4, 3), np.float32),
        "bert.pooler.dense.weight": np.zeros((3, 3), np.float32),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def vocabulary(folder, name):
    if name == "vocab.txt":
        (folder / name).write_text("\n".join(WORDS) + "\n")
    elif name == "vocab.json":
        (folder / name).write_text(json.dumps({word: row for row, word in enumerate(WORDS)}))
    elif name == "tokenizer.json":
        words = {word: row for row, word in enumerate(WORDS[:4])}
        found = {"model": {"vocab": words}, "added_tokens": [{"id": 4, "content": WORDS[4]}]}
        (folder / name).write_text(json.dumps(found))
    else:
        found = {"model": {"vocab": [[word, -1.5] for word in WORDS]}}
        (folder / "tokenizer.json").write_text(json.dumps(found))


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.json", "tokenizer.json", "unigram"])
@pytest.mark.parametrize("limit", [None, 3])
def test_the_token_embeddings_of_a_model_with_its_vocabulary(model, name, limit):
    vocabulary(model.parent, name)
    assert shape_of(model) == (6, 3)
    space = load_space(model, limit=limit)
    assert list(space.ids) == [*WORDS, "[row 5]"][:limit]
    np.testing.assert_array_equal(space.vectors, WEIGHTS[:limit])


def test_bfloat16_is_read_exactly(tmp_path):
    import torch
    from safetensors.torch import save_file

    halves = torch.tensor(np.vstack([WEIGHTS] * 3)).to(torch.bfloat16)
    save_file({"other": torch.ones(7, dtype=torch.bfloat16), "x": halves}, tmp_path / "x.safetensors")
    for limit in (None, 4):
        space = load_space(tmp_path / "x.safetensors", limit=limit)
        np.testing.assert_array_equal(space.vectors, halves.float().numpy()[:limit])


def test_a_matrix_is_chosen_by_name(tmp_path):
    np.savez(tmp_path / "x.npz", a=WEIGHTS, b=2 * WEIGHTS, flat=WEIGHTS[0], ids=[*WORDS, "z"])
    with pytest.raises(
        SpaceError, match=r"got 'a \(6, 3\)', .*; choose one with the option matrix, as FILE#matrix=NAME"
    ):
        load_space(tmp_path / "x.npz")
    space = load_space(tmp_path / "x.npz", matrix="b")
    np.testing.assert_array_equal(space.vectors, 2 * WEIGHTS)
    assert list(space.ids) == [*WORDS, "z"]
    with pytest.raises(SpaceError, match=r"expected a matrix named 'c', got 'a \(6, 3\)'"):
        load_space(tmp_path / "x.npz", matrix="c")
    with pytest.raises(SpaceError, match=r"expected a matrix named 'flat', got"):
        load_space(tmp_path / "x.npz", matrix="flat")
