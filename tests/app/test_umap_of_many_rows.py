"""UMAP in the panes above the number of rows that it is fitted on."""

import numpy as np
import pytest

from app import jobs
from relcore.maps import umap_map
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import View
from relcore.runs.jobs import Engine
from relcore.scores.comparison import ProjectionSpec
from relcore.spaces.space import LatentSpace, match

N = 120
IDS = [f"r{row}" for row in range(N)]


@pytest.fixture
def pair():
    vectors = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)
    return match(LatentSpace(vectors, IDS, name="a"), LatentSpace(vectors[:, ::-1].copy(), IDS, name="b"))


@pytest.fixture
def engine(monkeypatch, ran_in_place):
    engine = Engine()
    monkeypatch.setattr("app.jobs.engine", lambda: engine)
    yield engine
    engine.close()


@pytest.mark.usefixtures("engine")
def test_the_note_of_a_pane_tells_it_and_the_map_of_all_rows_is_left_alone(pair, monkeypatch, ran_in_place):
    drawn = View(np.arange(N), np.full(N, -1), ())
    settings = pair, drawn, "relative", tuple(IDS[:10]), ProjectionSpec(), ReductionSpec("umap", fit="first")
    whole, note = jobs.reduction(*settings)
    assert note == "UMAP, fitted on the first space"
    monkeypatch.setattr(umap_map, "FITTED_ROWS", 80)
    sampled, note = jobs.reduction(*settings)
    assert note == "UMAP fitted on 80 of 120 rows, the others placed by it, fitted on the first space"
    assert not np.array_equal(sampled[0], whole[0])
    assert all(np.isfinite(picture).all() and len(picture) == N for picture in sampled)
    np.testing.assert_array_equal(jobs.reduction(*settings)[0], sampled)
    monkeypatch.setattr(umap_map, "FITTED_ROWS", N)
    np.testing.assert_array_equal(jobs.reduction(*settings)[0], whole)
    assert len(ran_in_place) == 2


@pytest.mark.usefixtures("engine", "ran_in_place")
def test_no_matrix_of_similarities_is_formed_above_the_number(pair, monkeypatch):
    monkeypatch.setattr(umap_map, "FITTED_ROWS", 80)
    monkeypatch.setattr("app.jobs.pane_matrices", None)
    drawn = View(np.arange(1, N), np.full(N - 1, -1), ())
    for pane in ("relative", "whitened", "absolute"):
        pictures, note = jobs.reduction(
            pair, drawn, pane, tuple(IDS[:10]), ProjectionSpec(), ReductionSpec("umap")
        )
        assert [picture.shape for picture in pictures] == [(N - 1, 2)] * 2
        assert "80 of 119 rows" in note
