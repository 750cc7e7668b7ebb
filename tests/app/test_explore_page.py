import dataclasses
import json
import re
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from app import compute, toolbar
from app import session as session_module
from app.anchors.lists import step_between
from app.compare import choosers, headline
from app.components import linked_scatter
from app.toolbar import OUTLINE
from app.workspace import History, Workspace, from_session_file
from relcore import read_selection
from relcore.base.errors import SpaceError
from relcore.base.report import delimited_text
from relcore.catalog import row_tables
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.scene import MapLook
from relcore.figures.colorings import SELECTED_ROWS, Condition
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from relcore.runs.work import Context
from relcore.scores.comparison import score_pair
from relcore.scores.score import Interval, Score
from relcore.spaces.split import Split
from tests.app.conftest import Session, save_space
from tests.session_files import to_session_file
from tests.waiting import until

SETTINGS = [
    ("selectbox", "projection.similarity", "euclidean", lambda now: now.projection.similarity),
    ("number_input", "scores.k", 7, lambda now: now.k),
    ("multiselect", "view.pivots", ["r1", "r9"], lambda now: list(now.view.pivots)),
    ("radio", "view.position", "own", lambda now: now.panes[0]),
    ("selectbox", "view.second_row", "whitened", lambda now: now.panes[1]),
    ("selectbox", "view.map", "pca 3", lambda now: f"{now.reduction.method} {now.reduction.n_components}"),
    (
        "selectbox",
        "anchors.strategy",
        "k-means",
        lambda now: now.anchors_from.split(" ")[0] or "chosen by hand",
    ),
    ("number_input", "anchors.number", 11, lambda now: len(now.anchors)),
]


def test_every_setting_is_one_step(make_session):
    session = make_session(60)
    seen = [session.workspace]
    for kind, key, value, read in SETTINGS:
        assert read(seen[-1]) != value, key
        session.change(kind, key, value)
        assert read(session.workspace) == value, key
        assert not session.errors
        seen.append(session.workspace)
    for (kind, key, _, read), before in zip(reversed(SETTINGS), reversed(seen[:-1]), strict=True):
        session.click("history.undo")
        assert session.workspace == before, key
        assert session.find(kind, key).value == read(before), key
    assert not session.can_undo
    session.click("history.redo")
    kind, key, value, _ = SETTINGS[0]
    assert (session.workspace, session.find(kind, key).value) == (seen[1], value)


def test_a_third_model_joins_and_leaves(make_session, make_workspace, tmp_path):
    rng = np.random.default_rng(5)
    third = save_space(tmp_path / "third.npz", rng.normal(size=(80, 4)))
    apart = save_space(tmp_path / "apart.npz", rng.normal(size=(40, 6)), prefix="q")
    session = make_session(spaces=(*make_workspace().spaces, third, apart))
    session.session_state["models.add-2"] = True
    session.run()
    assert sum("models.choose" in (key or "") for key in session.keys) == 1
    assert "share no ids" in session.captions
    session.click("models.choose-0")
    assert session.workspace.others == (third,)
    assert len(session.workspace.anchors) == 20
    assert "All 3 models describe the same 80 rows." in session.text
    session.click("models.remove-0")
    assert session.workspace.others == ()
    session.click("history.undo").click("history.undo")
    assert (session.workspace.others, session.can_undo) == ((), False)
    session.click("history.redo").change("button_group", "scores.convention", "mutual")
    session.change("selectbox", "choose.target", apart)
    assert session.workspace.others == (third,)  # a pair that cannot be compared changes nothing else


class IdleQueue(JobQueue):
    """A job queue without processes, whose jobs wait until the test does their work."""

    def __init__(self, store):
        super().__init__(store=store)
        self.asked = []

    def _connect(self, seconds=0):
        """To nobody."""

    def _dispatch(self, job):
        self.asked.append((job, job.function, job.arguments))

    def work(self):
        until(lambda: self.asked)
        for job, function, kwargs in self.asked:
            if "spec" in kwargs:  # a quick picture in place of the slow one
                kwargs = kwargs | {"spec": dataclasses.replace(kwargs["spec"], method="pca")}
            function(Context(job.key, self.store), **kwargs)
            job._end("done")
        self.asked = []


