import numpy as np
import pytest

from app import compute
from relcore.represent.translation import ProjectionSpec
from relcore.spaces.space import LatentSpace, match

ANCHORS = tuple(f"r{row}" for row in range(12))


@pytest.fixture
def pair():
    compute.kept_scores.clear()
    rng = np.random.default_rng(0)
    vectors, ids = rng.normal(size=(150, 6)), [f"r{row}" for row in range(150)]
    return match(LatentSpace(vectors, ids), LatentSpace(vectors + 0.5 * rng.normal(size=(150, 6)), ids))


def live(pair, form, **settings):
    return compute.live_scores(pair, form, ANCHORS, ProjectionSpec(), 5, "paper", **settings)


def test_scores_do_not_depend_on_what_is_scored_beside_them(pair):
    alone = {form: live(pair, form, alone=True) for form in ("relative", "whitened")}
    compute.kept_scores.clear()
    for form, scores in alone.items():
        together = live(pair, form)
        assert scores.keys() == together.keys()
        for name, score in scores.items():
            assert float(score) == float(together[name])
            assert score.null == together[name].null
    assert float(alone["relative"]["cosine"]) != float(alone["whitened"]["cosine"])
