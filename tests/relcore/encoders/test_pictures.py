"""Pictures: their pixels, vectors of pixels and edges, and new pictures made like those of a dataset."""

import numpy as np
import pytest
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.drawings import look_of, made_like, strokes_of, thickness_of
from relcore.encoders.pictures import eight_bits, pixel_array
from relcore.encoders.pixels import PixelComponents
from relcore.runs.work import silent


def test_sixteen_bits_keep_the_upper_eight_and_thirty_two_have_no_known_range():
    image = Image.fromarray(np.array([[0, 255, 256, 65535]], dtype=np.uint16))
    np.testing.assert_array_equal(np.asarray(eight_bits(image, "L", "told")), [[0, 0, 1, 255]])
    np.testing.assert_array_equal(np.asarray(eight_bits(image, "RGB", "told"))[..., 2], [[0, 0, 1, 255]])
    for mode in ("I", "F"):
        with pytest.raises(SpaceError, match="told: expected pictures of 8 or 16 bits a channel, got 32"):
            eight_bits(Image.new(mode, (5, 3)), "L", "told")


def encoded(encoder, dataset):
    return encoder.prepare(dataset, silent)(dataset.items(0, len(dataset)))[""]


def test_pixels_are_the_principal_components():
    digits = load_dataset(DatasetSpec("digits", limit=200))
    rows = encoded(PixelComponents(n_components=5), digits)
    flat = pixel_array(digits.items(0, 200), "RGB", (16, 16), "digits").reshape(200, -1) / 255
    expected = PCA(5, svd_solver="full").fit_transform(flat)
    np.testing.assert_allclose(np.abs(rows), np.abs(expected), atol=1e-4)


def test_edges_tell_directions_whatever_brightness():
    across = np.tile(np.repeat([[0, 1]], 16, axis=1), (32, 1))
    images = [
        Image.fromarray((one * by).astype(np.uint8)) for one in (across, across.T) for by in (255, 250, 245)
    ]
    dataset = Dataset(lambda a, b: images[a:b], range(6), name="few", kind="images", content=list)
    rows = encoded(PixelComponents("edges"), dataset)
    assert rows.shape == (6, 5)
    gaps = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    assert gaps[:3, :3].max() < 1e-6 < 1 < gaps[:3, 3:].min()


@pytest.fixture(scope="module")
def look():
    return look_of(load_dataset(DatasetSpec("digits", limit=100)))


def drawn(ink, paper, mode="L", at=(20, 10, 60, 70)):
    picture = Image.new(mode, (200, 120), paper)
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
    (low, most), _ = look.strokes.sides
    assert low <= np.ptp(np.flatnonzero((seen > 48).any(axis=0))) + 1 <= most
    assert (seen > 48).any(axis=1).all()
    assert thickness_of(seen) == pytest.approx(look.strokes.thickness, rel=0.35)
    assert abs(seen.sum(axis=0) @ (np.arange(8) + 0.5) / seen.sum() - look.strokes.centre[0]) <= 0.5


def test_dark_on_light_and_light_on_dark_become_the_same_wherever_they_are_drawn(look):
    first = np.asarray(made_like(drawn(0, 255), look))
    for other in (drawn(255, 0), drawn("black", "white", "RGB", at=(120, 40, 160, 100))):
        np.testing.assert_array_equal(first, np.asarray(made_like(other, look)))
    assert first.shape == (8, 8)
    assert first.max() == 255
    assert first[3, 4] == 0  # a frame, empty inside


def test_digits_on_paper_in_uneven_light_are_read_as_their_scans_are(look):
    """Photos are made from scans: the paper is twice as bright at one side, and there is noise. A photo is
    read as the class of its nearest other scan."""
    digits = load_digits()
    rng = np.random.default_rng(0)
    tested = rng.choice(len(digits.data), 60, replace=False)
    others = np.setdiff1d(np.arange(len(digits.data)), tested)
    light = np.linspace(110, 230, 220)[None, :] + np.linspace(-15, 15, 220)[:, None]

    def seen(cover):
        photo = light * (1 - 0.8 * cover) + rng.normal(size=cover.shape) * 4
        return made_like(strokes_of(Image.fromarray(photo.clip(0, 255).astype(np.uint8))), look)

    right = []
    cover = np.zeros((220, 220))
    with pytest.raises(SpaceError, match="a drawing that stands out"):
        seen(cover)
    for row in tested:
        ink = Image.fromarray((digits.images[row] * 255 / 16).astype(np.uint8)).resize((120, 120))
        cover[50:170, 40:160] = np.asarray(ink) / 255
        pixels = np.asarray(seen(cover), dtype=float).ravel() * 16 / 255
        nearest = others[((digits.data[others] - pixels) ** 2).sum(axis=1).argmin()]
        right.append(digits.target[nearest] == digits.target[row])
    assert np.mean(right) >= 0.85
