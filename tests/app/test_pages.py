"""Every page runs; every setting changes the workspace and can be undone; sessions are kept, shared and
kept apart.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from relcore.runs.jobs import Engine
from relcore.runs.progress import Context
from relcore.runs.store import Store
from tests.app.conftest import Session


@pytest.fixture(scope="module")
def bundled():
    """A session as a stranger's browser begins it; for tests that only look."""
    return Session()


def test_the_first_screen_compares_the_bundled_words_through_300_anchors(bundled):
    assert bundled.workspace.source.name == "word2vec-novels"
    assert len(bundled.workspace.anchors) == len(set(bundled.workspace.anchors)) == 300
    assert not bundled.errors
    assert "the same 20,000 rows" in bundled.html
    for form in ("absolute", "relative", "whitened", "procrustes"):
        assert f'<tr class="{form}">' in bundled.html


def test_every_score_says_its_k_n_and_chance(bundled):
    cells = re.findall(r"<td.*?</td>", bundled.html)
    assert len(cells) == 16
    assert all(re.search(r"chance −?[\d.]+ \(−?[\d.]+ … −?[\d.]+\)", cell) for cell in cells)
    assert "n = 19,700 held-out rows, no anchor among them (absolute: all 20,000 rows)" in bundled.captions
    assert "k = 10, paper convention, 300 of these rows as queries" in bundled.captions


@pytest.mark.parametrize("page", ["compare", "anchors", "spaces"])
@pytest.mark.parametrize("bundled_words", [True, False])
def test_every_page_runs(bundled, make_session, page, bundled_words):
    session = bundled if bundled_words else make_session()
    session.open(page)
    assert not session.errors
    assert session.main.button
    session.open("compare")


SETTINGS = [
    ("selectbox", "projection.similarity", "euclidean", lambda now: now.projection.similarity),
    ("toggle", "projection.center", False, lambda now: now.projection.center),
    ("number_input", "scores.k", 7, lambda now: now.k),
    ("button_group", "scores.convention", "mutual", lambda now: now.convention),
    ("multiselect", "view.pivots", ["r1", "r9"], lambda now: list(now.view.pivots)),
    ("button_group", "view.everything", "all", lambda now: "all" if now.view.everything else "pivots"),
    ("button_group", "view.panes", "whitened", lambda now: now.panes[1]),
    ("number_input", "view.n_nearest", 12, lambda now: now.view.n_nearest),
    ("toggle", "view.show_anchors", True, lambda now: now.view.show_anchors),
    ("button_group", "view.fit", "apart", lambda now: now.reduction.fit),
    ("toggle", "view.align", True, lambda now: now.reduction.align),
    ("button_group", "view.dimensions", 3, lambda now: now.reduction.n_components),
    ("toggle", "view.oriented", False, lambda now: now.oriented),
    ("selectbox", "sidebar.strategy", "k-means", lambda now: now.anchors_from.split(" ")[0]),
    ("number_input", "sidebar.number", 11, lambda now: len(now.anchors)),
]


@pytest.mark.parametrize(("kind", "key", "value", "read"), SETTINGS, ids=[key for _, key, _, _ in SETTINGS])
def test_every_setting_is_one_step_that_can_be_undone_and_redone(make_session, kind, key, value, read):
    session = make_session()
    before = session.workspace
    assert read(before) != value
    session.change(kind, key, value)
    after = session.workspace
    assert read(after) == value
    assert not session.errors
    session.click("history.undo")
    assert session.workspace == before
    assert getattr(session, kind)(key=key).value == read(before) or kind == "selectbox"
    assert session.button(key="history.undo").disabled
    session.click("history.redo")
    assert session.workspace == after
    assert getattr(session, kind)(key=key).value == value


def test_source_and_target_can_be_one_space_and_agree_perfectly(make_session):
    session = make_session()
    first, second = session.workspace.spaces
    session.change("selectbox", "choose.target", first)
    assert session.workspace.target == first
    numbers = re.findall(r"<b>([\d.]+)</b>", session.html.split("relscope-scores")[1])
    assert numbers == ["1.000"] * 16
    session.click("history.undo")
    assert session.workspace.target == second
    session.change("selectbox", "choose.source", second).change("selectbox", "choose.target", first)
    assert (session.workspace.source, session.workspace.target) == (second, first)


