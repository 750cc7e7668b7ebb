"""Autoencoders taken apart: what their halves are, what stitches, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from relcore.projection import RelativeProjection
from relcore.spaces import SpaceError
from relcore.stitching.autoencoders import AutoencoderSpec, fit_autoencoder
from relcore.stitching.reconstruction import (
    Reconstructions,
    balanced_anchors,
    plane_codes,
    rebuild,
    stitch_reconstructions,
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


def test_training_repeats_with_its_random_state(digits, anchors):
    images = digits[0][:256]
    first, again, other = (fit_autoencoder(images, anchors, QUICK, state).encode(images[:9]) for state in (1, 1, 2))
    np.testing.assert_allclose(first, again, atol=1e-5)
    assert np.abs(first - other).max() > 0.01


def test_rebuilding_crosses_every_encoder_with_every_decoder(digits, anchors):
    images = digits[0][:128]
    models = [fit_autoencoder(images, anchors[:0], QUICK, state) for state in (0, 1)]
    rebuilt = rebuild(models, images[:3])
    assert rebuilt.shape == (2, 2, 3, 8, 8)
    np.testing.assert_allclose(rebuilt[0, 1], models[1].decode(models[0].encode(images[:3])), atol=1e-6)


def test_table_by_hand():
    errors = {"AE": np.array([[1.0, 10], [30, 3]])}
    table = Reconstructions((0, 1), errors, np.empty(0), {}).table()
    assert table.iloc[0].tolist() == pytest.approx(["AE", 2, np.sqrt(2), 20, np.sqrt(200)])


def test_a_run_tells_its_progress_and_keeps_the_first_pictures(digits, anchors):
    images, told = digits[0][:256], []
    found = stitch_reconstructions(
        images[:200], images[200:], anchors % 200, {"AE": QUICK}, (4, 5), 3, lambda *step: told.append(step[:2])
    )
    assert found.mse["AE"].shape == (2, 2)
    assert found.pictures["AE"].shape == (2, 2, 3, 8, 8)
    expected = 1000 * np.mean((found.pictures["AE"] - images[200:203]) ** 2)
    assert expected == pytest.approx(found.mse["AE"].mean(), rel=0.5)
    assert told == [(1, 1), (1, 1)]


def test_balanced_anchors_are_as_many_of_each_class(digits):
    rows = balanced_anchors(*digits, 30)
    assert np.unique(digits[1][rows], return_counts=True)[1].tolist() == [3] * 10


def test_two_numbers_for_a_picture(digits):
    codes = plane_codes(digits[0][:256], digits[0][:10], epochs=1)
    assert codes.shape == (2, 10, 2)
    assert np.abs(codes[0] - codes[1]).max() > 1e-3


@pytest.mark.slow
def test_relative_decoders_draw_from_other_encoders_and_absolute_ones_do_not(digits):
    images, labels = digits
    train, test = images[:1437], images[1437:]
    specs = {name: AutoencoderSpec(name, epochs=20) for name in ("absolute", "relative")}
    table = stitch_reconstructions(train, test, balanced_anchors(train, labels[:1437], 200), specs).table()
    table = table.set_index("model")
    assert table.loc["absolute", "stitched"] >= 5 * table.loc["relative", "stitched"]
    assert table["own"].max() < 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"representation": "relativ"}, "representation: expected one of absolute, relative, whitened, got 'relativ'"),
        ({"width": 0}, "width: expected a whole number, 1 or more, got 0"),
        ({"epochs": 1.5}, "epochs: expected a whole number, 1 or more, got 1.5"),
        ({"ridge": 0}, "ridge: expected a number above 0, got 0"),
    ],
)
def test_specs_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SpaceError, match=message):
        AutoencoderSpec(**settings)


def test_pictures_anchors_and_codes_that_do_not_fit_are_refused(digits, anchors):
    images = digits[0][:64]
    relative = replace(QUICK, representation="relative")
    with pytest.raises(SpaceError, match=r"expected grey pictures \(n, height, width\) of values 0 … 1, got shape \(64, 64\)"):
        fit_autoencoder(images.reshape(64, 64), anchors, QUICK)
    with pytest.raises(SpaceError, match="expected grey pictures"):
        fit_autoencoder(255 * images, anchors, QUICK)
    with pytest.raises(SpaceError, match=r"anchors: expected two rows or more of 0 … 63, got \[3, 64\]"):
        fit_autoencoder(images, [3, 64], relative)
    with pytest.raises(SpaceError, match=r"anchors: expected two rows or more of 0 … 63, got \[\]"):
        fit_autoencoder(images, [], relative)
    with pytest.raises(SpaceError, match=r"expected codes of width 16, got shape \(2, 17\); stitch models of one spec"):
        fit_autoencoder(images, [], QUICK).decode(np.ones((2, 17)))
    with pytest.raises(SpaceError, match="random_states: expected two different ones or more to stitch, got"):
        stitch_reconstructions(images, images, anchors, {"AE": QUICK}, (1, 1))
