from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness
from threadpoolctl import threadpool_limits

from relcore.maps.principal_axes import ReductionSpec
from relcore.maps.reduction import reduce_spaces
from relcore.represent.translation import align
from tests.lazily import Lazily

torch = Lazily("torch")


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


@pytest.mark.parametrize("shape", [(500, 20), (30, 200)])
def test_pca_equals_scikit_learns_up_to_sign(rng, shape):
    matrix = rng.normal(size=shape) * np.linspace(3, 1, shape[1]) + 5
    [picture] = reduce_spaces([matrix], ReductionSpec(n_components=3))
    expected = PCA(3, svd_solver="full").fit_transform(matrix)
    assert picture.dtype == np.float32
    picture = picture * np.sign(np.sum(picture * expected, axis=0))
    np.testing.assert_allclose(picture, expected, atol=1e-2)


@pytest.mark.parametrize("shape", [(500, 20), (30, 200)])
def test_pca_does_not_see_rotation_or_shift_not_even_in_its_signs(rng, shape):
    matrix = rng.normal(size=shape) * np.linspace(3, 1, shape[1])
    turned = matrix @ ortho_group.rvs(shape[1], random_state=0) + 2
    picture, of_turned = reduce_spaces([matrix, turned], ReductionSpec())
    np.testing.assert_allclose(of_turned, picture, atol=1e-2)


def test_pca_beyond_the_rank_is_zero():
    line = np.outer(np.arange(5), [1, 2, 3, 4, 5, 6, 7])
    [picture] = reduce_spaces([line], ReductionSpec(n_components=3))
    assert np.ptp(picture[:, 0]) > 1
    np.testing.assert_allclose(picture[:, 1:], 0, atol=1e-4)


def test_fit_first_puts_others_on_first_ones_map(rng):
    matrix = rng.normal(size=(200, 10)) * np.linspace(3, 1, 10)
    other = matrix[::-1] + 1
    expected = PCA(2).fit(matrix)
    first, second = reduce_spaces([matrix, other], ReductionSpec(fit="first"))
    signs = np.sign(np.sum(first * expected.transform(matrix), axis=0))
    np.testing.assert_allclose(second * signs, expected.transform(other), atol=1e-3)
    apart = reduce_spaces([matrix, other], ReductionSpec(fit="apart"))
    np.testing.assert_allclose(apart[0], first, atol=1e-5)
    assert abs(apart[1].mean()) < 1e-4 < 0.1 < abs(second.mean(axis=0)).max()


def assert_global_generators_alone(draw):
    """``draw()`` changes no state of the global generators."""
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = torch.rand(2), np.random.rand()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    found = draw()
    assert torch.equal(torch.rand(2), expected[0])
    assert np.random.rand() == expected[1]  # noqa: NPY002
    return found


@pytest.mark.parametrize(
    ("method", "metric", "near"),
    [
        ("umap-gpu", "cosine", 0.3),
        pytest.param("umap-gpu", "euclidean", 0.3, marks=pytest.mark.slow),
        pytest.param("tsne-gpu", "cosine", 0.1, marks=pytest.mark.slow),
    ],
)
def test_torchdr_keeps_neighbours_places_other_spaces_and_leaves_global_generators_alone(
    digits, method, metric, near
):
    digits = digits[:150]
    spec = ReductionSpec(method, fit="first", metric=metric)
    first, shuffled = assert_global_generators_alone(lambda: reduce_spaces([digits, digits[::-1]], spec))
    assert trustworthiness(digits, first, metric=metric) > 0.95
    assert np.median(np.linalg.norm(shuffled[::-1] - first, axis=1)) < near * first.std()
    np.testing.assert_array_equal(first, reduce_spaces([digits], spec)[0])


@pytest.mark.parametrize(
    ("method", "metric", "near"),
    [
        pytest.param("umap", "cosine", 0.3, marks=pytest.mark.slow),
        pytest.param("umap", "euclidean", 0.3, marks=pytest.mark.slow),
        ("tsne", "cosine", 0.05),
    ],
)
def test_other_spaces_are_placed_on_first_ones_map_and_random_state_decides_all(digits, method, metric, near):
    digits = digits[:150]
    spec = ReductionSpec(method, fit="first", metric=metric)
    first, again, shuffled = reduce_spaces([digits, digits + 1e-3, digits[::-1]], spec)
    away = np.linalg.norm([again - first, shuffled[::-1] - first], axis=2)
    assert np.median(away, axis=1).max() < near * first.std()
    if method == "tsne":  # the place of a row depends on no other new row
        assert np.quantile(away[0], 0.95) < 0.3 * first.std()
    for state, equal in ((0, True), (1, False)):
        [other] = reduce_spaces([digits], replace(spec, random_state=state))
        assert np.array_equal(other, first) == equal


@pytest.mark.parametrize("metric", ["cosine", pytest.param("euclidean", marks=pytest.mark.slow)])
def test_tsne_keeps_neighbours_as_well_as_scikit_learns(digits, metric):
    [picture] = reduce_spaces([digits], ReductionSpec("tsne", metric=metric))
    expected = TSNE(metric=metric, init="pca", random_state=0).fit_transform(digits)
    kept, there = (trustworthiness(digits, one, n_neighbors=10, metric=metric) for one in (picture, expected))
    assert kept > there - 0.02  # maps of other random states differ by .001


@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_align_undoes_rotation_reflection_scale_and_shift(rng, scale):
    reference = rng.normal(size=(100, 3)).astype(np.float32)
    turned = scale * reference @ ortho_group.rvs(3, random_state=1) @ np.diag([1, 1, -1]) + 4
    np.testing.assert_allclose(align(turned, reference), reference, atol=1e-5)
