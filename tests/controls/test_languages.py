"""Partners among unrelated rows and classes by captions that mean nothing: as many are found as chance
finds.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.languages import RetrievalSpec, pair_up, retrieve
from relcore.studies.heads import zero_shot

METHODS = ("relative", "whitened", "irp-pruned", "irp-whitened", "procrustes")
STATES = range(8)


@pytest.mark.parametrize(("n", "d", "k"), [(200, 30, 66), (180, 150, 60)])
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


def test_captions_that_mean_nothing_name_as_many_as_chance():
    # The pictures are noise, so nothing tells their classes: p = 1/4. The spread over 60 draws gives the
    # standard error.
    accuracies = []
    for state in range(60):
        rng = np.random.default_rng([state, 21])
        numbers = rng.permutation(np.arange(120) % 4)
        pictures = LatentSpace(
            rng.normal(size=(120, 10)),
            [f"p{row}" for row in range(120)],
            labels=np.array(["ant", "bee", "cat", "dog"])[numbers],
        )
        texts = rng.normal(size=(4, 1, 8)) + 0.3 * rng.normal(size=(4, 3, 8))
        test = Split.draw(pictures.ids, labels=numbers, random_state=state).test
        values = zero_shot(pictures, texts, test, n_pairs=40, keep=20, random_state=state)
        accuracies.append(values["accuracy"])
    error = np.std(accuracies, ddof=1) / np.sqrt(len(accuracies))
    assert np.mean(accuracies) == pytest.approx(0.25, abs=3.5 * error)
    assert error < 0.03