@pytest.fixture
def idle(monkeypatch, tmp_path):
    queue = IdleQueue(Store(tmp_path / "store"))
    monkeypatch.setattr("app.jobs.whole_queue", lambda: queue)
    return queue


def old_maps(session):
    payload = next(one.proto.bytes for one in session.get("bidi_component") if b"anchors" in one.proto.bytes)
    return re.findall(r'"old": "(.*?)"', payload[: payload.index(b"themes")].decode(errors="replace"))


def test_an_old_map_is_marked_and_not_exported(make_session, idle):
    session = make_session().change("selectbox", "view.map", "tsne 2")
    assert old_maps(session) == ["PCA until t-SNE is done"] * 4
    assert "can be exported when" not in session.captions  # PCA is a figure of its own
    idle.work()
    session.run()
    assert old_maps(session) == [""] * 4
    session.select("r50").click("inspector.anchor")
    assert old_maps(session) == ["", "", *["Earlier anchors until t-SNE is done"] * 2]
    assert "The panes can be exported when all maps are up to date." in session.captions
    job = idle.asked[-1][0]
    session.click(f"stop-{job.key}")
    assert old_maps(session)[2:] == ["Earlier anchors: t-SNE was stopped"] * 2
    session.click(f"again-{job.key}")
    idle.asked = idle.asked[-1:]
    idle.work()
    session.run()
    assert old_maps(session) == [""] * 4
    assert "can be exported when" not in session.captions


def test_scoring_every_row_is_a_job_for_every_page(make_session, idle):
    session = make_session(600)
    assert "300 of them as queries" in session.captions
    headline = lead_of(session)
    assert "580 held-out rows" in headline
    assert "300 of them as queries" in headline
    session.click("Score every row")
    until(lambda: len(idle.asked) == 4)
    assert "300 of them as queries" in session.captions
    idle.work()
    session.run()
    assert "as queries" not in session.captions
    assert "n = 580 held-out rows" in session.captions
    assert "as queries" not in lead_of(session)
    exact = re.search(r"<td>relative</td><td[^>]*>580</td><td>MRR.*?<td[^>]*>(.*?)</td>", lead_of(session))[1]
    session.open("explore", "Anchors")
    assert exact in [metric.value for metric in session.metric]


def lead_of(session):
    return re.search(r'<p class="relscope-lead">.*?</(details|p)>$', session.html, re.M)[0]


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
    noted(headline, "scores", "scores")
    noted(DeltaGenerator, "html", "headline", text="relscope-details")
    noted(toolbar, "space_choosers", "toolbar")
    noted(choosers, "switch", "above")
    return made


def test_a_first_visit_gets_panes_then_scores_then_choosers(order, make_session):
    make_session()
    assert order == ["panes", "scores", "headline", "toolbar", "above"]


@pytest.fixture
def drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "app.panes.linked_scatter", lambda scene, **given: drawn.append((scene, given["selected"]))
    )
    return drawn


def test_rings_are_explained_only_where_one_is_dashed(make_session, drawn, monkeypatch):
    monkeypatch.setattr("app.compare.search.found_by_one_model", lambda pair: np.array([3, 5]))
    session = make_session()
    for chosen, dashed in ((("r3", "r4"), True), (("r4",), False)):
        session.select(*chosen)
        assert ("Ring: found in both models" in drawn[-1][0].caption) == dashed


