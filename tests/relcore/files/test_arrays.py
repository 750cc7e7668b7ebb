"""npy, npz, safetensors, torch.save and faiss: what is written comes back, the matrix is chosen."""

import json

import faiss
import numpy as np
import pytest
from safetensors.numpy import save_file

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import available
from relcore.files.reading import description_of, load_space, shape_of

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
IDS = ["a", "b", "ç", "d e"]


def as_bytes(ids):
    return np.frombuffer("\n".join(ids).encode(), dtype=np.uint8)


@pytest.mark.parametrize("dtype", [">f4", "int8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("limit", [None, 2])
def test_npy_of_any_numbers_and_order(tmp_path, dtype, order, limit):
    np.save(tmp_path / "x.npy", np.asarray(VECTORS.astype(dtype), order=order))
    space = load_space(tmp_path / "x.npy", limit=limit)
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert list(space.ids) == ["0", "1", "2", "3"][:limit]
    assert space.name == "x"


def test_npy_takes_ids_and_labels_from_files_beside_it(tmp_path):
    np.save(tmp_path / "x.npy", VECTORS)
    (tmp_path / "x.ids.txt").write_text("\n".join(IDS) + "\n", encoding="utf-8")
    (tmp_path / "x.labels.txt").write_text("one\n\none\ntwo", encoding="utf-8")
    space = load_space(tmp_path / "x.npy")
    assert list(space.ids) == IDS
    assert list(space.labels) == ["one", "", "one", "two"]
    assert list(load_space(tmp_path / "x.npy", limit=2).ids) == IDS[:2]
    assert list(load_space(tmp_path / "x.npy", ids="wxyz").ids) == list("wxyz")
    with pytest.raises(SpaceError, match="expected 4 ids, one per row, got 3"):
        load_space(tmp_path / "x.npy", ids="wxy")


@pytest.mark.parametrize("limit", [None, 1])
def test_safetensors_with_ids_as_tensor_or_metadata(tmp_path, limit):
    counts = np.array([4, 3, 2, 1], dtype=np.int32)
    save_file(
        {"vectors": VECTORS.astype(np.float16), "ids": as_bytes(IDS), "counts": counts},
        tmp_path / "x.safetensors",
    )
    save_file(
        {"anything": VECTORS},
        tmp_path / "y.safetensors",
        metadata={"ids": "\n".join(IDS), "labels": "p\nq\np\nq"},
    )
    x, y = (load_space(tmp_path / name, limit=limit) for name in ("x.safetensors", "y.safetensors"))
    np.testing.assert_array_equal(x.vectors, VECTORS[:limit])
    np.testing.assert_array_equal(y.vectors, VECTORS[:limit])
    assert list(x.ids) == list(y.ids) == IDS[:limit]
    assert list(x.counts) == [4, 3, 2, 1][:limit]
    assert list(y.labels) == ["p", "q", "p", "q"][:limit]


ROWS = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
SENTENCES = [f"a sentence, {row}" for row in range(20)]
KINDS = ["float64", "float16", "bfloat16", "int16", "uint8"]


def saved(path, value):
    import torch

    torch.save(value, path)
    return path


@pytest.fixture
def tensor():
    import torch

    return torch.tensor(ROWS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [7])
def test_every_kind_of_number(tmp_path, tensor, kind, limit):
    import torch

    tensor = (10 * tensor.abs()).to(getattr(torch, kind))
    path = saved(tmp_path / "x.pt", tensor)
    assert shape_of(path) == (20, 4)
    np.testing.assert_array_equal(load_space(path, limit=limit).vectors, tensor.float().numpy()[:limit])


@pytest.mark.parametrize("kind", ["part", "parameter", "grad"])
def test_parts_of_a_tensor_and_parameters(tmp_path, tensor, kind):
    import torch

    parameter = torch.nn.Parameter(tensor)
    value = {"part": tensor[3:9], "parameter": parameter, "grad": parameter.detach().requires_grad_()}[kind]
    np.testing.assert_array_equal(load_space(saved(tmp_path / "x.pt", value)).vectors, value.detach().numpy())


def test_a_dict_with_ids_and_labels(tmp_path, tensor):
    path = saved(
        tmp_path / "x.pt",
        {
            "vectors": tensor,
            "other": 2 * tensor,
            "ids": SENTENCES,
            "labels": ["a", "b"] * 10,
            "epoch": 3,
        },
    )
    space = load_space(path, limit=5)
    assert (list(space.ids), list(space.labels)) == (SENTENCES[:5], ["a", "b", "a", "b", "a"])
    np.testing.assert_array_equal(load_space(path, matrix="other").vectors, 2 * ROWS)


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
@pytest.mark.parametrize("limit", [3])
def test_token_embeddings_of_model_with_its_vocabulary(model, name, limit):
    vocabulary(model.parent, name)
    assert shape_of(model) == (6, 3)
    space = load_space(model, limit=limit)
    assert list(space.ids) == [*WORDS, "[row 5]"][:limit]
    np.testing.assert_array_equal(space.vectors, WEIGHTS[:limit])


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
    assert [entry.name for entry in available(tmp_path) if entry.kind.endswith("file")] == [path.name]
    path = write(tmp_path, suffix, ARRAYS | {"vectors": np.ones((6, 4), np.float32)})
    assert description_of(path).usual == "vectors"
    assert load_space(path).dimension == 4
    assert shape_of(path) in ((6, 4), (None, None))


INDEXED = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
FLAT = {
    "L2": lambda: faiss.IndexFlatL2(8),
    "inner product": lambda: faiss.IndexFlatIP(8),
    "L1": lambda: faiss.IndexFlat(8, faiss.METRIC_L1),
    "Lp": lambda: faiss.IndexFlat(8, faiss.METRIC_Lp),
    "HNSW": lambda: faiss.IndexHNSWFlat(8, 4),
    "HNSW, inner product": lambda: faiss.IndexHNSWFlat(8, 4, faiss.METRIC_INNER_PRODUCT),
}


def written(path, index, ids=None):
    index.add(INDEXED) if ids is None else index.add_with_ids(INDEXED, ids)
    faiss.write_index(index, str(path))
    return path


@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("limit", [None])
def test_vectors_equal_what_faiss_reconstructs(tmp_path, kind, limit):
    path = written(tmp_path / "x.faiss", FLAT[kind]())
    truth = faiss.read_index(str(path)).reconstruct_n(0, 60)
    assert shape_of(path) == (60, 8)
    space = load_space(path, limit=limit)
    np.testing.assert_array_equal(space.vectors, truth[:limit])
    assert list(space.ids) == [str(row) for row in range(60)][:limit]
