"""Tags: rows that the user names, as columns of Explore, of its exports and of the session."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from app import compute
from app.compare.selected_rows import _table
from app.workspace import MOST_TAGGED, MOST_TAGS, Workspace, from_session_file, settled_tags
from relcore.base.errors import SpaceError
from relcore.compare.columns import cells_in
from relcore.compare.pictures import exportable
from relcore.figures.colorings import Condition
from tests.session_files import to_session_file

TAG = {"inspector.tag": True, "selection.tag": True}


def tag(page, name, menu="selection"):
    """Fill in the form of a menu that tags the selected rows."""
    page.at.text_input(key=f"{menu}.tag.name").set_value(name)
    return page.click(f"{menu}.tag.new")


@pytest.fixture
def page(make_session):
    return make_session(60, ("explore", "Selection"), {**TAG, "tags.edit-0": True})


def test_a_selection_gets_a_tag_that_colours_filters_and_is_undone(page):
    tag(page.select("r3", "r5", "r40"), " odd ")
    assert page.workspace.tags == (("odd", ("r3", "r5", "r40")),)
    assert page.text_input(key="selection.tag.name").value == ""
    assert page.history.undo_step == "tag 3 rows as “odd”"
    page.click("Colour by this tag")
    pair = compute.matched_models(*page.workspace.models)
    drawn = compute.view(pair, page.workspace)
    assert drawn.category_names == ("odd",)
    assert pair.ids[drawn.rows[drawn.categories == 0]].tolist() == ["r3", "r5", "r40"]
    facet = next(one for one in compute.workspace_facets(pair, page.workspace) if one.column == "column:odd")
    assert facet.meets(Condition("column:odd", ("odd",))).sum() == 3
    # The second tag has a row of the first one, r40, and another row. Row r40 then has the names of both tags.
    tag(page.select("r40", "r41"), "late", "inspector")
    rows = np.array([3, 5, 40, 41, 42])
    table = _table(page.workspace, pair, rows, None)
    assert table["odd"].tolist() == [True, True, True, False, False]
    assert table["late"].tolist() == [False, False, True, True, False]
    both = cells_in(pair, rows, "tag", compute.cells(pair, page.workspace))
    assert both == ["odd", "odd", "odd + late", "late", ""]
    page.click("history.undo").click("history.undo").click("history.undo")
    assert page.workspace.tags == ()
    assert page.workspace.view.color_by == "pivots"
    assert not page.errors


def test_cells_of_a_tag_need_no_loaded_space(make_workspace, monkeypatch):
    workspace = make_workspace(60)
    pair = compute.matched_models(*workspace.models)
    tagged = replace(workspace, tags=(("odd", ("r3", "r5")),))
    monkeypatch.delattr(compute, "load_space")
    cells = compute.cells(pair, tagged)
    assert cells_in(pair, np.array([3, 4]), "odd", cells) == ["odd", ""]


def test_a_menu_confirms_a_tag_and_offers_its_colours(page):
    tag(page.select("r3", "r5"), "odd")
    assert [one.value for one in page.at.success] == ["2 rows tagged “odd”"]
    page.click("selection.tag.colour")
    assert page.workspace.view.color_by == "column:odd"
    assert "selection.tag.colour" not in page.keys
    page.click("history.undo").click("history.undo")
    assert not page.at.success
    page.click("history.redo").select("r3")
    assert not page.at.success
    page.select("r3", "r9").click("selection.tag.add-0")
    assert [one.value for one in page.at.success] == ["2 rows tagged “odd”"]
    assert not page.errors


def test_rows_are_added_and_removed_and_a_tag_is_renamed_and_deleted(page):
    tag(page.select("r3", "r5"), "odd").click("Colour by this tag")
    page.select("r5", "r7").click("selection.tag.add-0")
    assert page.workspace.tags == (("odd", ("r3", "r5", "r7")),)
    page.select("r3", "r8").click("inspector.tag.remove-0")
    assert page.workspace.tags == (("odd", ("r5", "r7")),)
    page.click("tags.select-0")
    assert page.session_state["relscope.selection"] == ("r5", "r7")
    page.change("text_input", "tags.rename-0", "even")
    assert page.workspace.tags == (("even", ("r5", "r7")),)
    assert page.workspace.view.color_by == "column:even"  # the colours follow the new name
    page.click("tags.delete-0")
    assert page.workspace.tags == ()
    assert page.workspace.view.color_by != "column:even"
    page.click("history.undo")
    assert (page.workspace.tags, page.workspace.view.color_by) == ((("even", ("r5", "r7")),), "column:even")


@pytest.mark.parametrize("name", ["id", "Label", "tag"])
def test_a_tag_with_the_name_of_another_column_is_refused(page, name):
    tag(page.select("r3"), name)
    assert "name that no other column has" in page.errors[0]
    assert page.workspace.tags == ()


def test_the_filter_becomes_a_selection(page):
    tag(page.select("r3", "r5"), "odd").select()
    page.session_state["relscope.history"].present = replace(
        page.workspace,
        look=replace(page.workspace.look, filter=(Condition("column:odd", ("",)),)),
    )
    page.run().click("selection.of-filter")
    assert len(page.session_state["relscope.selection"]) == 58
    assert "r3" not in page.session_state["relscope.selection"]


def test_a_session_file_and_a_recipe_hold_the_tags(page):
    tag(page.select("r3", "r5"), "odd").click("Colour by this tag")
    saved, _ = from_session_file(to_session_file(page.workspace, {}))
    assert saved == page.workspace
    assert "tags" not in json.loads(to_session_file(Workspace(), {}))["session"]
    recipe = {
        "figure": "comparison",
        "source": {"source": "file", "name": page.workspace.source.name},
        "target": {"source": "file", "name": page.workspace.target.name},
        "anchors": list(page.workspace.anchors),
        "view": {"pivots": [], "everything": True, "color_by": "column:odd"},
        "tags": [["odd", ["r3", "r5"]]],
    }
    drawn = exportable(recipe)
    table = pd.read_csv(io.BytesIO(drawn.bytes("csv")))
    assert "category" not in table
    assert table["odd"].to_numpy().nonzero()[0].tolist() == [3, 5]
    again = exportable(json.loads(drawn.bytes("json", full_paths=True)))
    assert again.table().equals(drawn.table())


def test_too_many_tags_or_rows_are_refused():
    rows = tuple(map(str, range(MOST_TAGGED)))
    assert settled_tags((("a", rows), ("b", ()), ("a", ("x", "x")))) == (("a", ("x",)),)
    with pytest.raises(SpaceError, match="at most 20,000 rows in all tags, got 20,001"):
        settled_tags((("a", rows), ("b", ("0",))))
    with pytest.raises(SpaceError, match=f"at most {MOST_TAGS}, got {MOST_TAGS + 1}"):
        settled_tags(tuple((str(number), ("x",)) for number in range(MOST_TAGS + 1)))