def test_few_anchors_are_all_drawn(make_session, drawn):
    session = make_session()
    ids = tuple(f"r{row}" for row in range(21))
    views = {}
    for n in (21, 20):
        workspace = replace(session.workspace, anchors=ids[:n], anchors_from="")
        session.session_state["relscope.history"] = History(workspace)
        session.run()
        views[n] = drawn[-1][0]
    lacking = {*ids} - {*views[21].ids}
    assert len(views[21].anchors) == 21 - len(lacking) < 20
    assert {views[20].ids[place] for place in views[20].anchors} == {*ids[:20]}
    assert {*views[20].ids} - {*views[21].ids} == lacking - {ids[20]}


def test_a_selected_row_is_drawn_and_the_others_stay(make_session, drawn):
    session = make_session()
    (before, _) = drawn[-1]
    missing = sorted({f"r{row}" for row in range(120)} - set(drawn[-1][0].ids))
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

    with monkeypatch.context() as broken:
        broken.setattr("app.compute.is_scored_quickly", Mock(side_effect=RuntimeError("unexpected")))
        session.at.run()
    assert [error.message for error in session.exception] == ["unexpected"]
    session.click("history.undo")
    assert session.workspace.view.n_nearest != 20


def header_of(at):
    (node,) = at.run().get("bidi_component")
    assert not at.exception
    payload = node.proto.bytes
    return json.loads(payload[4 : 4 + int.from_bytes(payload[:4], "little")])


HOVERS = """
import numpy as np, streamlit as st
from app.components.linked_scatter import linked_scatter
from relcore.figures.colorings import (PARTS, STEPS, Coloring, ColorScale)
from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene
n, changed = 80_000, st.session_state.get("changed")
texts = np.array([f"sentence {i:06}" for i in range(n)], dtype=object)
if changed:
    texts[changed] = "sentence ######"
linked_scatter(Scene((Pane("a", np.zeros((n, 2))),), np.arange(n), np.full(n, -1), texts=texts), key="panes", on_event=print)
"""


def test_one_text_changed_among_many_is_another_file():
    at = AppTest.from_string(HOVERS)
    first = header_of(at)["files"]["texts"]
    assert header_of(at)["files"]["texts"] == first
    at.session_state["changed"] = 11_111  # a change that Streamlit's own name for a large file would miss
    assert header_of(at)["files"]["texts"] != first


def test_new_coordinates_travel_once_and_known_ones_do_not():
    at = AppTest.from_string(
        HOVERS.replace(
            "np.zeros((n, 2))", "np.full((n, 2), st.session_state.get('place', 0)) * [[1, 2]]"
        ).replace("80_000", "20_000")
    )
    assert header_of(at)["carried"] == [], "the files of the first payload load side by side"
    at.session_state["place"] = 1
    assert header_of(at)["carried"] == ["pane0"]
    assert header_of(at)["carried"] == []


def test_nobody_can_tell_the_address_of_a_known_text(monkeypatch):
    def addresses():
        header = header_of(at)
        return {*header["files"].values(), *header["elsewhere"].values()}

    at = AppTest.from_string(HOVERS)
    first = addresses()
    assert len(first) > 2
    monkeypatch.setattr("app.components.served_files._SECRET", "that of another server")
    assert not first & addresses()


@pytest.fixture
def page(make_session):
    return make_session(60, ("explore", "Anchors"), {"anchors.sets": True})


def test_names_sets_and_lists_add_anchors_each_in_a_step(page):
    first = page.workspace.anchors
    page.change("text_input", "anchors.search", "r50, r40 ,r0,, r50")
    assert page.workspace.anchors == (*first, "r50", "r40")
    assert page.text_input(key="anchors.search").value == ""
    assert not [one for one in page.toast if "left out" in one.value]  # an empty word is no id
    page.click("history.undo").change("text_input", "anchors.set-name", " all twenty ")
    listed = "\ufeffr30\r\n\r\n r31 \nnowhere\n".encode()
    page.upload("anchors.upload", "list.txt", listed).click("Add it")
    assert page.workspace.anchors == (*first, "r30", "r31")
    page.click("Replace the anchors")
    assert page.workspace.anchors == ("r30", "r31")
    assert not page.errors
    page.upload("anchors.upload", "list.txt", b"nowhere\n").click("Replace the anchors")
    assert "got 1 unknown" in page.errors[0]
    page.click("anchors.use-all twenty")
    assert page.workspace.anchors == first
    page.click("anchors.forget-all twenty")
    assert page.workspace.named_sets == ()
    page.click("history.undo")
    assert page.workspace.named_sets == (("all twenty", first),)


