"""Pictures by their pixels or edges: scikit-learn's PCA, edges that ignore brightness, few pictures."""

import numpy as np
from PIL import Image
from sklearn.decomposition import PCA

from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Dataset, DatasetSpec, PixelComponents, pixel_array
from relcore.runs.store import silent


def of(images):
    return Dataset(lambda a, b: images[a:b], range(len(images)), name="few", kind="images", content=list)


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
    scale = [255, 250, 245]
    images = [Image.fromarray((one * by).astype(np.uint8)) for one in (across, across.T) for by in scale]
    rows = encoded(PixelComponents("edges"), of(images))
    assert rows.shape == (6, 5)
    gaps = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    assert gaps[:3, :3].max() < 1e-6 < 1 < gaps[:3, 3:].min()
