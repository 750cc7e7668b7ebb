"""Class agreement against votes counted one by one, its chance level against spaces that were really
permuted.
"""

from collections import Counter

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.represent.translation import ProjectionSpec, represent
from relcore.scores.comparison import AlignedPair, ClassAgreement, class_labels, held_out, score_pair
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split


def agreement(source, target, labels, k=5, convention="paper"):
    split, labels = (
        Split.held_out([f"r{row}" for row in range(len(source))]),
        np.asarray(labels, dtype=object),
    )
    settings = {"k": k, "convention": convention}
    return ClassAgreement().score(AlignedPair.of(source, target, split, labels, **settings))


def voted(source, target, labels, k):
    """The share, by a loop: every other row of the target sorted by its cosine to the source's vector."""
    hits = []
    for row, near in enumerate(unit_rows(source) @ unit_rows(target).T):
        others = [other for other in np.argsort(-near) if other != row][:k]
        (first, most), *rest = Counter(labels[others]).most_common()
        hits.append(first == labels[row] and (not rest or rest[0][1] < most))
    return np.mean(hits)


@pytest.fixture
def classes(rng):
    labels = np.array(list("abcd"), dtype=object)[np.arange(120) % 4]
    source = (rng.normal(size=(4, 6))[np.arange(120) % 4] + 0.8 * rng.normal(size=(120, 6))).astype(
        np.float32
    )
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return (
        source,
        (source + 0.3 * rng.normal(size=source.shape)).astype(np.float32),
        (source @ turn).astype(np.float32),
        labels,
    )


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_share_is_that_of_votes_counted_one_by_one(classes, k):
    source, noisy, _, labels = classes
    assert float(agreement(source, noisy, labels, k)) == voted(source, noisy, labels, k)
    both = (voted(source, noisy, labels, k) + voted(noisy, source, labels, k)) / 2
    assert float(agreement(source, noisy, labels, k, "mutual")) == pytest.approx(both)


def test_a_rotation_takes_it_away_from_absolute_spaces_and_not_from_relative_ones(classes):
    source, _, turned, labels = classes
    ids = [f"r{row}" for row in range(120)]
    pair = match(
        LatentSpace(source, ids, labels=labels, name="a"), LatentSpace(turned, ids, labels=labels, name="b")
    )
    anchors, found = tuple(ids[:20]), {}
    for form in ("absolute", "relative"):
        made, split = represent(pair, form, anchors, ProjectionSpec()), held_out(pair, anchors, form)
        found[form] = score_pair(*made, split, labels=class_labels(pair))["class agreement"]
    assert found["relative"] > 0.6 > found["absolute"]
    assert (found["relative"].n, found["absolute"].n) == (100, 120)


def test_a_tie_does_not_count():
    space = np.array([[1, 0], [1, 0.01], [1, 0.03], [-1, 0], [-1, 0.01], [-1, 0.03]])
    assert agreement(space, space, list("aabccc"), k=2) == pytest.approx(3 / 6)
    assert agreement(space, space, list("aabccc"), k=1) == pytest.approx(5 / 6)


def test_the_chance_level_is_that_of_permuted_rows(classes, rng):
    source, noisy, _, labels = classes
    score = agreement(source, noisy, labels)
    drawn = [float(agreement(source[rng.permutation(120)], noisy, labels)) for _ in range(20)]
    assert score.null.mean == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(20))
    assert score > score.null.high


def test_rows_without_a_label_are_left_out(classes):
    source, noisy, _, labels = classes
    some = labels.copy()
    some[::3] = ""
    kept = some != ""
    score = agreement(source, noisy, some)
    assert (score, score.n) == (agreement(source[kept], noisy[kept], labels[kept]), 80)


def test_classes_too_small_to_win_a_vote_tell_nothing(rng):
    space, labels = rng.normal(size=(12, 4)), list("abcdef" * 2)
    assert agreement(space, space, labels, k=10) is None
    assert agreement(space, space, labels, k=1) is not None


@pytest.mark.parametrize("labels", [["a"] * 30, [f"c{row}" for row in range(30)], [""] * 30])
def test_one_class_or_as_many_as_rows_tell_nothing(rng, labels):
    assert agreement(rng.normal(size=(30, 4)), rng.normal(size=(30, 4)), labels) is None
