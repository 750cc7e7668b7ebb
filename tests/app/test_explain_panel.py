import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from app.plain_text import unbroken
from app.workspace import Workspace
from relcore.encoders.pictures import png_thumbnail
from relcore.figures.colorings import SELECTED_ROWS
from tests.app.conftest import Session, save_space

N = 600
CLASSES = np.array(["a", "b", "c", "d"])
PLACE = ("explore", "Why they differ")


def words_of(n):
    return np.array([f"w{row}{'ing' if row % 5 == 0 else 'x'}" for row in range(n)])


@pytest.fixture
def workspace(tmp_path):
    """Two spaces of 600 rows; the second gathers the 150 rows of class b."""
    rng = np.random.default_rng(0)
    labels = CLASSES[np.arange(N) % 4]
    first = rng.normal(size=(N, 8))
    second = first + 6 * np.eye(8)[0] * (labels == "b")[:, None]
    specs = [
        save_space(tmp_path / f"{name}.npz", vectors, labels=labels)
        for name, vectors in (("first", first), ("second", second), ("third", -first))
    ]
    anchors = tuple(f"r{row}" for row in range(12))
    return Workspace(tuple(specs), specs[0], specs[1], anchors)


@pytest.fixture
def session(workspace, ran_in_place):
    opened = Session(workspace=workspace, place=None)
    return opened.open(*PLACE)


def selection(session):
    return session.session_state["relscope.selection"]


def panes_of(session):
    """The header of what the panes got."""
    content = next(one.proto.bytes for one in session.get("bidi_component") if b"anchors" in one.proto.bytes)
    length = int(np.frombuffer(content[:4], dtype="<u4")[0])
    return json.loads(content[4 : 4 + length])


def assert_edges_join_examples_to_neighbours(session):
    """All 600 rows are drawn, in their order. Every fourth is of class b, from the second on."""
    header = panes_of(session)
    assert header["n"] == N
    first, second = header["edges"]
    assert len(first) == len(second) == 3 * 10
    assert {row for row, _, _ in first} == {row for row, _, _ in second}
    for row, neighbour, shares in (*first, *second):
        assert row % 4 == 1
        assert shares == (neighbour % 4 == 1)
    assert sum(shares for _, _, shares in second) > sum(shares for _, _, shares in first)


def test_a_reason_opens_and_its_rows_are_selected(session):
    assert not session.errors
    assert "class b" in session.text
    session.click("explain.open-0")
    of_b = tuple(f"r{row}" for row in range(1, N, 4))
    assert selection(session) == of_b
    lists = session.html.count('class="relscope-neighbours" data-pair')
    assert lists >= 3
    assert "has the feature" in session.html
    assert_edges_join_examples_to_neighbours(session)
    before = session.workspace.anchors
    session.click("explain.anchors")
    new = session.workspace.anchors[len(before) :]
    assert session.workspace.anchors[: len(before)] == before
    assert len(new) == 8
    assert set(new) <= set(of_b)
    session.click("explain.filter")
    (condition,) = session.workspace.look.filter
    assert (condition.column, condition.classes) == (SELECTED_ROWS, of_b)
    session.select()
    session.click("explain.select")
    assert selection(session) == of_b
    session.click("explain.open-0")
    assert selection(session) == ()
    assert not panes_of(session)["edges"]
    assert "explain.filter" not in session.keys


def test_a_third_model_has_a_bar_of_its_own(workspace, ran_in_place):
    third = workspace.spaces[2]
    session = Session(workspace=replace(workspace, others=(third,)), place=None).open(*PLACE)
    (row,) = [
        block.value
        for block in session.at.html
        if block.value.startswith('<div class="relscope-reason"><span')
    ][:1]
    assert row.count("<em>") == 3


