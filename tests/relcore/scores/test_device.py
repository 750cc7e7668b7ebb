"""A pass on tensors gives the scores of a pass on NumPy: on the CPU in any case, on a GPU where there is
one.
"""

import gc

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import as_mapped_rows
from relcore.engine.device import TorchDevice, cached_size, device_of
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.scores.comparison import score_representations
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 600
ROUNDING = 1e-5


@pytest.fixture(params=["torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request, torch):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return request.param


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def usual_precision(torch):
    yield
    torch.set_float32_matmul_precision("highest")


def made_pair(*, power=0, offset=0.5, equal=0, alike=0, widths=(24, 24)):
    """Two noisy views of 8 numbers: `equal` rows are the same row, and `alike` more lie at the mean,
    without a direction.
    """
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, 8))
    spaces = [
        hidden @ rng.normal(size=(8, width)) + 0.5 * rng.normal(size=(N, width)) + offset for width in widths
    ]
    for vectors in spaces:
        vectors[100 : 100 + equal] = vectors[100]
        vectors[300 : 300 + alike] = np.delete(vectors, slice(300, 300 + alike), axis=0).mean(axis=0)
    ids = [f"w{row}" for row in range(N)]
    return match(*(LatentSpace(np.ldexp(vectors, power).astype(np.float32), ids) for vectors in spaces))


def facts(pair, device, spec=None, **settings):
    """Value, interval and chance level of every score of every representation, one row for each score."""
    found = score_representations(
        pair, REPRESENTATIONS, tuple(pair.ids[:40]), spec or ProjectionSpec(), device=device, **settings
    )
    levels = {}
    for form, scores in found.items():
        for name, score in scores.items():
            if score.null is None:
                null = ()
            else:
                null = (score.null.mean, score.null.low, score.null.high)
            levels[form, name] = (float(score), *(score.interval or ()), *null)
    return levels


def assert_equal(here, there, tolerance=ROUNDING):
    assert list(here) == list(there)
    assert len(here) >= 12
    for one, expected in here.items():
        assert there[one] == pytest.approx(expected, abs=tolerance), one


@pytest.mark.parametrize(
    ("convention", "made"), [("paper", {"power": -30}), ("mutual", {"alike": 3})], ids=str
)
def test_scores_are_those_of_numpy(device, convention, made):
    pair = made_pair(**made)
    assert_equal(*(facts(pair, name, convention=convention) for name in ("cpu", device)))


def test_half_precision_of_script_around_it_changes_no_score(device, usual_precision, torch):
    pair = made_pair()
    kind = "cuda" if device == "cuda" else "cpu"
    expected = facts(pair, "cpu")
    torch.set_float32_matmul_precision("medium")
    with torch.autocast(kind, dtype=torch.bfloat16):
        rows = torch.ones(2, 2, device=kind)
        assert (rows @ rows).dtype == torch.bfloat16  # the script's own products do have it
        there = facts(pair, device)
        assert (rows @ rows).dtype == torch.bfloat16  # and afterwards
    assert_equal(expected, there)
    assert torch.get_float32_matmul_precision() == "medium"


def test_where_memory_of_gpu_runs_out_cpu_goes_on_and_says_so(monkeypatch, torch):
    pair = made_pair()
    product = TorchDevice.product
    calls = []

    def full(one, *arguments):
        calls.append(arguments)
        if len(calls) > 2:  # in the middle of the pass
            raise torch.OutOfMemoryError("CUDA out of memory")
        return product(one, *arguments)

    expected = facts(pair, "cpu")
    monkeypatch.setattr(TorchDevice, "product", full)
    with pytest.warns(UserWarning, match="the memory of the GPU ran out, so the rest is computed on the CPU"):
        there = facts(pair, "torch")
    assert there == expected
    assert len(calls) > 2


def test_no_tensor_has_row_for_each_row_of_space_and_column_for_each_anchor(monkeypatch):
    """The largest tensor that a pass makes does not grow with n."""
    sizes = []
    product = TorchDevice.product

    def seen(one, *arguments):
        found = product(one, *arguments)
        sizes.append(found.numel())
        return found

    monkeypatch.setattr(TorchDevice, "product", seen)
    monkeypatch.setattr(TorchDevice, "rows_at_once", lambda self, most, row_bytes: 100)
    facts(made_pair(), "torch", n_queries=50)
    assert sizes
    assert max(sizes) <= 200 * 100  # of a block with 100 rows; 40 anchors of all rows would be 24,000


def test_a_gpu_that_is_not_there_is_said(monkeypatch, torch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "cuda:1"):
        with pytest.raises(SpaceError, match=f"expected a GPU for '{name}', but PyTorch finds none"):
            device_of(name)


