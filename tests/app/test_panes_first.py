"""What the browser gets first: the picture, then its scores, then what to choose."""

import pytest
from streamlit.delta_generator import DeltaGenerator

from app import toolbar
from app.compare import choosers, headline
from app.components import linked_scatter


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
    noted(DeltaGenerator, "html", "headline", text="relscope-lead")
    noted(toolbar, "space_choosers", "toolbar")
    noted(choosers, "switch", "above")
    return made


def test_a_first_visit_gets_the_panes_then_their_scores_then_the_choosers(order, make_session):
    make_session()
    assert order == ["panes", "scores", "headline", "toolbar", "above"]


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
