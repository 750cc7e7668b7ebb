"""npy, npz, safetensors and torch.save. tests/hostile has the controls of each format."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import available
from relcore.files.reading import description_of, shape_of

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
IDS = ["a", "b", "ç", "d e"]


def test_npy_takes_ids_and_labels_from_files_beside_it(tmp_path):
    np.save(tmp_path / "x.npy", np.asarray(VECTORS.astype(">f4"), order="F"))
    (tmp_path / "x.ids.txt").write_text("\n".join(IDS) + "\n", encoding="utf-8")
    (tmp_path / "x.labels.txt").write_text("one\n\none\ntwo", encoding="utf-8")
    space = load_space(tmp_path / "x.npy")
    assert list(space.ids) == IDS
    assert list(space.labels) == ["one", "", "one", "two"]
    first = load_space(tmp_path / "x.npy", limit=2)
    assert (first.ids.tolist(), first.vectors.tolist()) == (IDS[:2], VECTORS[:2].tolist())
    assert list(load_space(tmp_path / "x.npy", ids=[*"wxyz"]).ids) == list("wxyz")
    with pytest.raises(SpaceError, match="expected 4 ids, one per row, got 3"):
        load_space(tmp_path / "x.npy", ids=[*"wxy"])


ROWS = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)


def saved(path, value):
    import torch

    torch.save(value, path)
    return path


@pytest.fixture
def tensor():
    import torch

    return torch.tensor(ROWS)


@pytest.mark.parametrize("kind", ["float64", "bfloat16", "int16", "uint8"])
def test_every_kind_of_number(tmp_path, tensor, kind):
    import torch

    tensor = (10 * tensor.abs()).to(getattr(torch, kind))
    path = saved(tmp_path / "x.pt", tensor)
    assert shape_of(path) == (20, 4)
    np.testing.assert_array_equal(load_space(path, limit=7).vectors, tensor.float().numpy()[:7])


@pytest.mark.parametrize("kind", ["part", "parameter", "grad"])
def test_parts_of_a_tensor_and_parameters(tmp_path, tensor, kind):
    import torch

    parameter = torch.nn.Parameter(tensor)
    value = {"part": tensor[3:9], "parameter": parameter, "grad": parameter.detach().requires_grad_()}[kind]
    np.testing.assert_array_equal(load_space(saved(tmp_path / "x.pt", value)).vectors, value.detach().numpy())


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
def test_token_embeddings_of_model_with_its_vocabulary(model, name):
    vocabulary(model.parent, name)
    assert shape_of(model) == (6, 3)
    space = load_space(model)
    assert list(space.ids) == [*WORDS, "[row 5]"]
    np.testing.assert_array_equal(space.vectors, WEIGHTS)
    assert list(load_space(model, limit=3).ids) == WORDS[:3]


ARRAYS = {"a": np.ones((6, 3), np.float32), "b": np.ones((6, 2), np.float32), "flat": np.ones(6, np.float32)}


def write(folder, suffix, arrays):
    path = folder / f"x{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    elif suffix == ".safetensors":
        save_file(arrays, path)
    else:
        torch = pytest.importorskip("torch")
        torch.save({name: torch.tensor(one) for name, one in arrays.items()}, path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt"])
def test_all_matrices_are_listed_and_one_has_to_be_chosen_unless_its_name_says_it(tmp_path, suffix):
    path = write(tmp_path, suffix, ARRAYS)
    assert description_of(path).choosable == {"a": (6, 3), "b": (6, 2)}
    assert description_of(path).usual is None
    with pytest.raises(SpaceError, match="choose one with the option matrix"):
        load_space(path)
    assert load_space(path, matrix="b").dimension == 2
    assert [entry.name for entry in available(tmp_path) if entry.kind.endswith("file")] == [path.name]
    path = write(tmp_path, suffix, ARRAYS | {"vectors": np.ones((6, 4), np.float32)})
    assert description_of(path).usual == "vectors"
    assert load_space(path).dimension == 4
    assert shape_of(path) in ((6, 4), (None, None))
