"""Undo and redo belong to what the page shows."""

import pytest

from app.start.stars import RULERS, Stars
from tests.app.conftest import Session

MOVED = ("bread", *RULERS[1:])


def title(session):
    (found,) = (one.value for one in session.at.html if one.value.startswith("<h1"))
    return found.rpartition("<h2")[2].partition(">")[2].partition("<")[0]


def test_a_star_goes_back_and_comes_again_and_is_dragged_to_no_other_star():
    stars = Stars()
    stars.drag("food", "water")
    stars.drag("river", "bread")
    assert (stars.now, stars.past) == (RULERS, [])
    stars.drag("food", "bread")
    assert stars.now == MOVED
    stars.undo()
    assert (stars.now, stars.past, [name for name, _ in stars.future]) == (
        RULERS,
        [],
        ["move “food” to “bread”"],
    )
    stars.redo()
    assert (stars.now, stars.future) == (MOVED, [])
    stars.undo()
    stars.drag("water", "river")
    stars.redo()  # nothing: another drag took its place
    assert stars.now == ("food", "river", *RULERS[2:])


def test_an_action_before_undo_is_drawn_adds_no_step(make_session):
    session = make_session()
    before = session.workspace
    session.change("radio", "view.position", "relative")
    stale = session.find("radio", "view.position")._widget_state
    session.click("history.undo")
    assert (session.workspace, session.find("radio", "view.position").value) == (before, before.panes[0])
    # The browser's next message comes while the page still runs: it has the switch as it was before Undo.
    states = session.at._tree.get_widget_states()
    states.widgets.append(stale)
    session.at._run(states)
    assert session.workspace == before
    assert session.history.undo_step is None
    assert session.history.redo_step
    session.change("radio", "view.position", "relative")  # a choice of the user still counts
    assert session.workspace.panes[0] == "relative"


def test_in_the_story_undo_moves_the_star_and_takes_back_no_step_of_explore():
    stars = Stars()
    stars.drag("food", "bread")
    session = Session({"step": "3"}, place=None, state={"story.dragged": stars})
    session.history.edit("show shared axes", session.workspace.with_anchors(("river",)))
    session.run()
    workspace = session.workspace
    for verb, now in (("undo", RULERS), ("redo", MOVED), ("undo", RULERS)):
        session.click(f"history.{verb}")
        assert session.session_state["story.dragged"].now == now
        assert (session.workspace, session.query_params["step"]) == (workspace, "3")
    assert not session.can_undo
    session.change("button_group", "story.ruler", "words")  # shows no star
    assert not any(button.key == "history.redo" and not button.disabled for button in session.button)


@pytest.mark.parametrize(
    ("made_on", "kind", "key", "value", "undone_on", "leads_to"),
    [
        (("explore",), "number_input", "scores.k", 7, ("migrate", "Drift"), "Explore"),
        (("explore",), "number_input", "scores.k", 7, ("start",), "Explore"),
        (("explore",), "number_input", "scores.k", 7, ("data",), "Data"),
        (("connect", "Invert"), "selectbox", "invert.route", "within", ("research",), "Connect"),
    ],
)
def test_undo_opens_the_page_that_shows_the_step(
    make_session, made_on, kind, key, value, undone_on, leads_to
):
    session = make_session(place=made_on)
    before = session.workspace
    session.change(kind, key, value)
    assert session.workspace != before
    session.open(*undone_on).click("history.undo")
    assert (session.workspace, title(session)) == (before, leads_to)
    assert "Undone: " in session.html
    session.open(*undone_on).click("history.redo")
    assert (session.workspace != before, title(session)) == (True, leads_to)
