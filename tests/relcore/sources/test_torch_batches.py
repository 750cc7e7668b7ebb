import numpy as np
import pytest

from relcore.base.errors import SpaceError
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


def test_batches_of_32_on_a_processor_joined_in_order():
    forward = Memory(1000)
    rows = TorchBatches(forward, "cpu")(list(range(70)))
    assert forward.sizes == [32, 32, 6]
    np.testing.assert_array_equal(rows["two"][:, 0], 2 * np.arange(70))
    assert rows["one"].dtype == np.float32


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


def test_a_single_item_that_does_not_fit():
    with pytest.raises(
        SpaceError, match="a single item does not fit the memory of this cpu; choose a smaller model"
    ):
        TorchBatches(Memory(0, torch.OutOfMemoryError()), "cpu")([1, 2])


def test_other_errors_are_not_swallowed():
    with pytest.raises(RuntimeError, match="shapes"):
        TorchBatches(Memory(0, RuntimeError("shapes cannot be multiplied")), "cpu")([1, 2])


def test_no_gradients():
    weight = torch.ones(1, requires_grad=True)
    seen = []

    def forward(items):
        seen.append((weight * 2).requires_grad)
        return {"": torch.ones(len(items), 1)}

    TorchBatches(forward, "cpu")([1])
    assert seen == [False]


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
