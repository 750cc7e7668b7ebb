"""All pairs on the page: at once where it is quick, by a job where it is not, and from a cell to its pair."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app import results
from app.compare import all_pairs
from app.plain_text import plain
from relcore.catalog.catalog import load
from relcore.compare.all_pairs import AllPairs
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
    """The figure as the browser gets it, and its key."""
    (chart,) = (element for element in session.main if element.type == "plotly_chart")
    return json.loads(chart.proto.spec) | {"id": chart.proto.id}


def numbers(session: Session) -> np.ndarray:
    points = heat_map(session)["data"][-1]
    shown = [text.split("<br>")[1].rpartition(": ")[2] for text in points["hovertext"]]
    n = int(np.sqrt(len(shown)))
    return np.array(
        [float(text.split()[0].replace("−", "-")) if text[0] in "−.0123456789" else np.nan for text in shown]
    ).reshape(n, n)


def test_two_spaces_are_told_how_to_become_more(make_session):
    session = make_session()
    assert "Add a third one on the Spaces page" in session.captions
    assert not [element for element in session.main if element.type == "plotly_chart"]


@pytest.mark.parametrize("metric", ["relative cosine", "mutual knn"])
def test_each_score_is_the_cores(make_four, metric):
    session = make_four().change("radio", "all-pairs.metric", metric)
    now = session.workspace
    settings = {"anchors": now.anchors, "projection": now.projection, "k": now.k, "n_queries": 300}
    expected = AllPairs(metric, **settings).run([load(spec) for spec in now.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)
    assert np.isnan(expected.values).sum() == 6 + (metric == "relative cosine")
    assert f"{100 if metric == 'relative cosine' else 120} rows, paired by id" in session.captions
    assert ("by id for their k = 10 nearest" in session.captions) == (metric == "mutual knn")
    assert "Hatched cells cannot be compared" in session.captions


def test_similar_spaces_are_grouped(make_four):
    session = make_four()
    given = heat_map(session)["layout"]["yaxis"]["ticktext"]
    assert given == ["first120", "second120", "wide", "stranger"]
    grouped = heat_map(session.change("toggle", "all-pairs.grouped", True))["layout"]["yaxis"]["ticktext"]
    assert {name.split()[0] for name in grouped} == {name.split()[0] for name in given}
    assert "stranger" in grouped[0] + grouped[-1]


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
    assert session.button(key="all-pairs.start").label.startswith("Compare 6 pairs · about")
    session.click("all-pairs.start")
    assert ran_in_place == ["All pairs, mutual kNN"]
    expected = AllPairs("mutual knn", k=9).run([load(spec) for spec in session.workspace.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)


def test_relative_scores_without_anchors_say_what_to_do(make_four):
    session = make_four(anchors=()).change("radio", "all-pairs.metric", "relative cosine")
    assert [info.value for info in session.info if info.value.startswith("No anchors yet")]


def test_a_space_that_is_gone_is_left_out_and_the_others_are_compared(make_four, tmp_path):
    session = make_four()
    (tmp_path / "wide.npz").unlink()
    session.run()
    assert [warning.value for warning in session.warning if warning.value.startswith("wide is left out")]
    assert numbers(session).shape == (3, 3)


def test_source_and_target_are_swapped_in_one_step(make_session):
    session = make_session()
    source, target = session.workspace.source, session.workspace.target
    session.click("choose.swap")
    assert (session.workspace.source, session.workspace.target) == (target, source)
    assert session.history.undo_step == "swap source and target"
    session.click("history.undo")
    assert session.workspace.source == source


def test_a_long_name_stands_whole_beside_its_chooser(make_workspace, tmp_path):
    workspace = make_workspace()
    long = save_space(tmp_path / ("a-name-" * 12 + "end.npz"), np.random.default_rng(2).normal(size=(120, 6)))
    session = Session(workspace=make_workspace(spaces=(*workspace.spaces, long), target=long))
    assert session.selectbox(key="choose.target").help == plain(long.name)


@pytest.mark.parametrize("page", ["compare", "anchors", "spaces"])
def test_every_page_has_one_first_heading_and_skips_no_level(make_session, page):
    session = make_session().open(page)
    assert session.html.count("<h1") == 1
    assert f'<h2 class="relscope-unseen">{page.capitalize()}</h2>' in session.html
    assert not session.title
    assert not session.header
