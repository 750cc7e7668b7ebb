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


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: not enough memory")],
)
def test_halving_until_it_fits_and_remembering(error):
    forward = Memory(10, error)
    batches = TorchBatches(forward, "cpu")
    np.testing.assert_array_equal(batches(list(range(40)))["one"][:, 0], np.arange(40))
    assert forward.sizes == [32, 16, 8, 8, 8, 8, 8]
    batches(list(range(9)))
    assert forward.sizes[-2:] == [8, 1]


@pytest.mark.gpu
@pytest.mark.skipif("not torch.cuda.is_available()", reason="torch finds no CUDA device")
def test_half_precision_and_float32_where_it_overflows():
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(64, 64, generator=generator).cuda()
    types = []

    def forward(items):
        product = torch.tensor(np.stack(items), dtype=torch.float32).cuda() @ matrix
        types.append(product.dtype)
        return {"": product}

    small = [np.random.default_rng(i).normal(size=64) for i in range(100)]
    rows = TorchBatches(forward, "cuda")(small)[""]
    assert types == [torch.float16]
    np.testing.assert_allclose(rows, np.stack(small) @ matrix.cpu().numpy(), atol=0.1)
    types.clear()
    large = TorchBatches(forward, "cuda")([row * 1e5 for row in small])[""]
    assert types == [torch.float16, torch.float32]
    assert np.isfinite(large).all()
