"""Unrelated spaces never fit, related ones do, and scores of unrelated ones are at chance on held-out
rows.
"""

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.catalog.catalog import encode
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.sentences import load_words
from relcore.encoders.transformers import MiniLM
from relcore.linking import clusters
from relcore.linking.bootstrap import BootstrapResult, bootstrap_anchors, fit_held_out
from relcore.linking.link import BootstrapSpec, relative_scores
from relcore.represent.translation import ProjectionSpec, represent
from relcore.runs.store import Store
from relcore.scores.comparison import score_pair
from relcore.scores.score import Z95
from relcore.spaces.space import LatentSpace, match
from relcore.spaces.split import Split

# Rows, dimensions, draws.
SLOW = pytest.mark.slow
SEEDED = [
    (107, 50, 2),
    (200, 50, 1),
    *(pytest.param(*case, marks=SLOW) for case in ((438, 384, 1), (700, 200, 1))),
]


def noise(n, d, state):
    rng = np.random.default_rng((n, d, state))
    spaces = (
        LatentSpace(rng.normal(size=(n, d)), [f"{name}{row}" for row in range(n)], name=name) for name in "st"
    )
    return (*spaces, [(f"s{row}", f"t{row}") for row in range(15)])


@pytest.mark.parametrize(("n", "d", "draws"), SEEDED)
def test_noise_does_not_fit_from_seeds(n, d, draws):
    """The verdict asks for four standard errors above all draws of the chance level: 1 in 10,000 a draw, so
    none.

    The former verdict said "fit" in 12 of 12 at (107, 50), 8 of 12 at (200, 50) and 4 of 4 at the others.
    """
    verdicts = []
    for state in range(draws):
        source, target, seeds = noise(n, d, state)
        verdicts.append(
            bootstrap_anchors(source, target, seeds=seeds, n_anchors=n // 3, random_state=state).verdict
        )
    assert "linked" not in verdicts


@pytest.mark.parametrize("power", [pytest.param(0.0, marks=SLOW), 0.7])
def test_noise_is_not_linked_without_pairs(power, monkeypatch):
    """Of a round or of the same long spectrum, where clusters are tried, and then similarities."""
    monkeypatch.setattr(clusters, "CLUSTERINGS", 4)
    rng, spread = np.random.default_rng((1000, 0)), np.arange(1, 21) ** -power
    source, target = (
        LatentSpace(rng.normal(size=(1000, 20)) * spread, [f"{side}{row}" for row in range(1000)])
        for side in "st"
    )
    found = bootstrap_anchors(source, target, n_anchors=1, random_state=0)
    assert found.verdict == "not found"
    assert "Give 15–30 pairs" in found.reason
    assert found.kept == ()
    assert found.history[-1].pairs == 0  # refused before it learns


@pytest.mark.parametrize("n_seeds", [15, 0])
def test_spaces_that_are_alike_in_outline_alone_do_not_fit(n_seeds):
    """The same 20 clusters on both sides, and nothing in common within them: held-out rows lie .3 above the
    chance level, as the clusters are matched, and the verdict was once that they can be linked.
    """
    for state, (n, d) in enumerate([(150, 100), (200, 150)]):
        rng = np.random.default_rng((d, state))
        centres, spread = (
            0.3 * rng.normal(size=(20, d))[rng.integers(20, size=n)],
            np.arange(1, d + 1) ** -0.5,
        )
        source, target = (
            LatentSpace(centres + rng.normal(size=(n, d)) * spread, [f"{side}{row}" for row in range(n)])
            for side in "st"
        )
        seeds = [(f"s{row}", f"t{row}") for row in range(n_seeds)]
        found = bootstrap_anchors(source, target, seeds=seeds, n_anchors=max(n_seeds, 1), random_state=state)
        assert found.held_out > max(found.null) + 0.2
        assert found.verdict == "not found"
        assert found.kept == tuple(seeds)


@pytest.mark.slow
def test_links_of_sentences_are_right_or_not_kept(tmp_path):
    """Layers 6 and 4 of MiniLM without seeds: 27 links were kept as .95 right, of which none was."""
    spaces = encode(DatasetSpec("parallel", "en"), MiniLM((6, 4)), Store(tmp_path))
    for n_seeds in (0, 15):
        outcome = BootstrapSpec(n_anchors=219, n_seeds=n_seeds, random_state=31).run(spaces)
        links = outcome.result.kept[n_seeds:]
        assert outcome.result.verdict == ("linked" if n_seeds else "not found")
        assert sum(one == other for one, other in links) >= 0.95 * len(links) * bool(n_seeds)
        assert bool(links) == bool(n_seeds)


def test_held_out_rows_of_noise_are_at_the_chance_level():
    """The statistic itself: over 12 draws its mean lies within 4 standard errors of the chance level's mean.

    One draw's mean CSLS over about 92 rows has a standard error of .009 and its four draws of the chance
    level as much each, so the mean difference of 12 draws has √((.009² + .009² / 4) / 12) = .0029. The former
    statistic, of rows that the rotation was fitted to, lay .2 above.
    """
    differences = []
    for state in range(12):
        rng = np.random.default_rng((107, state))
        X, Y = (unit_rows(rng.normal(size=(107, 50)).astype(np.float32)) for _ in range(2))
        seeds = np.stack([np.arange(15), np.arange(15)])
        ids = [str(row) for row in range(107)]
        found = fit_held_out(X, Y, seeds, ids, seeds[:, :0], random_state=state)
        differences.append(found.mean - np.mean(found.null))
    assert abs(np.mean(differences)) < 4 * 0.0029


@pytest.mark.parametrize(("n_seeds", "limit"), [(15, 1000), (0, 600)])
def test_words_fit(n_seeds, limit):
    source, target = (load_words(name, limit=limit) for name in ("word2vec-novels", "fasttext-novels"))
    ids = np.random.default_rng(0).permutation(source.ids)[:n_seeds]
    found = bootstrap_anchors(source, target, seeds=[(i, i) for i in ids], n_anchors=300)
    assert found.verdict == "linked", found.reason


def test_true_anchors_of_unrelated_spaces_tell_nothing_about_held_out_rows():
    """z = (score − chance level's mean) / its standard deviation has mean 0 and deviation 1, over 9 draws 0 ±
    1 / 3.

    Four standard errors are 4 / 3. Scored on all rows, the anchors among them, z is above 10: the former
    scores.
    """
    z, flattered = [], []
    for state in range(9):
        rng = np.random.default_rng((300, state))
        source, target = (
            LatentSpace(rng.normal(size=(300, 60)), [f"r{row}" for row in range(300)]) for _ in range(2)
        )
        ids = source.ids[rng.permutation(300)[:100]]
        found = np.r_[ids[:15], rng.permutation(ids[15:])]  # the seeds are right, the rest is found at random
        anchors = tuple(zip(ids.tolist(), found.tolist(), strict=True))
        result = BootstrapResult(anchors, 15, anchors, (), 0.0, (0.0,), "linked", "not judged here")
        scores = relative_scores(source, target, result)
        z.append([_standardised(scores[form][metric]) for form in scores for metric in ("jaccard", "mrr")])
        assert {score.n for by_metric in scores.values() for score in by_metric.values()} == {200}
        pair = represent(match(source, target), "relative", ids, ProjectionSpec())
        flattered.append(_standardised(score_pair(*pair, Split.held_out(source.ids))["mrr"]))
    assert np.shape(z) == (9, 6)
    assert np.abs(np.mean(z, axis=0)).max() < 4 / 3
    assert np.mean(flattered) > 10


def _standardised(score):
    return (float(score) - score.null.mean) / ((score.null.high - score.null.mean) / Z95)


@pytest.mark.parametrize(
    ("shared", "least_recall"),
    [(270, 0.9), *(pytest.param(*one, marks=SLOW) for one in ((450, 0.95), (15, 0.0)))],
)
def test_links_have_the_promised_precision_whatever_share_of_the_rows_has_a_partner(shared, least_recall):
    """900 rows a side, of which 450, 270, or the seeds alone have a partner; four draws together, of the seeds alone one.

    A wrong share of .05 has a standard error of .007 for the 1,000 links of 270 rows: .92 is four of them below.
    """
    right, kept, draws = [], [], 4 if shared > 15 else 1
    for state in range(draws):
        rng = np.random.default_rng((shared, state))
        spread, turn = np.arange(1, 31) ** -0.5, np.linalg.qr(rng.normal(size=(30, 30)))[0]
        X = rng.normal(size=(1800, 30)) * spread
        Y = (X + 0.3 * rng.normal(size=X.shape) * spread) @ turn
        other = np.r_[np.arange(shared), np.arange(900, 1800 - shared)]
        source = LatentSpace(X[:900], [f"s{row}" for row in range(900)])
        target = LatentSpace(Y[other], [f"t{row}" for row in other])
        seeds = [(f"s{row}", f"t{row}") for row in range(15)]
        found = bootstrap_anchors(source, target, seeds=seeds, n_anchors=15, random_state=state)
        links = found.kept[15:]
        right.append(sum(one[1:] == other[1:] for one, other in links))
        kept.append(len(links))
    assert sum(right) >= 0.92 * sum(kept)
    assert sum(right) >= least_recall * draws * (shared - 15)
    assert (sum(kept) > 0) == (shared > 15)
