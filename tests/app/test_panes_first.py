from dataclasses import replace

import numpy as np
import pytest
from streamlit.delta_generator import DeltaGenerator

from app import toolbar
from app.compare import choosers, headline
from app.components import linked_scatter
from app.workspace import History


@pytest.fixture
def order(monkeypatch):
    made = []

    def noted(owner, name, what, text=""):
        function = getattr(owner, name)

        def make(*given, **settings):
            if what not in made and (not text or text in given[-1]):
                made.append(what)
            return function(*given, **settings)

        monkeypatch.setattr(owner, name, make)

    noted(linked_scatter, "_mount", "panes")
    noted(headline, "scores_of", "scores")
    noted(DeltaGenerator, "html", "headline", text="relscope-details")
    noted(toolbar, "space_choosers", "toolbar")
    noted(choosers, "switch", "above")
    return made


def test_a_first_visit_gets_the_panes_then_their_scores_then_the_choosers(order, make_session):
    make_session()
    assert order == ["panes", "scores", "headline", "toolbar", "above"]


@pytest.fixture
def drawn(monkeypatch):
    """Each scene that the panes got, with the places of its selected rows."""
    drawn = []
    monkeypatch.setattr(
        "app.panes.linked_scatter", lambda scene, **given: drawn.append((scene, given["selected"]))
    )
    return drawn


def test_all_of_few_anchors_are_drawn_and_of_many_those_in_the_view(make_session, drawn):
    session, ids = make_session(), tuple(f"r{row}" for row in range(21))
    views = {}
    for n in (21, 20):
        workspace = replace(session.workspace, anchors=ids[:n], anchors_from="")
        session.at.session_state["relscope.history"] = History(workspace)
        session.run()
        views[n] = drawn[-1][0]
    lacking = {*ids} - {*views[21].ids}
    assert len(views[21].anchors) == 21 - len(lacking) < 20
    assert {views[20].ids[place] for place in views[20].anchors} == {*ids[:20]}
    assert {*views[20].ids} - {*views[21].ids} == lacking - {ids[20]}


def test_a_selected_row_that_is_not_among_the_drawn_ones_is_drawn_and_the_others_stay(make_session, drawn):
    session = make_session()
    (before, _), missing = drawn[-1], sorted({f"r{row}" for row in range(120)} - set(drawn[-1][0].ids))
    assert missing
    session.select(missing[0], str(before.ids[0]))
    scene, selected = drawn[-1]
    assert {*scene.ids} == {*before.ids, missing[0]}
    assert {*scene.ids[selected]} == {missing[0], before.ids[0]}
    assert scene.coloring(0).categories[list(scene.ids).index(missing[0])] == -1
    kept = np.isin(scene.ids, before.ids)
    for now, then in zip(scene.panes, before.panes, strict=True):
        assert np.array_equal(now.coordinates[kept], then.coordinates)
        assert np.abs(now.coordinates).max() < 3 * np.abs(then.coordinates).max()
    session.change("selectbox", "view.color_by", "agreement")
    assert missing[0] in drawn[-1][0].ids
    session.select()
    assert missing[0] not in drawn[-1][0].ids


def test_after_an_unexpected_error_the_last_step_can_be_undone(make_session, monkeypatch):
    session = make_session()
    session.change("number_input", "view.n_nearest", 20)

    def fail(pair):
        raise RuntimeError("unexpected")

    with monkeypatch.context() as broken:
        broken.setattr("app.compute.is_scored_quickly", fail)
        session.at.run()
    assert [error.message for error in session.at.exception] == ["unexpected"]
    session.click("history.undo")
    assert session.workspace.view.n_nearest != 20
