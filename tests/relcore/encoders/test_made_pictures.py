"""New pictures made like those of a dataset."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.images import Look, look_of, made_like


@pytest.fixture
def look():
    return look_of(load_dataset(DatasetSpec("digits", limit=100)))


def drawn(ink, paper, mode="L", size=(200, 120), at=(20, 10, 60, 70)):
    picture = Image.new(mode, size, paper)
    ImageDraw.Draw(picture).rectangle(at, outline=ink, width=10)
    return picture


def test_the_digits_are_light_strokes_on_dark_that_fill_their_eight_pixels(look):
    assert look == Look("L", (8, 8), on_dark=True, extent=1.0)


def test_dark_on_light_and_light_on_dark_become_the_same_wherever_they_are_drawn(look):
    first = np.asarray(made_like(drawn(0, 255), look))
    np.testing.assert_array_equal(first, np.asarray(made_like(drawn(255, 0), look)))
    np.testing.assert_array_equal(
        first, np.asarray(made_like(drawn("black", "white", "RGB", at=(120, 40, 160, 100)), look))
    )
    assert first.shape == (8, 8)
    assert first.max() == 255
    assert first[3, 3] < 100  # a frame, empty inside
