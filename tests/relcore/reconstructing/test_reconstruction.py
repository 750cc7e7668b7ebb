"""Autoencoders taken apart: what their halves are, what stitches, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from relcore.base.errors import SpaceError
from relcore.represent.projection import RelativeProjection
from relcore.stitch.autoencoders import AutoencoderSpec, fit_autoencoder, restore_autoencoder
from relcore.stitch.reconstruction import (
    Reconstructions,
    balanced_anchors,
    errors_of,
    mean_picture_error,
    rebuild,
)

QUICK = AutoencoderSpec(width=16, epochs=1)


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return (found.images / 16).astype(np.float32), found.target.astype(str)


@pytest.fixture(scope="module")
def anchors(digits):
    return balanced_anchors(digits[0][:256], digits[1][:256], 20)


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
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    np.testing.assert_allclose(model.encode(images)[:5], codes, atol=1e-5)  # of a picture, not of its company


def test_relative_codes_are_cosines_to_the_models_own_anchors(digits, anchors):
    images = digits[0][:256]
    model = fit_autoencoder(images, anchors, replace(QUICK, representation="relative"))
    codes = model.encode(images)
    np.testing.assert_allclose(codes[anchors, np.arange(20)], 1, atol=1e-5)
    assert np.abs(codes).max() <= 1 + 1e-5


def test_whitened_codes_are_those_of_the_projection(digits, anchors):
    import torch

    images = digits[0][:256]
    model = fit_autoencoder(images, anchors, replace(QUICK, representation="whitened", ridge=0.5))
    with torch.inference_mode():
        features = model.parts["features"](torch.from_numpy(images[:, None])).numpy()
    centred = features - features[anchors].mean(axis=0)
    projection = RelativeProjection(center=False, whiten=True, ridge=0.5).fit(centred, anchors=anchors)
    np.testing.assert_allclose(model.encode(images), projection.transform(centred), atol=1e-4)


@pytest.mark.parametrize("spec", [QUICK, replace(QUICK, representation="relative", variational=True)])
def test_training_repeats_to_the_last_bit_whatever_the_number_of_threads(digits, anchors, spec):
    import torch

    images, n_threads = digits[0][:256], torch.get_num_threads()
    first = fit_autoencoder(images, anchors, spec, 1).encode(images[:9])
    torch.manual_seed(5)
    torch.set_num_threads(3)
    try:
        again = fit_autoencoder(images, anchors, spec, 1).encode(images[:9])
    finally:
        torch.set_num_threads(n_threads)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - fit_autoencoder(images, anchors, spec, 2).encode(images[:9])).max() > 0.01


@pytest.mark.parametrize("representation", ["absolute", "whitened"])
def test_a_model_comes_back_from_its_arrays(digits, anchors, representation):
    images = digits[0][:128]
    model = fit_autoencoder(images, anchors % 128, replace(QUICK, representation=representation))
    again = restore_autoencoder(model.arrays(), model.spec, (8, 8))
    np.testing.assert_array_equal(again.decode(again.encode(images)), model.decode(model.encode(images)))


def test_rebuilding_crosses_every_encoder_with_every_decoder(digits, anchors):
    images = digits[0][:128]
    models = [fit_autoencoder(images, anchors[:0], QUICK, state) for state in (0, 1)]
    rebuilt = rebuild(models, images[:3])
    assert rebuilt.shape == (2, 2, 3, 8, 8)
    np.testing.assert_allclose(rebuilt[0, 1], models[1].decode(models[0].encode(images[:3])), atol=1e-6)


def test_a_model_stitched_with_itself_is_the_model(digits, anchors):
    images = digits[0][:128]
    model = fit_autoencoder(images, anchors % 128, replace(QUICK, representation="relative"))
    rebuilt = rebuild([model, restore_autoencoder(model.arrays(), model.spec, (8, 8))], images)
    errors = errors_of(rebuilt, images)
    np.testing.assert_array_equal(rebuilt[0, 1], rebuilt[0, 0])
    np.testing.assert_array_equal(errors, errors[0, 0])
    assert errors[0, 0] == pytest.approx(1000 * np.mean((model.decode(model.encode(images)) - images) ** 2))


def test_table_by_hand():
    errors = {"AE": np.array([[1.0, 10], [30, 3]])}
    table = Reconstructions((0, 1), 50, 20, 64.0, errors, np.empty(0), {}).table()
    assert table.iloc[0].tolist() == pytest.approx(["AE", 2, np.sqrt(2), 20, np.sqrt(200), 64, 20, 2, 2])


def test_the_mean_picture_by_hand(rng):
    train, test = rng.uniform(size=(40, 3, 2)), rng.uniform(size=(9, 3, 2))
    assert mean_picture_error(train, train) == pytest.approx(1000 * train.var(axis=0).mean())
    assert mean_picture_error(train, test) == pytest.approx(
        1000 * np.square(test - train.mean(axis=0)).mean()
    )


def test_balanced_anchors_are_as_many_of_each_class(digits):
    rows = balanced_anchors(*digits, 30)
    assert np.unique(digits[1][rows], return_counts=True)[1].tolist() == [3] * 10


def test_without_labels_anchors_are_any_rows(digits):
    rows = balanced_anchors(digits[0], None, 30)
    assert len(set(rows)) == 30
    assert rows.max() < len(digits[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"representation": "relativ"},
            "representation: expected one of absolute, relative, whitened, got 'relativ'",
        ),
        ({"width": 0}, "width: expected a whole number from 1, got 0"),
        ({"epochs": 1.5}, "epochs: expected a whole number from 1, got 1.5"),
        ({"batch_size": 1}, "batch_size: expected a whole number from 2, got 1"),
        ({"learning_rate": 0}, "learning_rate: expected a number above 0, got 0"),
        ({"ridge": 0}, "ridge: expected a number above 0, got 0"),
    ],
)
def test_specs_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SpaceError, match=message):
        AutoencoderSpec(**settings)


def test_pictures_anchors_and_codes_that_do_not_fit_are_refused(digits, anchors):
    images = digits[0][:64]
    relative = replace(QUICK, representation="relative")
    with pytest.raises(
        SpaceError, match=r"expected grey pictures \(n, height, width\) of values 0 … 1, got shape \(64, 64\)"
    ):
        fit_autoencoder(images.reshape(64, 64), anchors, QUICK)
    with pytest.raises(SpaceError, match="expected grey pictures"):
        fit_autoencoder(255 * images, anchors, QUICK)
    with pytest.raises(SpaceError, match=r"anchors: expected two rows or more of 0 … 63, got \[3, 64\]"):
        fit_autoencoder(images, [3, 64], relative)
    with pytest.raises(SpaceError, match=r"anchors: expected two rows or more of 0 … 63, got \[\]"):
        fit_autoencoder(images, [], relative)
    with pytest.raises(
        SpaceError, match=r"expected codes of width 16, got shape \(2, 17\); stitch models of one spec"
    ):
        fit_autoencoder(images, [], QUICK).decode(np.ones((2, 17)))
    with pytest.raises(SpaceError, match="expected two pictures or more to train on, got one"):
        fit_autoencoder(images[:1], [], QUICK)
