import re
from base64 import b64decode
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from app import exports, results
from app.plain_text import plain_html
from app.universe import choosing, panel
from relcore import Universe, bundled_results, example_spaces
from relcore import save_space as save
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.all_pairs import AllPairs
from relcore.spaces.ids import GuessedIds
from relcore.spaces.space import LatentSpace
from relcore.universe.universe import UniverseSpec
from tests.app.conftest import Session, save_space
from tests.relcore.figures.test_colors import contrast

UNIVERSE = ("connect", "Universe")


@pytest.fixture
def make_four(make_workspace, tmp_path):
    """``make_four(**changes)``: a space and its noisy copy, one wider, one of other ids unless `linked`."""

    def make(linked=False, **changes):
        workspace = make_workspace(120)
        rng = np.random.default_rng(1)
        vectors = load(workspace.source).vectors
        wide = save_space(tmp_path / "wide.npz", np.c_[vectors, rng.normal(size=(120, 3))])
        rows = linked * vectors + rng.normal(size=(120, 6))
        stranger = save_space(tmp_path / "stranger.npz", rows, "r" if linked else "q")
        spaces = (*workspace.spaces, wide, stranger)
        session = Session(None, make_workspace(120, spaces=spaces, **changes), UNIVERSE)
        if linked:
            return session
        assert "**Not shown:** stranger." in session.captions
        assert not session.errors
        session.change("button_group", "universe.spaces", list(session.workspace.spaces))
        assert any("**stranger**: shares no rows with the models" in one.value for one in session.markdown)
        assert "Take a row of one model into another" in session.html
        return session.change("button_group", "universe.chart-", "similarity")

    return make


def chart(session):
    (shown,) = (one for one in session.charts if not one.get("frames"))
    return shown


def numbers(session):
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
    session.change("button_group", "universe.chart-", "accuracy")
    assert sum("same row nearest: " in text for text in chart(session)["data"][-1]["hovertext"]) == 12
    session.change("button_group", "universe.chart-", "map")
    assert len(chart(session)["data"]) == 1
    assert session.html.count('<td class="same">') >= 4  # of at least 6 rows
    assert not re.search('<td class="same">[^<]*</td><td class="other">', session.html)


def test_a_file_shows_scores_and_its_models_that_are_here(make_four, make_workspace, tmp_path):
    session = make_four(linked=True)
    specs = session.workspace.spaces
    rng = np.random.default_rng(3)
    rows = load(specs[0]).vectors
    away = LatentSpace(rows + rng.normal(size=rows.shape), load(specs[0]).ids, name="away")
    Universe.fit([*map(load, specs), away]).save(tmp_path / "five.universe")
    session.change("button_group", "universe.of", "file")
    assert "relscope universe" in session.captions
    session.change("text_input", "universe.path", str(tmp_path / "five.universe"))
    assert "how alike the 5 models are" in session.html
    assert "Not in this session: away" in session.captions
    (moving,) = (one for one in session.charts if one.get("frames"))
    assert len(moving["frames"]) == 1 + len(specs)
    source, target = (session.find("selectbox", f"universe.{end}") for end in ("from", "to"))
    assert (len(source.options), len(target.options)) == (4, 4)
    assert "away" in target.options
    session.change("text_input", "universe.path", str(tmp_path / "wide.npz"))
    assert "expected a universe, got" in session.errors[0]


