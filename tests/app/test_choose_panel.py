"""The tab Choose: the answer by labels, and blind judging until it stops."""

import re
from dataclasses import replace

import numpy as np
import pytest

from app.workspace import Workspace
from tests.app.conftest import Session, save_space

N = 120
CLASSES = np.arange(N) % 6
PLACE = ("migrate", "Choose")
READABLE = "a sentence with number "


@pytest.fixture
def workspace(tmp_path):
    """Two models of 120 rows: the first gathers the classes, the second has random rows."""
    rng = np.random.default_rng(0)
    good = np.eye(6)[CLASSES] + 0.05 * rng.normal(size=(N, 6))
    poor = rng.normal(size=(N, 6))
    labels = np.array(list("abcdef"))[CLASSES]
    specs = [
        save_space(tmp_path / f"{name}.npz", vectors, READABLE, labels=labels)
        for name, vectors in (("good", good), ("poor", poor))
    ]
    return Workspace(tuple(specs), *specs, tuple(f"{READABLE}{row}" for row in range(12)))


def test_labels_say_which_model_is_best(workspace, ran_in_place):
    session = Session(workspace=workspace, place=None).open(*PLACE)
    assert not session.errors
    assert "good is best" in session.html
    session.click("choose.data")
    assert session.at.session_state["data.kind"] == "Texts"


def test_a_person_judges_until_the_comparison_stops(workspace, ran_in_place):
    session = Session(workspace=workspace, place=None).open(*PLACE)
    session.change("button_group", "choose.judge", "blind")
    assert "No answer yet: 0 judged queries" in session.html
    keys = [one.key for one in session.at.main if getattr(one, "key", "")]
    assert keys.index("choose.next-0") < keys.index("choose.row-0-0")  # in sight above many rows
    for number in range(40):
        if f"choose.next-{number}" not in session.keys:
            break
        for box in session.at.checkbox:
            if box.key.startswith(f"choose.row-{number}-"):
                box.set_value(True)
        session.click(f"choose.next-{number}")
    assert number >= 10
    assert "No answer yet" not in session.html
    session.click("choose.back")
    assert not session.errors


@pytest.mark.parametrize("prefix", ["", "row "])
def test_rows_without_anything_to_read_are_not_asked_about(tmp_path, ran_in_place, prefix):
    rows = np.random.default_rng(0).normal(size=(N, 6))
    specs = [save_space(tmp_path / f"{name}.npz", rows, prefix) for name in ("one", "two")]
    session = Session(workspace=Workspace(tuple(specs), *specs), place=None).open(*PLACE)
    assert any("nobody can judge them by reading" in info.value for info in session.at.info)
    assert not session.at.checkbox
    assert "choose.texts" in session.keys


def test_one_model_asks_for_more(workspace, ran_in_place):
    session = Session(workspace=workspace, place=None).open(*PLACE)
    session.find("multiselect", "choose.models").set_value(workspace.spaces[:1])
    session.run()
    assert any("Choose two models or more" in info.value for info in session.at.info)


def test_the_example_says_that_it_is_one_and_names_models_as_its_answer_does(ran_in_place):
    """Before, nothing on the page told the example from own data, and the chips had the name of the data."""
    session = Session(place=None).open(*PLACE)
    assert "An example, not your data" in session.captions
    chosen = session.find("multiselect", "choose.models")
    assert len(chosen.value) == 3
    assert "MiniLM layer 6" in chosen.options
    assert "<strong>MiniLM layer 6 is best" in session.html
    assert "choose.example" not in session.keys


def test_a_session_whose_file_is_gone_leads_to_the_example(workspace, tmp_path, ran_in_place):
    """Before, the page showed an error and no way to the example."""
    for path in tmp_path.glob("poor*"):
        path.unlink()
    session = Session(workspace=workspace, place=None).open(*PLACE)
    assert "An example, not your data" not in session.captions
    session.click("choose.example")
    assert "An example, not your data" in session.captions
    session.click("choose.own")
    assert "choose.example" in session.keys


def test_all_models_of_the_same_rows_are_compared(workspace, tmp_path, ran_in_place):
    """Before, only the pair was chosen, and a third model had to be found in the list."""
    third = save_space(tmp_path / "third.npz", np.random.default_rng(1).normal(size=(N, 6)), READABLE)
    stranger = save_space(tmp_path / "stranger.npz", np.random.default_rng(2).normal(size=(N, 6)), "other ")
    spaces = (*workspace.spaces, third, stranger)
    session = Session(workspace=replace(workspace, spaces=spaces), place=None).open(*PLACE)
    assert session.find("multiselect", "choose.models").value == [*workspace.spaces, third]


def test_an_undecided_answer_is_a_whole_sentence_also_with_colons_in_names(tmp_path, ran_in_place):
    """The numbers are set apart from the answer, at the name of the measure and not at the first colon."""
    rng = np.random.default_rng(0)
    labels = np.array(list("abcdef"))[CLASSES]
    specs = [
        save_space(tmp_path / f"{name}.npz", rng.normal(size=(N, 6)), READABLE, labels=labels)
        for name in ("a: one", "b: two")
    ]
    session = Session(workspace=Workspace(tuple(specs), *specs), place=None).open(*PLACE)
    (lead,) = re.findall(r'relscope-lead"><strong>(.*?)</strong> <small>(.*?)</small>', session.html)
    assert re.fullmatch(r"Undecided after .* queries; .*[ab]: (one|two) leads\.", lead[0])
    assert lead[1].startswith("nDCG@5 ")
