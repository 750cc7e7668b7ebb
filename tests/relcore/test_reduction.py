import json
import re
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness
from threadpoolctl import threadpool_limits

from relcore.base.errors import SpaceError
from relcore.maps.reduction import ReductionSpec, put_matrices, reduce_job, reduce_spaces, sampled_rows
from relcore.represent.translation import align
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context
from relcore.runs.store import Store


@pytest.fixture(autouse=True)
def one_thread():
    """t-SNE's threads wait for each other at every iteration, which takes minutes where the processors are
    busy.
    """
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:300].astype(np.float32)


def up_to_sign(picture, expected):
    return picture * np.sign(np.sum(picture * expected, axis=0))


@pytest.mark.parametrize("shape", [(500, 20), (30, 200)])
@pytest.mark.parametrize("n_components", [2, 3])
def test_pca_equals_scikit_learns_up_to_sign(rng, shape, n_components):
    matrix = rng.normal(size=shape) * np.linspace(3, 1, shape[1]) + 5
    [picture] = reduce_spaces([matrix], ReductionSpec(n_components=n_components))
    expected = PCA(n_components, svd_solver="full").fit_transform(matrix)
    assert picture.dtype == np.float32
    np.testing.assert_allclose(up_to_sign(picture, expected), expected, atol=1e-2)


@pytest.mark.parametrize("shape", [(500, 20), (30, 200)])
def test_pca_does_not_see_a_rotation_or_a_shift_not_even_in_its_signs(rng, shape):
    matrix = rng.normal(size=shape) * np.linspace(3, 1, shape[1])
    turned = matrix @ ortho_group.rvs(shape[1], random_state=0) + 2
    picture, of_turned = reduce_spaces([matrix, turned], ReductionSpec())
    np.testing.assert_allclose(of_turned, picture, atol=1e-2)


def test_pca_beyond_the_rank_is_zero():
    line = np.outer(np.arange(5), [1, 2, 3, 4, 5, 6, 7])
    [picture] = reduce_spaces([line], ReductionSpec(n_components=3))
    assert np.ptp(picture[:, 0]) > 1
    np.testing.assert_allclose(picture[:, 1:], 0, atol=1e-4)


def test_fit_first_puts_the_others_on_the_first_ones_map(rng):
    matrix = rng.normal(size=(200, 10)) * np.linspace(3, 1, 10)
    other = matrix[::-1] + 1
    expected = PCA(2).fit(matrix)
    first, second = reduce_spaces([matrix, other], ReductionSpec(fit="first"))
    signs = np.sign(np.sum(first * expected.transform(matrix), axis=0))
    np.testing.assert_allclose(second * signs, expected.transform(other), atol=1e-3)
    apart = reduce_spaces([matrix, other], ReductionSpec(fit="apart"))
    np.testing.assert_allclose(apart[0], first, atol=1e-5)
    assert abs(apart[1].mean()) < 1e-4 < 0.1 < abs(second.mean(axis=0)).max()


