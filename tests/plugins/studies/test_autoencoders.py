"""Autoencoders: codes of single pictures, training that repeats, and what is refused."""

import numpy as np
import pytest
from relscope_studies.isometry import AutoencoderSpec, fit_autoencoder
from sklearn.datasets import load_digits

QUICK = AutoencoderSpec(width=16, epochs=1)


@pytest.fixture(scope="module")
def images():
    return (load_digits().images[:96] / 16).astype(np.float32)


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
