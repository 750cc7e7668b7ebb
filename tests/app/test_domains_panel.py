"""Across datasets: what the domains are and cost is told; spaces of a session are put together by their
ids.
"""

from __future__ import annotations

import re

from app.invert import domains
from relcore.encoders.dataset import DatasetSpec
from tests.app.test_rescale_panel import at_once, labelled_spaces, open_tab

__all__ = ["at_once"]


def test_domains_networks_and_cost_are_told_first(tmp_path):
    session = open_tab(labelled_spaces(tmp_path), "Across datasets")
    assert session.button(key="cross-domain.start").label.startswith(
        "Train 12 networks, evaluate 144 pairs · about"
    )
    assert (
        "3 domains of 1,797 pictures each: “digits”, “digits, inverted”, “digits, thick”" in session.captions
    )
    session.change("multiselect", "domains.looks", ["plain"]).change(
        "button_group", "domains.networks", ["mlp"]
    )
    assert [
        info.value for info in session.info if info.value.startswith("Choose at least two looks or networks")
    ]


def test_spaces_of_the_session_are_asked_about(tmp_path, at_once):
    session = open_tab(labelled_spaces(tmp_path), "Across datasets").change(
        "button_group", "domains.source", "session"
    )
    session.click("cross-domain.start")
    summary = session.at.dataframe[0].value.set_index("method")
    assert summary.loc["Procrustes", "other domain"] == summary.loc["Procrustes", "not stitched"]
    assert summary.loc["Procrustes", "pairs across"] == 2
    assert re.search(r"Accuracy on \*\*\d+\*\* test rows per domain", session.captions)
    assert "30 of this session's, by id" in session.captions


def test_a_session_without_labels_says_what_it_takes(make_workspace):
    workspace = make_workspace(60)
    session = open_tab(workspace.spaces, "Across datasets", anchors=workspace.anchors)
    session.change("button_group", "domains.source", "session")
    assert [
        info.value
        for info in session.info
        if info.value.startswith("This tab needs at least two labelled spaces")
    ]


def test_mnist_is_a_domain_only_where_the_data_folder_has_it(monkeypatch, tmp_path):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    assert domains.mnist_spec() is None
    assert domains.digits_spec("plain") == DatasetSpec("digits")