def test_the_inspector_follows_the_brush_and_makes_anchors(make_session):
    session = make_session().select("r50")
    assert '<p class="relscope-word">r50</p>' in session.html
    session.click("inspector.anchor")
    assert session.workspace.anchors[-1] == "r50"
    assert session.at.expander[0].label == "21 anchors"
    session.click("inspector.anchor")
    assert "r50" not in session.workspace.anchors
    session.select("r0", "r60", "r61")
    assert '<p class="relscope-word">3 selected</p>' in session.html
    session.click("inspector.add")
    assert session.workspace.anchors[-2:] == ("r60", "r61")
    session.click("inspector.only")
    assert session.workspace.anchors == ("r0", "r60", "r61")
    session.click("inspector.clear")
    assert session.session_state["relscope.selection"] == ()


def test_settings_brush_and_anchors_outlive_a_page_switch(make_session):
    session = (
        make_session().select("r7", "r8").change("number_input", "scores.k", 5).click("inspector.remove")
    )
    kept = session.workspace
    for page in ("anchors", "spaces", "compare"):
        session.open(page)
        assert session.workspace == kept
        assert session.session_state["relscope.selection"] == ("r7", "r8")
    assert session.number_input(key="scores.k").value == 5
    assert "2 selected" in session.html


def test_two_sessions_share_nothing(make_workspace):
    one, other = Session(workspace=make_workspace()), Session(workspace=make_workspace())
    one.select("r3").click("inspector.anchor").change("number_input", "scores.k", 3)
    other.run()
    assert other.workspace == make_workspace()
    assert "relscope.selection" not in other.session_state
    assert other.button(key="history.undo").disabled
    assert one.workspace.k == 3
    assert "r3" not in one.workspace.anchors


@pytest.fixture
def follow_link(monkeypatch, make_workspace):
    """``follow_link(k="25") -> Session``: one that begins with this address, on the small spaces."""
    first = make_workspace(anchors=())
    monkeypatch.setattr("app.saving.BUNDLED", first.spaces)
    monkeypatch.setattr("app.saving.Workspace", lambda **given: dataclasses.replace(first, **given))
    return lambda **query: Session(query)


PERMALINKS = [
    {
        "k": "25",
        "similarity": "angular",
        "center": "0",
        "convention": "mutual",
        "pivots": '["r7", "r8"]',
        "nearest": "50",
    },
    {"anchors": "k-means,40,0", "panes": "absolute,whitened", "all": "1", "fit": "apart"},
    {"k": "101"},  # the chooser goes to 200
]


@pytest.mark.parametrize("query", PERMALINKS, ids=[",".join(query) for query in PERMALINKS])
def test_a_permalink_is_honoured_and_shown_again(follow_link, query):
    session = follow_link(**query)
    assert not session.errors
    assert {name: session.query_params.get(name) for name in query} == query


def test_a_link_to_rows_that_are_not_there_shows_those_that_are(follow_link):
    assert follow_link(pivots='["r7", "qzx"]').workspace.view.pivots == ("r7",)
    usual = follow_link(pivots='["qzx"]')
    assert usual.workspace.view.pivots
    assert all(pivot.startswith("r") for pivot in usual.workspace.view.pivots)
    assert (
        follow_link(anchors="class-balanced,9,0").workspace.anchors_from == "random 9 0"
    )  # these spaces have no labels


class IdleEngine(Engine):
    """An engine whose jobs wait for ever, or until the test does their work: no process is started."""

    def __init__(self, store: Store) -> None:
        super().__init__(store=store)
        self.asked = []

    def _connected(self):
        return "nobody"  # None would be a scheduler that was lost

    def _dispatch(self, client, job):
        self.asked.append((job, job.function, job.arguments))

    def work(self):
        for job, function, kwargs in self.asked:
            if "spec" in kwargs:  # a quick picture in place of the slow one
                kwargs = {**kwargs, "spec": dataclasses.replace(kwargs["spec"], method="pca")}
            function(Context(job.key, self.store), **kwargs)
            job._end("done")
        self.asked = []


