"""Autoencoders taken apart: what their halves are, that training repeats, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from relcore.base.errors import SpaceError
from relcore.represent.similarity import RelativeProjection
from relcore.stitch.autoencoders import AutoencoderSpec, fit_autoencoder

QUICK = AutoencoderSpec(width=16, epochs=1)
ANCHORS = np.arange(20)


@pytest.fixture(scope="module")
def images():
    return (load_digits().images[:256] / 16).astype(np.float32)


@pytest.mark.parametrize("variational", [False, True])
@pytest.mark.parametrize("representation", ["absolute", "relative", "whitened"])
def test_both_halves_of_every_kind_fit_pictures_of_any_shape(rng, representation, variational):
    spec = replace(QUICK, representation=representation, variational=variational)
    images = rng.uniform(size=(64, 11, 7)).astype(np.float32)
    model = fit_autoencoder(images, np.arange(12), spec)
    codes = model.encode(images[:5])
    assert codes.shape == (5, 16 if representation == "absolute" else 12)
    drawn = model.decode(codes)
    assert drawn.shape == (5, 11, 7)
    assert 0 <= drawn.min() <= drawn.max() <= 1
    np.testing.assert_allclose(model.encode(images)[:5], codes, atol=1e-5)  # of a picture, not of its company


def test_relative_codes_are_cosines_to_the_models_own_anchors(images):
    codes = fit_autoencoder(images, ANCHORS, replace(QUICK, representation="relative")).encode(images)
    np.testing.assert_allclose(codes[ANCHORS, np.arange(20)], 1, atol=1e-5)
    assert np.abs(codes).max() <= 1 + 1e-5


def test_whitened_codes_are_those_of_the_projection(images):
    import torch

    model = fit_autoencoder(images, ANCHORS, replace(QUICK, representation="whitened", ridge=0.5))
    with torch.inference_mode():
        features = model.parts["features"](torch.from_numpy(images[:, None])).numpy()
    centred = features - features[ANCHORS].mean(axis=0)
    projection = RelativeProjection(center=False, whiten=True, ridge=0.5).fit(centred, anchors=ANCHORS)
    np.testing.assert_allclose(model.encode(images), projection.transform(centred), atol=1e-4)


@pytest.mark.parametrize("spec", [replace(QUICK, representation="relative", variational=True)])
def test_training_repeats_to_the_last_bit_whatever_the_number_of_threads(images, spec):
    import torch

    n_threads = torch.get_num_threads()
    first = fit_autoencoder(images, ANCHORS, spec, 1).encode(images[:9])
    torch.manual_seed(5)
    torch.set_num_threads(3)
    try:
        again = fit_autoencoder(images, ANCHORS, spec, 1).encode(images[:9])
    finally:
        torch.set_num_threads(n_threads)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - fit_autoencoder(images, ANCHORS, spec, 2).encode(images[:9])).max() > 0.01


def test_pictures_anchors_and_codes_that_do_not_fit_are_refused(images):
    relative = replace(QUICK, representation="relative")
    with pytest.raises(SpaceError, match=r"expected grey pictures .* got shape \(64, 64\)"):
        fit_autoencoder(images[:64].reshape(64, 64), ANCHORS, QUICK)
    with pytest.raises(SpaceError, match=r"anchors: expected two rows or more of 0 … 63, got \[3, 64\]"):
        fit_autoencoder(images[:64], [3, 64], relative)
    with pytest.raises(SpaceError, match=r"expected codes of width 16, got shape \(2, 17\)"):
        fit_autoencoder(images[:64], [], QUICK).decode(np.ones((2, 17)))
