"""Every registered metric of unrelated spaces is at the chance level. New metrics are tested, too."""

import numpy as np
import pytest

from assets.measures.page import score_of
from relcore.base.names import METRICS

# .6 lie outside their band by chance; 5 or more come once in 5,000 times
DRAWS = 12
MOST = 4


@pytest.mark.parametrize(("n", "d"), [(60, 40), pytest.param(90, 5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", METRICS)
def test_unrelated_spaces_lie_in_the_band(name, n, d):
    outside = 0
    for draw in range(DRAWS):
        rng = np.random.default_rng([n, d, draw])
        X, Y = (rng.standard_t(4, size=(n, d)) for _ in range(2))
        labels = rng.choice(["a", "b", "c"], n)
        score = score_of(name, X.astype(np.float32), Y.astype(np.float32), labels)
        if not METRICS[name].load().paired:
            assert score.null is None  # and its docstring says why
            return
        outside += not score.null.low - 1e-9 <= score <= score.null.high + 1e-9
    assert outside <= MOST
