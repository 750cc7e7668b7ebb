"""UMAP of more rows than are fitted: the others are placed on the map of a sample. The limit is lowered to
be reached.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.maps import pane_maps, umap_map
from relcore.maps.pane_maps import map_pair, pane_blocks, pane_matrices, reduce_pair, reduction_note
from relcore.maps.reduction import (
    ReductionSpec,
    put_blocks,
    put_matrices,
    reduce_job,
    reduce_spaces,
)
from relcore.maps.umap_map import UmapMap, rows_fitted
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.scores.comparison import REPRESENTATIONS, ProjectionSpec, represent
from relcore.spaces.rows import MadeRows
from relcore.spaces.space import LatentSpace, match

N, LIMIT, AT_ONCE = 600, 250, 100
SPEC = ReductionSpec("umap")
N_CLASSES = 5


@pytest.fixture(scope="module")
def classes():
    return np.random.default_rng(1).integers(N_CLASSES, size=N)


@pytest.fixture(scope="module")
def rows(classes):
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(N_CLASSES, 8))
    return (centres[classes] + rng.normal(size=(N, 8))).astype(np.float32)


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setattr(umap_map, "FITTED_ROWS", LIMIT)
    monkeypatch.setattr(umap_map, "PLACED_AT_ONCE", AT_ONCE)


def share_beside_own_class(picture, fitted, classes):
    """Of the rows that were placed, how many have a fitted row of their class nearest on the map."""
    others = np.setdiff1d(np.arange(len(picture)), fitted)
    nearest = fitted[np.linalg.norm(picture[others][:, None] - picture[fitted][None], axis=2).argmin(axis=1)]
    return np.mean(classes[nearest] == classes[others])


@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize("metric", ["cosine", pytest.param("euclidean", marks=pytest.mark.slow)])
def test_all_rows_have_a_place_and_those_of_the_sample_that_of_the_fit(rows, metric):
    [picture] = reduce_spaces([rows], replace(SPEC, metric=metric))
    fitted = rows_fitted(N, 0)
    assert len(fitted) == len(set(fitted)) == LIMIT
    assert picture.shape == (N, 2)
    assert np.isfinite(picture).all()
    np.testing.assert_array_equal(picture[fitted], UmapMap(metric=metric).fit(rows[fitted]).embedding_)


@pytest.mark.usefixtures("low_limit")
def test_placed_rows_lie_beside_their_class_and_shuffled_rows_do_not(rows, classes):
    [picture] = reduce_spaces([rows], SPEC)
    fitted = rows_fitted(N, 0)
    assert share_beside_own_class(picture, fitted, classes) > 0.9
    mixed = rows.copy()
    others = np.setdiff1d(np.arange(N), fitted)
    mixed[others] = rows[np.random.default_rng(2).permutation(others)]
    [control] = reduce_spaces([mixed], SPEC)
    # Chance is the sum of squared shares, about .2; its standard error over 350 rows is .02.
    assert share_beside_own_class(control, fitted, classes) < 0.3


@pytest.mark.usefixtures("low_limit")
def test_both_spaces_are_fitted_on_the_same_rows_and_the_random_state_draws_them(rows):
    first, second = reduce_spaces([rows, rows], SPEC)
    np.testing.assert_array_equal(first, second)
    assert set(rows_fitted(N, 0)) != set(rows_fitted(N, 1))
    [again] = reduce_spaces([rows], SPEC)
    np.testing.assert_array_equal(again, first)


@pytest.mark.usefixtures("low_limit")
def test_a_second_space_is_placed_on_the_map_of_the_first_ones_sample(rows, classes):
    shuffled = rows[::-1]
    first, second = reduce_spaces([rows, shuffled], replace(SPEC, fit="first"))
    [apart] = reduce_spaces([rows], SPEC)
    np.testing.assert_array_equal(first, apart)
    assert np.isfinite(second).all()
    assert np.median(np.linalg.norm(second[::-1] - first, axis=1)) < 0.3 * first.std()


@pytest.mark.parametrize("fit", ["apart", "first"])
def test_up_to_the_limit_nothing_changes(rows, monkeypatch, fit):
    spec = replace(SPEC, fit=fit)
    few = [rows[:LIMIT], rows[LIMIT : 2 * LIMIT]]
    expected = reduce_spaces(few, spec)
    monkeypatch.setattr(umap_map, "FITTED_ROWS", LIMIT)
    for ours, theirs in zip(reduce_spaces(few, spec), expected, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize("fit", ["apart", "first"])
def test_progress_counts_the_rows_placed_and_rises_to_the_end(rows, fit):
    reports = []
    reduce_spaces([rows, rows + 1], replace(SPEC, fit=fit), lambda *report: reports.append(report))
    done = [report[0] for report in reports]
    assert done == sorted(done)
    assert reports[-1][0] == reports[-1][1] == reports[0][1]
    told = [message for _, _, message in reports]
    assert sum("placing the other rows: row 350 of 350" in message for message in told) == (
        2 if fit == "apart" else 1
    )
    assert any("placing space 2: row 600 of 600" in message for message in told) == (fit == "first")


@pytest.mark.usefixtures("low_limit")
def test_the_note_tells_how_many_rows_were_fitted(rows):
    _, note = reduce_pair([rows, rows], SPEC)
    assert note == "UMAP fitted on 250 of 600 rows, the others placed by it, each space fitted apart"
    assert reduction_note(SPEC, n_rows=LIMIT) == "UMAP, each space fitted apart"
    assert "placed" not in reduction_note(replace(SPEC, method="tsne"), n_rows=N)
    assert "placed" not in reduction_note(replace(SPEC, method="pca"), n_rows=N)


@pytest.mark.parametrize("pane", REPRESENTATIONS)
def test_blocks_of_a_pane_are_its_matrices(rows, pane, monkeypatch):
    monkeypatch.setattr("relcore.represent.similarity.row_blocks.__defaults__", (128,))
    ids = [f"r{row}" for row in range(N)]
    pair = match(LatentSpace(rows, ids), LatentSpace(rows[:, ::-1] + 1, ids))
    for drawn in (np.arange(N), np.arange(3, N, 2)):
        settings = drawn, ids[:20], ProjectionSpec(), pane
        for blocks, expected in zip(
            pane_blocks(pair, *settings), pane_matrices(pair, *settings), strict=True
        ):
            found = list(blocks)
            assert max(map(len, found)) == 128
            np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-5)


@pytest.mark.usefixtures("low_limit")
def test_a_job_reads_blocks_from_the_store_as_it_reads_a_matrix(rows, tmp_path):
    store, [whole] = Store(tmp_path), put_matrices(Store(tmp_path), [rows])
    streamed = "b" * 32
    put_blocks(store, streamed, iter([rows[:400], rows[400:]]), rows.shape)
    pictures = []
    for key, inputs in (("c" * 32, [whole]), ("d" * 32, [streamed])):
        reduce_job(Context(key, store), spec=SPEC, inputs=inputs)
        pictures.append(store.get(key).arrays["coordinates_0"])
    np.testing.assert_array_equal(*pictures)
    store.remove(streamed)
    with pytest.raises(SpaceError, match="1 of 1 matrices are no longer in"):
        reduce_job(Context("e" * 32, store), spec=SPEC, inputs=[streamed])


@pytest.fixture
def linear_layout(monkeypatch):
    """In UMAP's place a product: UMAP makes another map of the last bits, and these differ by processor
    between block sizes.
    """

    def place(self, X):
        return X @ np.random.default_rng(self.random_state).normal(
            size=(X.shape[1], self.n_components)
        ).astype(np.float32)

    def fit(self, X):
        self.embedding_, self.model_ = place(self, X), SimpleNamespace(tqdm_kwds={})
        return self

    monkeypatch.setattr(umap_map.UmapMap, "fit", fit)
    monkeypatch.setattr(umap_map.UmapMap, "transform", place)


@pytest.mark.usefixtures("low_limit", "linear_layout")
@pytest.mark.parametrize("pane", REPRESENTATIONS)
@pytest.mark.parametrize("fit", ["apart", "first"])
def test_a_map_of_many_rows_is_that_of_the_matrix_and_forms_none(rows, pane, fit, monkeypatch):
    ids = [f"r{row}" for row in range(N)]
    pair = match(LatentSpace(rows, ids), LatentSpace(rows[:, ::-1] + 1, ids))
    spec, anchors = replace(SPEC, fit=fit), ids[:20]
    for drawn in (np.arange(N), np.arange(3, N, 2)):
        expected, told = reduce_pair(pane_matrices(pair, drawn, anchors, ProjectionSpec(), pane), spec)
        with monkeypatch.context() as patched:
            patched.setattr(pane_maps, "represent", None)
            patched.setattr(pane_maps, "pane_matrices", None)
            found, note = map_pair(pair, drawn, pane, anchors, ProjectionSpec(), spec)
        assert note == told
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("low_limit")
def test_made_rows_far_from_one_are_scaled_as_a_matrix_is(rows):
    large = np.ldexp(rows, 70)
    made = MadeRows(large, np.asarray, np.arange(N))
    spec = replace(SPEC, metric="euclidean")
    np.testing.assert_array_equal(reduce_spaces([made], spec), reduce_spaces([large], spec))


@pytest.mark.parametrize("pane", REPRESENTATIONS)
def test_of_a_sample_no_other_row_is_made(rows, pane, monkeypatch):
    ids = [f"r{row}" for row in range(N)]
    pair, drawn, anchors = (
        match(LatentSpace(rows, ids), LatentSpace(rows[:, ::-1] + 1, ids)),
        np.arange(3, N, 2),
        ids[:20],
    )
    whole = represent(pair, pane, anchors, ProjectionSpec())
    monkeypatch.setattr(pane_maps, "represent", None)
    for ours, theirs in zip(pane_matrices(pair, drawn, anchors, ProjectionSpec(), pane), whole, strict=True):
        np.testing.assert_allclose(ours, theirs[drawn], atol=1e-6)
