"""Tensors of torch.save: read like torch reads them, without torch and without unpickling."""

import numpy as np
import pytest

from relcore.files.reading import load_space, shape_of

VECTORS = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
IDS = [f"a sentence, {row}" for row in range(20)]
KINDS = ["float32", "float64", "float16", "bfloat16", "int64", "int16", "uint8"]


def saved(path, value):
    import torch

    torch.save(value, path)
    return path


@pytest.fixture
def tensor():
    import torch

    return torch.tensor(VECTORS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [None, 7])
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
        {"vectors": tensor, "other": 2 * tensor, "ids": IDS, "labels": ["a", "b"] * 10, "epoch": 3},
    )
    space = load_space(path, limit=5)
    assert (list(space.ids), list(space.labels)) == (IDS[:5], ["a", "b", "a", "b", "a"])
    np.testing.assert_array_equal(load_space(path, matrix="other").vectors, 2 * VECTORS)