def test_more_rows_than_fit_are_offered_as_a_sample(page, monkeypatch):
    monkeypatch.setattr("app.compare.inspector.MOST_ANCHORS", 25)
    before = page.workspace.anchors
    free = [f"r{row}" for row in range(30, 60)]
    page.select(*free).click("inspector.add")
    assert not page.errors
    added = page.workspace.anchors[20:]
    assert len(before) + len(added) == 25
    assert set(added) < set(free)
    assert added != tuple(free[:5])  # drawn at random
    assert page.button(key="inspector.add").disabled


def test_pinned_anchors_outlive_removal_and_a_new_strategy(page):
    # A cell counts as the box of its row.
    clicked = {"rows": [5], "columns": [], "cells": [(4, "id"), (5, "id")]}
    page.session_state[page.find("dataframe", "anchors.table").key] = {"selection": clicked}
    page.run().click("Pin 2")
    assert set(page.workspace.pinned) == {"r4", "r5"}
    assert page.table("anchors.table")["pinned"].sum() == 2
    page.select_rows("anchors.table", 4, 6).click("Remove 2")
    assert "r4" in page.workspace.anchors
    assert "r6" not in page.workspace.anchors
    page.change("number_input", "anchors.number", 7)
    assert len(page.workspace.anchors) == 7
    assert set(page.workspace.anchors[:2]) == {"r4", "r5"}
    page.click("Remove all but pinned")
    assert set(page.workspace.anchors) == {"r4", "r5"}
    page.select_rows("anchors.table", 0).click("Unpin 1")
    assert len(page.workspace.pinned) == 1


@pytest.fixture
def wrong_pairs(tmp_path, make_workspace):
    """In the second space, the ids of three rows are exchanged."""
    first = make_workspace()
    arrays = dict(np.load(first.target.name))
    arrays["vectors"][[2, 9, 14]] = arrays["vectors"][[9, 14, 2]]
    np.savez(tmp_path / "wrong.npz", **arrays)
    target = SpaceSpec("file", str(tmp_path / "wrong.npz"))
    return dataclasses.replace(first, spaces=(first.source, target), target=target)


def test_an_audit_lists_and_removes_wrong_pairs(wrong_pairs):
    session = Session(None, wrong_pairs, ("explore", "Anchors"), {"anchors.audit": True})
    assert any("3 of 20 pairs are suspect." in text.value for text in session.markdown)
    table = session.table("audit.table")
    assert set(table["id"]) == {"r2", "r9", "r14"}
    assert all(len(names.split(", ")) == 6 for names in table["near in wrong"])
    shown = {metric.label.partition(" · ")[0]: metric.value for metric in session.metric}
    session.click("audit.remove-all")
    arrows = {metric.label.partition(" · ")[0]: metric.delta for metric in session.metric if metric.delta}
    assert arrows
    assert all(arrow.endswith(f" from {shown[label]}") for label, arrow in arrows.items())
    assert not {"r2", "r9", "r14"} & set(session.workspace.anchors)
    assert any("of 17 pairs may be wrong" in text.value for text in session.markdown)
    saved, _ = from_session_file(to_session_file(session.workspace, {}))
    assert saved == session.workspace
    for place, tab in (("explore", "Scores"), ("connect", "Invert")):
        assert "3 removed suspects are not scored" in session.open(place, tab).captions
        assert "100 held-out rows" in session.html
    session.click("toolbar.score-again")
    assert "suspects are not scored" not in session.captions
    assert "103 held-out rows" in session.html
    session.click("history.undo").click("history.undo")
    assert session.workspace == wrong_pairs


