"""All pairs on the page: at once where it is quick, by a job where it is not, and from a cell to its pair."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app import results
from app.compare import all_pairs
from relcore.catalog.catalog import load
from relcore.compare.scoring import AllPairs
from tests.app.conftest import Session, save_space


@pytest.fixture
def make_four(make_workspace, tmp_path):
    """``make_four(**changes) -> Session`` on four spaces: a space and its noisy copy, one wider, one of
    other ids.
    """

    def make(**changes) -> Session:
        workspace, rng = make_workspace(120), np.random.default_rng(1)
        wide = save_space(
            tmp_path / "wide.npz", np.c_[load(workspace.source).vectors, rng.normal(size=(120, 3))]
        )
        stranger = save_space(tmp_path / "stranger.npz", rng.normal(size=(120, 6)), prefix="q")
        return Session(workspace=make_workspace(120, spaces=(*workspace.spaces, wide, stranger), **changes))

    return make


def heat_map(session: Session) -> dict:
    (chart,) = (element for element in session.main if element.type == "plotly_chart")
    return json.loads(chart.proto.spec) | {"id": chart.proto.id}


def numbers(session: Session) -> np.ndarray:
    points = heat_map(session)["data"][-1]
    shown = [text.split("<br>")[1].rpartition(": ")[2] for text in points["hovertext"]]
    n = int(np.sqrt(len(shown)))
    return np.array(
        [float(text.split()[0].replace("−", "-")) if text[0] in "−.0123456789" else np.nan for text in shown]
    ).reshape(n, n)


def test_each_score_is_the_cores(make_four):
    session = make_four().change("radio", "all-pairs.metric", "relative cosine")
    now = session.workspace
    settings = {"anchors": now.anchors, "projection": now.projection, "k": now.k, "n_queries": 300}
    expected = AllPairs("relative cosine", **settings).run([load(spec) for spec in now.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)
    assert np.isnan(expected.values).sum() == 7


def test_a_cell_is_its_row_and_its_column(make_four):
    session = make_four()
    drawn = session.workspace.spaces
    cells = [{"customdata": names} for names in heat_map(session)["data"][-1]["customdata"]]
    found = [all_pairs.pair_of([cell], drawn) for cell in cells]
    first, second, wide, stranger = session.workspace.spaces
    assert found[1] == (first, second)
    assert found[11] == (wide, stranger)
    assert [index for index, pair in enumerate(found) if pair is None] == [0, 5, 10, 15]
    assert all_pairs.pair_of([], drawn) is None


def test_what_takes_long_is_a_job_that_is_asked_for_first(make_four, ran_in_place, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)
    # An engine serves all sessions of a process, and its store has what other tests computed: no other asks
    # for this k.
    session = make_four(k=9).change("radio", "all-pairs.metric", "mutual knn")
    assert ran_in_place == []
    session.click("all-pairs.start")
    assert ran_in_place == ["All pairs, mutual kNN"]
    expected = AllPairs("mutual knn", k=9).run([load(spec) for spec in session.workspace.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)


def test_a_space_that_is_gone_is_left_out_and_the_others_are_compared(make_four, tmp_path):
    session = make_four()
    (tmp_path / "wide.npz").unlink()
    session.run()
    assert [warning.value for warning in session.warning if warning.value.startswith("wide is left out")]
    assert numbers(session).shape == (3, 3)