def test_a_wrong_feature_is_refused_and_a_right_one_is_added_and_removed(session):
    session.change("button_group", "explain.own-kind", "matches:")
    session.change("text_input", "explain.own-text", "r[")
    assert any("expected a regular expression" in error for error in session.errors)
    assert not [key for key in session.keys if key and key.startswith("explain.own-matches")]
    session.change("text_input", "explain.own-text", "r.*7$")
    assert not session.errors
    assert "explain.own-matches:r.*7$" in session.keys
    assert "matches:r.*7$" in session.captions
    assert "explain.open-own-0" in session.keys  # the page shows its shares, although it is no reason
    session.change("text_input", "explain.own-text", "nowhere")
    assert "was not tested" in session.captions
    session.click("explain.own-matches:r.*7$")
    assert "matches:r.*7$" not in session.captions


def test_no_line_ends_after_the_hyphen_of_an_ending():
    shown = unbroken("words in -ing and a well-known un-")
    assert shown == "words in -\N{WORD JOINER}ing and a well-known un-"


def test_no_reason_is_an_answer(workspace, ran_in_place, tmp_path):
    rng = np.random.default_rng(1)
    labels = CLASSES[np.arange(N) % 4]
    common = rng.normal(size=(N, 8))
    specs = tuple(
        save_space(tmp_path / f"{name}.npz", common + 0.3 * rng.normal(size=(N, 8)), labels=labels)
        for name in ("one", "other")
    )
    given = replace(workspace, spaces=specs, source=specs[0], target=specs[1])
    session = Session(workspace=given, place=None).open(*PLACE)
    assert "No reason found among" in session.text
    assert "Too few rows" in session.text
    assert "explain.open-0" not in session.keys
    assert len(session.table_with("neighbours kept")) == 400


def test_few_rows_are_told_and_the_rows_that_changed_are_listed(make_session):
    session = make_session(60)
    session.open(*PLACE)
    assert not session.errors
    assert any("100" in one.value for one in session.at.info)
    session.click("explain.colour")
    assert session.workspace.view.color_by == "agreement"


def gathered_rows(folder, **items):
    """Two spaces of 400 rows, whose items are in a table; the second space gathers every fourth row."""
    rng = np.random.default_rng(2)
    first = rng.normal(size=(400, 6))
    second = first.copy()
    second[::4] += 8
    ids = [f"r{row}" for row in range(400)]
    table = folder / "items.parquet"
    parquet.write_table(pa.table({"id": ids, **items}), table)
    specs = [
        replace(save_space(folder / f"{name}.npz", rows), options=(("metadata", str(table)),))
        for name, rows in (("first", first), ("second", second))
    ]
    return Workspace(tuple(specs), *specs, tuple(ids[:12]))


def test_reasons_of_texts_are_words_and_their_examples_are_texts(tmp_path, ran_in_place):
    nouns = [("harbour", "mill", "orchard", "quarry")[row % 4] for row in range(400)]
    texts = [f"Number {row}: a {noun}." for row, noun in enumerate(nouns)]
    session = Session(workspace=gathered_rows(tmp_path, text=texts), place=None).open(*PLACE)
    assert not session.errors
    assert "harbour" in session.text
    session.click("explain.open-0")
    assert selection(session) == tuple(f"r{row}" for row in range(0, 400, 4))
    assert 'class="relscope-examples relscope-texts"' in session.html
    examples = session.html.partition('class="relscope-examples')[2]
    assert len(re.findall(r"<h4[^>]*>Number \d+: a harbour\.</h4>", examples)) == 3


def test_reasons_of_pictures_are_their_looks_and_their_examples_are_pictures(tmp_path, ran_in_place):
    red, blue = (png_thumbnail(Image.new("RGB", (8, 8), color), 8) for color in ("red", "blue"))
    pictures = [red if row % 4 == 0 else blue for row in range(400)]
    session = Session(workspace=gathered_rows(tmp_path, picture=pictures), place=None).open(*PLACE)
    assert not session.errors
    assert "pictures that are mostly red" in session.text
    session.click("explain.open-0")
    assert selection(session) == tuple(f"r{row}" for row in range(0, 400, 4))
    examples = session.html.partition('class="relscope-examples"')[2]
    assert examples.count("<img") >= 3