def test_an_arrow_needs_the_same_queries_and_a_clear_difference():
    def score(value, **facts):
        return Score(value, metric="mrr", n=900, k=10, **facts)

    up = Interval(0.02, 0.01, 0.03)
    sampled = {"n_queries": 300, "interval": (0.4, 0.6)}
    assert step_between(score(0.4994), score(0.5226), up) == "+.024 from .499"
    assert step_between(score(0.5226), score(0.4994), Interval(-0.02, -0.03, -0.01)) == "−.024 from .523"
    assert step_between(score(0.52, **sampled), score(0.5, **sampled), Interval(-0.1, -0.2, 0)) is None
    assert step_between(score(0.52), score(0.5), up) is None
    assert step_between(score(0.5), score(0.52, **sampled), up) is None


FILTER = (Condition("labels", ("a",)), Condition("source norm", low=0.5))


@pytest.fixture
def workspace(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    labels = np.array(["a", "b", "c"])[np.arange(90) % 3]
    first = save_space(tmp_path / "first.npz", X, labels=labels)
    second = save_space(tmp_path / "second.npz", X + 0.3 * rng.normal(size=(90, 6)), labels=labels)
    anchors = tuple(f"r{row}" for row in range(8))
    return Workspace((first, second), first, second, anchors, look=MapLook(filter=FILTER[:1]))


def test_rows_in_the_filter_are_scored_on_request(workspace):
    session = Session(workspace=workspace)
    assert session.workspace.look.filter == workspace.look.filter
    session.change("toggle", "scores.filter", True)
    assert "Rows in the filter (labels: a): 27, without anchors" in session.captions
    pair = compute.matched_models(workspace.source, workspace.target)
    score = compute.live_scores(compute.filtered_pair(pair, workspace), "relative", workspace.scoring)
    kept = np.arange(9, 90, 3)  # of 30 rows, 0, 3 and 6 are anchors
    assert score["jaccard"].n == len(kept) == 27
    made = compute.represent(pair, "relative", workspace.anchors, workspace.projection)
    split = Split.held_out(pair.ids[kept], [])
    expected = score_pair(*(rows[kept] for rows in made), split, k=10, metrics=("mrr",))["mrr"]
    assert float(score["mrr"]) == pytest.approx(float(expected), abs=0.05)  # the page centres by fewer rows


def test_selected_rows_are_downloaded_kept_and_made_a_space(workspace, tmp_path):
    session = Session(workspace=replace(workspace, look=MapLook()))
    chosen = tuple(f"r{row}" for row in range(0, 60, 2))
    session.select(*chosen)
    session.open("explore", "Selection")
    shares = session.table_with("share of all rows")
    assert shares["rows"].sum() == 30
    assert set(shares["class"]) == {"a", "b", "c"}
    assert set(shares["differs"]) == {""}  # every second row has the same mix of classes
    # A class without selected rows is listed, too.
    session.select("r0", "r2", "r3")
    shares = session.table_with("share of all rows")
    assert list(zip(shares["class"], shares["rows"], strict=True)) == [("a", 2), ("c", 1), ("b", 0)]
    session.select(*chosen)
    table = next(table.value for table in session.dataframe if {"id", "label"} <= set(table.value))
    assert table["label"].tolist() == [("a", "b", "c")[row % 3] for row in range(0, 60, 2)]
    texts = {"csv": delimited_text(table).encode(), "parquet": table.to_parquet(index=False)}
    for suffix, content in texts.items():
        path = tmp_path / f"selection.{suffix}"
        path.write_bytes(content)
        assert read_selection(path).ids == chosen
    (tmp_path / "other.csv").write_text("name\nr1\n")
    with pytest.raises(SpaceError, match='column "id"'):
        read_selection(tmp_path / "other.csv")
    session.click("selection.keep")
    assert session.workspace.look.filter == (Condition(SELECTED_ROWS, chosen),)
    pair = compute.matched_models(workspace.source, workspace.target)
    kept = [one for one in pair.ids if one in {*chosen, *workspace.anchors}]
    assert compute.filtered_pair(pair, session.workspace).source.ids.tolist() == kept
    session.click("selection.space")
    ends = session.workspace.source, session.workspace.target
    assert [compute.load_space(end).ids.tolist() for end in ends] == [list(chosen)] * 2
    assert load(ends[0]).digest == compute.load_space(ends[0]).digest
    assert set(session.workspace.anchors) <= set(chosen)
    assert session.workspace.look.filter == ()
    again, _ = from_session_file(to_session_file(session.workspace, {}))
    assert again == session.workspace


def test_moving_a_range_is_one_step(monkeypatch):
    monkeypatch.setattr(session_module.st, "session_state", {})
    session_module.set_workspace("begin", Workspace())
    for low in range(1, 13):
        session_module.filter_rows((Condition("counts", low=float(low)),))
    history = session_module.history()
    assert history.undo_step == "filter by count"
    session_module.filter_rows((Condition("counts", low=12.0), Condition("labels", ("a",))))
    session_module.filter_rows((Condition("counts", low=12.0), Condition("labels", ("a", "b"))))
    for expected in (("a",), None):
        history.undo()
        found = {one.column: one.classes for one in history.present.look.filter}
        assert found.get("labels") == expected
    history.undo()
    assert history.present.look.filter == ()


@pytest.mark.filterwarnings("ignore:rows.csv is joined")
def test_a_table_of_two_files_of_vectors_is_opened_once(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    opened = []
    open_table = row_tables.open_table
    monkeypatch.setattr(row_tables, "open_table", lambda *given: opened.append(given) or open_table(*given))
    (tmp_path / "rows.csv").write_text("id,price\na,1.5\nb,2\nc,3\n", encoding="utf-8")
    for name in ("old", "new"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(3, 2)))
    options = (("metadata", str(tmp_path / "rows.csv")), ("id_column", "id"))
    ends = [SpaceSpec("file", str(tmp_path / f"{name}.npy"), 100, options) for name in ("old", "new")]
    workspace = Workspace(spaces=tuple(ends), source=ends[0], target=ends[1])
    table = compute.rows_table(compute.matched_models(*ends), workspace, np.array([2, 0]))
    assert table.astype(str).to_numpy().tolist() == [["c", "3"], ["a", "1.5"]]
    assert len(opened) == 1


def test_few_anchors_to_drag_are_one_step(make_session):
    session = make_session(120)
    before = session.workspace
    session.click("toolbar.to-drag")
    assert len(session.workspace.anchors) == 8
    assert session.workspace.panes == ("relative",)
    assert session.click("history.undo").workspace == before


def test_the_page_outlines_the_maps_while_files_are_read(make_session, monkeypatch):
    session = make_session(place=("data",))
    assert OUTLINE not in session.html

    def stops(*specs):
        raise RuntimeError("reading the files")

    monkeypatch.setattr("app.compute.matched_models", stops)
    session.at.switch_page("../pages/explore.py")
    session.at.run()  # what the browser shows when this error comes
    assert OUTLINE in session.html
    assert "Reading the files and drawing the maps …" in session.text
    monkeypatch.undo()
    session.open("explore")
    assert OUTLINE not in session.html


def test_pages_that_cannot_be_drawn_leave_no_outline(make_session, monkeypatch):
    session = make_session(place=("data",))

    def refuses(*specs):
        raise SpaceError("expected rows, got none")

    monkeypatch.setattr("app.compute.matched_models", refuses)
    session.open("explore")
    assert OUTLINE not in session.html
    assert any("expected rows" in error for error in session.errors)