def test_a_file_that_is_dropped_is_placed_beside_the_example(make_four, tmp_path):
    session = make_four(linked=True).change("button_group", choosing.MODELS, "digits")
    specs, _ = example_spaces("digits", bundled_results())
    network = load(specs[1])
    others = [f"x{row}" for row in range(len(network))]
    for number, (name, ids) in enumerate((("mine", network.ids), ("apart", others))):
        save(LatentSpace(network.vectors, ids), tmp_path / f"{name}.npz")
        content = (tmp_path / f"{name}.npz").read_bytes()
        session.upload(f"universe.drop-{number}", f"{name}.npz", content)
        assert not session.errors
    mine, apart = session.workspace.spaces[-2:]
    pills = session.find("button_group", "universe.spaces")
    assert (session.find("button_group", choosing.MODELS).value, len(pills.options)) == ("digits", 5)
    assert mine in pills.value
    assert apart not in pills.value
    assert any("“apart” shares no row ids" in one.value for one in session.markdown)
    session.click("universe.show-own")
    assert apart in session.workspace.spaces
    assert session.find("button_group", choosing.MODELS).value == "own"


def test_a_model_that_was_left_out_stays_out(make_four, tmp_path):
    session = make_four()
    session.click("Leave it out")
    stranger = session.workspace.spaces[3]
    wide = session.workspace.spaces[2]
    assert stranger not in session.find("button_group", "universe.spaces").value
    session.change("button_group", "universe.spaces", list(session.workspace.spaces[:2]))
    save(LatentSpace(load(wide).vectors, load(wide).ids), tmp_path / "new.npz")
    session.upload("universe.drop-0", "new.npz", (tmp_path / "new.npz").read_bytes())
    *known, new = session.workspace.spaces
    assert session.find("button_group", "universe.spaces").value == [*known[:2], new]
    assert "Rows in common with those shown: wide. Click above to add." in session.captions


def test_a_model_whose_pairs_are_guesses_is_told_apart(make_workspace):
    spaces = [load(spec) for spec in make_workspace(120).spaces]
    guessed = LatentSpace(spaces[0].vectors, GuessedIds.of(spaces[0].ids, ()), name="guessed")
    universe = UniverseSpec().run([*spaces, guessed])
    by_name = dict(zip(universe.names, "abc", strict=True))
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panel, "draw_left_out", lambda specs, chosen, reason: told.append((specs, reason)))
        panel._say_unscored(universe, by_name, dict(zip(by_name, [*spaces, guessed], strict=True)), "abc")
    ((left_out, reason),) = told
    assert left_out == ["c"]
    assert "pairs that Link guessed are not scored" in reason


def test_two_models_that_are_clicked_open_in_explore(make_four, monkeypatch):
    session = make_four(linked=True)
    by_name = {load(spec).name: spec for spec in session.workspace.spaces}
    opened = []
    table = pd.DataFrame({"name": list(by_name)})
    monkeypatch.setattr(panel.st, "session_state", {})
    monkeypatch.setattr(panel.session, "guarded", lambda change, *pair: opened.append(pair))
    for place in (3, 1):
        panel._pick(list(by_name), by_name, table, "map", [{"customdata": place}])
    panel._pick(list(by_name), by_name, table, "accuracy", [{"customdata": [0, 2, 0]}])
    panel._pick([*by_name, "away"], by_name, table, "accuracy", [{"customdata": [0, 4, 0]}])
    specs = list(by_name.values())
    assert opened == [(specs[3], specs[1]), (specs[2], specs[0])]


def test_a_click_that_comes_twice_chooses_one_model(make_four, monkeypatch):
    session = make_four(linked=True)
    by_name = {load(spec).name: spec for spec in session.workspace.spaces}
    table = pd.DataFrame({"name": list(by_name)})
    clicks = SimpleNamespace(selection=SimpleNamespace(points=[{"customdata": 3}]))
    state = {"map": clicks}
    opened = []
    callbacks = []
    monkeypatch.setattr(panel.st, "session_state", state)
    monkeypatch.setattr(panel.session, "guarded", lambda change, *pair: opened.append(pair))
    monkeypatch.setattr(exports.st, "plotly_chart", lambda *_, on_select, **look: callbacks.append(on_select))
    pick = partial(panel._pick, list(by_name), by_name, table, "map")
    for _ in range(2):
        exports.chart(go.Figure(), "map", picked=pick)
    first, second = callbacks
    first()
    first()  # sent again, by the progress of a job
    assert state[panel._PICKED] == list(by_name)[3]
    clicks.selection.points = [{"customdata": 1}]
    second()
    second()
    assert opened == [(by_name[list(by_name)[3]], by_name[list(by_name)[1]])]
    assert panel._PICKED not in state


