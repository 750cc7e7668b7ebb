from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from app import results
from app.plain_text import plain_html
from app.universe import panel
from relcore import Universe
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.scoring import AllPairs
from relcore.spaces.space import LatentSpace
from relcore.universe.universe import UniverseSpec
from tests.app.conftest import Session, save_space

UNIVERSE = ("connect", "Universe")


@pytest.fixture
def make_four(make_workspace, tmp_path):
    """``make_four(**changes) -> Session`` on four spaces: a space and its noisy copy, one wider, one of
    other ids unless `linked`.
    """

    def make(linked: bool = False, **changes) -> Session:
        workspace, rng = make_workspace(120), np.random.default_rng(1)
        vectors = load(workspace.source).vectors
        wide = save_space(tmp_path / "wide.npz", np.c_[vectors, rng.normal(size=(120, 3))])
        other, prefix = (
            (vectors + rng.normal(size=(120, 6)), {})
            if linked
            else (rng.normal(size=(120, 6)), {"prefix": "q"})
        )
        stranger = save_space(tmp_path / "stranger.npz", other, **prefix)
        all_four = make_workspace(120, spaces=(*workspace.spaces, wide, stranger), **changes)
        session = Session(None, all_four, UNIVERSE)
        if linked:
            return session
        assert "**Not shown:** stranger." in session.captions
        assert not session.errors
        chooser = next(one.key for one in session.multiselect if one.key.startswith("universe.spaces"))
        return session.change("multiselect", chooser, list(session.workspace.spaces))

    return make


def similarity_of(session: Session) -> tuple[str, str, str]:
    """The change that shows the scores that need no common space."""
    key = next(one.key for one in session.button_group if one.key.startswith("universe.chart-"))
    return "button_group", key, "similarity"


def charts(session: Session) -> list[dict]:
    found = [element.proto for element in session.main if element.type == "plotly_chart"]
    return [json.loads(proto.spec) | {"id": proto.id} for proto in found]


def chart(session: Session) -> dict:
    """That of the scores."""
    (shown,) = (one for one in charts(session) if not one.get("frames"))
    return shown


def numbers(session: Session) -> np.ndarray:
    points = chart(session)["data"][-1]
    shown = [text.split("<br>")[1].rpartition(": ")[2] for text in points["hovertext"]]
    n = int(np.sqrt(len(shown)))
    return np.array(
        [float(text.split()[0].replace("−", "-")) if text[0] in "−.0123456789" else np.nan for text in shown]
    ).reshape(n, n)


def test_the_page_shows_the_cores_numbers_and_its_file_opens(make_four):
    session = make_four(linked=True)
    spaces = [load(spec) for spec in session.workspace.spaces]
    universe = UniverseSpec().run(spaces)
    assert plain_html(universe.headline()) in session.html.replace("<b>", "").replace("</b>", "")
    assert "the same row in" in session.html
    kind, key, _ = similarity_of(session)
    session.change(kind, key, "accuracy")
    shown = [
        text.split("same row nearest: ")[1][:4]
        for text in chart(session)["data"][-1]["hovertext"]
        if "same row nearest: " in text
    ]
    assert len(shown) == 12
    session.change(kind, key, "map")
    assert len(chart(session)["data"]) == 1
    assert session.html.count('<td class="same">') >= 4  # of at least 6 rows


def test_a_file_shows_scores_and_those_of_its_models_that_are_here(make_four, make_workspace, tmp_path):
    session = make_four(linked=True)
    specs = session.workspace.spaces
    rng, rows = np.random.default_rng(3), load(specs[0]).vectors
    away = LatentSpace(rows + rng.normal(size=rows.shape), load(specs[0]).ids, name="away")
    Universe.fit([*map(load, specs), away]).save(tmp_path / "five.universe")
    kind = next(one.key for one in session.button_group if one.key.startswith("universe.of"))
    session.change("button_group", kind, "file")
    assert "relscope universe" in session.captions
    session.change("text_input", "universe.path", str(tmp_path / "five.universe"))
    assert "how alike the 5 models are" in session.html
    assert "Not in this session: away" in session.captions
    (moving,) = (one for one in charts(session) if one.get("frames"))
    assert len(moving["frames"]) == 1 + len(specs)
    (source,) = (one for one in session.selectbox if one.key.startswith("universe.from"))
    (target,) = (one for one in session.selectbox if one.key.startswith("universe.to"))
    assert (len(source.options), len(target.options)) == (4, 4)
    assert "away" in target.options
    session.change("text_input", "universe.path", str(tmp_path / "wide.npz"))
    assert "expected a universe, got" in session.errors[0]


def test_two_models_that_are_clicked_open_in_explore(make_four, monkeypatch):
    session = make_four(linked=True)
    by_name = {load(spec).name: spec for spec in session.workspace.spaces}
    opened, table = [], pd.DataFrame({"name": list(by_name)})
    monkeypatch.setattr(panel.st, "session_state", {})
    monkeypatch.setattr(panel.session, "guarded", lambda change, *pair: opened.append(pair))
    for place in (3, 1):
        panel._pick(list(by_name), by_name, table, "map", [{"customdata": place}])
    panel._pick(list(by_name), by_name, table, "accuracy", [{"customdata": [0, 2, 0]}])
    panel._pick([*by_name, "away"], by_name, table, "accuracy", [{"customdata": [0, 4, 0]}])
    specs = list(by_name.values())
    assert opened == [(specs[3], specs[1]), (specs[2], specs[0])]


def test_each_score_is_the_cores(make_four):
    session = make_four().change("selectbox", "all-pairs.metric", "relative cosine")
    now = session.workspace
    settings = {"anchors": now.anchors, "projection": now.projection, "k": now.k, "n_queries": 300}
    expected = AllPairs("relative cosine", **settings).run([load(spec) for spec in now.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)
    assert np.isnan(expected.values).sum() == 7


def test_what_takes_long_is_a_job_that_is_asked_for_first(make_four, ran_in_place, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)
    # A job queue serves all sessions of a process, and its store has what other tests computed: no other asks
    # for this k.
    session = make_four(k=9).change("selectbox", "all-pairs.metric", "mutual knn")
    assert "All pairs, mutual kNN" not in ran_in_place
    session.click("all-pairs.start")
    assert "All pairs, mutual kNN" in ran_in_place
    expected = AllPairs("mutual knn", k=9).run([load(spec) for spec in session.workspace.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)


def test_an_order_that_nobody_confirmed_pairs_no_rows(make_workspace, tmp_path):
    rng, workspace = np.random.default_rng(4), make_workspace(120)
    rows = rng.normal(size=(120, 6))
    for name, vectors in (("first", rows), ("shuffled", rows[rng.permutation(120)])):
        np.save(tmp_path / f"{name}.npy", vectors)
    bare = tuple(SpaceSpec("file", str(tmp_path / f"{name}.npy")) for name in ("first", "shuffled"))
    pair = {"source": bare[0], "target": bare[1]}
    workspace = make_workspace(120, spaces=(*workspace.spaces, *bare), **pair)
    session = Session(None, workspace, UNIVERSE)
    assert "**Not shown:** first, shuffled." in session.captions
    chooser = next(one.key for one in session.multiselect if one.key.startswith("universe.spaces"))
    session.change("multiselect", chooser, list(bare))
    assert not charts(session)
    session.click("universe.by-order")
    assert "no more often than by chance" in session.html
