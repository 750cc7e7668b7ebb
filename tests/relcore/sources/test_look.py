"""New pictures made like those of a dataset."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset, DatasetSpec
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


def test_ink_on_nothing_is_ink_on_white(look):
    clear = Image.new("RGBA", (100, 100), (0, 0, 0, 0))
    ImageDraw.Draw(clear).rectangle((20, 10, 60, 70), outline=(0, 0, 0, 255), width=10)
    white = drawn(0, 255, size=(100, 100))
    np.testing.assert_array_equal(np.asarray(made_like(clear, look)), np.asarray(made_like(white, look)))


def test_an_even_picture_has_nothing_drawn(look):
    with pytest.raises(SpaceError, match=r"mine: expected something drawn .* got an even grey"):
        made_like(Image.new("L", (50, 50), 255), look, "mine")


def test_colours_are_cut_to_the_datasets_size_and_stay_as_they_are_where_sizes_differ():
    photographs = [Image.new("RGB", (32, 16), color) for color in ("red", "blue")]
    dataset = Dataset(
        lambda start, stop: photographs[start:stop], ["a", "b"], name="photographs", kind="images"
    )
    assert look_of(dataset) == Look("RGB", (32, 16), on_dark=False)
    assert made_like(Image.new("L", (300, 300), 9), look_of(dataset)).size == (32, 16)
    photographs[1] = Image.new("RGB", (9, 9))
    assert made_like(Image.new("RGB", (300, 200)), look_of(dataset)).size == (300, 200)


def test_texts_have_no_look():
    with pytest.raises(SpaceError, match="expected images, got texts"):
        look_of(load_dataset(DatasetSpec("parallel", "en")))
