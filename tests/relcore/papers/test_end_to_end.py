"""A CNN and its head trained together, on absolute and on relative rows."""

import numpy as np
import pytest

from relcore.papers.end_to_end import EndToEnd, always_the_largest, fit_end_to_end, held_out_f1
from relcore.stitch.autoencoders import Pictures

SMALL = EndToEnd(width=16, epochs=4)
ANCHORS = np.arange(0, 240, 8)


def bars(rng, n):
    """Noisy pictures of 8 × 8 pixels with an upright or a lying bar, and which of the two it is."""
    lying = rng.integers(2, size=n)
    images = rng.uniform(0, 0.4, size=(n, 8, 8)).astype(np.float32)
    for image, kind, place in zip(images, lying, rng.integers(1, 7, size=n), strict=True):
        (image if kind else image.T)[place] = 1
    return images, np.array(["upright", "lying"])[lying]


@pytest.fixture
def pictures(rng):
    (train, known), (test, truth) = bars(rng, 240), bars(rng, 120)
    return Pictures(train, test, known, truth)


@pytest.mark.parametrize("anchors", [None, ANCHORS], ids=["absolute", "relative"])
def test_both_kinds_learn_and_equal_states_give_equal_answers(pictures, anchors):
    classify = fit_end_to_end(pictures, anchors, SMALL, 0)
    assert held_out_f1(pictures, classify) > 0.9
    np.testing.assert_array_equal(
        classify(pictures.test), fit_end_to_end(pictures, anchors, SMALL, 0)(pictures.test)
    )
    one = classify(pictures.test[:1])
    assert one[0] == classify(pictures.test)[0]  # an answer does not depend on the pictures asked with it


@pytest.mark.parametrize("anchors", [None, ANCHORS], ids=["absolute", "relative"])
def test_labels_that_say_nothing_of_the_pictures_give_chance(pictures, rng, anchors):
    drawn = Pictures(
        pictures.train,
        pictures.test,
        rng.permutation(pictures.train_labels),
        rng.permutation(pictures.test_labels),
    )
    # 120 answers to two classes: right half of the time, standard error .046; F1 is at most about that.
    assert held_out_f1(drawn, fit_end_to_end(drawn, anchors, SMALL, 0)) < 0.5 + 4 * 0.046


def test_the_chance_level_is_that_of_the_largest_class(pictures):
    answers = always_the_largest(pictures)(pictures.test)
    names, counts = np.unique(pictures.train_labels, return_counts=True)
    assert set(answers) == {names[counts.argmax()]}
    assert held_out_f1(pictures, always_the_largest(pictures)) < 0.5
