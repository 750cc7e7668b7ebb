"""The filter of Explore: in the link, in the session and in scores on request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app import compute
from app.session import reduce
from app.workspace import Workspace, from_query, from_session_file, to_query, to_session_file
from relcore.compare.scene import MapLook
from relcore.figures.scene import Condition
from relcore.scores.comparison import score_pair
from relcore.spaces.split import Split
from tests.app.conftest import Session, save_space

FILTER = (Condition("labels", ("a",)), Condition("source norm", low=0.5))


@pytest.fixture
def workspace(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    labels = np.array(["a", "b", "c"])[np.arange(90) % 3]
    first = save_space(tmp_path / "first.npz", X, labels=labels)
    second = save_space(tmp_path / "second.npz", X + 0.3 * rng.normal(size=(90, 6)), labels=labels)
    anchors = tuple(f"r{row}" for row in range(8))
    return Workspace((first, second), first, second, anchors, look=MapLook(filter=FILTER[:1]))


def test_a_filter_is_in_the_link_and_in_the_session(workspace):
    filtered = replace(workspace, look=MapLook(filter=FILTER))
    assert from_query(to_query(filtered), workspace).look.filter == FILTER
    assert from_session_file(to_session_file(filtered, {}))[0] == filtered
    assert "filter" not in to_query(replace(workspace, look=MapLook()))
    assert from_query({"filter": '[{"column": 3}]'}, workspace) == workspace


def test_rows_in_the_filter_are_scored_among_each_other_on_request(workspace):
    session = Session(workspace=workspace)
    assert session.workspace.look.filter == workspace.look.filter
    session.change("toggle", "scores.filter", True)
    assert "Rows in the filter (labels: a): 27 that are no anchors" in session.captions
    pair = compute.matched(workspace.source, workspace.target)
    score = compute.live_scores(
        compute.filtered(pair, workspace), "relative", workspace.anchors, workspace.projection, 10, "paper"
    )
    kept = np.flatnonzero(
        (np.arange(90) % 3 == 0) & (np.arange(90) >= 8)
    )  # of 30 rows, 0, 3 and 6 are anchors
    assert score["jaccard"].n == len(kept) == 27
    made = compute.represent(pair, "relative", workspace.anchors, workspace.projection)
    split = Split.held_out(pair.ids[kept], [])
    expected = score_pair(*(rows[kept] for rows in made), split, k=10, metrics=("mrr",))["mrr"]
    assert float(score["mrr"]) == pytest.approx(
        float(expected), abs=0.05
    )  # the mean row is that of fewer rows


def test_other_spaces_have_no_filter_and_a_session_brings_its_own(workspace):
    other = replace(workspace, source=workspace.target, target=workspace.source)
    assert reduce(workspace, other).look.filter == ()
    brought = replace(other, look=MapLook(filter=FILTER))
    assert reduce(workspace, brought).look.filter == FILTER
