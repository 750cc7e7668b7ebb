"""δ × ω against the inverse itself, and the chance level of its best cell against permuting by hand."""

import numpy as np
import pytest

from relcore.base.names import ROUTES
from relcore.base.rows import unit_rows
from relcore.invert.inversion import sides
from relcore.represent.translation import InverseRelativeProjection, recovered
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.studies.networks import BestCellChance, cells_of, inversion_sweep

N, D, K = 300, 8, 30
SMALL = {"deltas": (0.0, 0.3, 0.6), "omegas": (1, 2, 4)}
ANCHORS = [f"r{row}" for row in range(K)]


@pytest.fixture
def pair(rng):
    labels = np.array([f"c{row % 5}" for row in range(N)])
    X = rng.normal(size=(N, D)) + 4 * np.eye(5, D)[np.arange(N) % 5] + 1
    turn = np.linalg.qr(rng.normal(size=(D + 2, D + 2)))[0][:D]
    Y = 2 * X @ turn + 0.3 * rng.normal(size=(N, D + 2)) - 3
    ids = [f"r{row}" for row in range(N)]
    return match(*(LatentSpace(one, ids, name=name, labels=labels) for one, name in ((X, "a"), (Y, "b"))))


@pytest.mark.parametrize("route", ROUTES)
def test_the_sweep_is_the_grid(pair, route):
    sweep = inversion_sweep(pair, ANCHORS, route, 3, n_rows=N, **SMALL)
    source, target = sides(pair, route)
    cells = cells_of(sweep["cells"])
    means = {"source_mean": source.vectors.mean(axis=0), "target_mean": target.vectors.mean(axis=0)}
    for (delta, omega), cell in cells.iterrows():
        inverse = InverseRelativeProjection(omega=omega, delta=delta, random_state=3)
        inverse.fit(source.vectors[:K], target.vectors[:K], **means)
        rows = recovered(inverse.transform(source.vectors[K:]), target.vectors[K:], inverse.target_mean_)
        assert cell["cosine"] == pytest.approx(rows["cosine"].mean(), abs=1e-5)
        assert cell["condition"] == pytest.approx(inverse.condition_numbers_.mean(), rel=1e-4)
        assert cell["kept"] == np.mean([len(kept) for kept in inverse.kept_])
    assert cells["within"].isna().all() == (route == "within")
    assert cells["chance"].abs().max() < 0.15
    assert (sweep["n_rows"], sweep["n_anchors"]) == (N - K, K)


M = 60


@pytest.fixture
def true(rng):
    return unit_rows(rng.normal(size=(M, D)).astype(np.float32))


def decoded(rng, n):
    return [unit_rows(rng.normal(size=(M, D)).astype(np.float32)) for _ in range(n)]


def chance_of(true, cells, **settings):
    chance = BestCellChance(true, **settings)
    for cell in cells:
        chance.add(cell)
    return chance.null()


def test_it_is_the_best_mean_cosine_over_random_partners(true, rng):
    cells = decoded(rng, 5)
    null = chance_of(true, cells, n_permutations=2000)
    orders = [rng.permutation(M) for _ in range(2000)]
    best = [max(np.mean(np.sum(cell * true[order], axis=1)) for cell in cells) for order in orders]
    # Two means of 2,000 draws with this deviation differ by a normal of √2 standard errors; quantiles by
    # about three.
    error = np.std(best) / np.sqrt(2000)
    assert null.mean == pytest.approx(np.mean(best), abs=4 * np.sqrt(2) * error)
    ends = np.quantile(best, [0.025, 0.975])
    assert [null.low, null.high] == pytest.approx(ends, abs=12 * np.sqrt(2) * error)


def test_cells_that_agree_count_as_one_and_parts_as_the_whole(true, rng, monkeypatch):
    cell, *others = decoded(rng, 6)
    seven, single = chance_of(true, [cell] * 7), chance_of(true, [cell])
    assert [seven.low, seven.high] == pytest.approx([single.low, single.high], abs=1e-6)
    whole = chance_of(true, others)
    monkeypatch.setattr(BestCellChance, "_at_once", 2)
    parts = chance_of(true, others)
    assert [parts.low, parts.high] == pytest.approx([whole.low, whole.high], abs=1e-6)
    assert chance_of(true, []) is None
