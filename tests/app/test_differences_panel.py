"""Where do they differ: the planted class is named on the page, its rows can be selected, and the figure
can be exported.
"""

from __future__ import annotations

import numpy as np
import pytest

from app.workspace import Workspace
from relcore.catalog.catalog import SpaceSpec
from relcore.maps.views import ViewSpec
from tests.app.conftest import Session

SIZE, CLASSES = 40, 4


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A session on two spaces with labels, in which class 2 is shuffled in the target."""
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(CLASSES), SIZE)
    source = 4 * rng.normal(size=(CLASSES, 6))[number] + rng.normal(size=(len(number), 6))
    target = source + 0.2 * rng.normal(size=source.shape)
    rows = np.flatnonzero(number == 2)
    target[rows] = target[rng.permutation(rows)]
    specs = []
    for name, vectors in (("s", source), ("t", target)):
        path = tmp_path / f"{name}.npz"
        labels = np.array([f"class *{one}*" for one in number])
        np.savez(path, vectors=vectors, ids=[f"r{row}" for row in range(len(vectors))], labels=labels)
        specs.append(SpaceSpec("file", str(path)))
    view = ViewSpec((), everything=True, color_by="labels")
    return Session(
        workspace=Workspace(tuple(specs), *specs, tuple(f"r{row}" for row in range(0, 160, 8)), view=view)
    )


def test_the_planted_class_is_first_and_can_be_selected(planted, ran_in_place):
    session = planted
    session.at.session_state["compare.differences"] = "Classes and clusters"
    session.run()
    assert not session.errors
    assert "1 of 4 classes moved more than chance" in session.html
    assert "First: class *2*." in session.html
    table = session.table("differences.table")
    assert table.group[0] == "class *2*"
    assert table.p[0] == "< .001"
    session.click("differences.select")
    assert session.at.session_state["relscope.selection"] == tuple(f"r{row}" for row in range(80, 120))
    assert "Nearest anchors" in session.captions
    session.click("differences.anchors")
    assert {int(one[1:]) // SIZE for one in session.at.session_state["relscope.selection"][:1]} == {2}


def test_clusters_of_the_relative_spaces_are_compared_too(planted, ran_in_place):
    session = planted
    session.at.session_state["compare.differences"] = "Classes and clusters"
    session.run().change("button_group", "differences.form-3", "relative").change(
        "button_group", "differences.groups-2", "clusters"
    )
    assert not session.errors
    assert "clusters moved more than chance" in session.html
    assert "relative spaces, without anchors" in session.captions
