"""Inversion of a pair: against the estimator, permutations and the grid; and figures that a recipe draws
again.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ortho_group

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.names import ROUTES
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.figures import exportable
from relcore.compare.scene import ComparisonRecipe
from relcore.figures.marks import row_colors
from relcore.figures.style import LIGHT
from relcore.invert.figures import (
    EDGES,
    ERROR_COLORS,
    InversionGrid,
    Lengths,
    RecoveredRows,
    RecoveryErrors,
    inversion_scene,
    lengths,
    sweep_matrices,
    variation,
)
from relcore.invert.recovery import InversionSpec, invert_pair, sides
from relcore.invert.sweep import InversionSweep, SweepSpec, inversion_sweep
from relcore.represent.inversion import InverseRelativeProjection, inversion_grid, recovered
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, match
from relcore.spaces.split import Split
from relcore.tasks.task import task_job

N, D, K = 300, 8, 30
DELTAS, OMEGAS = (0.0, 0.3, 0.6), (1, 2, 4)
SMALL = {"deltas": DELTAS, "omegas": OMEGAS}


@pytest.fixture
def pair(rng):
    """A space of five classes, and a noisy turn of it that is wider."""
    labels = np.array([f"c{row % 5}" for row in range(N)])
    X = rng.normal(size=(N, D)) + 4 * np.eye(5, D)[np.arange(N) % 5] + 1
    turn = np.linalg.qr(rng.normal(size=(D + 2, D + 2)))[0][:D]
    Y = 2 * X @ turn + 0.3 * rng.normal(size=(N, D + 2)) - 3
    ids = [f"r{row}" for row in range(N)]
    return match(LatentSpace(X, ids, name="a", labels=labels), LatentSpace(Y, ids, name="b", labels=labels))


@pytest.fixture
def anchors():
    return tuple(f"r{row}" for row in range(K))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("method", ["pruned", "ridge", "whitened"])
def test_rows_are_those_of_the_estimator(pair, anchors, route, method):
    spec = InversionSpec(route, method, omega=3, delta=0.4, ridge=0.5, random_state=2)
    found = invert_pair(pair, anchors, spec)
    source, target = sides(pair, route)
    means = [space.vectors.mean(axis=0) for space in (source, target)]
    inverse = InverseRelativeProjection(method, 3, 0.4, 0.5, 2)
    inverse.fit(source.vectors[:K], target.vectors[:K], source_mean=means[0], target_mean=means[1])
    np.testing.assert_allclose(found.found, inverse.transform(source.vectors), atol=1e-3)
    expected = recovered(found.found, target.vectors, means[1])
    np.testing.assert_allclose(1 - found.errors[spec.title], expected["cosine"], atol=1e-5)
    np.testing.assert_allclose(found.distance, expected["error"], rtol=1e-4)
    assert float(found.scores[spec.title]) == pytest.approx(expected["cosine"][K:].mean(), abs=1e-5)
    assert found.scores[spec.title].n == found.n_scored == N - K
    assert not found.scored[:K].any()
    assert found.shape == (source.dimension, target.dimension)
    assert found.kept == np.mean([len(kept) for kept in inverse.kept_])
    assert found.condition == pytest.approx(np.mean(inverse.condition_numbers_), rel=1e-3)


def test_chance_is_what_permuted_rows_give(pair, anchors, rng):
    found = invert_pair(pair, anchors, InversionSpec())
    mean = found.true.mean(axis=0)
    rows, true = found.found[found.scored], found.true[found.scored]
    permuted = [recovered(rows, rng.permutation(true), mean)["cosine"].mean() for _ in range(1000)]
    null = found.scores["inverse, pruned"].null
    assert null.mean == pytest.approx(np.mean(permuted), abs=0.003)
    assert np.quantile(permuted, [0.025, 0.975]) == pytest.approx([null.low, null.high], abs=0.012)
    assert found.scores["inverse, pruned"] > 0.9 > null.high


def test_direct_maps_stand_beside_only_where_they_say_something(pair, anchors):
    assert list(invert_pair(pair, anchors, InversionSpec()).scores) == [
        "inverse, pruned",
        "Procrustes",
        "least squares",
    ]
    same = match(
        pair.source, LatentSpace(pair.source.vectors @ ortho_group.rvs(D, random_state=0), pair.ids, name="t")
    )
    found = invert_pair(same, anchors, InversionSpec(method="ridge"))
    assert list(found.scores) == ["inverse, ridge, ours", "Procrustes", "least squares", "absolute copy"]
    assert found.scores["Procrustes"] == pytest.approx(1, abs=1e-5)
    assert found.scores["absolute copy"] < 0.9
    within = invert_pair(pair, anchors, InversionSpec("within", omega=1, delta=0.0))
    assert list(within.scores) == ["inverse, pruned", "least squares"]
    assert within.scores["inverse, pruned"] == pytest.approx(1, abs=1e-5)


def test_few_anchors_reach_few_directions(pair):
    found = invert_pair(pair, ("r0", "r1", "r2", "r3"), InversionSpec(delta=0.0))
    assert (found.rank, found.shape) == (4, (D, D + 2))


def test_of_many_rows_a_sample_is_carried_over(pair, anchors):
    found = invert_pair(pair, anchors, InversionSpec(), most_rows=50)
    assert (len(found.rows), found.n, len(found.found)) == (50 + K, N, 50 + K)
    assert found.scores["inverse, pruned"].n == 50
    assert set(found.rows[~found.scored]) == set(range(K))
    np.testing.assert_array_equal(found.true, pair.target.vectors[found.rows])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"route": "sideways"}, "route: expected one of"),
        ({"method": "exact"}, "method: expected one of"),
        ({"omega": 0}, "omega: expected a whole number from 1 to 64, got 0"),
        ({"omega": 2.0}, "omega: expected a whole number"),
        ({"omega": True}, "omega: expected a whole number"),
        ({"delta": 1.1}, "delta: expected a number from 0 to 1, got 1.1"),
        ({"delta": "0.5"}, "delta: expected a number"),
        ({"delta": float("nan")}, "delta: expected a number"),
        ({"ridge": 0.0}, "ridge: expected a number from 1e-06 to 1000000.0, got 0.0"),
        ({"random_state": -1}, "random_state: expected a whole number from 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SpaceError, match=message):
        records.from_json(InversionSpec, settings)


@pytest.mark.parametrize(
    ("anchors", "spec", "message"),
    [
        ((), InversionSpec(), "anchors: expected at least one id, got none"),
        (("r0",), InversionSpec(), "anchors: expected two or more"),
        (("r0", "zzz"), InversionSpec(), "zzz"),
        (
            ("r0", "r1", "r2"),
            InversionSpec(delta=1.0),
            "delta: expected a distance at which two or more anchors stay",
        ),
    ],
)
def test_anchors_that_cannot_be_inverted_say_so(pair, anchors, spec, message):
    with pytest.raises(SpaceError, match=message):
        invert_pair(pair, anchors, spec)


@pytest.mark.parametrize("route", ROUTES)
def test_the_sweep_is_the_grid(pair, anchors, route):
    sweep = inversion_sweep(pair, anchors, SweepSpec(route=route, random_state=3, n_rows=N, **SMALL))
    source, target = sides(pair, route)
    for column, side in (("cosine", source), ("within", target)):
        split = Split.held_out(pair.ids, np.arange(K))
        expected = inversion_grid(side.vectors, target.vectors, split, DELTAS, OMEGAS, 3)
        found = sweep.table()
        if route == "within" and column == "within":
            assert found["within"].isna().all()
            continue
        np.testing.assert_allclose(found[column], expected["cosine"], atol=1e-5)
        np.testing.assert_allclose(
            found[["delta", "omega", "condition", "kept"]], expected[["delta", "omega", "condition", "kept"]]
        )
    assert found["chance"].abs().max() < 0.15
    assert (sweep.n, sweep.n_rows, sweep.n_anchors, sweep.dimension) == (N, N - K, K, target.dimension)


def test_the_head_of_the_target_reads_what_is_recovered(pair, anchors):
    sweep = inversion_sweep(pair, anchors, SweepSpec(**SMALL))
    table = sweep.table()
    split = Split.draw(pair.ids, anchors=np.arange(K))
    assert (sweep.n_classes, sweep.n_train, sweep.n_test) == (5, N - len(split.test), len(split.test))
    assert sweep.chance == np.mean(split.test % 5 == 0)  # all are as frequent, and the first is answered
    assert sweep.not_stitched > 0.9
    assert table["accuracy"].iloc[0] == pytest.approx(sweep.not_stitched, abs=0.05)
    within = inversion_sweep(pair, anchors, SweepSpec(route="within", deltas=(0.0,), omegas=(1,)))
    assert within.table()["accuracy"].iloc[0] == within.not_stitched
    assert within.procrustes == 1.0


def test_the_head_may_be_asked_about_rows_that_are_named(pair, anchors):
    sweep = inversion_sweep(
        pair, anchors, SweepSpec(test_ids=("r3", "r50", "r60", "nobody"), deltas=(0.0,), omegas=(1,))
    )
    assert (sweep.n_test, sweep.n_train) == (2, N - 2)  # r3 is an anchor


def test_without_labels_there_is_no_accuracy_but_a_reason(pair, anchors):
    bare = match(LatentSpace(pair.source.vectors, pair.ids), LatentSpace(pair.target.vectors, pair.ids))
    sweep = inversion_sweep(bare, anchors, SweepSpec(**SMALL))
    assert sweep.why_none == "No accuracy: the spaces have no labels."
    assert sweep.table()["accuracy"].isna().all()
    assert sweep.not_stitched is None


def test_a_pruning_that_leaves_one_anchor_has_no_cosine(pair):
    sweep = inversion_sweep(pair, ("r0", "r1", "r2"), SweepSpec(deltas=(0.0, 1.0), omegas=(1, 2)))
    table = sweep.table()
    assert table[table.delta == 1]["cosine"].isna().all()
    assert table[table.delta == 0]["cosine"].notna().all()
    panel = sweep_matrices(sweep, "recovered", ("a", "b")).panels[0]
    assert "left with one anchor; lower δ" in panel.explain(0, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deltas": ()}, "deltas: expected distinct distances"),
        ({"deltas": (0.5, 0.5)}, "deltas: expected distinct"),
        ({"deltas": (1.5,)}, "deltas: expected distinct"),
        ({"omegas": (2, 1)}, "omegas: expected distinct whole numbers 1 … 64, ascending"),
        ({"omegas": (0,)}, "omegas: expected"),
        ({"route": "up"}, "route: expected one of"),
    ],
)
def test_a_sweep_over_nonsense_is_refused(pair, anchors, settings, message):
    with pytest.raises(SpaceError, match=message):
        inversion_sweep(pair, anchors, SweepSpec(**{**SMALL, **settings}))


def test_a_sweep_by_job_is_the_same_and_survives_json(pair, anchors, tmp_path):
    from relcore.catalog.catalog import put_space

    store = Store(tmp_path)
    inputs = [put_space(store, space) for space in (pair.source, pair.target)]
    task = InversionSweep(anchors, SweepSpec(**SMALL))
    task_job(Context("ab" * 16, store), task=task, inputs=inputs)
    stored = task.read(store.get("ab" * 16))
    assert stored.best_chance == task.run([pair.source, pair.target]).best_chance
    pd.testing.assert_frame_equal(stored.table(), inversion_sweep(pair, anchors, SweepSpec(**SMALL)).table())


def test_errors_are_coloured_by_fixed_steps_and_panes_share_one_pca(pair, anchors):
    found = invert_pair(pair, anchors, InversionSpec())
    scene = inversion_scene(pair, found)
    errors = found.errors["inverse, pruned"]
    assert scene.category_colors == ERROR_COLORS
    assert [(errors < EDGES[0]).sum(), (errors >= EDGES[-1]).sum()] == [
        (scene.categories == 0).sum(),
        (scene.categories == 7).sum(),
    ]
    centred = found.true - found.true.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    for pane, rows in zip(scene.panes, (found.true, found.found), strict=True):
        expected = (rows - found.true.mean(axis=0)) @ axes[:2].T
        np.testing.assert_allclose(np.abs(pane.coordinates), np.abs(expected), atol=1e-3)
    by_label = inversion_scene(pair, found, "labels")
    assert by_label.category_names == ("c0", "c1", "c2", "c3", "c4")
    assert not by_label.category_colors
    with pytest.raises(SpaceError, match="color_by: expected one of"):
        inversion_scene(pair, found, "mood")


def test_lengths_and_their_variation_are_known_for_a_line():
    space = LatentSpace([[-3.0], [-1.0], [1.0], [3.0]], list("abcd"))
    np.testing.assert_allclose(lengths(space), [1.5, 0.5, 0.5, 1.5])
    assert variation(lengths(space)) == pytest.approx(0.5)
    assert variation(np.full(3, 7.0)) == 0


@pytest.fixture
def recipe(pair, anchors, tmp_path):
    specs = []
    for space in (pair.source, pair.target):
        np.savez(tmp_path / f"{space.name}.npz", vectors=space.vectors, ids=space.ids.astype(str))
        specs.append(SpaceSpec("file", str(tmp_path / f"{space.name}.npz")))
    return ComparisonRecipe(*specs, anchors)


@pytest.fixture
def drawn(recipe):
    """Each kind of figure with its settings away from the defaults."""
    spec = InversionSpec("backward", "whitened", ridge=0.7)
    return {
        "inversion": RecoveredRows.of(recipe, inversion=spec).draw(),
        "inversion-errors": RecoveryErrors.of(recipe, inversion=spec).draw(),
        "inversion-grid": (
            InversionGrid.of(
                recipe, measure="condition", sweep=SweepSpec("backward", 4, n_rows=100, **SMALL)
            ).draw()
        ),
        "inversion-lengths": Lengths((recipe.source, recipe.target)).draw(),
    }


@pytest.mark.parametrize("kind", ["inversion", "inversion-errors", "inversion-grid", "inversion-lengths"])
def test_a_recipe_draws_the_same_numbers_again(drawn, kind):
    figure = drawn[kind]
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert figure.recipe["figure"] == kind
    assert again.bytes("csv") == figure.bytes("csv")
    assert again.bytes("json") == figure.bytes("json")
    if figure.latex:
        assert again.bytes("tex") == figure.bytes("tex")
        assert r"\toprule" in figure.bytes("tex").decode()


@pytest.mark.parametrize("kind", ["inversion", "inversion-grid"])
def test_figures_come_on_screen_and_on_paper(drawn, kind):
    assert drawn[kind].bytes("png").startswith(b"\x89PNG")
    assert b"relscope-recipe" in drawn[kind].bytes("html")


def test_the_csv_of_the_panes_has_each_rows_error(drawn, recipe):
    table = drawn["inversion"].table()
    assert {"error, inverse, whitened, ours", "error, Procrustes", "distance"} <= set(table.columns)
    assert len(table) == N


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"inversion": {"gamma": 1}},
            "recipe of inversion: inversion: expected settings among .* got 'gamma'",
        ),
        ({"inversion": {"omega": "many"}}, "omega: expected a whole number"),
        ({"color_by": "mood"}, "color_by: expected one of"),
        ({"mood": 1}, "recipe of inversion: expected settings among .* got 'mood'"),
    ],
)
def test_a_recipe_with_wrong_settings_says_which(drawn, changes, message):
    with pytest.raises(SpaceError, match=message):
        exportable({**drawn["inversion"].recipe, **changes})


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("inversion-grid", {"measure": "beauty"}, "measure: expected one of"),
        (
            "inversion-grid",
            {"sweep": {"alpha": 1}},
            "recipe of inversion-grid: sweep: expected settings among .* got 'alpha'",
        ),
        (
            "inversion-lengths",
            {"spaces": "all"},
            "recipe of inversion-lengths: spaces: expected a list, got 'all'",
        ),
        ("inversion-lengths", {"spaces": []}, "spaces: expected at least one"),
    ],
)
def test_other_recipes_with_wrong_settings_say_which(drawn, kind, changes, message):
    with pytest.raises(SpaceError, match=message):
        exportable({**drawn[kind].recipe, **changes})


def test_colours_of_categories_are_one_each(pair, anchors):
    scene = inversion_scene(pair, invert_pair(pair, anchors, InversionSpec()))
    with pytest.raises(ValueError, match="expected 8 colours, one per category, got 1"):
        replace(scene, category_colors=("#000000",))
    assert set(row_colors(scene, LIGHT)) <= set(ERROR_COLORS)
