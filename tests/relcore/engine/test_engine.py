"""The engine on NumPy and on torch's CPU, against NumPy's own results; and the choice of the device."""

import numpy as np
import pytest

from relcore.base.environment import chosen, resolve, use_device
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.engine import device as devices
from relcore.engine.device import TorchDevice, on_device
from relcore.engine.engine import Engine
from relcore.engine.nearest import nearest
from relcore.represent.inverse import InverseRelativeProjection
from relcore.represent.translation import Procrustes

DEVICES = ("cpu", "torch")
rng = np.random.default_rng(0)
X = rng.standard_normal((700, 12), dtype=np.float32)
Y = X @ rng.standard_normal((12, 9), dtype=np.float32)


@pytest.mark.parametrize("device", DEVICES)
def test_nearest_rows_are_those_of_all_products_also_far_from_zero(device):
    base = unit_rows(X + np.float32(1e4))
    truth = base.astype(np.float64)
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    found = nearest(base[:50], base, 7, device=device)
    expected = np.argsort(-truth[:50] @ truth.T, axis=1, kind="stable")[:, :7]
    assert (found.rows == expected).mean() > 0.99  # rounding may exchange two rows
    assert (np.diff(found.products, axis=1) <= 0).all()


@pytest.mark.parametrize("device", DEVICES)
def test_equally_near_rows_have_one_order_in_space_and_another_in_another(device):
    base = np.repeat(np.eye(4, dtype=np.float32), 100, axis=0)
    first, again, other = (nearest(base[:1], base, 5, seed=seed, device=device).rows for seed in (1, 1, 2))
    assert (first < 100).all()
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(first, nearest(base[:1], base, 5, seed=1, device="cpu").rows)
    np.testing.assert_array_equal(nearest(base[:1], base, 5, device=device).rows[0], np.arange(5))


