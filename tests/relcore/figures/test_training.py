"""Training curves: the numbers as measured, on screen, on paper and from the recipe."""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encoding_spec
from relcore.catalog.encoding import encode
from relcore.compare.figures import Training, exportable, training_of
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import SmallVision
from relcore.figures.style import Style
from relcore.figures.training import (
    curve_of,
    printed_training_figure,
    training_exportable,
    training_figure,
    training_table,
)
from relcore.runs.store import Store

CURVES = {
    "CNN $64": {"loss": [2.0, 1.0, 0.5], "accuracy": [0.2, 0.6, 0.9]},
    "<MLP>": {"loss": [1.5], "accuracy": [0.4]},
}


def test_the_table_holds_each_epoch_once():
    table = training_table(CURVES)
    assert table.epoch.tolist() == [1, 2, 3, 1]
    assert table.name.tolist() == ["CNN $64"] * 3 + ["<MLP>"]
    assert table.loss.tolist() == [2.0, 1.0, 0.5, 1.5]
    assert table.accuracy.tolist() == [0.2, 0.6, 0.9, 0.4]
    only_loss = training_table({"a": {"loss": [1, 2]}})
    assert only_loss.accuracy.isna().all()


@pytest.mark.parametrize("curves", [{}, {"a": {}}, {"a": {"loss": []}}])
def test_nothing_trained_is_no_figure(curves):
    with pytest.raises(SpaceError, match="expected the loss of one epoch or more, got none"):
        training_table(curves)


def test_both_kinds_of_metadata_give_a_curve():
    assert curve_of({"loss": [2, 1], "held_out_accuracy": [0.1, 0.2], "accuracy": 0.2}) == {
        "loss": [2, 1],
        "accuracy": [0.1, 0.2],
    }
    assert curve_of({"losses": [2], "accuracies": [0.5], "epoch": 1}) == {"loss": [2], "accuracy": [0.5]}
    assert curve_of({"explained variance": 0.4}) == {}


def test_the_screen_draws_the_table_and_shows_markup_as_text():
    figure = training_figure(CURVES)
    assert [trace.name for trace in figure.data] == ["CNN &#36;64"] * 2 + ["&lt;MLP&gt;"] * 2
    assert sum(bool(trace.showlegend) for trace in figure.data) == 2
    np.testing.assert_array_equal(figure.data[0].y, [2.0, 1.0, 0.5])
    np.testing.assert_array_equal(figure.data[1].y, [0.2, 0.6, 0.9])
    assert "CNN $64: loss .500, held-out accuracy .900 after 3 epochs" in figure.layout.meta["alt"]


@pytest.mark.parametrize("width", [3.25, 6.75])
def test_paper_is_as_wide_as_the_style_and_cuts_nothing_off(width):
    figure = printed_training_figure(CURVES, Style(width=width, dpi=72))
    figure.canvas.draw()
    assert figure.get_figwidth() == width
    assert [list(line.get_ydata()) for line in figure.axes[1].lines] == [[0.2, 0.6, 0.9], [0.4]]
    for axes in figure.axes:
        box, whole = axes.get_tightbbox(), figure.bbox
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= whole.x1
        assert box.y1 <= whole.y1
    assert figure.axes[1].get_tightbbox().y0 >= figure.legends[0].get_window_extent().y1
    a, b = (axes.get_tightbbox() for axes in figure.axes)
    assert not a.overlaps(b)


def test_the_recipe_draws_the_encodings_curve_again(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    dataset, encoder, store = DatasetSpec("digits", limit=40), SmallVision("mlp", width=8, epochs=2), Store()
    (space,) = encode(dataset, encoder, store)
    key = next(found.key for found in store.summaries() if found.metadata.get("output") == "")
    spec = encoding_spec(dataset, encoder, "", key, space.name)
    drawn = Training((spec,)).draw()
    assert drawn.table().loss.tolist() == store.get(key).metadata["training"]["loss"]
    assert drawn.bytes("pdf").startswith(b"%PDF")
    pd.testing.assert_frame_equal(exportable(drawn.recipe).table(), drawn.table())


def test_only_encodings_have_a_training():
    with pytest.raises(SpaceError, match="expected encodings, got 'word2vec-novels'"):
        training_of(SpaceSpec("bundled", "word2vec-novels"))


def test_without_a_recipe_there_is_no_json():
    with pytest.raises(SpaceError, match="without one"):
        training_exportable(CURVES).bytes("json")
