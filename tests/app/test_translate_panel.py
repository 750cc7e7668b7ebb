"""The Translate tab: at once where it is quick, a turned space comes through whole, and bad choices are
told.
"""

from __future__ import annotations

import numpy as np

from app import results
from tests.app.conftest import save_space
from tests.app.test_rescale_panel import labelled_spaces, open_tab


def test_a_turned_space_comes_through_whole(tmp_path):
    session = open_tab(labelled_spaces(tmp_path), "Translate")
    summary = session.at.dataframe[0].value.set_index("method")
    assert summary.loc["Procrustes", ["cosine", "MRR, k = 10"]].tolist() == [1, 1]
    assert summary.loc["Procrustes", "accuracy"] == summary.loc["Procrustes", "not stitched"]
    assert summary.loc["absolute", "cosine"] < 0.9
    assert summary["pairs"].tolist() == [2] * 6
    pairs = session.at.dataframe[1].value
    assert pairs["source"].tolist() == ["one", "one", "two", "two"]
    assert "**60** shared rows that are not anchors, **30** anchors" in session.captions
    session.change("button_group", "translate.metric-5", "mrr")
    assert session.at.dataframe[1].value["Procrustes"].tolist() == [1, 1, 1, 1]


def test_what_takes_long_is_asked_for_first(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)
    session = open_tab(labelled_spaces(tmp_path, seed=7), "Translate")
    assert session.button(key="translate.start").label.startswith("Translate 2 pairs by 6 methods · about")


def test_choices_that_cannot_be_are_told(tmp_path):
    specs = labelled_spaces(tmp_path)
    stranger = save_space(
        tmp_path / "stranger.npz", np.random.default_rng(0).normal(size=(90, 6)), prefix="q"
    )
    session = open_tab((*specs, stranger), "Translate")
    (chooser,) = [one for one in session.multiselect if one.label == "Spaces"]
    assert len(chooser.value) == 2  # those that have the anchors
    chooser.set_value([specs[0], stranger])
    session.run()
    assert [error for error in session.errors if "rows that all spaces share" in error]
    (chooser,) = [one for one in session.multiselect if one.label == "Spaces"]
    chooser.set_value([specs[0]])
    session.run()
    assert [info.value for info in session.info if info.value.startswith("Choose at least two spaces")]


def test_without_anchors_it_says_what_to_do(tmp_path):
    session = open_tab(labelled_spaces(tmp_path), "Translate", anchors=())
    assert [info.value for info in session.info if info.value.startswith("No anchors yet")]
