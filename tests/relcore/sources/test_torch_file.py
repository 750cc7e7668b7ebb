"""Tensors of torch.save: read like torch reads them, without torch and without unpickling."""

import pickle
import zipfile

import numpy as np
import pytest
import torch

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space, shape_of

VECTORS = torch.tensor(np.random.default_rng(0).normal(size=(20, 4)), dtype=torch.float32)
IDS = [f"a sentence, {row}" for row in range(20)]
KINDS = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
]


def saved(path, value):
    torch.save(value, path)
    return path


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("limit", [None, 7])
def test_every_kind_of_number(tmp_path, kind, limit):
    tensor = (10 * VECTORS.abs()).to(kind)
    path = saved(tmp_path / "x.pt", tensor)
    assert shape_of(path) == (20, 4)
    np.testing.assert_array_equal(load_space(path, limit=limit).vectors, tensor.float().numpy()[:limit])


@pytest.mark.parametrize(
    "value",
    [VECTORS[3:9], torch.nn.Parameter(VECTORS), VECTORS.clone().requires_grad_()],
    ids=["part", "parameter", "grad"],
)
def test_parts_of_a_tensor_and_parameters(tmp_path, value):
    np.testing.assert_array_equal(load_space(saved(tmp_path / "x.pt", value)).vectors, value.detach().numpy())


def test_a_dict_with_ids_and_labels(tmp_path):
    path = saved(
        tmp_path / "x.pt",
        {"vectors": VECTORS, "other": 2 * VECTORS, "ids": IDS, "labels": ["a", "b"] * 10, "epoch": 3},
    )
    space = load_space(path, limit=5)
    assert (list(space.ids), list(space.labels)) == (IDS[:5], ["a", "b", "a", "b", "a"])
    np.testing.assert_array_equal(load_space(path, matrix="other").vectors, 2 * VECTORS.numpy())


def test_the_token_embeddings_of_a_state_dict(tmp_path):
    model = torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(6, 3), "out": torch.nn.Linear(3, 2)})
    (tmp_path / "vocab.txt").write_text("not read")
    space = load_space(saved(tmp_path / "model.pt", model.state_dict()))
    np.testing.assert_array_equal(space.vectors, model["embed_tokens"].weight.detach().numpy())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (VECTORS.T, "expected rows that follow each other"),
        (VECTORS[:, :2], "expected rows that follow each other"),
        (VECTORS[:1].expand(10**6, 4), "expected rows that follow each other"),
        (VECTORS > 0, "expected real numbers, got BoolStorage"),
        (VECTORS[0], "expected a matrix named 'vectors'"),
        ({"a": VECTORS, "b": VECTORS}, "expected a matrix named 'vectors'.*option matrix"),
        ([VECTORS], "expected a matrix named 'vectors'"),
        (torch.nn.Linear(2, 2), "refused, the pickle asks for 'torch.nn.modules.linear.Linear'"),
        ({"x": VECTORS, "y": np.eye(2)}, "refused, the pickle asks for 'numpy"),
    ],
    ids=range(9),
)
def test_what_is_refused(tmp_path, value, message):
    with pytest.raises(SpaceError, match=rf"x\.pt.*{message}"):
        load_space(saved(tmp_path / "x.pt", value))


def test_older_files_and_nothing_is_unpickled(tmp_path, monkeypatch):
    torch.save(VECTORS, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(
        SpaceError, match=r"old\.pt: expected tensors written by torch\.save, got a file that cannot be read"
    ):
        load_space(tmp_path / "old.pt")
    saved(tmp_path / "x.pt", VECTORS)
    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    assert len(load_space(tmp_path / "x.pt")) == 20


def test_sizes_are_checked_before_memory(tmp_path):
    with zipfile.ZipFile(saved(tmp_path / "x.pt", VECTORS)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    with zipfile.ZipFile(tmp_path / "y.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(SpaceError, match="expected 320 B of numbers that are not compressed"):
        load_space(tmp_path / "y.pt")
    with zipfile.ZipFile(tmp_path / "y.pt", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content[:100] if "/data/" in name else content)
    with pytest.raises(SpaceError, match=r"expected 320 B of numbers .*, got 100 B"):
        load_space(tmp_path / "y.pt")
    with pytest.raises(SpaceError, match=r"20 × 4 values take 320 B .*more than max_bytes"):
        load_space(tmp_path / "x.pt", max_bytes=1000)
