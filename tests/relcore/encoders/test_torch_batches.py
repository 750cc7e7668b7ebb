import numpy as np
import pytest

from relcore.encoders.transformers import TorchBatches
from tests.lazily import Lazily

torch = Lazily("torch")


class Memory:
    """A forward pass, x → (x, 2 x), on a device that holds so many items."""

    def __init__(self, holds, error=None):
        self.holds, self.error, self.sizes = holds, error, []

    def __call__(self, items):
        self.sizes.append(len(items))
        if len(items) > self.holds:
            raise self.error
        column = torch.tensor(items, dtype=torch.float64)[:, None]
        return {"one": column, "two": 2 * column}


@pytest.mark.parametrize("on_gpu", [True, False])
def test_halving_until_it_fits_and_remembering(on_gpu):
    full = RuntimeError("DefaultCPUAllocator: not enough memory")
    forward = Memory(10, torch.OutOfMemoryError("CUDA out of memory") if on_gpu else full)
    batches = TorchBatches(forward, "cpu")
    np.testing.assert_array_equal(batches(list(range(40)))["one"][:, 0], np.arange(40))
    assert forward.sizes == [32, 16, 8, 8, 8, 8, 8]
    batches(list(range(9)))
    assert forward.sizes[-2:] == [8, 1]


def test_every_device_computes_in_float32():
    """Under autocast, too, which a GPU's float16 would come from."""
    matrix, types = torch.ones(4, 4), []

    def forward(items):
        product = torch.tensor(items, dtype=torch.float32) @ matrix
        types.append(product.dtype)
        return {"": product}

    with torch.autocast("cpu", dtype=torch.bfloat16):
        TorchBatches(forward, "cpu")([[1.0] * 4])
    assert types == [torch.float32]
