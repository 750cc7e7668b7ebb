"""Layer by layer: each cell is that of the functions for all pairs, and the best cell knows what chance
would give.
"""

import json

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encoding_spec, put_space
from relcore.compare.all_pairs import AllPairs, metrics_among_spaces
from relcore.compare.figures import exportable
from relcore.compare.layers import (
    LayerMaps,
    LayerPairs,
    LayerScores,
    best_stitched_told,
    best_told,
    layer_accuracy,
    layer_matrices,
    layer_table,
    models,
)
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.graphs import GraphEncoder
from relcore.encoders.transformers import MiniLM
from relcore.figures.style import LIGHT
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.tasks.task import task_job

N, D = 240, 10
ANCHORS = tuple(f"r{row}" for row in range(0, N, 8))
STITCHING = StitchSpec(("relative",), n_anchors=40)
KEY = "0123456789abcdef"
ROWS, COLUMNS = (0, 1, 2), (3, 4, 5)
METRICS = tuple(metrics_among_spaces())


def similarity_matrix(spaces, metric="cka", anchors=(), **settings):
    return AllPairs(metric, tuple(anchors), **settings).run(spaces)


def layer_scores(spaces, rows, columns, metric="cka", anchors=(), **settings):
    return LayerPairs(metric, tuple(anchors), rows=tuple(rows), columns=tuple(columns), **settings).run(
        spaces
    )


def layers_of(rng, n=N, classes=2):
    """Three layers: the first two dimensions of each hold the classes, and each layer adds a little to the
    one before.
    """
    labels = rng.integers(classes, size=n)
    first = rng.normal(size=(n, D)) + 3 * np.eye(D)[labels]
    made = [first]
    for _ in range(2):
        made.append(np.tanh(made[-1] @ rng.normal(size=(D, D)) / np.sqrt(D)) + 0.3 * rng.normal(size=(n, D)))
    return made, [f"class {label}" for label in labels]


def named(make_space, title, matrices, labels):
    return [make_space(X, name=f"{title}, layer {i}", labels=labels) for i, X in enumerate(matrices)]


@pytest.fixture
def rotated(rng, make_space):
    """A model of three layers, and a copy of it with each layer turned."""
    matrices, labels = layers_of(rng)
    turned = [X @ np.linalg.qr(rng.normal(size=(D, D)))[0] for X in matrices]
    return named(make_space, "one", matrices, labels) + named(make_space, "copy", turned, labels)


@pytest.mark.parametrize("metric", METRICS)
def test_each_cell_is_that_of_all_pairs(rotated, metric):
    settings = {"metric": metric, "anchors": ANCHORS, "k": 5}
    whole = similarity_matrix(rotated, **settings)
    found = layer_scores(rotated, [2, 0], [3, 1, 0], **settings)
    np.testing.assert_array_equal(found.values, whole.values[np.ix_([2, 0], [3, 1, 0])])
    for i, row in enumerate(found.rows):
        for j, column in enumerate(found.columns):
            assert found.scores[i][j].null == whole.scores[row][column].null
    assert found.itself == ((1, 2),)
    assert len(found.compared) == 5  # six cells, one of them a space with itself


def test_each_stitched_cell_is_that_of_the_stitching(rotated):
    result = stitch_matrix(rotated, STITCHING)
    mean, _ = result.matrix("relative")
    found = layer_accuracy(result, [2, 0], [3, 1, 0])
    np.testing.assert_array_equal(found.values, mean[np.ix_([2, 0], [3, 1, 0])])
    np.testing.assert_array_equal(found.own, np.diag(mean)[[3, 1, 0]])
    assert (found.chance, found.n) == (result.chance(), len(result.runs[0].truth))
    assert found.best != (1, 2)  # its own head is not stitched


@pytest.mark.parametrize("metric", METRICS)
def test_of_a_turned_copy_the_same_layer_is_the_most_alike(rotated, metric):
    found = layer_scores(rotated, ROWS, COLUMNS, metric, ANCHORS)
    np.testing.assert_array_equal(found.values.argmax(axis=1), [0, 1, 2])
    np.testing.assert_array_equal(found.values.argmax(axis=0), [0, 1, 2])
    np.testing.assert_allclose(np.diag(found.values), 1, atol=1e-5)
    i, j = found.best
    assert i == j
    assert found.scores[i][j] > found.best_chance.high


