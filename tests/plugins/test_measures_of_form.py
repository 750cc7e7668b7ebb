"""RTD-Lite, IMD and Gromov–Wasserstein of plugins/measures, against their formulas and by chance."""

import numpy as np
import pytest
from scipy import linalg, spatial
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.scores.score_report import CHANGES
from tests.lazily import Lazily
from tests.relcore.scores.test_measures import changed, related

ot = Lazily("ot")
NAMES = ("rtd lite", "imd", "gromov-wasserstein")


def by_rtd_lite(X, Y):
    """The sum of all bars, by SciPy's spanning trees: (T(A) + T(B)) / 2 − T(min(A, B)), from 1 and over its most."""
    A, B = (spatial.distance.squareform(spatial.distance.pdist(Z.astype(np.float64))) for Z in (X, Y))
    A = A / np.quantile(A, 0.9)
    B = B / np.quantile(B, 0.9)
    a, b, both = (csgraph.minimum_spanning_tree(Z).sum() for Z in (A, B, np.minimum(A, B)))
    return 1 - ((a - both) + (b - both)) / (a + b)


def by_imd(X, Y, k=5):
    times = np.logspace(-1, 1, 256)
    traces = []
    for Z in (X, Y):
        graph = kneighbors_graph(Z.astype(np.float64), k).toarray()
        laplacian = csgraph.laplacian(np.maximum(graph, graph.T), normed=True)
        traces.append([np.trace(linalg.expm(-t * laplacian)) / len(Z) for t in times[::51]])
    damped = np.exp(-2 * (times + 1 / times))[::51] * np.abs(np.subtract(*traces))
    return 1 - damped.max() / np.exp(-4)


def by_gromov_wasserstein(X, Y):
    """The sum itself, over the coupling that POT finds from the better start."""
    A, B = (spatial.distance.squareform(spatial.distance.pdist(Z.astype(np.float64))) for Z in (X, Y))
    A, B, n = A / np.sqrt((A**2).mean()), B / np.sqrt((B**2).mean()), len(A)
    even = np.full(n, 1 / n)
    sums = []
    for start in (np.eye(n) / n, np.outer(even, even)):
        plan = ot.gromov_wasserstein(A, B, even, even, G0=start, symmetric=True)
        sums.append(np.einsum("ijkl,ik,jl->", (A[:, :, None, None] - B) ** 2, plan, plan, optimize=True))
    return 1 - min(sums) / ((A[:, :, None, None] - B) ** 2).mean()


ORACLES = dict(zip(NAMES, (by_rtd_lite, by_imd, by_gromov_wasserstein), strict=True))
# Heat at 6 of 256 times, the largest difference of which lies between two of these.
TOLERANCES = {"imd": 2e-4}
FEW_ROWS = {"gromov-wasserstein": 40, "imd": 100}


@pytest.mark.parametrize("wider", [0, 5])
@pytest.mark.parametrize("name", NAMES)
def test_each_is_its_formula(name, wider):
    X, Y = related(n=FEW_ROWS.get(name, 150), wider=wider)
    for first, second in ((X, Y), (Y, X), (X, X)):
        score = METRICS[name].load().function(first, second)
        assert float(score) == pytest.approx(ORACLES[name](first, second), abs=TOLERANCES.get(name, 1e-6))
        assert score.metric == name


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_unchanged_by_what_it_says_and_by_nothing_else(name, change):
    (X, Y) = related(n=60)
    measure = METRICS[name].load()
    before, now = (float(measure.function(one, Y)) for one in (X, changed(X, change)))
    assert (abs(now - before) < 1e-5) == (change in measure.unchanged_by)


def test_unrelated_rows_lie_within_the_chance_level_of_rtd_lite():
    rng = np.random.default_rng(0)
    scores = [METRICS["rtd lite"].load().function(*rng.normal(size=(2, 60, 5))) for _ in range(20)]
    outside = sum(not score.null.low <= score <= score.null.high for score in scores)
    assert outside <= 5  # of 20 with probability .05 each, 6 or more come once in 3,000 times


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_all_equal_are_refused(name):
    X, Y = related(n=20)
    with pytest.raises(SpaceError, match="all equal"):
        METRICS[name].load().function(X, np.ones_like(Y))