def test_the_chosen_model_is_ringed(make_four):
    session = make_four(linked=True)
    session.change("button_group", "universe.chart-", "map")
    dots = chart(session)["data"][0]
    session.at.session_state[panel._PICKED] = load(session.workspace.spaces[2]).name
    session.run()
    ring = chart(session)["data"][-1]
    assert ring["marker"]["symbol"] == "circle-open"
    for axis in "xy":
        assert ring[axis] == [np.frombuffer(b64decode(dots[axis]["bdata"]), dots[axis]["dtype"])[2]]


def test_each_score_is_the_cores(make_four):
    session = make_four().change("selectbox", "all-pairs.metric", "relative cosine")
    now = session.workspace
    settings = {"anchors": now.anchors, "projection": now.projection, "k": now.k, "n_queries": 300}
    expected = AllPairs("relative cosine", **settings).run([load(spec) for spec in now.spaces])
    np.testing.assert_allclose(numbers(session), expected.values, atol=6e-4)
    assert np.isnan(expected.values).sum() == 7


def test_models_that_are_all_alike_lead_to_other_scores(make_workspace, tmp_path):
    """Before, the page only said that a map needs scores that differ."""
    rows = np.random.default_rng(0).normal(size=(240, 6))
    specs = [save_space(tmp_path / f"{name}.npz", rows) for name in ("one", "two", "three")]
    session = Session(None, make_workspace(240, spaces=specs, source=specs[0], target=specs[1]), UNIVERSE)
    assert "universe.others" in session.keys
    session.click("universe.others")
    assert session.find("button_group", "universe.chart-").value == "similarity"
    assert not session.errors


def test_what_takes_long_is_a_job_on_request(make_four, ran_in_place, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)
    # A job queue serves all sessions of a process, and its store has what other tests computed: no other asks
    # for this k.
    session = make_four(k=9).change("selectbox", "all-pairs.metric", "mutual knn")
    assert "All pairs, mutual kNN" not in ran_in_place
    session.click("all-pairs.start")
    assert "All pairs, mutual kNN" in ran_in_place


def test_an_order_that_nobody_confirmed_pairs_no_rows(make_workspace, tmp_path):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(120, 6))
    for name, vectors in (("first", rows), ("shuffled", rows[rng.permutation(120)])):
        np.save(tmp_path / f"{name}.npy", vectors)
    bare = tuple(SpaceSpec("file", str(tmp_path / f"{name}.npy")) for name in ("first", "shuffled"))
    spaces = (*make_workspace(120).spaces, *bare)
    session = Session(None, make_workspace(120, spaces=spaces, source=bare[0], target=bare[1]), UNIVERSE)
    assert "**Not shown:** first, shuffled." in session.captions
    session.change("button_group", "universe.spaces", list(bare))
    assert not session.charts
    session.click("universe.by-order")
    assert "no more often than by chance" in session.html


def test_a_primary_button_under_the_pointer_can_be_read():
    """Before, in the dark, “Add a model” was dark on a saturated blue while it had the pointer or the focus."""
    style = (Path(panel.__file__).parents[2] / "assets" / "style.css").read_text()
    look = r'button\[kind="primary"\]{}:not\(:disabled\)[^{{]*\{{[^}}]*{}: light-dark\((#\w+), (#\w+)\)'
    texts = re.search(look.format("", " color"), style)
    grounds = re.search(look.format(r":is\(:hover, :focus\)", "background-color"), style)
    for text, ground in zip(texts.groups(), grounds.groups(), strict=True):
        assert contrast(text, ground) > 4.5  # WCAG, AA
