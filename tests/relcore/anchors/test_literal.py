"""The published optimisation: its assignment against the dense Sinkhorn limit and POT, its anchors, its resumption."""

import numpy as np
import pytest
import torch

from relcore.anchors import literal
from relcore.anchors.bootstrap import bootstrap_anchors
from relcore.anchors.literal import hard_limit_assignment, optimise_anchors
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace

EPSILON = 1e-4


def relatives(n=60, m=60, k=9, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=(m, k)).astype(np.float32)


def distances(X, Y):
    return np.linalg.norm(X[:, None].astype(np.float64) - Y[None], axis=2)


def largest_entries(X, Y, log_plan):
    """Whether each row's choice has the largest entry of the plan, or one that in the limit ties with it.

    A row that is nearest to several columns has several such entries: what tells them apart is of the order of ε.
    """
    found = hard_limit_assignment(*(torch.from_numpy(rows) for rows in (X, Y))).numpy()
    return log_plan.max(axis=1) - log_plan[np.arange(len(X)), found] < 10 * EPSILON


@pytest.mark.parametrize(("n", "m"), [(60, 60), (70, 41)])
def test_blocks_are_the_limit_of_one_dense_sinkhorn_iteration(monkeypatch, n, m):
    monkeypatch.setattr(literal, "BLOCK_BYTES", 4 * m * 13)
    X, Y = relatives(n, m)
    M = distances(X, Y)
    u = -EPSILON * np.logaddexp.reduce(-M / EPSILON, axis=1)[:, None]  # uniform weights drop out
    v = -EPSILON * np.logaddexp.reduce(-(M - u) / EPSILON, axis=0)
    assert largest_entries(X, Y, u + v - M).all()
    assert not largest_entries(X, Y, -M).all()  # nearest neighbours are something else


def test_pot_agrees():
    ot = pytest.importorskip("ot")
    X, Y = relatives(50, 50)
    weights, M = np.full(50, 1 / 50), distances(X, Y)
    # POT turns to the columns first; with the matrix transposed that is the row first, as here.
    settings = {"method": "sinkhorn_log", "numItermax": 1, "warn": False, "log": True}
    _, log = ot.sinkhorn(weights, weights, M.T, EPSILON, **settings)
    potentials = EPSILON * (log["log_v"][:, None] + log["log_u"][None])
    assert largest_entries(X, Y, potentials - M).all()


def pair(n=150, d=8):
    rng = np.random.default_rng(1)
    X = unit_rows(rng.normal(size=(n, d)))
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return X, unit_rows(X @ turn)


def test_seeds_stay_and_the_error_falls():
    X, Y = pair()
    anchors, seeds = np.arange(30), np.arange(12)
    steps = list(optimise_anchors(X, Y, anchors, seeds, steps=60, device="cpu"))
    assert all(np.array_equal(step.nearest[:12], seeds) for step in steps)
    assert steps[-1].loss < 0.7 * steps[0].loss
    assert [step.number for step in steps] == list(range(1, 61))


def test_resumed_it_ends_where_it_would_have():
    X, Y = pair()
    anchors, seeds = np.arange(30), np.arange(12)
    whole = list(optimise_anchors(X, Y, anchors, seeds, steps=20, device="cpu"))
    rest = list(optimise_anchors(X, Y, anchors, seeds, steps=20, device="cpu", state=whole[9].state))
    assert [step.number for step in rest] == list(range(11, 21))
    np.testing.assert_allclose([step.loss for step in rest], [step.loss for step in whole[10:]], rtol=1e-5)


def test_the_method_paper_gives_what_it_finds():
    X, Y = pair()
    source, target = (LatentSpace(rows, [str(i) for i in range(150)]) for rows in (X, Y))
    seeds = [(str(i), str(i)) for i in range(12)]
    truth = {str(i): str(i) for i in range(150)}
    found = bootstrap_anchors(source, target, seeds=seeds, n_anchors=30, method="paper", steps=30, truth=truth, device="cpu")
    assert len(found.anchors) == 30
    assert len(found.history) == 30
    assert found.anchors[:12] == tuple(seeds)
    assert found.history[-1].objective < found.history[0].objective


@pytest.mark.gpu
def test_a_gpu_finds_the_same_assignment():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    X, Y = (torch.from_numpy(rows) for rows in relatives(500, 400))
    on_gpu = hard_limit_assignment(X.cuda(), Y.cuda()).cpu()
    assert (on_gpu == hard_limit_assignment(X, Y)).float().mean() > 0.99
