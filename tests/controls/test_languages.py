"""Partners among unrelated rows and classes by captions that mean nothing: as many are found as chance
finds.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore.spaces.space import LatentSpace
from relcore.stitch.try_it import RetrievalSpec, pair_up, retrieve

METHODS = ("relative", "whitened", "irp-pruned", "irp-whitened", "procrustes")
STATES = range(8)


@pytest.mark.parametrize(("n", "d", "k"), [pytest.param(200, 30, 66, marks=pytest.mark.slow), (180, 150, 60)])
def test_no_partner_is_found_among_unrelated_rows(n, d, k):
    # Given the anchors, the other rows of one space can be permuted at will: each of the n − k rows finds its
    # partner with probability 1 / (n − k), so over 8 draws about 8 do (Poisson). 20 or more have probability
    # 2e-4.
    found, above = dict.fromkeys(METHODS, 0.0), 0
    for state in STATES:
        rng = np.random.default_rng([state, n])
        ids = [f"r{row}" for row in range(n)]
        spaces = [LatentSpace(rng.normal(size=(n, d)), ids, name=name) for name in "ab"]
        result = retrieve(pair_up(*spaces), RetrievalSpec(METHODS, n_anchors=k, k=5, random_state=state))
        assert len(result.ids) == n - k
        for method in METHODS:
            found[method] += result.scores[method]["first"] * (n - k)
            above += sum(
                float(result.scores[method][metric]) > result.scores[method][metric].null.high
                for metric in ("mrr", "jaccard")
            )
    assert max(found.values()) < 20, found
    # Above the band with probability .025 to .05 (the distribution of MRR leans to the right): 80 scores,
    # whose methods share their rows; 16 of them would be a fifth.
    assert above < 16
