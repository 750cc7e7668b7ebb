"""New pictures made like those of a dataset."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits

from relcore.base.errors import SpaceError
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import DatasetSpec, look_of, made_like, strokes_of, thickness_of


@pytest.fixture
def look():
    return look_of(load_dataset(DatasetSpec("digits", limit=100)))


def drawn(ink, paper, mode="L", size=(200, 120), at=(20, 10, 60, 70)):
    picture = Image.new(mode, size, paper)
    ImageDraw.Draw(picture).rectangle(at, outline=ink, width=10)
    return picture


def test_the_digits_are_light_strokes_on_dark_that_fill_their_eight_pixels_from_top_to_bottom(look):
    assert (look.mode, look.size, look.on_dark) == ("L", (8, 8), True)
    (narrow, wide), heights = look.strokes.sides
    assert (look.strokes.longer, heights) == (8, (8, 8))
    assert 3 <= narrow < wide <= 7
    np.testing.assert_allclose(look.strokes.centre, 4, atol=0.2)


@pytest.mark.parametrize("shape", [(20, 90), (60, 90), (110, 60)])
def test_a_drawing_has_the_size_place_and_thickness_of_the_scans(look, shape):
    wide, high = shape
    seen = np.asarray(made_like(drawn(255, 0, at=(20, 10, 20 + wide, 10 + high)), look), dtype=float)
    across = np.flatnonzero((seen > 48).any(axis=0))
    (low, most), _ = look.strokes.sides
    assert low <= np.ptp(across) + 1 <= most
    assert (seen > 48).any(axis=1).all()
    assert thickness_of(seen) == pytest.approx(look.strokes.thickness, rel=0.35)
    assert abs(seen.sum(axis=0) @ (np.arange(8) + 0.5) / seen.sum() - look.strokes.centre[0]) <= 0.5


def test_dark_on_light_and_light_on_dark_become_the_same_wherever_they_are_drawn(look):
    first = np.asarray(made_like(drawn(0, 255), look))
    np.testing.assert_array_equal(first, np.asarray(made_like(drawn(255, 0), look)))
    np.testing.assert_array_equal(
        first, np.asarray(made_like(drawn("black", "white", "RGB", at=(120, 40, 160, 100)), look))
    )
    assert first.shape == (8, 8)
    assert first.max() == 255
    assert first[3, 4] == 0  # a frame, empty inside


def test_digits_on_paper_in_uneven_light_are_read_as_their_scans_are(look):
    """Photos made of scans: dark ink, paper that is twice as bright at one side, noise. By the nearest other scan."""
    digits, rng = load_digits(), np.random.default_rng(0)
    tested = rng.choice(len(digits.data), 60, replace=False)
    others = np.setdiff1d(np.arange(len(digits.data)), tested)
    light = np.linspace(110, 230, 220)[None, :] + np.linspace(-15, 15, 220)[:, None]
    right = []
    for row in tested:
        ink = Image.fromarray((digits.images[row] * 255 / 16).astype(np.uint8)).resize((120, 120))
        cover = np.zeros((220, 220))
        cover[50:170, 40:160] = np.asarray(ink) / 255
        photo = light * (1 - 0.8 * cover) + rng.normal(size=cover.shape) * 4
        seen = made_like(strokes_of(Image.fromarray(photo.clip(0, 255).astype(np.uint8))), look)
        pixels = np.asarray(seen, dtype=float).ravel() * 16 / 255
        nearest = others[((digits.data[others] - pixels) ** 2).sum(axis=1).argmin()]
        right.append(digits.target[nearest] == digits.target[row])
    assert np.mean(right) >= 0.85


def test_an_empty_paper_has_no_strokes(look):
    light = np.linspace(110, 230, 220)[None, :] + np.random.default_rng(0).normal(size=(220, 220)) * 4
    with pytest.raises(SpaceError, match="something drawn that stands out"):
        made_like(strokes_of(Image.fromarray(light.clip(0, 255).astype(np.uint8))), look)
