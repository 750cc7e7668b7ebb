"""Tensors of torch.save: read like torch reads them, without torch and without unpickling."""

import numpy as np
import pytest
import torch

from relcore.files.reading import load_space, shape_of

VECTORS = torch.tensor(np.random.default_rng(0).normal(size=(20, 4)), dtype=torch.float32)
IDS = [f"a sentence, {row}" for row in range(20)]
KINDS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int16, torch.uint8]


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
