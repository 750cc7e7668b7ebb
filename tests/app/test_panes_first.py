"""What the browser gets first: the picture, then its scores, then what to choose."""

import pytest
from streamlit.delta_generator import DeltaGenerator

from app import sidebar
from app.compare import choosers, headline
from app.components import linked_scatter


@pytest.fixture
def order(monkeypatch):
    """The parts of Compare in the order in which a run makes them, each once."""
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
    noted(sidebar, "_choosers", "sidebar")
    noted(choosers, "view_choosers", "above")
    return made


def test_a_first_visit_gets_the_panes_then_their_scores_then_the_choosers(order, make_session):
    make_session()
    assert order == ["panes", "scores", "headline", "sidebar", "above"]


def test_so_does_the_next_step(order, make_session):
    session = make_session()
    order.clear()
    session.change("number_input", "view.n_nearest", 20)
    assert order == ["panes", "scores", "headline", "sidebar", "above"]


def test_on_another_page_than_the_last_the_choosers_come_first(order, make_session):
    session = make_session().open("spaces")
    order.clear()
    session.open("compare")
    assert order == ["sidebar", "above", "panes", "scores", "headline"]


def test_where_scores_take_long_a_first_visit_gets_the_choosers_first_but_no_later_step(
    order, make_session, monkeypatch
):
    monkeypatch.setattr("app.compute.is_scored_quickly", lambda pair: False)
    session = make_session()
    assert order == ["sidebar", "above", "panes", "scores", "headline"]
    order.clear()
    session.change("number_input", "view.n_nearest", 20)
    assert order == ["panes", "sidebar", "above", "scores", "headline"]


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


def test_choosers_are_drawn_with_their_values_which_need_not_be_set_later(make_session):
    session = make_session()
    numbers = [one for one in session.number_input if one.key and one.key.startswith("sidebar.")]
    assert numbers, "the number of anchors, at least"
    assert [one.proto.default for one in numbers] == [one.value for one in numbers]
    assert len(session.selectbox) > 3
    chosen = [one for one in session.selectbox if one.key and one.key.startswith(("sidebar.", "choose."))]
    assert [one.proto.default for one in chosen] == [one.index for one in chosen]
    assert any(one.index for one in chosen), "none that begins with its first option could tell"