def test_a_turned_copy_is_stitched_without_loss(rotated):
    found = layer_accuracy(stitch_matrix(rotated, STITCHING), ROWS, COLUMNS)
    # Rotation leaves relative rows as they are up to float32: not one of the about 48 held-out rows may
    # change, .021 each.
    np.testing.assert_allclose(np.diag(found.values), found.own, atol=0.02)
    assert found.values[found.best] > found.best_chance.high


@pytest.mark.parametrize("metric", METRICS)
def test_the_best_layer_of_unrelated_models_lies_inside_its_band(make_space, metric):
    inside = 0
    for draw in range(6):
        rng = np.random.default_rng(draw)
        first, second = (layers_of(rng, classes=1)[0] for _ in range(2))
        spaces = [make_space(X, name=f"{draw} {i}") for i, X in enumerate([*first, *second])]
        found = layer_scores(spaces, ROWS, COLUMNS, metric, ANCHORS)
        i, j = found.best
        inside += found.best_chance.low <= found.scores[i][j] <= found.best_chance.high
    # Each draw lies inside with probability .95, so 4 or more of 6 do with probability .998.
    assert inside >= 4


def test_the_best_stitched_cell_of_random_labels_lies_inside_its_band(make_space):
    inside = 0
    for draw in range(6):
        rng = np.random.default_rng(draw)
        first, second = (layers_of(rng, classes=1)[0] for _ in range(2))
        labels = [f"class {label}" for label in rng.integers(3, size=N)]
        spaces = [make_space(X, name=f"{draw} {i}", labels=labels) for i, X in enumerate([*first, *second])]
        found = layer_accuracy(stitch_matrix(spaces, STITCHING), ROWS, COLUMNS)
        inside += found.best_chance.low <= found.values[found.best] <= found.best_chance.high
    assert inside >= 4  # as above


def test_a_model_against_itself_leaves_its_diagonal_out(rotated):
    found = layer_scores(rotated[:3], [0, 1, 2], [0, 1, 2])
    assert found.itself == ((0, 0), (1, 1), (2, 2))
    assert found.best not in found.itself
    assert sorted(found.compared) == [(0, 1), (0, 2), (1, 2)]
    assert found.best_chance == similarity_matrix(rotated[:3]).best_chance


@pytest.mark.parametrize(("rows", "columns"), [([], [1]), ([0, 0], [1]), ([0], [6]), ([0], [0])])
def test_a_rectangle_that_is_none_is_refused(rotated, rows, columns):
    with pytest.raises(
        SpaceError, match=r"expected (distinct numbers of the 6 spaces|at least two different spaces)"
    ):
        layer_scores(rotated, rows, columns)


def test_a_pair_without_shared_rows_has_a_reason(rotated, make_space):
    stranger = make_space(np.eye(30), [f"q{i}" for i in range(30)], name="stranger")
    found = layer_scores([rotated[0], rotated[1], stranger], [0], [1, 2])
    assert found.scores[0][1] is None
    assert found.reasons[0][1]
    assert found.best == (0, 0)
    assert found.best_chance is None


def test_the_job_keeps_what_the_function_finds(rotated, tmp_path):
    store = Store(tmp_path)
    context = Context(KEY, store)
    inputs = [put_space(store, space) for space in rotated]
    task = LayerPairs("mutual knn", k=6, rows=ROWS, columns=COLUMNS)
    task_job(context, task=task, inputs=inputs)
    found = records.from_json(LayerScores, json.loads(json.dumps(store.get(KEY).metadata["layers"])))
    assert task.read(store.get(KEY)) == found
    assert found == layer_scores(rotated, ROWS, COLUMNS, "mutual knn", k=6)


def spec_of(encoder, output, dataset="digits"):
    return encoding_spec(
        DatasetSpec(dataset),
        encoder,
        output,
        f"{encoder} {output} {dataset}",
        f"{encoder.title} {output} · {dataset}",
    )


