"""Whatever scores two spaces scores no removed suspect, and of pairs that a bootstrap found the confirmed ones."""

from contextlib import suppress

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.compare.reports import ExactScores
from relcore.compare.scoring import AllPairs, Differences, PairAudit
from relcore.drift.check import DriftCheck
from relcore.invert.inversion import InversionSpec, invert_pair
from relcore.linking.link import BootstrapSpec
from relcore.migrate.evaluate import parts_of
from relcore.represent.translation import ProjectionSpec
from relcore.spaces.ids import GuessedIds, mark_unscored
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.stitch.languages import RetrievalSpec, retrieve
from relcore.stitch.stitching import StitchSpec, stitch_matrix

IDS = [f"r{row}" for row in range(200)]
ANCHORS, SWAPPED = tuple(IDS[:30]), (IDS[1], IDS[0], *IDS[2:30])
MANY, FEW = 80, 70  # of 80 confirmed pairs, ten are anchors


def scored(representation, anchors, metric):
    task = ExactScores.on(representation, anchors, ProjectionSpec(), 5, "paper")
    return lambda *spaces: task.run(spaces).scores[metric].n


def audited(*partners):
    return lambda *spaces: PairAudit(ANCHORS, *partners).run(spaces).scores["all anchors"]["mrr"].n


SCORERS = {
    "scores": (scored("relative", ANCHORS, "mrr"), FEW),
    "absolute scores": (scored("absolute", (), "cka"), MANY),
    "all pairs": (lambda *spaces: AllPairs.of("cka").run(spaces).scores[0][1].n, MANY),
    "all pairs, neighbours": (lambda *spaces: AllPairs.of("mutual knn").run(spaces).scores[0][1].n, MANY),
    "all pairs, relative": (
        lambda *spaces: AllPairs.of("relative cosine", anchors=ANCHORS).run(spaces).scores[0][1].n,
        FEW,
    ),
    "differences": (lambda *spaces: Differences(groups="clusters", n_clusters=3, k=5).run(spaces).n, MANY),
    "audit": (audited(), FEW),
    "audit of a list": (audited(SWAPPED), FEW),
    "inversion": (lambda *spaces: invert_pair(match(*spaces), ANCHORS, InversionSpec()).n, FEW),
    "retrieval": (lambda *spaces: len(retrieve(match(*spaces), RetrievalSpec(n_anchors=30)).ids), None),
    "stitching": (lambda *spaces: stitch_matrix(spaces, StitchSpec(anchors=ANCHORS)).n_test, None),
    "migration": (lambda *spaces: len(parts_of(match(*spaces), 0, "random", False).held_out), None),
    "drift": (lambda *spaces: DriftCheck().run(spaces).n, MANY),
    "experiment": (lambda *spaces: BootstrapSpec(n_anchors=20).run(spaces).n_shared, MANY),
}


def not_removed(ids, scored):
    return mark_unscored(np.array(ids, dtype=object), set(ids).difference(scored))


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize(("mark", "swapped"), [(GuessedIds.of, False), (not_removed, True)])
def test_only_pairs_that_are_known_are_scored(name, mark, swapped):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(200, 12)) + rng.normal(size=(4, 12))[rng.integers(4, size=200)]
    labels = np.where(rng.random(200) < 0.5, "a", "b")
    known = LatentSpace(X, IDS, name="known", labels=labels)

    def spaces(confirmed):
        turned = X @ np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
        found = LatentSpace(turned, mark(IDS, confirmed), name="found", labels=labels)
        return (found, known) if swapped else (known, found)

    score, expected = SCORERS[name]
    n = score(*spaces(IDS[20:100]))
    assert n == expected if expected else 0 < n <= MANY
    with suppress(SpaceError, KeyError, AttributeError):  # an error, or no score
        assert not score(*spaces(()))
