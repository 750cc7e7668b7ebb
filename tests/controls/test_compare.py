"""Unrelated spaces in, chance out: every score of Compare, at small n, with many anchors, with d near n."""

from collections import Counter

import numpy as np
import pytest

from relcore.encoders.words import load_words
from relcore.engine.device import NumpyDevice
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.represent.strategies import select_anchors
from relcore.scores.comparison import class_labels, held_out, score_differences, score_pair
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from tests.controls.spaces import unrelated

# Draws, and how many of them may lie above their band. By chance, 2.5 % do: 4 or more of 10 once in 12,000
# times, 6 or more of 30 once in 7,000. If the anchors were scored, too, all would.
FEW = (10, 3)
MORE = (30, 5)
# (n, d, anchors, shares of the classes): few rows of which a third are anchors, d near n, one rare class, more classes
# than neighbours, and one dimension, in which most rows are equally near.
SETTINGS = [
    (60, 5, 20, [0.5, 0.5]),
    (90, 80, 30, [1 / 3] * 3),
    (90, 5, 30, [0.95, 0.05]),
    (90, 5, 30, [0.1] * 10),
    (90, 1, 30, [0.5, 0.5]),
]
CASES = [
    (*SETTINGS[1], "paper", *FEW),
    (*SETTINGS[2], "mutual", *FEW),
    *(
        pytest.param(*one, how, *MORE, marks=pytest.mark.slow)
        for one in SETTINGS
        for how in ("paper", "mutual")
    ),
]


def labelled(n, d, draw, shares):
    names = [f"c{place}" for place in range(len(shares))]
    labels = np.random.default_rng([n, d, draw]).choice(names, n, p=shares)
    labels[:2] = names[:2]
    return match(*unrelated(n, d, draw, labels=labels))


@pytest.mark.parametrize(("n", "d", "n_anchors", "shares", "convention", "draws", "most"), CASES)
def test_scores_of_unrelated_spaces_lie_inside_their_bands(n, d, n_anchors, shares, convention, draws, most):
    above = Counter()
    counted = Counter()
    for draw in range(draws):
        pair = labelled(n, d, draw, shares)
        anchors = select_anchors(pair.source, n_anchors, random_state=draw)
        split = held_out(pair, anchors)
        for form in REPRESENTATIONS if d > 1 else ("absolute", "relative"):
            spaces = represent(pair, form, anchors, ProjectionSpec())
            labels = class_labels(pair)
            scores = score_pair(*spaces, split, k=5, convention=convention, labels=labels)
            for metric, score in scores.items():
                if score.null is None:  # in one dimension many rows are equal in both spaces
                    assert d == 1
                    continue
                above[form, metric] += score > score.null.high + 1e-9
                counted[form, metric] += 1
    # The rare class may be among the anchors, and then has no agreement of classes.
    assert {metric for _, metric in counted} >= {"jaccard", "mrr", "cosine", "cka", "class agreement"}
    assert min(counted.values()) >= 0.8 * draws
    assert {name: n for name, n in above.items() if n > most} == {}


@pytest.mark.parametrize(("d", "convention"), [(1, "mutual"), (8, "paper")])
def test_rows_that_tie_do_not_make_unrelated_spaces_agree(d, convention):
    """Rows tie in one dimension, or if half of the rows repeat other rows, which differ between the spaces.
    Before, rounding put such rows into the same order in both searches, so 14 and 11 of 60 draws were above
    the band."""
    above = Counter()
    n = 90
    for draw in range(40):
        rng = np.random.default_rng([n, d, draw])
        spaces = rng.normal(size=(2, n, d))
        for X in spaces:
            rows = rng.permutation(n)
            X[rows[: n // 2]] = X[rows[n // 2 :] if d > 1 else rows[: n // 2]]
        pair = match(*(LatentSpace(X, [f"r{row}" for row in range(n)]) for X in spaces))
        split = held_out(pair, anchors := pair.ids[:20])
        rows = represent(pair, "relative", anchors, ProjectionSpec())
        settings = {"k": 5, "convention": convention, "metrics": ("jaccard", "mrr")}
        for metric, score in score_pair(*rows, split, **settings).items():
            above[metric] += score > score.null.high + 1e-9
    assert max(above.values()) <= 4  # 1 of 40 is expected; 5 come once in 270 times


def test_rounding_by_place_does_not_make_unrelated_spaces_agree(monkeypatch):
    """Some libraries round a product by its place in the matrix. In one dimension, 18 of 20 draws lay above the band."""
    product = NumpyDevice.product
    above = 0

    def rounded(self, rows, matrix, name):
        out = product(self, rows, matrix, name)
        places = np.add.outer(np.arange(len(out)), np.arange(out.shape[1]) ** 2) % 5
        return np.multiply(out, 1 + places.astype(np.float32) * np.float32(2**-23), out=out)

    monkeypatch.setattr(NumpyDevice, "product", rounded)
    for draw in range(20):
        pair = match(*unrelated(90, 1, draw))
        anchors = select_anchors(pair.source, 30, random_state=draw)
        rows = represent(pair, "relative", anchors, ProjectionSpec())
        split = held_out(pair, anchors)
        score = score_pair(*rows, split, k=5, convention="paper", metrics=("jaccard",))["jaccard"]
        above += score > score.null.high + 1e-9
    assert above <= 3


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_items_that_occur_twice_have_no_chance_level(convention):
    """Before, all of 60 draws were above the band (mutual), because a row and its copy are neighbours in any
    two spaces."""
    drawn = np.random.default_rng(0).normal(size=(2, 60, 8)).repeat(2, axis=1)
    pair = match(*(LatentSpace(X, [f"r{row}" for row in range(120)]) for X in drawn))
    spaces = represent(pair, "relative", anchors := pair.ids[:20], ProjectionSpec())
    settings = {"k": 5, "convention": convention, "metrics": ("jaccard", "mrr", "class agreement")}
    scores = score_pair(*spaces, held_out(pair, anchors), labels=np.repeat(["a", "b"], 60), **settings)
    assert len(scores) == 3
    assert all(score.null is None and "same vector in both spaces" in score.note for score in scores.values())


def test_as_noisy_a_space_as_before_shows_no_arrow():
    clear = Counter()
    for draw in range(25):
        source, *noise = (space.vectors for space in unrelated(120, 8, draw, "abc"))
        before, now = ((source, source + one) for one in noise)
        split = Split.held_out([str(row) for row in range(120)], np.arange(30))
        for metric, one in score_differences(before, now, split, k=5).items():
            clear[metric] += one.is_clear
    assert set(clear) >= {"jaccard", "mrr", "cosine", "cka"}
    assert max(clear.values()) <= 5  # 5 % of 25 is 1.25; more than 5 come once in 800 times


def test_the_headline_is_the_exact_score_within_its_interval():
    words = match(load_words("word2vec-novels"), load_words("fasttext-novels"))
    anchors = select_anchors(words.source, 50, random_state=0)
    split = held_out(words, anchors)
    assert not set(split.queries(300)) & set(split.anchors)
    made = represent(words, "relative", anchors, ProjectionSpec())
    live, exact = (score_pair(*made, split, n_queries=n_queries)["mrr"] for n_queries in (300, 1000))
    (low, high) = live.interval
    error = exact.interval[1] - exact
    assert low - error <= exact <= high + error