@pytest.mark.parametrize("device", DEVICES)
def test_solvers_are_numpys(device):
    engine = Engine(device)
    A = X[:40].astype(np.float64)
    A[:, 3] = A[:, 4]  # of lower rank
    np.testing.assert_allclose(engine.pinv(A), np.linalg.pinv(A), atol=1e-12)
    np.testing.assert_allclose(engine.lstsq(A, Y[:40]), np.linalg.lstsq(A, Y[:40])[0], atol=1e-12)
    np.testing.assert_allclose(engine.eigh(A.T @ A)[0], np.linalg.eigvalsh(A.T @ A), atol=1e-12)
    left, values, right = engine.svd(A)
    np.testing.assert_allclose(left * values @ right, A, atol=1e-12)
    assert engine.solve_definite(A.T @ A, Y[:12]) is None  # singular
    definite = A.T @ A + np.eye(12)
    np.testing.assert_allclose(definite @ engine.solve_definite(definite, Y[:12]), Y[:12], atol=1e-12)
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    np.testing.assert_allclose(engine.rotation(X.T @ (X @ turn))[0], turn, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_many_rows_and_moments(device):
    engine = Engine(device)
    mean = X.mean(axis=0)
    W = rng.normal(size=(12, 5))
    expected = unit_rows(X, mean) @ W + 1
    mapped = engine.map_rows(X, W, mean=mean, unit=True, shift=np.ones(5))
    np.testing.assert_allclose(mapped, expected, atol=1e-5)
    np.testing.assert_allclose(engine.map_rows(X, W), X @ W, atol=1e-5)
    moments = engine.moments(X + 1000, Y)
    centred = [side - side.mean(axis=0, dtype=np.float64) for side in (X, Y)]
    np.testing.assert_allclose(moments.products, centred[0].T @ centred[1], atol=0.2)
    np.testing.assert_allclose(moments.means[0], (X + 1000).mean(axis=0, dtype=np.float64), rtol=1e-7)


@pytest.mark.parametrize("device", DEVICES)
def test_array_that_changes_between_two_calls_is_read_again(device):
    engine = Engine(device)
    rows = X.copy()
    before = engine.map_rows(rows, np.eye(12))
    rows *= 2
    np.testing.assert_allclose(engine.map_rows(rows, np.eye(12)), 2 * before, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_layout_in_memory_changes_no_digit(device):
    engine = Engine(device)
    Z = X[:40, :4]
    by_columns = np.asfortranarray(Z)  # as in a DataFrame
    W = Y[:4]
    np.testing.assert_array_equal(engine.map_rows(by_columns, W), engine.map_rows(Z, W))
    np.testing.assert_array_equal(
        engine.moments(by_columns, by_columns).products, engine.moments(Z, Z).products
    )


def test_device_is_chosen_by_block_variable_or_machine(monkeypatch):
    monkeypatch.delenv("RELSCOPE_DEVICE", raising=False)
    assert chosen() == "auto"
    monkeypatch.setenv("RELSCOPE_DEVICE", "torch")
    assert resolve() == "torch"
    with use_device("cpu"):
        assert resolve() == "cpu"
    assert resolve() == "torch"
    with pytest.raises(SpaceError, match="device: expected 'auto', 'cpu', 'torch', 'cuda' or 'cuda:1', got"):
        use_device("gpu")
    monkeypatch.setenv("RELSCOPE_DEVICE", "tpu")
    with pytest.raises(SpaceError, match="RELSCOPE_DEVICE: expected"):
        chosen()


@pytest.mark.parametrize(
    "error", ["CUDA out of memory. Tried", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when"]
)
def test_where_memory_runs_out_blocks_are_halved_and_at_last_cpu_computes(error):
    sizes = []

    def work(device):
        if isinstance(device, TorchDevice):
            sizes.append(device.rows_at_once(8192, 1))
            raise RuntimeError(error)
        return "the CPU"

    with pytest.warns(UserWarning, match="the memory of the GPU ran out") as told:
        assert on_device(work, "torch") == "the CPU"
    assert sizes == [8192, 4096, 2048, 1024]
    texts = [str(warning.message) for warning in told]
    assert texts == [devices.SMALLER] * 3 + [devices.OUT_OF_MEMORY]


def test_space_is_brought_to_device_once_and_each_search_is_fetched_once(monkeypatch):
    base = unit_rows(X)
    base.flags.writeable = False  # as the rows of a space
    moved = []
    fetched = []
    monkeypatch.setattr(TorchDevice, "rows", counted(TorchDevice.rows, moved))
    monkeypatch.setattr(TorchDevice, "get", counted(TorchDevice.get, fetched))
    for queries in (base[:30], base[30:90]):
        nearest(queries, base, 5, device="torch")
    assert [array.shape for array in moved] == [base.shape]
    assert [array.shape for array in fetched] == [(30, 5)] * 2 + [(60, 5)] * 2  # products and row numbers


def counted(method, calls):
    def counting(self, array, *rest):
        calls.append(array)
        return method(self, array, *rest)

    return counting


@pytest.mark.parametrize("device", DEVICES)
def test_mean_and_lengths_from_it_are_those_of_float64(device, monkeypatch):
    monkeypatch.setattr(devices.NumpyDevice, "block_rows", 100)
    given = np.concatenate([X + 50, np.zeros((1, 12), np.float32)]).astype(np.float32)
    mean = Engine(device).mean(given)
    assert mean.dtype == np.float64
    np.testing.assert_allclose(mean, given.mean(axis=0, dtype=np.float64), rtol=1e-12)
    expected = np.linalg.norm(given - mean, axis=1)
    found = Engine(device).lengths(given, mean)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert Engine(device).lengths(given, np.zeros(12))[-1] == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [7, 40])
@pytest.mark.parametrize("power", [-1, -0.5])
def test_shrunk_is_power_of_larger_gram_matrix(device, n, power):
    A = X[:n].astype(np.float64)
    values, vectors = np.linalg.eigh(A @ A.T + 0.7 * np.eye(n))
    found, squares = Engine(device).shrunk(A, 0.7, power)
    np.testing.assert_allclose(found, vectors * values**power @ vectors.T @ A, atol=1e-10)
    np.testing.assert_allclose(squares, np.linalg.svd(A)[1][::-1] ** 2, atol=1e-10)


@pytest.mark.parametrize(
    ("estimator", "most"), [(InverseRelativeProjection("whitened"), 4), (Procrustes(), 3)]
)
def test_a_fit_sends_few_matrices_to_the_device(monkeypatch, estimator, most):
    sent = []
    put = TorchDevice.put
    monkeypatch.setattr(TorchDevice, "put", lambda self, array: sent.append(array.shape) or put(self, array))
    monkeypatch.setenv("RELSCOPE_DEVICE", "torch")
    estimator.fit(X[:40], X[:40, ::-1])
    assert len(sent) == most
