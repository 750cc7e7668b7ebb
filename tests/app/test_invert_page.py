import re
from dataclasses import replace

import numpy as np
import pytest

from app.invert import inversions, maps
from app.workspace import OPENING_INVERSION
from relcore.base.numbers import short
from relcore.catalog.catalog import load
from relcore.invert.inversion import InversionSpec, invert_pair
from relcore.invert.recovery import error_edges, errors_to_color, nearest_before_and_after
from relcore.represent.translation import LeastSquares
from relcore.spaces.matching import match
from tests.app.conftest import Session


@pytest.fixture
def open_page(make_workspace):

    def make(tab="Rows", **changes):
        return Session(None, make_workspace(120, **changes), ("connect", "Invert"), {"invert.tab": tab})

    return make


def pair_of(session):
    return match(load(session.workspace.source), load(session.workspace.target))


def mean_cosines(session):
    (table,) = re.findall(r'relscope-report">.*?</table>', session.html)
    rows = [re.findall("<td.*?>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    return {row[0]: row[1] for row in rows}


def test_numbers_are_the_cores(open_page):
    spec = InversionSpec("within", "ridge")
    session = open_page(inversion=spec)
    found = invert_pair(pair_of(session), session.workspace.anchors, spec)
    assert mean_cosines(session) == {way: short(float(score)) for way, score in found.scores.items()}
    opening = f"{len(session.workspace.anchors)} anchors recover <b>"
    assert session.html.count(opening) == 1
    assert re.search(opening + r"\d+ %</b> of the rows \(95 %: \d+ % to \d+ %\)", session.html)
    table = next(frame.value for frame in session.dataframe if spec.title in frame.value)
    np.testing.assert_allclose(table[spec.title].max(), found.errors[spec.title][found.scored].max())


def test_auto_by_hand_and_as_published_are_steps(open_page):
    session = open_page(inversion=OPENING_INVERSION)
    found = invert_pair(pair_of(session), session.workspace.anchors, OPENING_INVERSION)
    session.change("segmented_control", "invert.tuned", False)
    assert session.workspace.inversion == found.spec  # settings by hand begin with those that were tuned
    assert session.select_slider(key="invert.ridge").value == found.spec.ridge
    session.click("invert.published")
    assert session.workspace.inversion == InversionSpec()
    assert "invert.published" not in session.keys
    session.click("history.undo").click("history.undo")
    assert session.workspace.inversion == OPENING_INVERSION


def test_classes_of_errors_are_those_of_the_method(open_page):
    spec = InversionSpec("within", "pruned")
    session = open_page(inversion=spec).change("selectbox", "invert.color", "error")
    former = session.session_state[maps._EDGES][1]
    session.change("segmented_control", "invert.method", "ridge")
    found = invert_pair(pair_of(session), session.workspace.anchors, session.workspace.inversion)
    edges = error_edges(found.errors[found.spec.title][found.scored])
    assert session.session_state[maps._EDGES][1] == edges != former
    session.change("select_slider", "invert.ridge", 1000.0)  # the edges stay, so that colours can be compared
    assert session.session_state[maps._EDGES][1] == edges


def test_colours_show_the_errors_nearby_at_first(open_page):
    session = open_page(inversion=InversionSpec("forward", "ridge"))
    found = invert_pair(pair_of(session), session.workspace.anchors, session.workspace.inversion)
    edges = error_edges(errors_to_color(found, "nearby")[found.scored])
    assert session.session_state[maps._EDGES][1] == edges


def test_the_number_of_anchors_is_one_step(open_page):
    session = open_page(inversion=OPENING_INVERSION)
    before = session.workspace.anchors
    session.change("select_slider", "invert.anchors", 50)
    assert len(session.workspace.anchors) == 50
    assert session.select_slider(key="invert.anchors").value == 50
    session.click("history.undo")
    assert session.workspace.anchors == before


def test_a_number_of_auto_that_is_moved_is_set_by_hand(open_page):
    session = open_page(inversion=OPENING_INVERSION)
    found = invert_pair(pair_of(session), session.workspace.anchors, OPENING_INVERSION)
    assert session.select_slider(key="invert.ridge").value == found.spec.ridge
    session.change("select_slider", "invert.ridge", 1000.0)
    assert session.workspace.inversion == replace(found.spec, ridge=1000.0)
    session.click("history.undo")
    assert session.workspace.inversion == OPENING_INVERSION


def test_a_selected_row_has_its_nearest_rows_before_and_after(open_page):
    session = open_page(inversion=InversionSpec("forward", "ridge"))
    pair = pair_of(session)
    found = invert_pair(pair, session.workspace.anchors, session.workspace.inversion)
    position = int(np.flatnonzero(found.scored)[5])
    session.select(str(pair.ids[found.rows[position]]))
    before, after = nearest_before_and_after(found, position, 8)
    lists = re.findall(r"<ol>(.*?)</ol>", session.html)
    shown = [re.findall("<b>(.*?)</b>", one) for one in lists]
    for rows, _ in (before, after):
        assert [str(one) for one in pair.ids[found.rows[rows]]] in shown


def test_a_slider_is_one_step_and_fits_no_map_again(open_page, monkeypatch):
    fitted = []
    fit = LeastSquares.fit
    monkeypatch.setattr(LeastSquares, "fit", lambda *of: fitted.append(1) or fit(*of))
    before = InversionSpec("forward", "pruned", 3)
    for of_other_tests in (inversions.paired_rows, inversions.inversion_of):
        of_other_tests.clear()
    session = open_page(inversion=before)
    n_fitted = len(fitted)
    for delta in (0.4, 0.31):
        session.change("slider", "invert.delta", delta)
    assert session.workspace.inversion == replace(before, delta=0.31)
    assert len(fitted) == n_fitted > 0
    session.click("history.undo")
    assert session.workspace.inversion == before
