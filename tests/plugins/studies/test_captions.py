"""Classes of pictures by sentences about them, through pairs of a picture and its caption."""

from __future__ import annotations

import numpy as np
import pytest
from relscope_studies import heads
from relscope_studies.heads import zero_shot, zero_shot_similarities
from scipy.stats import ortho_group

from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split


@pytest.fixture
def pictures(rng):
    labels = np.repeat([0, 1, 2], 40)
    vectors = 4 * rng.normal(size=(3, 8))[labels] + rng.normal(size=(120, 8))
    names = np.array(["cat", "dog", "sea"])[labels]
    return LatentSpace(vectors, [f"p{row}" for row in range(120)], labels=names)


@pytest.fixture
def texts(rng):
    """Rows of three captions of each class: the class, and a little of the template."""
    return 3 * rng.normal(size=(3, 1, 6)) + 0.3 * rng.normal(size=(3, 3, 6))


def test_the_sentence_of_the_query_is_no_caption(pictures, texts, monkeypatch):
    given = []

    def note(images, prompts, image_anchors, text_anchors, **settings):
        given.append((prompts, text_anchors))
        return np.ones((len(images), len(prompts)))

    monkeypatch.setattr(heads, "zero_shot_similarities", note)
    zero_shot(pictures, texts, Split.draw(pictures.ids).test, n_pairs=60, keep=20)
    prompts, anchors = given[-1]
    assert not (anchors[:, None] == prompts[None]).all(axis=-1).any()
    assert len(np.unique(anchors, axis=0)) == 6


@pytest.fixture
def pairs(rng):
    topics = rng.normal(size=(10, 20))
    numbers = np.arange(400) % 10
    images, texts = (topics[numbers] + 0.4 * rng.normal(size=(400, 20)) for _ in range(2))
    turn = ortho_group.rvs(20, random_state=1)
    return images, texts @ turn, topics @ turn, numbers


@pytest.mark.parametrize(("keep", "exponent"), [(10, 8.0), (10_000, 1.0)])
def test_paired_anchors_are_enough_to_name_pictures(pairs, keep, exponent):
    images, texts, prompts, numbers = (part.astype(np.float32) for part in pairs)
    known = images[:300], texts[:300]
    similar = zero_shot_similarities(images[300:], prompts, *known, keep=keep, exponent=exponent)
    assert similar.shape == (100, 10)
    assert similar.min() >= 0
    assert similar.max() <= 1 + 1e-6
    assert (similar.argmax(axis=1) == numbers[300:]).mean() > 0.95
