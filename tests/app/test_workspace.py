import dataclasses
from unittest.mock import Mock

import pytest

from app import session
from app.session import reduce
from app.workspace import BUNDLED, History, Workspace, from_query, from_session_file, to_query
from relcore import __version__
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.scene import MapLook
from relcore.invert.inversion import InversionSpec
from relcore.maps.pane_maps import ViewSpec
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.runs.cluster import JobQueueError
from relcore.runs.entries import StoreError
from tests.session_files import to_session_file

FILE = SpaceSpec("file", "/data/é vectors.csv", 5000, (("id_column", "word"), ("invalid", "drop")))
FULL = Workspace(
    spaces=(*BUNDLED, FILE),
    source=FILE,
    target=BUNDLED[0],
    anchors=("one", "zwei", "três"),
    anchors_from="k-means 3 7",
    pinned=("zwei",),
    named_sets=(("first try", ("one",)), ("empty", ())),
    tags=(("verbs", ("one", "zwei")), ("é", ("três",))),
    projection=ProjectionSpec("angular", center=False, ridge=1.5, threshold=2.0),
    view=ViewSpec(("sea", "land"), 50, everything=True, color_by="labels", show_anchors=True),
    reduction=ReductionSpec("umap", n_components=3, fit="apart", align=True, random_state=9),
    panes=("relative", "whitened"),
    k=25,
    convention="mutual",
    inversion=InversionSpec("within", "ridge", 4, 0.65, 2.5, 3),
    others=(BUNDLED[1],),
)
DIGESTS = {spec: f"{number}" * 8 for number, spec in enumerate(FULL.spaces)}


def test_undo_and_redo_walk_the_same_way():
    history = History(Workspace(k=1))
    for k in (2, 3, 4):
        history.edit(f"k to {k}", Workspace(k=k))
    history.undo()
    history.undo()
    assert history.present == Workspace(k=2)
    assert (history.undo_step, history.redo_step) == ("k to 2", "k to 3")
    history.redo()
    assert (history.undo_step, history.redo_step) == ("k to 3", "k to 4")
    assert history.with_other_anchors is None
    history.edit("two anchors", Workspace(k=3).with_anchors(("a", "b")))
    history.edit("k to 9", Workspace(k=9).with_anchors(("a", "b")))
    assert history.with_other_anchors == Workspace(k=3)
    assert history.redo_step is None


def test_a_session_file_brings_everything_back():
    assert from_session_file(to_session_file(FULL, DIGESTS)) == (FULL, DIGESTS)
    wrong = to_session_file(FULL, DIGESTS).replace('"mutual"', '"mood"')
    with pytest.raises(SpaceError, match=f"made by version {__version__}, this is {__version__}; ."):
        from_session_file(wrong)


SMALL = Workspace(
    anchors_from="class-balanced 40 7",
    projection=ProjectionSpec("l1", center=False),
    view=ViewSpec(("sea", "land"), 50, everything=True),
    reduction=ReductionSpec("umap", fit="apart"),
    panes=("relative", "whitened"),
    k=25,
    convention="mutual",
)


def test_a_permalink_brings_the_small_settings_back():
    query = to_query(SMALL)
    assert all(isinstance(value, str) and value for value in query.values())
    assert from_query(query, Workspace()) == SMALL
    for view in (ViewSpec((), everything=True), ViewSpec(("New York, NY", "Rome"))):
        workspace = Workspace(view=view)
        assert from_query(to_query(workspace), Workspace()) == workspace


def test_a_link_keeps_further_models_where_the_session_has_them():
    spaces = tuple(SpaceSpec("file", f"{name}.npy") for name in "abcd")
    session = dataclasses.replace(Workspace(), spaces=spaces, source=spaces[1], target=spaces[3])
    shown = dataclasses.replace(session, others=(spaces[2], spaces[0]))
    query = to_query(shown)
    assert query["others"] == "3,1"
    assert from_query(query, session) == shown
    assert from_query(query, Workspace()) == from_query(query | {"others": ""}, Workspace())
    for wrong in ("0", "5", "2", "x", "3,1,3,99"):
        assert from_query({"others": wrong}, session) == session


@pytest.mark.parametrize(
    "error", [SpaceError("no such row"), JobQueueError("no answer in 10 s"), StoreError("disk full")]
)
def test_what_goes_wrong_in_a_callback_becomes_a_message(error, monkeypatch):
    told = []
    monkeypatch.setattr(session, "notify", told.append)
    session.guarded(Mock(side_effect=error), "it")
    assert told == [str(error)]


def test_a_look_is_kept_in_session_file_and_link():
    second = MapLook(second="column:year", second_panes="lower")
    look = dataclasses.replace(second, named=False, turn=(1.0, 0, 0, 0, 0, 1, 0, -1, 0), hidden=("a",))
    workspace = Workspace(view=ViewSpec(color_by="counts"), look=look)
    assert from_session_file(to_session_file(workspace, {}))[0] == workspace
    assert "look" not in to_session_file(Workspace(), {})
    opened = from_query(to_query(workspace), Workspace())
    assert (opened.view.color_by, opened.look) == ("counts", second)


def test_hidden_classes_are_shown_again_under_other_colours():
    before = Workspace(look=MapLook(hidden=("wine",), second="labels", second_hidden=("b",)))
    colored = dataclasses.replace(before, view=dataclasses.replace(before.view, color_by="counts"))
    assert reduce(before, colored).look == dataclasses.replace(before.look, hidden=())
    other = dataclasses.replace(before, look=dataclasses.replace(before.look, second="agreement"))
    assert reduce(before, other).look == dataclasses.replace(other.look, second_hidden=())
    assert reduce(before, dataclasses.replace(before, target=before.source)).look.hidden == ()
    assert reduce(before, dataclasses.replace(before, k=5)).look == before.look