def test_space_is_brought_to_device_once_for_all_representations_and_passes(monkeypatch):
    moved = []
    products = []
    rows = TorchDevice.rows
    product = TorchDevice.product
    monkeypatch.setattr(TorchDevice, "rows", lambda self, X: moved.append(X.shape) or rows(self, X))
    monkeypatch.setattr(
        TorchDevice, "product", lambda self, X, W, name: products.append(name) or product(self, X, W, name)
    )
    pair = made_pair()
    facts(pair, "torch", n_queries=50)
    facts(pair, "torch", n_queries=50)
    assert moved == [pair.source.vectors.shape] * 2  # either space, in the first of two runs
    # In each of two runs, of either space: one turn to the anchors' axes, one search in each of the four
    # representations; Procrustes turns the source.
    assert sum(name.startswith("turned") for name in products) == 2 * 2
    assert products.count("scores") == 2 * 4


@pytest.fixture
def nothing_left():
    """Spaces of earlier tests that still wait to be collected hold copies; a count begins after they are gone."""
    gc.collect()


@pytest.mark.usefixtures("nothing_left")
def test_spaces_of_equal_content_share_copy_until_last_of_them_goes(monkeypatch):
    pytest.importorskip("torch")
    rows = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    place = device_of("torch")
    spaces = [LatentSpace(rows.copy(), [f"r{row}" for row in range(50)], name=name) for name in "ab"]
    other = LatentSpace(rows + 1, spaces[0].ids)
    assert spaces[0].digest == spaces[1].digest != other.digest
    before = cached_size("cpu")[0]
    sent = []
    monkeypatch.setattr(type(place), "rows", lambda self, X: sent.append(len(X)) or self.put(X))
    for space in (*spaces, other):
        place.block_on_device(space.vectors, slice(0, 10))
    assert sent == [50, 50]
    del spaces[0], space
    gc.collect()
    assert cached_size("cpu")[0] == before + 2
    del spaces[:]
    gc.collect()
    assert cached_size("cpu")[0] == before + 1


@pytest.mark.usefixtures("nothing_left")
def test_rows_of_a_file_stay_on_device_and_go_with_their_space(tmp_path):
    pytest.importorskip("torch")
    rows = np.random.default_rng(0).normal(size=(50, 7))
    place = device_of("torch")
    before = cached_size("cpu")[0]
    np.save(tmp_path / "rows.npy", rows.astype(np.float16))
    mapped = as_mapped_rows(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    for _ in range(2):
        block = place.block_on_device(mapped, slice(10, 20))
        np.testing.assert_array_equal(block.numpy(), rows[10:20].astype(np.float16))
    assert cached_size("cpu")[0] == before + 1
    with open(tmp_path / "rows.npy", "ab") as stream:
        stream.write(b"more")
    with pytest.raises(SpaceError, match="changed since"):
        place.block_on_device(mapped, slice(10, 20))
    del mapped
    gc.collect()
    assert cached_size("cpu")[0] == before


@pytest.mark.usefixtures("nothing_left")
def test_least_recently_used_spaces_leave_device_first(monkeypatch):
    pytest.importorskip("torch")
    spaces = [np.ones((1000, 100), np.float32) for _ in range(4)]
    for X in spaces:
        X.flags.writeable = False
    before = cached_size("cpu")[1]
    place = device_of("torch")
    for X in spaces[:2]:
        place.block_on_device(X, slice(0, 10))
    assert cached_size("cpu")[1] == before + 800_000
    monkeypatch.setenv("RELSCOPE_GPU_GB", str((before + 900_000) / 1e9))
    place.block_on_device(spaces[0], slice(0, 10))  # used again
    place.block_on_device(spaces[2], slice(0, 10))
    assert cached_size("cpu")[1] <= before + 800_000
    sent = []
    monkeypatch.setattr(type(place), "rows", lambda self, X: sent.append(len(X)) or self.put(X))
    for X in (spaces[2], spaces[0]):
        place.block_on_device(X, slice(0, 10))
    assert sent == []
    place.block_on_device(spaces[1], slice(0, 10))
    assert sent == [1000]
    monkeypatch.setenv("RELSCOPE_GPU_GB", "1e-6")  # too little for any: its blocks are read one by one
    place.block_on_device(spaces[3], slice(0, 10))
    assert sent == [1000, 10]
    monkeypatch.setenv("RELSCOPE_GPU_GB", "much")
    with pytest.raises(SpaceError, match="RELSCOPE_GPU_GB: expected a number above 0"):
        place.block_on_device(spaces[3], slice(0, 10))
