"""Classes of pictures by sentences about them."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.captioned import CaptionSpec, captions, classes_of, words_of, zero_shot

SPEC = CaptionSpec(templates=("a {}", "one {}", "some {}"), n_pairs=60, keep=20)


@pytest.fixture
def pictures(rng):
    """Three classes around three centres."""
    labels = np.repeat([0, 1, 2], 40)
    vectors = 4 * rng.normal(size=(3, 8))[labels] + rng.normal(size=(120, 8))
    return LatentSpace(
        vectors, [f"p{row}" for row in range(120)], labels=[("cat", "dog", "sea")[label] for label in labels]
    )


@pytest.fixture
def texts(rng):
    """Rows of the nine captions: the class, and a little of the template."""
    return np.repeat(3 * rng.normal(size=(3, 6)), 3, axis=0) + 0.3 * rng.normal(size=(9, 6))


def test_sentences_alone_tell_the_classes(pictures, texts):
    found = zero_shot(pictures, texts, SPEC)
    assert found.counts == (10, 20, 50, 60)
    assert found.accuracy[-1] > 0.9
    assert found.head > 0.9
    assert found.chance == np.mean(found.truth == 0)  # all are as frequent, and the first is answered
    assert found.accuracy[-1] == pytest.approx(np.mean(found.answers == found.truth))
    assert found.test_ids.tolist() == pictures.ids[Split.draw(pictures.ids).test].tolist()


def test_captions_without_a_meaning_tell_nothing(pictures, rng):
    unrelated = [
        zero_shot(pictures, rng.permutation(rng.normal(size=(9, 6))), SPEC).accuracy[-1] for _ in range(20)
    ]
    assert np.mean(unrelated) < 0.6


def test_the_sentence_that_asks_has_captioned_no_picture(pictures, texts):
    asked, anchors = [], []

    def note(images, prompts, image_anchors, text_anchors, **settings):
        asked.append(prompts)
        anchors.append(text_anchors)
        return np.ones((len(images), len(prompts)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("relcore.stitch.captioned.zero_shot_similarities", note)
        zero_shot(pictures, texts, SPEC)
    assert not (anchors[-1][:, None] == asked[-1][None]).all(axis=-1).any()
    assert len(np.unique(anchors[-1], axis=0)) == 6


def test_rows_to_test_can_be_chosen(pictures, texts):
    assert zero_shot(pictures, texts, SPEC, test_rows=np.arange(0, 120, 10)).test_ids.tolist() == [
        f"p{row}" for row in range(0, 120, 10)
    ]


def test_digits_are_said_and_underscores_are_spaces(pictures):
    assert words_of(("0", "7")) == ("zero", "seven")
    assert words_of(("ice_cream", "7")) == ("ice cream", "7")
    assert captions(("cat", "sea"), ("a {}", "one {}")) == ("a cat", "one cat", "a sea", "one sea")
    assert classes_of(pictures) == ("cat", "dog", "sea")


def test_what_cannot_be_says_why(pictures, texts, make_space):
    with pytest.raises(
        SpaceError, match=r"templates: expected two or more different sentences, each with one \{\}"
    ):
        CaptionSpec(templates=("a", "b {}"))
    with pytest.raises(
        SpaceError, match=r"n_pairs: expected at most \d+, the number of pictures not held out, got 500"
    ):
        zero_shot(pictures, texts, CaptionSpec(templates=SPEC.templates, n_pairs=500))
    with pytest.raises(SpaceError, match="expected 3 classes × 3 templates = 9 rows, got 8"):
        zero_shot(pictures, texts[:8], SPEC)
    with pytest.raises(SpaceError, match=r"expected pictures of 2 to 1,000 classes.* got 0"):
        classes_of(make_space(pictures.vectors))
    with pytest.raises(SpaceError, match="keep: expected a whole number from 1"):
        CaptionSpec(keep=0)
