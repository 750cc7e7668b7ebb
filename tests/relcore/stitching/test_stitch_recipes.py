"""Figures of stitching: the numbers of the result, the same again from the recipe, and what is wrong with
one.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.figures import exportable
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.stitch.figures import (
    StitchConfusion,
    StitchMatrix,
    confusion_matrices,
    gaps,
    short_names,
    stitch_matrices,
)
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.tasks.task import task_job

SPEC = StitchSpec(
    ("absolute", "relative", "procrustes"),
    n_anchors=24,
    random_states=(0, 1),
    order=("low", "middle", "high"),
)


@pytest.fixture
def specs(tmp_path, make_encoders):
    """Three encoders of 8, 8 and 12 dimensions as files."""
    made = []
    for number, space in enumerate(make_encoders()):
        path = tmp_path / f"encoder{number}.npz"
        np.savez(path, vectors=space.vectors, ids=space.ids.astype(str), labels=space.labels.astype(str))
        made.append(SpaceSpec("file", str(path)))
    return made


@pytest.fixture
def make_encoders():
    from relcore.spaces.space import LatentSpace

    def make():
        rng, numbers = np.random.default_rng(0), np.arange(240) % 3
        points = rng.normal(size=(3, 8))[numbers] * 2 + 0.8 * rng.normal(size=(240, 8))
        labels, ids = np.array(SPEC.order)[numbers], [f"r{row}" for row in range(240)]
        turns = [np.linalg.qr(rng.normal(size=(width, width)))[0][:8] for width in (8, 8, 12)]
        vectors = [
            (points @ turn + 0.3 * rng.normal(size=(240, turn.shape[1]))).astype(np.float32) for turn in turns
        ]
        return [LatentSpace(X, ids, name=f"encoder{i}", labels=labels) for i, X in enumerate(vectors)]

    return make


@pytest.fixture
def result(specs):
    return stitch_matrix([load(spec) for spec in specs], SPEC)


def test_cells_hold_the_means_of_the_result_with_its_reasons(result):
    data = stitch_matrices(result)
    mean, deviation = result.matrix("relative")
    panel = data.panels[1]
    np.testing.assert_array_equal(panel.values, mean)
    assert panel.text(0, 1) == f"{short(mean[0, 1])}\n± {short(deviation[0, 1])}"
    assert panel.marked == ((0, 0), (1, 1), (2, 2))
    assert f"not stitched {short(mean[1, 1])}" in panel.explain(0, 1)
    counts = sorted(len(run.truth) for run in result.runs)
    assert f"{counts[0]} – {counts[1]} test rows a state" in panel.explain(0, 1)
    absolute = data.panels[0]
    assert absolute.missing == [(0, 2), (1, 2), (2, 0), (2, 1)]
    assert "the dimensions differ" in absolute.explain(0, 2)
    assert "(2 of 6 pairs)" in absolute.note


def test_a_gap_is_what_the_head_loses_against_its_own_encoder(result):
    mean, _ = result.matrix("relative")
    lost = gaps(result, "relative")
    assert lost[0, 1] == pytest.approx(mean[1, 1] - mean[0, 1])
    np.testing.assert_array_equal(np.diag(lost), 0)
    steps, _ = result.matrix("relative", "mae")
    assert gaps(result, "relative", "mae")[0, 1] == pytest.approx(steps[0, 1] - steps[1, 1])
    low, high = stitch_matrices(result, "accuracy", "gap").scale
    assert (low, high >= 0.05) == (0.0, True)


def matrix(specs, **settings):
    return StitchMatrix(spaces=tuple(specs), stitching=SPEC, **settings)


def test_the_recipe_draws_the_same_numbers_again(specs, result):
    digests = tuple(load(spec).digest for spec in specs)
    figure = matrix(specs, metric="f1", show="gap", digests=digests).draw(result)
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert again.bytes("csv") == figure.bytes("csv")
    assert again.bytes("tex") == figure.bytes("tex")
    assert figure.table()["score"].notna().sum() == 3 * 3 * 3 * 3 - 3 * 4
    cell = {"method": "relative", "encoder": 0, "head": 2}
    one = StitchConfusion(spaces=tuple(specs), stitching=SPEC, digests=digests, **cell).draw(result)
    assert exportable(json.loads(one.bytes("json", full_paths=True))).bytes("csv") == one.bytes("csv")
    with pytest.raises(SpaceError, match="has changed: expected content"):
        matrix(specs, digests=("0" * 32,) * 3).draw()


def test_the_printed_table_has_each_way_with_its_deviation_and_chance(specs, result):
    printed = matrix(specs).draw(result).latex()
    assert printed["method"].tolist() == ["absolute", "relative", "Procrustes", "chance"]
    row = result.summary().iloc[3]
    assert (row.method, row.metric) == ("relative", "accuracy")
    assert printed["accuracy, stitched"][1] == f"{row.stitched:.3f} ± {row.stitched_deviation:.3f}"
    assert printed["pairs"].tolist() == ["2 of 6", "6 of 6", "6 of 6", ""]


def test_a_confusion_counts_every_answer_of_all_states_beside_the_heads_own(result):
    stitched, own = confusion_matrices(result, "relative", 0, 2).panels
    counts = result.confusion("relative", 0, 2)
    assert counts.sum() == sum(len(run.truth) for run in result.runs)
    np.testing.assert_allclose(stitched.values * counts.sum(axis=1, keepdims=True), counts)
    np.testing.assert_allclose(own.values.sum(axis=1), 1)
    assert stitched.text(0, 0) == str(counts[0, 0])
    assert len(confusion_matrices(result, "relative", 1, 1).panels) == 1


def test_names_lose_what_they_all_end_in():
    names = ("MLP 64, state 0 · digits", "Residual CNN 64, state 0 · digits")
    assert short_names(names) == (("MLP", "Residual CNN"), "64, state 0 · digits")
    assert short_names(("LSA · sentences", "MiniLM 2 · sentences")) == (("LSA", "MiniLM 2"), "sentences")
    assert short_names(("a b", "b")) == (("a b", "b"), "")
    assert short_names(("a", "b")) == (("a", "b"), "")


def test_a_job_finds_what_a_script_finds_and_tells_each_step(tmp_path, make_encoders, result):
    from relcore.catalog.catalog import put_space

    store, spaces, told = Store(tmp_path / "store"), make_encoders(), []
    context = Context(SPEC.key(spaces), store)
    context.report = lambda *step: told.append(step)
    task_job(context, task=SPEC, inputs=[put_space(store, space) for space in spaces])
    found = SPEC.read(store.get(context.key))
    assert found.summary().equals(result.summary())
    assert told[0] == (0, 4, "logistic heads on absolute rows, state 0")
    assert told[-1] == (3, 4, "logistic heads on relative rows, state 1")
    assert found.encoders == ("encoder0", "encoder1", "encoder2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spaces": "all"}, "recipe of stitch-matrix: spaces: expected a list, got 'all'"),
        ({"digests": ["x"]}, "expected 3 digests, one per space"),
        ({"metric": "speed"}, "metric: expected one of"),
        ({"colour": "red"}, "recipe of stitch-matrix: expected settings among .*got 'colour'"),
        ({"stitching": {"omega": 3}}, "expected settings among"),
    ],
)
def test_a_wrong_recipe_says_what_is_wrong(specs, change, message):
    recipe = matrix(specs).to_json()
    with pytest.raises(SpaceError, match=message):
        exportable({**recipe, **change})


def test_a_wrong_cell_says_what_is_wrong(result):
    with pytest.raises(SpaceError, match="encoder: expected a number from 0 to 2, got 3"):
        confusion_matrices(result, "relative", 3, 0)
    with pytest.raises(SpaceError, match="the dimensions differ"):
        confusion_matrices(result, "absolute", 0, 2)
    with pytest.raises(SpaceError, match="method: expected one of"):
        confusion_matrices(result, "affine", 0, 1)
