from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from relcore.runs.jobs import JobQueue
from relcore.runs.store import Context, Store
from tests.app.conftest import save_space

SETTINGS = [
    ("selectbox", "projection.similarity", "euclidean", lambda now: now.projection.similarity),
    ("number_input", "scores.k", 7, lambda now: now.k),
    ("multiselect", "view.pivots", ["r1", "r9"], lambda now: list(now.view.pivots)),
    ("radio", "view.position", "own", lambda now: now.panes[0]),
    ("selectbox", "view.second_row", "whitened", lambda now: now.panes[1]),
    ("selectbox", "view.map", "pca 3", lambda now: f"{now.reduction.method} {now.reduction.n_components}"),
    ("selectbox", "anchors.strategy", "k-means", lambda now: now.anchors_from.split(" ")[0]),
    ("number_input", "anchors.number", 11, lambda now: len(now.anchors)),
]


def test_every_setting_is_one_step_that_can_be_undone_and_redone(make_session):
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
        assert getattr(session, kind)(key=key).value == read(before) or kind == "selectbox", key
    assert not session.can_undo
    session.click("history.redo")
    kind, key, value, _ = SETTINGS[0]
    assert (session.workspace, getattr(session, kind)(key=key).value) == (seen[1], value)


def test_a_third_model_joins_the_pair_and_leaves_by_one_click(make_session, make_workspace, tmp_path):
    rng = np.random.default_rng(5)
    third = save_space(tmp_path / "third.npz", rng.normal(size=(80, 4)))
    apart = save_space(tmp_path / "apart.npz", rng.normal(size=(40, 6)), prefix="q")
    session = make_session(spaces=(*make_workspace().spaces, third, apart))
    session.at.session_state["models.add-2"] = True
    session.run()
    assert len([button for button in session.button if "models.choose" in (button.key or "")]) == 1
    assert "share no ids" in session.captions
    assert "relcore" not in session.captions
    session.click("models.choose-0")
    assert session.workspace.others == (third,)
    assert len(session.workspace.anchors) == 20
    assert "first120 and second120: for" in session.text
    assert "All 3 models describe the same 80 rows." in session.text
    assert "Against first120, by the same anchors" in session.text
    assert "Each model against first120" in session.text
    session.click("models.remove-0")
    assert session.workspace.others == ()
    session.click("history.undo").click("history.undo")
    assert (session.workspace.others, session.can_undo) == ((), False)
    session.click("history.redo").change("button_group", "scores.convention", "mutual")
    session.change("selectbox", "choose.target", apart)
    assert session.workspace.others == (third,)  # a pair that cannot be compared changes nothing else


class IdleQueue(JobQueue):
    """A job queue whose jobs wait for ever, or until the test does their work: no process is started."""

    def __init__(self, store: Store) -> None:
        super().__init__(store=store)
        self.asked = []

    def _connect(self, seconds=0):
        """To nobody."""

    def _dispatch(self, job):
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
    queue = IdleQueue(Store(tmp_path / "store"))
    monkeypatch.setattr("app.jobs.whole_queue", lambda: queue)
    return queue


def old_maps(session):
    payload = next(
        node for node in session.get("bidi_component") if b"anchors" in node.proto.bytes
    ).proto.bytes
    return re.findall(r'"old": "(.*?)"', payload[: payload.index(b"themes")].decode(errors="replace"))


def test_a_map_that_is_not_up_to_date_is_marked_and_not_exported_under_another_recipe(make_session, idle):
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


def test_scoring_every_row_is_a_job_whose_answer_every_page_shows(make_session, idle):
    session = make_session(600)
    assert "300 of them as queries" in session.captions
    headline = lead_of(session)
    assert re.search(
        r"same: <b[^>]*>≈\u00a0\d+\u00a0%</b> by anchors · <b>.*?</b> in shared axes · chance 0.2\u00a0%",
        headline,
    )
    assert "580 held-out rows" in headline
    assert "300 of them as queries" in headline
    session.click("Score every row")
    assert len(idle.asked) == 4
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
