"""δ × ω against the inverse itself, and the chance level of its best cell against permuting by hand."""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import ROUTES
from relcore.invert.recovery import sides
from relcore.represent.inversion import inversion_grid
from relcore.represent.similarity import unit_rows
from relcore.spaces.space import LatentSpace, match
from relcore.spaces.split import Split
from relcore.studies import pruning
from relcore.studies.pruning import BestCellChance, cells_of, inversion_sweep
from relcore.studies.study import StudySpec, study_of

N, D, K = 300, 8, 30
SMALL = {"deltas": (0.0, 0.3, 0.6), "omegas": (1, 2, 4)}
ANCHORS = [f"r{row}" for row in range(K)]


@pytest.fixture
def pair(rng):
    """A space of five classes, and a noisy turn of it that is wider."""
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
    split = Split.held_out(pair.ids, np.arange(K))
    for column, side in (("cosine", source), ("within", target)):
        expected = inversion_grid(side.vectors, target.vectors, split, *SMALL.values(), 3)
        expected = expected.set_index(["delta", "omega"])
        if route == "within" and column == "within":
            assert cells["within"].isna().all()
            continue
        np.testing.assert_allclose(cells[column], expected["cosine"], atol=1e-5)
        np.testing.assert_allclose(cells[["condition", "kept"]], expected[["condition", "kept"]])
    assert cells["chance"].abs().max() < 0.15
    assert (sweep["n_rows"], sweep["n_anchors"]) == (N - K, K)


def test_the_head_of_the_target_reads_what_is_recovered(pair):
    sweep = inversion_sweep(pair, ANCHORS, **SMALL)
    split = Split.draw(pair.ids, anchors=np.arange(K))
    assert sweep["test rows"] == len(split.test)
    assert sweep["most frequent class"] == np.mean(split.test % 5 == 0)  # all are as frequent: the first
    assert sweep["not stitched"] > 0.9
    assert sweep["cells"][0]["accuracy"] == pytest.approx(sweep["not stitched"], abs=0.05)
    within = inversion_sweep(pair, ANCHORS, "within", deltas=(0.0,), omegas=(1,))
    assert within["cells"][0]["accuracy"] == within["not stitched"]
    assert within["procrustes"] == 1.0
    named = inversion_sweep(
        pair, ANCHORS, test_ids=("r3", "r50", "r60", "nobody"), deltas=(0.0,), omegas=(1,)
    )
    assert named["test rows"] == 2, "r3 is an anchor"


def test_without_labels_there_is_no_accuracy(pair):
    bare = match(*(LatentSpace(space.vectors, pair.ids) for space in (pair.source, pair.target)))
    sweep = inversion_sweep(bare, ANCHORS, **SMALL)
    assert cells_of(sweep["cells"])["accuracy"].isna().all()
    assert sweep["not stitched"] is None


def test_a_pruning_that_leaves_one_anchor_has_no_cosine(pair):
    cells = cells_of(inversion_sweep(pair, ANCHORS[:3], deltas=(0.0, 1.0), omegas=(1, 2))["cells"])
    assert cells.loc[1.0, "cosine"].isna().all()
    assert cells.loc[0.0, "cosine"].notna().all()
    with pytest.raises(SpaceError, match="anchors: expected two or more"):
        inversion_sweep(pair, ANCHORS[:1])


def test_runs_become_charts_findings_and_a_sentence(pair, monkeypatch):
    monkeypatch.setattr(pruning, "_pair_of", lambda *given: (pair, ()))
    study = study_of("pruning")
    options = StudySpec.of(study, {"n_anchors": 100}).settings
    table = pd.DataFrame([one | study.measure(one, None, print).values for one in study.runs(options)])
    charts = study.charts(options, table)
    assert [len(chart.panels) for chart in charts.values()] == [3, 1, 1]
    assert charts["recovered"].panels[0].values.shape == (5, 10)
    assert study.conclusion(options, table).startswith("Best is δ = ")
    assert {"procrustes", "not stitched"} <= set(study.findings(options, table).what)


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
    monkeypatch.setattr(BestCellChance, "_most_bytes", 2 * cell.nbytes)
    parts = chance_of(true, others)
    assert [parts.low, parts.high] == pytest.approx([whole.low, whole.high], abs=1e-6)
    assert chance_of(true, []) is None


def test_no_row_keeps_its_own_partner(true):
    chance = BestCellChance(true, n_permutations=50)
    assert all((partners != np.arange(M)).all() for partners in chance._partners)
