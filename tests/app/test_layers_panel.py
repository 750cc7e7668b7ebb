"""Layer by layer on the page: who is offered, what is drawn, and from a cell to its pair."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app import results
from app.compare import layers
from relcore.catalog.catalog import SpaceSpec, encoding_spec, load, put_space
from relcore.compare.layers import LayerPairs
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.transformers import MiniLM, PretrainedText
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from tests.app.conftest import Session

N = 150


@pytest.fixture
def layered(tmp_path) -> list[SpaceSpec]:
    """Two layers of one model and three of another, put into the store as encodings of one dataset."""
    rng, store, specs = np.random.default_rng(0), Store(), []
    labels = rng.integers(3, size=N)
    ids = [f"r{row}" for row in range(N)]
    for encoder, outputs in ((MiniLM((2, 4)), 2), (PretrainedText("other", (1, 3, 10)), 3)):
        for output in encoder.outputs[:outputs]:
            vectors = rng.normal(size=(N, 8)) + 2 * np.eye(8)[labels]
            name = f"{encoder.title} {output} · made"
            space = LatentSpace(vectors, ids, name=name, labels=[f"class {label}" for label in labels])
            specs.append(encoding_spec(DatasetSpec("digits"), encoder, output, put_space(store, space), name))
    return specs


@pytest.fixture
def make_layered(make_workspace, layered):
    def make(**changes) -> Session:
        anchors = tuple(f"r{row}" for row in range(20))
        own = {"spaces": tuple(layered), "source": layered[0], "target": layered[1], "anchors": anchors}
        return Session(workspace=make_workspace(N, **(own | changes)))

    return make


def heat_maps(session: Session) -> dict:
    """The last figure of the page, as the browser gets it."""
    return json.loads([element for element in session.main if element.type == "plotly_chart"][-1].proto.spec)


def hovers(session: Session, panel: int) -> list[str]:
    return [trace for trace in heat_maps(session)["data"] if trace["type"] == "scatter"][panel]["hovertext"]


def test_two_models_are_rows_and_columns(make_layered, layered):
    session = make_layered()
    assert not session.errors
    expected = LayerPairs(rows=(0, 1), columns=(2, 3, 4)).run([load(spec) for spec in layered])
    shown = [
        float(text.split("<br>")[2].rpartition(": ")[2].replace("−", "-")) for text in hovers(session, 0)
    ]
    np.testing.assert_allclose(np.reshape(shown, (2, 3)), expected.values, atol=6e-4)
    assert "the best of 6 pairs is ." in session.html
    assert "Best stitched: " in session.html
    assert all("chance level: ." in text for text in hovers(session, 0))
    assert all("held-out rows" in text and "not stitched" in text for text in hovers(session, 1))
    assert "20 anchors of the session" in session.captions


def test_a_model_against_itself_and_another_metric(make_layered, layered):
    session = make_layered(spaces=tuple(layered[2:]), source=layered[2], target=layered[3])
    assert len(hovers(session, 0)) == 9
    assert "the best of 3 pairs" in session.html
    assert "Dotted cells compare a space with itself" in session.captions
    for key, value in (("layers.metric", "relative cosine"), ("layers.method", "whitened")):
        session.change("button_group", key, value)
        assert not session.errors
    assert "stitched accuracy, relative, whitened" in json.dumps(heat_maps(session)["layout"])


def test_spaces_of_files_are_chosen_by_hand(make_workspace, tmp_path):
    workspace = make_workspace(120)
    third = SpaceSpec("file", str(tmp_path / "third.npz"))
    np.savez(
        third.name,
        vectors=np.random.default_rng(1).normal(size=(120, 4)),
        ids=[f"r{row}" for row in range(120)],
    )
    spaces = (*workspace.spaces, third)
    session = Session(workspace=make_workspace(120, spaces=spaces))
    assert "Checkpoints loaded from files can be chosen by hand" in session.captions
    session.change("toggle", "layers.by-hand", True)
    assert [info.value for info in session.info if info.value.startswith("Choose a space for the rows")]
    place = results.place_of(spaces)
    session.change("multiselect", f"layers.rows-by-hand-{place}", list(spaces[:2]))
    session.change("multiselect", f"layers.columns-by-hand-{place}", [third])
    assert len(hovers(session, 0)) == 2
    assert "Not stitched: expected labels to train heads on" in session.captions


def test_two_spaces_without_layers_are_not_bothered(make_session):
    assert "Layer by layer" not in [heading.value for heading in make_session().subheader]


def test_what_takes_long_is_a_job_that_is_asked_for_first(make_layered, ran_in_place, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)
    # An engine serves all sessions of a process, and its store has what other tests computed: no other asks
    # for these.
    session = make_layered(k=9).change("button_group", "layers.metric", "mutual knn")
    session.change("button_group", "layers.method", "whitened")
    assert ran_in_place == []
    assert session.button(key="layers.start").label.startswith("Compare 2 × 3 layers · ")
    assert session.button(key="stitching.start").label.startswith("Stitch 5 layers · ")
    session.click("layers.start")
    assert ran_in_place == ["Layer by layer, mutual kNN"]
    assert "the best of 6 pairs is ." in session.html


def test_a_cell_is_its_row_and_its_column(layered):
    rows, columns = layered[:2], layered[1:]
    assert layers.pair_of([{"customdata": [0, 0, 2]}], rows, columns) == (layered[0], layered[3])
    assert layers.pair_of([{"customdata": [1, 1, 0]}], rows, columns) is None
    assert layers.pair_of([], rows, columns) is None