def test_fit_first_needs_equal_widths(rng):
    with pytest.raises(
        SpaceError, match=r"expected spaces of equal width, got 5, 6; use fit='apart', or the relative"
    ):
        reduce_spaces([rng.normal(size=(9, 5)), rng.normal(size=(9, 6))], ReductionSpec(fit="first"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "isomap"}, "method: expected one of 'pca', 'umap', 'tsne', got 'isomap'"),
        ({"n_components": 4}, "n_components: expected one of 2, 3, got 4"),
        ({"fit": "last"}, "fit: expected"),
        ({"metric": "l1"}, "metric: expected"),
        ({"n_neighbors": 1}, "n_neighbors of 2 or more"),
        ({"perplexity": 0.0}, "perplexity above 0"),
        ({"min_dist": 1.5}, "min_dist from 0 to 1"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(SpaceError, match=message):
        ReductionSpec(**settings)


@pytest.mark.parametrize(
    ("method", "shape", "message"),
    [
        *(
            (method, shape, f"got shape {shape}")
            for method in ("pca", "umap", "tsne")
            for shape in ((2, 5), (10,), (10, 0))
        ),
        (
            "umap",
            (10, 1),
            (
                "space 1: expected at least 3 rows, and 2 or more columns for 2 components by UMAP, got shape"
                " (10, 1)"
            ),
        ),
        ("tsne", (10, 1), "by t-SNE, got shape (10, 1); take more rows or anchors, or method 'pca'"),
    ],
)
def test_too_little_to_draw_is_refused(method, shape, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        reduce_spaces([np.ones(shape)], ReductionSpec(method))


@pytest.mark.parametrize("n_columns", [1, 2])
def test_pca_of_fewer_columns_than_components_leaves_the_rest_zero(rng, n_columns):
    matrix, other = rng.normal(size=(2, 40, n_columns)).astype(np.float32)
    [picture] = reduce_spaces([matrix], ReductionSpec(n_components=3))
    expected = PCA(n_columns).fit_transform(matrix)
    np.testing.assert_allclose(up_to_sign(picture[:, :n_columns], expected), expected, atol=1e-4)
    np.testing.assert_array_equal(picture[:, n_columns:], 0)
    for spec in (ReductionSpec(n_components=3, fit="first"), ReductionSpec(n_components=3, align=True)):
        pictures = reduce_spaces([matrix, other], spec)
        assert np.isfinite(pictures).all()
        assert np.ptp(pictures[1][:, 0]) > 0.1
        np.testing.assert_allclose([one[:, n_columns:] for one in pictures], 0, atol=1e-5)


def test_no_space_at_all_is_refused():
    with pytest.raises(SpaceError, match="at least one space"):
        reduce_spaces([], ReductionSpec())


@pytest.mark.parametrize("method", ["pca", "umap", "tsne"])
@pytest.mark.parametrize("n", [3, 16])
def test_a_handful_of_rows_can_be_drawn(rng, method, n):
    [picture] = reduce_spaces([rng.normal(size=(n, 4))], ReductionSpec(method))
    assert picture.shape == (n, 2)
    assert np.isfinite(picture).all()


def test_the_spec_survives_json():
    spec = ReductionSpec("umap", n_components=3, align=True, n_neighbors=7)
    assert ReductionSpec(**json.loads(json.dumps(asdict(spec)))) == spec


@pytest.mark.parametrize("method", ["umap", "tsne"])
def test_neighbours_stay_neighbours(digits, method):
    labels = load_digits().target[:300]
    [picture] = reduce_spaces([digits], ReductionSpec(method))
    distances = np.linalg.norm(picture[:, None] - picture[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert np.mean(labels[distances.argmin(axis=1)] == labels) > 0.9


@pytest.mark.parametrize("method", ["umap", "tsne"])
def test_the_random_state_decides_everything(digits, method):
    one, two, other = (
        reduce_spaces([digits[:100]], ReductionSpec(method, random_state=state))[0] for state in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("metric", ["cosine", pytest.param("euclidean", marks=pytest.mark.slow)])
def test_umap_places_a_copy_of_the_first_space_on_the_first_picture(digits, metric):
    first, again, shuffled = reduce_spaces(
        [digits, digits + 1e-3, digits[::-1] + 1e-3], ReductionSpec("umap", fit="first", metric=metric)
    )
    spread = first.std()
    assert np.median(np.linalg.norm(again - first, axis=1)) < 0.3 * spread
    assert np.median(np.linalg.norm(shuffled[::-1] - first, axis=1)) < 0.3 * spread


def test_tsne_places_other_spaces_on_the_first_ones_map(digits):
    first, again, shuffled = reduce_spaces(
        [digits, digits + 1e-3, digits[::-1]], ReductionSpec("tsne", fit="first")
    )
    spread = first.std()
    assert np.median(np.linalg.norm(again - first, axis=1)) < 0.05 * spread
    assert np.quantile(np.linalg.norm(again - first, axis=1), 0.95) < 0.3 * spread
    assert (
        np.median(np.linalg.norm(shuffled[::-1] - first, axis=1)) < 0.05 * spread
    )  # a place depends on its own row alone
    [apart] = reduce_spaces([digits], ReductionSpec("tsne"))
    np.testing.assert_array_equal(apart, first)


def test_rows_that_tsne_was_not_fitted_on_land_among_their_class(digits):
    labels = load_digits().target[:300]
    fitted, placed = reduce_spaces([digits[:200], digits[200:]], ReductionSpec("tsne", fit="first"))
    nearest = np.linalg.norm(placed[:, None] - fitted[None], axis=2).argmin(axis=1)
    # Of 100 rows the nearest neighbour in the space itself has the class of 96: chance is .1, its standard
    # error .03.
    assert np.mean(labels[nearest] == labels[200:]) > 0.8


def test_tsne_of_another_space_is_in_the_coordinates_of_the_first_and_samples_it(digits):
    spec = ReductionSpec("tsne", fit="first", max_points=100)
    first, other = reduce_spaces([digits, digits], spec)
    drawn = sampled_rows(300, spec)
    assert np.isfinite(first).all(axis=1).sum() == len(drawn) == 100
    assert np.median(np.linalg.norm((other - first)[drawn], axis=1)) < 0.05 * np.nanstd(first)


def test_tsne_of_equal_rows_and_of_zero_rows_is_finite():
    matrix = np.ones((20, 5), dtype=np.float32)
    matrix[3] = 0
    [picture] = reduce_spaces([matrix], ReductionSpec("tsne"))
    assert np.isfinite(picture).all()
    assert np.ptp(picture, axis=0).min() > 0


@pytest.mark.parametrize("metric", ["cosine", pytest.param("euclidean", marks=pytest.mark.slow)])
def test_tsne_keeps_neighbours_as_well_as_scikit_learns(digits, metric):
    [picture] = reduce_spaces([digits], ReductionSpec("tsne", metric=metric))
    expected = TSNE(metric=metric, init="pca", random_state=0).fit_transform(digits)
    kept, there = (trustworthiness(digits, one, n_neighbors=10, metric=metric) for one in (picture, expected))
    assert kept > there - 0.02  # maps of other random states differ by .001


def test_tsne_draws_a_sample_and_says_so(digits, tmp_path):
    spec = ReductionSpec("tsne", max_points=50)
    store = Store(tmp_path)
    keys = put_matrices(store, [digits, digits])
    context = Context("a" * 32, store)
    reduce_job(context, spec=spec, inputs=keys)
    entry = store.get(context.key)
    assert entry.metadata["n_rows"] == [300, 300]
    assert entry.metadata["n_drawn"] == [50, 50]
    drawn = np.isfinite(entry.arrays["coordinates_0"]).all(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(drawn), sampled_rows(300, spec))
    np.testing.assert_array_equal(drawn, np.isfinite(entry.arrays["coordinates_1"]).all(axis=1))


@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_align_undoes_rotation_reflection_scale_and_shift(rng, scale):
    reference = rng.normal(size=(100, 3)).astype(np.float32)
    turned = scale * reference @ ortho_group.rvs(3, random_state=1) @ np.diag([1, 1, -1]) + 4
    np.testing.assert_allclose(align(turned, reference), reference, atol=1e-5)


def test_align_leaves_distances_in_proportion_and_left_out_rows_out(rng):
    reference, other = rng.normal(size=(2, 50, 2)).astype(np.float32)
    other[7] = np.nan
    aligned = align(other, reference)
    assert np.isnan(aligned[7]).all()
    ratio = np.linalg.norm(aligned[1:7] - aligned[0], axis=1) / np.linalg.norm(other[1:7] - other[0], axis=1)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


def test_align_needs_the_same_rows(rng):
    with pytest.raises(SpaceError, match=r"same rows in the same dimensions, got \(9, 2\) and \(8, 2\)"):
        reduce_spaces([rng.normal(size=(9, 4)), rng.normal(size=(8, 4))], ReductionSpec(align=True))


@pytest.mark.parametrize(
    ("method", "fit"),
    [("pca", "apart"), ("umap", "first"), ("tsne", "first")],
)
def test_progress_rises_to_the_end(digits, method, fit):
    reports = []
    reduce_spaces(
        [digits, digits + 1], ReductionSpec(method, fit=fit), lambda *report: reports.append(report)
    )
    done = [report[0] for report in reports]
    assert done == sorted(done)
    assert reports[-1][0] == reports[-1][1] == reports[0][1]
    assert len(set(done)) >= {"pca": 2, "umap": 4, "tsne": 20}[method]


@pytest.mark.slow
def test_umap_through_the_engine(digits, one_worker):
    spec = ReductionSpec("umap")
    keys = put_matrices(one_worker.store, [digits, digits[:, ::2]])
    job = one_worker.submit(digest_of(spec, keys), reduce_job, title="UMAP", spec=spec, inputs=keys)
    messages = set()
    while not job.wait(0.02).ended:
        messages.add(job.status().message)
    entry = job.result()
    assert any("space 1 of 2, layout: epoch" in message for message in messages)
    # Two processes may differ in the last digit of a sum, which UMAP makes large in its descent:
    # the maps are compared by how well they keep neighbours.
    data = digits, digits[:, ::2]
    for i, (rows, expected) in enumerate(zip(data, reduce_spaces(data, spec), strict=True)):
        kept = trustworthiness(rows, entry.arrays[f"coordinates_{i}"])
        assert kept > 0.9
        assert kept == pytest.approx(trustworthiness(rows, expected), abs=0.03)
    assert ReductionSpec(**entry.metadata["spec"]) == spec


def test_inputs_that_left_the_store_are_told(tmp_path):
    with pytest.raises(SpaceError, match="1 of 1 matrices are no longer in"):
        reduce_job(Context("a" * 32, Store(tmp_path)), spec=ReductionSpec(), inputs=["b" * 32])
