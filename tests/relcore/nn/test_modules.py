"""PyTorch modules against the estimators, their gradients and invariances, and stitched modules without
Relscope."""

import subprocess
import sys

import numpy as np
import pytest

from relcore import (
    Affine,
    InverseRelativeProjection,
    LeastSquares,
    Procrustes,
    RelativeProjection,
    SpaceError,
)
from relcore.migrate import adapters

torch = pytest.importorskip("torch")

from relcore.nn import RelativeLayer, Stitched  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6)).astype(np.float32) + 1
Y = (X @ RNG.normal(size=(6, 4)) + 0.1 * RNG.normal(size=(200, 4)) - 2).astype(np.float32)
SIMILARITIES = ("cosine", "angular", "euclidean", "l1", "quantised")
ROTATION = np.linalg.qr(RNG.normal(size=(6, 6)))[0]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(
    ("similarity", "whiten"), [*((one, False) for one in SIMILARITIES), ("cosine", True)]
)
def test_the_layer_equals_the_estimator(similarity, whiten, center):
    projection = RelativeProjection(similarity, center, whiten).fit(X, anchors=np.arange(20))
    layer = projection.to_torch()
    rows = layer(torch.from_numpy(X)).numpy()
    first = 20 if similarity == "angular" else 0  # the angle of an anchor to itself, 0, is inexact in both
    np.testing.assert_allclose(rows[first:], projection.transform(X)[first:], atol=1e-6, rtol=1e-6)
    again = projection.to_torch()
    for one in again.buffers():
        one.zero_()
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(torch.from_numpy(X)), layer(torch.from_numpy(X)))
    exported = torch.export.export(layer, (torch.from_numpy(X[:5]),)).module()
    np.testing.assert_allclose(exported(torch.from_numpy(X[:5])).numpy(), rows[:5], atol=1e-6)


def layer_of(similarity, anchors, whiten=False):
    centroids = anchors[::2] if similarity == "quantised" else None
    return RelativeLayer(anchors, similarity=similarity, whiten=whiten, centroids=centroids)


@pytest.mark.parametrize(
    ("similarity", "whiten"), [*((one, False) for one in SIMILARITIES[:-1]), ("cosine", True)]
)
def test_gradients(similarity, whiten):
    torch.manual_seed(0)
    encoder = torch.nn.Linear(6, 3).double()
    inputs = torch.from_numpy(X[:5]).double()
    layer = RelativeLayer(encoder=encoder, inputs=inputs, similarity=similarity, whiten=whiten)
    rows = torch.from_numpy(X[10:14]).double()

    def relative(weight):
        return torch.func.functional_call(encoder, {"weight": weight}, (rows,))

    weight = encoder.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda one: layer(relative(one)), weight)
    layer(encoder(rows)).square().sum().backward()  # also through the anchors
    assert encoder.weight.grad.abs().sum() > 0
    assert list(layer.state_dict()) == ["inputs"]


@pytest.mark.parametrize(
    ("similarity", "rotates", "scales"),
    [("cosine", True, True), ("angular", True, True), ("euclidean", True, False), ("l1", False, False)],
)
def test_invariances_hold_where_they_must_and_only_there(similarity, rotates, scales):
    def relative(rows, center=True):
        rows = torch.from_numpy(rows).double()
        return RelativeLayer(rows[:20], similarity=similarity, center=center)(rows).numpy()

    rows = X.astype(np.float64)
    usual = relative(rows)
    assert np.allclose(relative(rows @ ROTATION), usual) == rotates
    assert np.allclose(relative(rows * 3), usual) == scales
    assert np.allclose(relative(rows + 5), usual)
    directions = similarity in ("cosine", "angular")
    assert np.allclose(relative(rows + 5, center=False), relative(rows, center=False)) != directions


def test_wrong_layers_are_refused():
    with pytest.raises(SpaceError, match="give one of these"):
        RelativeLayer()
    with pytest.raises(SpaceError, match="whitening needs"):
        RelativeLayer(X[:3], similarity="l1", whiten=True)
    with pytest.raises(SpaceError, match="expected centroids"):
        RelativeLayer(X[:3], similarity="quantised")
    with pytest.raises(SpaceError, match="similarity: expected one of"):
        RelativeLayer(X[:3], similarity="dot")


FITTED = [
    Procrustes(),
    LeastSquares(),
    Affine(),
    *(
        InverseRelativeProjection(method, lengths=how)
        for method in ("pruned", "ridge", "whitened")
        for how in ("paper", "mean")
    ),
    adapters.ProcrustesAdapter(),
    adapters.RidgeAdapter(),
    adapters.WhitenedRelativeAdapter(),
    adapters.WhitenedInverseAdapter(),
]


@pytest.mark.parametrize("estimator", FITTED, ids=lambda one: f"{type(one).__name__}")
def test_maps_equal_their_estimators(estimator):
    estimator.fit(X[:100], Y[:100])
    np.testing.assert_allclose(
        estimator.to_torch()(torch.from_numpy(X)).numpy(), estimator.transform(X), atol=2e-5
    )


WITHOUT = """
import sys
sys.modules["relcore"] = None  # importing it fails
import torch
X = torch.load("X.pt", weights_only=True)
torch.save(torch.export.load("stitched/model.pt2").module()(X), "rows.pt")
"""


def test_a_stitched_module_runs_without_relscope(tmp_path):
    torch.manual_seed(0)
    translation = InverseRelativeProjection("ridge").fit(X[:100], Y[:100]).to_torch()
    stitched = Stitched(torch.nn.Linear(8, 6), translation, torch.nn.Linear(4, 2)).train()
    rows = torch.rand(7, 8)
    stitched.save(tmp_path / "stitched", torch.rand(3, 8))
    assert stitched.training
    torch.save(rows, tmp_path / "X.pt")
    subprocess.run([sys.executable, "-P", "-c", WITHOUT], cwd=tmp_path, check=True)
    found = torch.load(tmp_path / "rows.pt", weights_only=True)
    assert torch.allclose(found, stitched(rows), atol=1e-6)
    from safetensors.torch import load_file

    weights = load_file(tmp_path / "stitched" / "model.safetensors")
    assert weights.keys() == stitched.state_dict().keys()


def test_unrelated_anchors_tell_nothing():
    """The negative control: layers whose anchors are paired at random retrieve no row above chance."""
    rotated = torch.from_numpy(X @ ROTATION.astype(np.float32))
    rows = torch.from_numpy(X)
    order = torch.from_numpy(np.random.default_rng(1).permutation(20))

    def found(anchors):
        first = RelativeLayer(rows[:20])(rows[20:])
        second = RelativeLayer(anchors)(rotated[20:])
        return float((torch.cdist(first, second).argmin(1) == torch.arange(180)).float().mean())

    assert found(rotated[:20]) > 0.99
    assert found(rotated[:20][order]) < 0.05  # chance .006 ± .006
