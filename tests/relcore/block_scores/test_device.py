"""A pass on tensors gives the scores of a pass on NumPy: on the CPU in any case, on a GPU where there is
one.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.scores import device as devices
from relcore.scores.comparison import REPRESENTATIONS, ProjectionSpec
from relcore.scores.device import NumpyDevice, TorchDevice, device_of
from relcore.scores.scoring import own_neighbours, score_forms
from relcore.scores.sums import TopRows
from relcore.spaces.space import LatentSpace, match

torch = pytest.importorskip("torch")
NO_GPU = not torch.cuda.is_available()
N = 600
ROUNDING = 1e-5
SWAPPED = 0.2 / N  # one query, one of whose ten neighbours is another: rows as near as float32 can tell


@pytest.fixture(
    params=[
        "torch",
        pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU")]),
    ]
)
def device(request):
    return request.param


@pytest.fixture
def usual_precision():
    """The process's precision of products, put back after the test."""
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
    found = score_forms(
        pair, REPRESENTATIONS, tuple(pair.ids[:40]), spec or ProjectionSpec(), device=device, **settings
    )
    levels = {}
    for form, scores in found.items():
        for name, score in scores.items():
            null = () if score.null is None else (score.null.mean, score.null.low, score.null.high)
            levels[form, name] = (float(score), *(score.interval or ()), *null)
    return levels


def assert_equal(here, there, tolerance=ROUNDING):
    assert list(here) == list(there)
    assert len(here) >= 12
    for one, expected in here.items():
        assert there[one] == pytest.approx(expected, abs=tolerance), one


@pytest.mark.parametrize("convention", ["paper", "mutual"])
@pytest.mark.parametrize("made", [{}, {"power": -70}, {"power": 60}, {"alike": 3}], ids=str)
def test_scores_are_those_of_numpy(device, convention, made):
    pair = made_pair(**made)
    assert_equal(*(facts(pair, name, convention=convention) for name in ("cpu", device)))


def test_spaces_of_two_widths_and_far_from_zero(device):
    for made in ({"widths": (24, 10)}, {"offset": 30.0}):
        pair = made_pair(**made)
        assert_equal(*(facts(pair, name, convention="mutual") for name in ("cpu", device)), SWAPPED)


@pytest.mark.parametrize("similarity", ["angular", "euclidean"])
def test_other_similarities(device, similarity):
    spec = ProjectionSpec(similarity, ridge=2.0)
    assert_equal(*(facts(made_pair(), name, spec) for name in ("cpu", device)), SWAPPED)


def test_many_equal_rows_are_drawn_alike(device):
    """Of the absolute rows, which are no product: OpenBLAS gives equal rows of a product other last
    digits.
    """
    here, there = (facts(made_pair(equal=40), name) for name in ("cpu", device))
    assert {name for form, name in here if form == "absolute"} >= {"jaccard", "mrr"}
    for one, expected in here.items():
        assert one[0] != "absolute" or there[one] == pytest.approx(expected, abs=ROUNDING), one


def test_unrelated_spaces_score_at_chance_on_tensors(device):
    rng = np.random.default_rng(1)
    ids = [f"w{row}" for row in range(N)]
    pair = match(*(LatentSpace(rng.normal(size=(N, 16)).astype(np.float32), ids) for _ in range(2)))
    for (form, name), (value, *rest) in facts(pair, device).items():
        if form != "procrustes" and name in ("jaccard", "mrr"):
            *_, low, high = rest  # a band of 95 %: four times as wide is left by one score in 10⁸
            assert abs(value - (low + high) / 2) <= 2 * (high - low), (form, name)


def test_equal_scores_are_ordered_as_numpy_orders_them(device):
    scores = np.repeat(np.float32([[0, 2, 1, 2], [3, 3, 3, 3]]), 50, axis=1)
    for seed in (None, 7):
        tops = [TopRows(2, 10, seed) for _ in range(2)]
        for top, one in zip(tops, (NumpyDevice(), device_of(device)), strict=True):
            for start in (0, 100):
                top.add(one, one.put(scores[:, start : start + 100]), np.arange(start, start + 100))
        np.testing.assert_array_equal(tops[0].rows, tops[1].rows)
        np.testing.assert_array_equal(tops[0].values, tops[1].values)


def test_half_precision_of_the_script_around_it_changes_no_score(device, usual_precision):
    pair, kind = made_pair(), "cuda" if device == "cuda" else "cpu"
    expected = facts(pair, "cpu")
    torch.set_float32_matmul_precision("medium")
    with torch.autocast(kind, dtype=torch.bfloat16):
        rows = torch.ones(2, 2, device=kind)
        assert (rows @ rows).dtype == torch.bfloat16  # the script's own products do have it
        there = facts(pair, device)
        assert (rows @ rows).dtype == torch.bfloat16  # and afterwards
    assert_equal(expected, there)
    assert torch.get_float32_matmul_precision() == "medium"


def test_the_comparison_would_notice_half_precision(device, monkeypatch):
    """The control of the test above: with products of half precision in the pass, scores are others."""
    pair = made_pair()
    expected = facts(pair, "cpu")
    half = lambda one, rows, matrix, name: (rows.bfloat16() @ matrix.bfloat16()).float()  # noqa: E731
    monkeypatch.setattr(TorchDevice, "product", half)
    there = facts(pair, device)
    assert max(abs(there[name][0] - value[0]) for name, value in expected.items()) > 100 * ROUNDING


