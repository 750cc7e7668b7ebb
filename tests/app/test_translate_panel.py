"""The Translate tab: at once where it is quick, a turned space comes through whole, and bad choices are
told.
"""

from __future__ import annotations

import numpy as np

from app import results
from app.workspace import Workspace
from relcore.catalog.catalog import SpaceSpec
from relcore.maps.views import ViewSpec
from tests.app.conftest import Session, save_space


def labelled_spaces(folder, seed=0) -> list[SpaceSpec]:
    """Three classes in three directions, the second space turned and scaled."""
    rng = np.random.default_rng(seed)
    X = 3 * np.eye(6)[np.arange(90) % 3] + 0.5 * rng.normal(size=(90, 6))
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    labels = [f"c{row % 3}" for row in range(90)]
    return [
        save_space(folder / f"{name}.npz", vectors.astype(np.float32), labels=labels)
        for name, vectors in (("one", X), ("two", 2 * X @ turn))
    ]


def open_tab(specs, **changes) -> Session:
    anchors = tuple(f"r{row}" for row in range(0, 60, 2))
    workspace = Workspace(
        tuple(specs), specs[0], specs[1], anchors, view=ViewSpec(("r1", "r2"), n_nearest=20)
    )
    session = Session(workspace=Workspace(**{**workspace.__dict__, **changes}))
    session.at.session_state["invert.tab"] = "Translate"
    return session.open("invert")


def test_a_turned_space_comes_through_whole(tmp_path):
    session = open_tab(labelled_spaces(tmp_path))
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
    session = open_tab(labelled_spaces(tmp_path, seed=7))
    assert session.button(key="translate.start").label.startswith("Translate 2 pairs by 6 methods · about")


def test_choices_that_cannot_be_are_told(tmp_path):
    specs = labelled_spaces(tmp_path)
    stranger = save_space(
        tmp_path / "stranger.npz", np.random.default_rng(0).normal(size=(90, 6)), prefix="q"
    )
    session = open_tab((*specs, stranger))
    (chooser,) = [one for one in session.multiselect if one.label == "Spaces"]
    assert len(chooser.value) == 2  # those that have the anchors
    chooser.set_value([specs[0], stranger])
    session.run()
    assert [error for error in session.errors if "rows that all spaces share" in error]
    (chooser,) = [one for one in session.multiselect if one.label == "Spaces"]
    chooser.set_value([specs[0]])
    session.run()
    assert [info.value for info in session.info if info.value.startswith("Choose at least two spaces")]
