"""What the Compare page says first, and what the sidebar shows beside it."""

import re

import numpy as np
import pytest

from app.workspace import Workspace
from tests.app.conftest import Session, save_space


@pytest.fixture
def classes(tmp_path):
    """Two spaces of 90 rows in three classes; the second is the first turned, with noise and in as many
    dimensions.
    """
    rng = np.random.default_rng(6)
    labels = np.arange(90) % 3
    first = 3 * rng.normal(size=(3, 5))[labels] + rng.normal(size=(90, 5))
    turned = first @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.3 * rng.normal(size=(90, 5))
    names = np.array(["ant", "bee", "cat"])[labels]
    return [
        save_space(tmp_path / f"{name}.npz", rows, labels=names)
        for name, rows in (("first", first), ("turned", turned))
    ]


def headline(session):
    return re.search(r'<p class="relscope-lead">(.*?)</p>', session.html)[1]


def test_rows_with_classes_are_first_told_by_class_agreement(classes):
    anchors = tuple(f"r{row}" for row in range(15))
    told = headline(Session(workspace=Workspace(tuple(classes), *classes, anchors, k=5)))
    assert "do the 5 nearest neighbours of a row in the other space have mostly its class" in told
    agreement = {
        form: float(value)
        for form, value in re.findall(r"(absolute|relative|whitened) <b>([\d.]+)</b>", told)[:3]
    }
    assert agreement["relative"] > 0.8
    assert re.search(r"chance level \.\d{3}\. Mean reciprocal rank of the row itself: relative <b>", told)
    assert "all 75 held-out rows" in told


def test_one_anchor_and_one_neighbour_are_singular(classes):
    told = headline(Session(workspace=Workspace(tuple(classes), *classes, ("r3",), k=1)))
    assert "with 1 anchor, all 89 held-out rows" in told
    assert "does the nearest neighbour of a row in the other space have its class?" in told


@pytest.mark.parametrize("page", ["stitch", "studies", "papers"])
def test_pages_with_their_own_choosers_have_no_other_choosers_beside_them(classes, page):
    session = Session(workspace=Workspace(tuple(classes), *classes, ("r3", "r4"), k=5))
    assert {box.key for box in session.sidebar.selectbox} >= {"choose.source", "choose.target"}
    assert "90 rows" in session.sidebar.caption[-1].value
    session.open(page)
    assert not session.errors
    assert not session.sidebar.selectbox
    assert not session.sidebar.number_input
    assert {button.key for button in session.sidebar.button} >= {"history.undo", "history.redo"}
    assert "90 rows" not in session.sidebar.caption[-1].value
