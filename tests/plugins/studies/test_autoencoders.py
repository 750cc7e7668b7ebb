"""Autoencoders: codes of single pictures, training that repeats, and what is refused."""

import numpy as np
import pytest
from relscope_studies.isometry import AutoencoderSpec, fit_autoencoder
from sklearn.datasets import load_digits

from relcore.base.errors import SpaceError

QUICK = AutoencoderSpec(width=16, epochs=1)


@pytest.fixture(scope="module")
def images():
    return (load_digits().images[:256] / 16).astype(np.float32)


def test_the_encoder_takes_pictures_of_any_shape(rng):
    images = rng.uniform(size=(64, 11, 7)).astype(np.float32)
    model = fit_autoencoder(images, QUICK)
    codes = model.encode(images[:5])
    assert codes.shape == (5, 16)
    np.testing.assert_allclose(model.encode(images)[:5], codes, atol=1e-5)  # of a picture, not of its company


def test_training_repeats_to_the_last_bit_whatever_the_number_of_threads(images):
    import torch

    n_threads = torch.get_num_threads()
    first = fit_autoencoder(images, QUICK, 1).encode(images[:9])
    torch.manual_seed(5)
    torch.set_num_threads(3)
    try:
        again = fit_autoencoder(images, QUICK, 1).encode(images[:9])
    finally:
        torch.set_num_threads(n_threads)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - fit_autoencoder(images, QUICK, 2).encode(images[:9])).max() > 0.01


def test_other_arrays_than_grey_pictures_are_refused(images):
    with pytest.raises(SpaceError, match=r"expected grey pictures .* got shape \(64, 64\)"):
        fit_autoencoder(images[:64].reshape(64, 64), QUICK)