def test_products_are_exact_until_the_last_thread_has_left_and_then_as_they_were(usual_precision):
    torch.set_float32_matmul_precision("medium")
    precision = lambda: (  # noqa: E731
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.mkldnn.matmul.fp32_precision,
    )
    usual, one = precision(), TorchDevice("cpu")
    assert usual != ("ieee", "ieee")
    assert precision() == usual  # making a device changes nothing
    first, second = one.exact(), one.exact()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert precision() == ("ieee", "ieee")
    second.__exit__(None, None, None)
    assert precision() == usual
    with pytest.raises(ValueError, match="in the pass"), one.exact():
        raise ValueError("in the pass")
    assert precision() == usual


def test_rows_of_half_precision_and_of_a_mapped_file(device, tmp_path):
    rows = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float16)
    np.save(tmp_path / "rows.npy", rows)
    one = device_of(device)
    for X in (rows, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        for exponent in (0, 3):
            expected = NumpyDevice().block(X, exponent)
            found = one.get(one.block(X, exponent))
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", ">f2", "<u2", "<i8"])
def test_rows_of_other_types(device, dtype):
    rows, one = np.arange(12).reshape(4, 3).astype(dtype), device_of(device)
    for exponent in (0, 3):
        np.testing.assert_array_equal(one.get(one.block(rows, exponent)), NumpyDevice().block(rows, exponent))


def test_rows_of_zeros_are_directions_of_zero(device):
    rows = np.float32([[3, 4], [0, 0], [0, -2]])
    one = device_of(device)
    found = one.get(one.directions(one.block(rows, 0), None, "unit"))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0, -1]], rtol=1e-6)


def test_spaces_of_float16_on_disk(device, tmp_path):
    made = made_pair()
    spaces = []
    for number, space in enumerate((made.source, made.target)):
        np.save(tmp_path / f"{number}.npy", space.vectors.astype(np.float16))
        spaces.append(LatentSpace(np.load(tmp_path / f"{number}.npy", mmap_mode="r"), space.ids))
    assert_equal(*(facts(match(*spaces), name) for name in ("cpu", device)))


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED")],
    ids=str,
)
def test_where_the_memory_of_a_gpu_runs_out_the_cpu_goes_on_and_says_so(monkeypatch, error):
    pair, product, calls = made_pair(), TorchDevice.product, []

    def full(one, *arguments):
        calls.append(arguments)
        if len(calls) > 2:  # in the middle of the pass
            raise error
        return product(one, *arguments)

    expected = facts(pair, "cpu")
    monkeypatch.setattr(TorchDevice, "product", full)
    with pytest.warns(UserWarning, match="the memory of the GPU ran out, so the rest is computed on the CPU"):
        there = facts(pair, "torch")
    assert there == expected
    assert len(calls) > 2


def test_another_error_of_a_gpu_is_not_taken_for_a_full_one(monkeypatch):
    def broken(one, *arguments):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(TorchDevice, "product", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        facts(made_pair(), "torch")


def test_blocks_on_a_gpu_take_at_most_half_of_its_free_memory(monkeypatch):
    one = TorchDevice("cpu")
    assert one.rows_at_once(8192, 10_000, 4) == NumpyDevice().rows_at_once(8192, 10_000, 4) == 8192
    one.name = "cuda"
    for free, rows in ((80 << 30, 8192), (1 << 28, (1 << 28) // 80_000), (1 << 20, 256)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 80 << 30))
        assert one.rows_at_once(8192, 10_000, 4) == rows
    assert one.rows_at_once(100, 10_000, 4) == 100


def test_no_tensor_has_a_row_for_each_row_of_the_space_and_a_column_for_each_anchor(monkeypatch):
    """The largest tensor that a pass makes does not grow with n."""
    sizes, product = [], TorchDevice.product

    def seen(one, *arguments):
        found = product(one, *arguments)
        sizes.append(found.numel())
        return found

    monkeypatch.setattr(TorchDevice, "product", seen)
    monkeypatch.setattr("relcore.scores.scoring.BLOCK_ROWS", 100)
    facts(made_pair(), "torch", n_queries=50)
    assert sizes
    assert max(sizes) <= 200 * 100  # of a block with 100 rows; 40 anchors of all rows would be 24,000


def test_a_power_of_two_beyond_float32_is_applied_exactly(device):
    rows, one = np.float32([[2.0**-140, 2.0**-141]]), device_of(device)
    np.testing.assert_array_equal(one.get(one.block(rows, -140)), [[1.0, 0.5]])


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr(devices, "gpu_name", lambda: None)
    assert isinstance(device_of("auto"), NumpyDevice)
    monkeypatch.setattr(devices, "gpu_name", lambda: "a GPU")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (type(device_of("auto")), device_of("auto").name) == (TorchDevice, "cuda")


def test_a_gpu_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "cuda:1"):
        with pytest.raises(
            SpaceError, match=f"expected a GPU for '{name}', but PyTorch finds none; use 'auto' or 'cpu'"
        ):
            device_of(name)


def test_neighbours_within_a_space_go_on_on_the_cpu_too(monkeypatch):
    X = np.random.default_rng(3).normal(size=(N, 8)).astype(np.float32)
    expected = own_neighbours(X, X.mean(axis=0), np.arange(20), 5, "cpu")
    np.testing.assert_array_equal(own_neighbours(X, X.mean(axis=0), np.arange(20), 5, "torch"), expected)

    def full(one, array):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(TorchDevice, "put", full)
    with pytest.warns(UserWarning, match="the memory of the GPU ran out"):
        found = own_neighbours(X, X.mean(axis=0), np.arange(20), 5, "torch")
    np.testing.assert_array_equal(found, expected)
