"""The published optimisation: its assignment against the dense Sinkhorn limit and POT, and its anchors."""

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.encoders.words import load_words
from relcore.linking import optimisation
from relcore.linking.optimisation import hard_limit_assignment, optimise_anchors
from tests.lazily import Lazily

torch = Lazily("torch")

EPSILON = 1e-4


def relatives(n, m):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 9)).astype(np.float32), rng.normal(size=(m, 9)).astype(np.float32)


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # in POT
def test_blocks_give_the_largest_entries_of_the_transport_plan_of_pot(monkeypatch):
    import ot  # takes seconds

    monkeypatch.setattr(optimisation, "ASSIGNED_BYTES", 4 * 41 * 13)  # several blocks, the last one smaller
    X, Y = relatives(70, 41)
    M = np.linalg.norm(X[:, None].astype(np.float64) - Y, axis=2)
    # POT begins with the columns; with the matrix transposed, these are the rows, as here.
    settings = {"method": "sinkhorn_log", "numItermax": 1, "warn": False, "log": True}
    _, log = ot.sinkhorn(np.full(41, 1 / 41), np.full(70, 1 / 70), M.T, EPSILON, **settings)
    plan = EPSILON * (log["log_v"][:, None] + log["log_u"]) - M
    found = hard_limit_assignment(*(torch.from_numpy(rows) for rows in (X, Y))).numpy()
    # In the limit, a row may tie in several columns; then entries differ by the order of ε.
    assert (plan.max(axis=0) - plan[found, np.arange(41)] < 10 * EPSILON).all()
    assert (found != M.argmin(axis=0)).any()  # nearest neighbours are something else


def test_seeds_stay_and_the_error_falls(rng):
    X = unit_rows(rng.normal(size=(150, 8)))
    seeds = np.arange(12)
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    steps = list(optimise_anchors(X, unit_rows(X @ turn), np.arange(30), seeds, steps=60))
    assert len(steps) == 60
    assert all(np.array_equal(step.nearest[:12], seeds) for step in steps)
    assert steps[-1].error < 0.7 * steps[0].error


def test_exponential_map_walks_along_great_circles():
    base = torch.eye(2, 3)
    tangent = torch.tensor([[5.0, 0.0, torch.pi / 2], [0.0, 7.0, 0.0]])  # a quarter of a circle; no step
    found = optimisation.on_sphere(base, tangent)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), atol=1e-6, rtol=0)
    zero = torch.zeros(2, 3, requires_grad=True)  # where every run begins
    optimisation.on_sphere(base, zero).sum().backward()
    torch.testing.assert_close(zero.grad, torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]))


def test_hidden_anchors_are_found_in_words():
    """600 frequent words, 15 seeds, 185 hidden anchors, learning rate .05, 75 steps: at least .9 are found
    (measured: 1.000, 1.000, .978). A row assigned the other way, or a start at length √d, finds less than .2
    of them.
    """
    source, target = (
        unit_rows(load_words(name, limit=600).vectors) for name in ("word2vec-novels", "fasttext-novels")
    )
    anchors = np.random.default_rng(0).permutation(len(source))[:200]
    *_, last = optimise_anchors(source, target, anchors, anchors[:15], steps=75, learning_rate=0.05)
    assert np.mean(last.nearest[15:] == anchors[15:]) >= 0.9
    assert last.returned[15:].mean() >= 0.9


def test_rows_without_partners_do_not_return_to_their_anchors(rng):
    X, Y = (unit_rows(rows) for rows in rng.normal(size=(2, 300, 20)))
    anchors = np.arange(100)
    *_, last = optimise_anchors(X, Y, anchors, anchors[:15], steps=75, learning_rate=0.05)
    assert last.returned[15:].mean() < 0.8  # certified from .95 on


@pytest.mark.gpu
def test_a_gpu_finds_the_same_assignment():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    X, Y = (torch.from_numpy(rows) for rows in relatives(500, 400))
    on_gpu = hard_limit_assignment(X.cuda(), Y.cuda()).cpu()
    assert (on_gpu == hard_limit_assignment(X, Y)).float().mean() > 0.99
