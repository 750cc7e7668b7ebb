"""The Rescale tab: says what it needs, tells the cost first, and shows what the core finds."""

from __future__ import annotations

import numpy as np
import pytest

from app import results
from app.invert import rescale
from app.workspace import Workspace
from relcore.catalog.catalog import SpaceSpec, load
from relcore.invert.rescale import InputRescaleSpec, rescale_input
from relcore.maps.views import ViewSpec
from relcore.runs.jobs import Engine
from relcore.runs.progress import Context
from tests.app.conftest import Session


def run_at_once(engine, key, function, *, title, expected=None, here=None, **kwargs):
    function(Context(key, engine.store), **kwargs)
    return engine.job(key)


def labelled_spaces(folder, names=("one", "two"), n=90, seed=0) -> list[SpaceSpec]:
    """Three classes in three directions, the second space turned and scaled."""
    rng = np.random.default_rng(seed)
    X = 3 * np.eye(6)[np.arange(n) % 3] + 0.5 * rng.normal(size=(n, 6))
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    specs = []
    for number, name in enumerate(names):
        path = folder / f"{name}.npz"
        vectors = (X if number == 0 else 2 * X @ turn).astype(np.float32)
        np.savez(
            path,
            vectors=vectors,
            ids=[f"r{row}" for row in range(n)],
            labels=[f"c{row % 3}" for row in range(n)],
        )
        specs.append(SpaceSpec("file", str(path)))
    return specs


def open_tab(specs, tab: str, **changes) -> Session:
    anchors = tuple(f"r{row}" for row in range(0, 60, 2))
    workspace = Workspace(
        tuple(specs), specs[0], specs[1], anchors, view=ViewSpec(("r1", "r2"), n_nearest=20)
    )
    session = Session(workspace=Workspace(**{**workspace.__dict__, **changes}))
    session.at.session_state["invert.tab"] = tab
    return session.open("invert")


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(Engine, "submit", run_at_once)
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)


def test_the_cost_is_told_first_and_the_curves_are_the_cores(tmp_path, at_once):
    specs = labelled_spaces(tmp_path)
    session = open_tab(specs, "Rescale").change("button_group", "rescale.states", 1)
    assert session.button(key="rescale-input.start").label == "Train 3 small networks and rescale · about 3 s"
    session.click("rescale-input.start")
    expected = rescale_input(load(specs[0]), InputRescaleSpec(random_states=(0,)))
    table = session.at.dataframe[0].value
    assert table["as it is"].tolist() == expected.table()["as it is"].round(3).tolist()
    assert f"**{expected.n_test}** other rows" in session.captions
    assert f"mean {expected.mean_length:.3g}" in session.captions


def test_without_labels_it_says_where_to_get_some(make_workspace):
    workspace = make_workspace(60)
    session = open_tab(workspace.spaces, "Rescale", anchors=workspace.anchors)
    assert [one.value for one in session.info if one.value.startswith("Networks need labels to learn")]
    assert not session.errors


def test_inside_a_network_the_examples_are_offered_and_cost_is_told(tmp_path):
    session = open_tab(labelled_spaces(tmp_path), "Rescale").change("button_group", "rescale.place", "layers")
    chooser = session.selectbox(key="rescale.network")
    assert chooser.options == list(rescale.EXAMPLES)
    (button,) = [one for one in session.button if one.key == "rescale-layers.start"]
    assert button.label.startswith("Rescale every layer, 360 items · about")
    assert "1,797 items in 'digits', 10 classes" in session.captions
