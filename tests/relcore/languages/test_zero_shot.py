import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore.base.errors import SpaceError
from relcore.stitch.captioned import zero_shot_similarities


@pytest.fixture
def pairs(rng):
    """Pictures and captions: two turned, noisy views of ten topics."""
    topics = rng.normal(size=(10, 20))
    numbers = np.arange(400) % 10
    images, texts = (topics[numbers] + 0.4 * rng.normal(size=(400, 20)) for _ in range(2))
    turn = ortho_group.rvs(20, random_state=1)
    return (
        images.astype(np.float32),
        (texts @ turn).astype(np.float32),
        (topics @ turn).astype(np.float32),
        numbers,
    )


@pytest.mark.parametrize(("keep", "exponent"), [(10, 8.0), (100, 8.0), (10_000, 1.0)])
def test_paired_anchors_are_enough_to_name_pictures(pairs, keep, exponent):
    images, texts, prompts, numbers = pairs
    found = zero_shot_similarities(
        images[300:], prompts, images[:300], texts[:300], keep=keep, exponent=exponent
    )
    assert found.shape == (100, 10)
    assert found.min() >= 0
    assert found.max() <= 1 + 1e-6
    assert (found.argmax(axis=1) == numbers[300:]).mean() > 0.95


def test_shuffled_pairs_say_nothing(pairs, rng):
    images, texts, prompts, numbers = pairs
    found = zero_shot_similarities(images[300:], prompts, images[:300], texts[rng.permutation(300)])
    assert (found.argmax(axis=1) == numbers[300:]).mean() < 0.4


def test_a_picture_among_the_anchors_finds_its_own_caption(pairs):
    images, texts, *_ = pairs
    found = zero_shot_similarities(images[:5], texts[:5], images, texts, keep=1)
    np.testing.assert_allclose(found, np.eye(5), atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "settings", "message"),
    [
        (
            ((4, 3), (2, 5), (6, 3), (7, 5)),
            {},
            "expected pairs, a picture and its caption, got 6 pictures and 7 captions",
        ),
        (((4, 3), (2, 5), (0, 3), (0, 5)), {}, "got 0 pictures and 0 captions"),
        (
            ((4, 3), (2, 5), (6, 4), (6, 5)),
            {},
            r"expected image rows and anchors of one width, got shapes \(4, 3\) and \(6, 4\)",
        ),
        (((4, 3), (2, 5), (6, 3), (6, 4)), {}, "expected text rows and anchors of one width"),
        (
            ((4, 3), (2, 5), (6, 3), (6, 5)),
            {"keep": 0},
            "expected keep of 1 or more and an exponent above 0, got 0",
        ),
        (((4, 3), (2, 5), (6, 3), (6, 5)), {"exponent": 0}, "an exponent above 0, got 100 and 0"),
    ],
)
def test_what_does_not_fit_is_refused(shapes, settings, message):
    with pytest.raises(SpaceError, match=message):
        zero_shot_similarities(*map(np.ones, shapes), **settings)