@pytest.fixture
def idle(monkeypatch, tmp_path):
    engine = IdleEngine(Store(tmp_path / "store"))
    monkeypatch.setattr("app.jobs.whole_engine", lambda: engine)
    return engine


def panes_caption(session):
    """What the panes say under themselves, from the payload of the component."""
    payload = next(
        node for node in session.get("bidi_component") if b"anchors" in node.proto.bytes
    ).proto.bytes
    return re.search(rb'"caption": "(.*?)"', payload)[1].decode()


def test_pca_stands_in_until_the_job_is_done_and_a_stopped_job_can_be_asked_again(make_session, idle):
    session = make_session().change("button_group", "view.method", "tsne")
    assert [job.title for job, _, _ in idle.asked] == ["t-SNE, absolute", "t-SNE, relative"]
    assert session.workspace.reduction.fit == "first"
    assert "PCA, fitted on the first space" in panes_caption(session)
    job = idle.asked[0][0]
    session.click(f"stop-{job.key}")
    assert job.status().state == "cancelled"
    assert "t-SNE, absolute" in session.warning[0].value
    session.click(f"again-{job.key}")
    assert idle.asked[-1][0].key == job.key
    assert not session.warning
    idle.asked = idle.asked[1:]
    idle.work()
    session.run()
    assert "PCA" not in panes_caption(session)
    assert "t-SNE, fitted on the first space" in panes_caption(session)
    session.click("history.undo")
    assert session.workspace.reduction.method == "pca"


def old_maps(session):
    """What each pane says that it shows instead of what was chosen."""
    payload = next(
        node for node in session.get("bidi_component") if b"anchors" in node.proto.bytes
    ).proto.bytes
    return re.findall(r'"old": "(.*?)"', payload[: payload.index(b"themes")].decode(errors="replace"))


def test_a_map_that_is_not_up_to_date_is_marked_and_not_exported_under_another_recipe(make_session, idle):
    session = make_session().change("button_group", "view.method", "tsne")
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


def test_scoring_every_row_is_a_job_whose_answer_every_page_shows(make_session, idle):
    session = make_session(600)
    assert "300 of these rows as queries" in session.captions
    headline = lead_of(session)
    assert "300 of 580 held-out rows" in headline
    session.click("Score every row")
    assert len(idle.asked) == 4
    assert "300 of these rows as queries" in session.captions
    idle.work()
    session.run()
    assert "as queries" not in session.captions
    assert "n = 580 held-out rows" in session.captions
    assert "all 580 held-out rows" in lead_of(session)
    exact = re.search(r"relative <b>(.*?)</b>", lead_of(session))[1]
    session.open("anchors")
    assert exact in [metric.value for metric in session.metric]


def test_approximate_neighbours_of_many_rows_show_their_recall_beside_every_score(
    make_session, idle, monkeypatch
):
    assert "Neighbours" not in [box.label for box in make_session(600).at.selectbox]
    for where in ("relcore.compare.exact", "app.jobs"):
        monkeypatch.setattr(f"{where}.MANY_ROWS", 500)
    session = make_session(600)
    session.change("selectbox", "compare.neighbours", "hnsw")
    session.click("Score every row")
    assert idle.asked[1][0].title == "Scores, relative, HNSW"
    idle.work()
    session.run()
    cells = re.findall(r"<td.*?</td>", session.html)
    listed = [cell for cell in cells if "k = " in cell]
    assert len(listed) >= 8
    assert all("<small>recall " in cell and "400 queries)" in cell for cell in listed)
    assert not any("<small>recall " in cell for cell in cells if cell not in listed)
    assert "approximate neighbours with a recall of" in lead_of(session)
    assert any("missed neighbours can change it by at most" in one.value for one in session.at.warning)
    session.change("selectbox", "compare.neighbours", "exact")
    assert "approximate neighbours with a recall of" in lead_of(session)  # until the exact ones are known


def lead_of(session):
    return re.search(r'<p class="relscope-lead">.*?</p>', session.html)[0]