def test_models_are_encoders_less_the_layer():
    lm = MiniLM((2, -1, 4))
    layers = [spec_of(lm, output) for output in ("last layer", "layer 4", "layer 2")]
    single = SpaceSpec("file", "/x/alone.npz")
    graph = [spec_of(GraphEncoder(layers=n), "") for n in (2, 3)]  # their depth, not one of their layers
    (found,) = models([*layers, single, *graph, spec_of(lm, "layer 4", "wikipedia")])
    assert found.title == "MiniLM · digits"
    assert [spec.option("output") for spec in found.layers] == ["layer 2", "layer 4", "last layer"]
    other = [spec_of(lm, output, "wikipedia") for output in ("layer 2", "layer 4")]
    assert [model.title for model in models([*layers, *other])] == ["MiniLM · digits", "MiniLM · wikipedia"]


@pytest.fixture
def files(rotated, tmp_path):
    specs = []
    for number, space in enumerate(rotated):
        path = tmp_path / f"layer{number}.npz"
        np.savez(path, vectors=space.vectors, ids=space.ids.astype(str), labels=space.labels.astype(str))
        specs.append(SpaceSpec("file", str(path)))
    return specs


@pytest.mark.parametrize("metric", ["cka", "relative cosine", "mutual knn"])
def test_the_recipe_draws_it_again(files, metric):
    settings = {"metric": metric, "anchors": ANCHORS, "k": 7, "stitching": STITCHING}
    drawn = LayerMaps(spaces=tuple(files), rows=ROWS, columns=COLUMNS, **settings).draw()
    again = exportable(json.loads(json.dumps(drawn.recipe)))
    assert again.bytes("csv") == drawn.bytes("csv")
    assert again.recipe == drawn.recipe
    table = again.table()
    assert len(table) == 9
    assert {"best_low", "best_high", "accuracy", "not_stitched", "accuracy_chance", "held_out_rows"} <= set(
        table
    )
    assert b"<svg" in drawn.bytes("svg")
    assert drawn.bytes("pdf").startswith(b"%PDF")
    assert len(drawn.interactive(LIGHT).data) == 4  # two heat maps and their invisible points


def test_without_labels_there_is_one_heat_map(files):
    drawn = LayerMaps(spaces=tuple(files), rows=ROWS, columns=COLUMNS).draw()
    assert "stitching" not in drawn.recipe
    assert "accuracy" not in drawn.table()
    assert len(exportable(drawn.recipe).interactive(LIGHT).data) == 2


def test_a_changed_space_is_not_drawn_silently(files, rotated):
    recipe = LayerMaps(spaces=tuple(files), digests=("0" * 32,) * 6, rows=ROWS, columns=COLUMNS)
    drawn = recipe.draw((layer_scores(rotated, ROWS, COLUMNS), None))
    with pytest.raises(SpaceError, match="has changed"):
        exportable(drawn.recipe)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 3}, "recipe of layers: expected settings among .* got 'depth'"),
        ({"rows": 1}, "recipe of layers: rows: expected a list, got 1"),
        ({"digests": ["a"]}, "expected 6 digests, one per space, got 1"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(files, change, message):
    recipe = {
        "figure": "layers",
        "spaces": [spec.to_json() for spec in files],
        "rows": ROWS,
        "columns": COLUMNS,
    }
    with pytest.raises(SpaceError, match=message):
        exportable(recipe | change)


def test_the_sentences_say_what_chance_would_give(rotated):
    scores, result = layer_scores(rotated, ROWS, COLUMNS), stitch_matrix(rotated, STITCHING)
    assert "the best of 9 pairs is ." in best_told(scores)
    assert best_told(scores).endswith("by chance")
    told = best_stitched_told(scores, result)
    assert "(not stitched " in told
    assert "the best of 9 cells is ." in told
    assert len(layer_table(scores, result)) == 9


def test_names_are_as_short_as_they_are_clear(make_space, rng):
    spaces = [
        make_space(rng.normal(size=(40, 4)), name=f"{m} layer {i} · wikipedia")
        for m in ("MiniLM", "Bert")
        for i in (2, 4)
    ]
    data = layer_matrices(layer_scores(spaces, [0, 1], [2, 3]))
    assert (data.row_title, data.column_title) == ("MiniLM layer", "Bert layer")
    assert (data.panels[0].rows, data.panels[0].columns) == (("2", "4"), ("2", "4"))
