"""The Invert page: the core's numbers, choices that can be undone, and what cannot be inverted said with
the way out.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from app.workspace import (
    OPENING_INVERSION,
    Workspace,
    from_query,
    from_session_file,
    to_query,
    to_session_file,
)
from relcore.base.numbers import short
from relcore.catalog.catalog import load
from relcore.invert.recovery import InversionSpec, invert_pair
from relcore.spaces.space import match
from tests.app.conftest import Session, save_space


@pytest.fixture
def open_page(make_workspace):
    """``open_page(tab, **changes) -> Session`` on the Invert page."""

    def make(tab: str = "Rows", **changes) -> Session:
        session = Session(workspace=make_workspace(120, **changes))
        session.at.session_state["invert.tab"] = tab
        return session.open("invert")

    return make


def pair_of(session: Session):
    return match(load(session.workspace.source), load(session.workspace.target))


def charts(session: Session) -> list[dict]:
    return [json.loads(element.proto.spec) for element in session.main if element.type == "plotly_chart"]


def mean_cosines(session: Session) -> dict[str, str]:
    table = next(block for block in session.html.split("<table") if 'relscope-inversion"' in block)
    rows = [row for row in table.split("</table>")[0].split("<tr") if "<b>" in row]
    return {row.split("<th>")[1].split("<small>")[0]: row.split("<b>")[1].split("</b>")[0] for row in rows}


@pytest.mark.parametrize(
    "spec", [InversionSpec(), InversionSpec("within", "ridge"), InversionSpec("backward", delta=0.3)]
)
def test_numbers_are_the_cores(open_page, spec):
    session = open_page(inversion=spec)
    found = invert_pair(pair_of(session), session.workspace.anchors, spec)
    assert mean_cosines(session) == {way: short(float(score)) for way, score in found.scores.items()}
    assert f"{found.rank} of 6" in session.html
    assert "chance" in session.html
    assert "A matrix W, 6 × 6" in session.captions


def test_each_choice_is_a_step_that_undo_takes_back(open_page):
    session = open_page()
    session.change("number_input", "invert.delta", 0.3).change("number_input", "invert.omega", 4)
    session.change("selectbox", "invert.route", "backward")
    assert session.workspace.inversion == InversionSpec("backward", omega=4, delta=0.3)
    assert session.history.undo_step == "invert target → source"
    session.click("history.undo").click("history.undo")
    assert session.workspace.inversion == InversionSpec(delta=0.3)
    assert session.number_input(key="invert.omega").value == 8


def test_only_the_settings_of_the_method_are_offered(open_page):
    keys = {one.key for one in open_page(inversion=InversionSpec(method="whitened")).number_input}
    assert "invert.ridge" in keys
    assert not {"invert.delta", "invert.omega", "invert.random_state"} & keys


def test_worst_and_best_rows_are_in_order_and_select_in_the_panes(open_page):
    session = open_page()
    worst, best = (session.table(f"invert.{name}") for name in ("worst", "best"))
    assert (np.diff(worst["inverse, pruned"]) <= 1e-9).all()
    assert (np.diff(best["inverse, pruned"]) >= -1e-9).all()
    found = invert_pair(pair_of(session), session.workspace.anchors, InversionSpec())
    assert worst["id"].iloc[0] == f"r{np.argmax(found.errors['inverse, pruned'])}"
    session.select("r5", "r7")
    assert "2 selected" in session.html


def test_errors_of_every_way_are_one_histogram(open_page):
    (figure,) = charts(open_page())
    assert {trace["name"] for trace in figure["data"]} == {
        "inverse, pruned",
        "Procrustes",
        "least squares",
        "absolute copy",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchors": ("r0",)}, "anchors: expected two or more"),
        (
            {"inversion": InversionSpec(delta=1.0)},
            "delta: expected a distance at which two or more anchors stay",
        ),
    ],
)
def test_what_cannot_be_inverted_is_said_and_the_page_stays(open_page, changes, message):
    session = open_page(**changes)
    assert any(message in error for error in session.errors)
    session.change("selectbox", "invert.route", "within")
    assert session.workspace.inversion.route == "within"


def test_without_anchors_the_page_says_where_they_come_from(open_page):
    session = open_page(anchors=())
    assert any(info.value.startswith("No anchors yet") for info in session.info)
    assert not session.errors


def test_few_anchors_warn_of_what_is_lost(open_page):
    session = open_page(anchors=("r0", "r1", "r2"), inversion=InversionSpec(delta=0.0))
    assert any("Only 3 of 6 directions can be recovered" in warning.value for warning in session.warning)


def test_spaces_without_shared_rows_leave_the_page_usable(make_workspace, tmp_path):
    stranger = save_space(
        tmp_path / "stranger.npz", np.random.default_rng(3).normal(size=(50, 6)), prefix="q"
    )
    workspace = make_workspace(120)
    session = Session(workspace=make_workspace(spaces=(*workspace.spaces, stranger), target=stranger))
    session.open("invert")
    asked = [
        one for one in session.at.subheader if one.value == "How are the rows of these two spaces paired?"
    ]
    assert asked
    session.change("selectbox", "choose.target", workspace.target)
    assert not session.errors


def test_a_new_session_opens_on_whitened_with_numbers_chosen_by_held_out_anchors():
    session = Session().open("invert")
    assert session.workspace.inversion == OPENING_INVERSION
    found = invert_pair(pair_of(session), session.workspace.anchors, OPENING_INVERSION)
    scores = {name: float(score) for name, score in found.scores.items()}
    assert scores["inverse, whitened, ours"] > scores["Procrustes"]
    assert mean_cosines(session) == {name: short(score) for name, score in scores.items()}
    assert f"{found.spec.settings()}, auto" in session.html
    assert f"the best of {found.choice.n_tried} settings on 75 held-out anchors" in session.html
    assert not [one for one in session.number_input if one.key.startswith("invert.")]


def test_auto_by_hand_and_as_published_are_steps(open_page):
    session = open_page(inversion=OPENING_INVERSION)
    found = invert_pair(pair_of(session), session.workspace.anchors, OPENING_INVERSION)
    session.change("segmented_control", "invert.tuned", False)
    assert session.workspace.inversion == found.spec  # by hand one begins with what was chosen
    assert session.number_input(key="invert.ridge").value == found.spec.ridge
    session.click("invert.published")
    assert session.workspace.inversion == InversionSpec()
    assert "invert.published" not in [button.key for button in session.button]
    session.click("history.undo").click("history.undo")
    assert session.workspace.inversion == OPENING_INVERSION


def test_a_link_without_inversion_opens_as_it_always_did_and_an_empty_address_as_new():
    assert Session({"k": "7"}).workspace.inversion == InversionSpec()
    fresh = Session().workspace
    assert to_query(fresh)["inverse"] == "auto"
    assert from_query(to_query(fresh), Workspace()).inversion == OPENING_INVERSION


@pytest.mark.parametrize(
    "spec", [OPENING_INVERSION, InversionSpec("within", "pruned", 4, 0.65, 2.5, 3, tuned=True)]
)
def test_auto_travels_in_the_session_file_and_the_link(spec):
    workspace = Workspace(inversion=spec)
    assert from_session_file(to_session_file(workspace, {}))[0] == workspace
    assert from_query(to_query(workspace), Workspace()) == workspace


@pytest.mark.parametrize(
    "text", ["", "within", "up,pruned,8,0.7,1,0", "forward,pruned,0,0.7,1,0", "forward,pruned,8,nan,1,0", "²"]
)
def test_a_mangled_link_leaves_inversion_as_it_was(text):
    assert from_query({"inverse": text}, Workspace()) == Workspace()
