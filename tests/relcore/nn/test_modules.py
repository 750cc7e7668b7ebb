"""PyTorch modules against the estimators, their gradients and invariances, and stitched modules without
Relscope."""

import subprocess
import sys

import numpy as np
import pytest

from relcore import (
    Affine,
    InverseRelativeProjection,
    LatentSpace,
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


INVARIANCES = [  # of relative rows to a rotation of all rows, and to a scale
    ("cosine", False, True, True),
    ("cosine", True, True, True),
    ("angular", False, True, True),
    ("euclidean", False, True, False),
    ("l1", False, False, False),
    ("quantised", False, True, True),
]


@pytest.mark.parametrize(("similarity", "whiten", "rotates", "scales"), INVARIANCES)
def test_invariances_hold_where_they_must_and_only_there(similarity, whiten, rotates, scales):
    def relative(rows, center=True, turned=None):
        rows = torch.from_numpy(rows).double()
        centroids = None
        if similarity == "quantised":  # directions, which turn with the rows
            codes = X[30:50] - X[:20].mean(axis=0)
            codes /= np.linalg.norm(codes, axis=1, keepdims=True)
            centroids = torch.from_numpy(codes.astype(np.float64))
            if turned is not None:
                centroids = centroids @ torch.from_numpy(turned)
        layer = RelativeLayer(
            rows[:20], similarity=similarity, center=center, whiten=whiten, centroids=centroids
        )
        return layer(rows).numpy()

    rows = X.astype(np.float64)
    usual = relative(rows)
    assert np.allclose(relative(rows @ ROTATION, turned=ROTATION), usual) == rotates
    assert np.allclose(relative(rows * 3), usual) == scales
    assert np.allclose(relative(rows + 5), usual)
    directions = similarity not in ("euclidean", "l1")
    assert np.allclose(relative(rows + 5, center=False), relative(rows, center=False)) != directions
    stretched = rows * [1, 2, 3, 4, 5, 6]
    assert not np.allclose(relative(stretched), usual)


def test_quantised_similarities_change_if_only_the_rows_turn():
    rows = X.astype(np.float64)
    usual = layer_of("quantised", rows[:20])(torch.from_numpy(rows).float())
    turned = rows @ ROTATION
    layer = RelativeLayer(turned[:20], similarity="quantised", centroids=rows[:20:2])
    assert not np.allclose(layer(torch.from_numpy(turned).float()), usual, atol=0.1)


def test_wrong_layers_are_refused():
    with pytest.raises(SpaceError, match="give one of these"):
        RelativeLayer()
    with pytest.raises(SpaceError, match="whitening needs"):
        RelativeLayer(X[:3], similarity="l1", whiten=True)
    with pytest.raises(SpaceError, match="expected centroids"):
        RelativeLayer(X[:3], similarity="quantised")
    with pytest.raises(SpaceError, match="similarity: expected one of"):
        RelativeLayer(X[:3], similarity="dot")
    with pytest.raises(SpaceError, match=r"space.vectors\[space.rows\(ids\)\]"):
        RelativeLayer(np.array(["3", "17"]))
    with pytest.raises(SpaceError, match=r"X: expected rows \(n, 6\), got a tensor of shape \(3, 4\)"):
        RelativeLayer(X[:5])(torch.rand(3, 4))


def test_the_anchors_may_be_a_space_and_are_told():
    layer = RelativeLayer(LatentSpace(X[:5]))
    assert torch.equal(layer.anchors, RelativeLayer(X[:5]).anchors)
    assert repr(layer) == "RelativeLayer(5 anchors, similarity='cosine', center=True)"
    assert repr(Affine().fit(X, Y).to_torch()) == "AffineMap(6 → 4)"


def test_an_estimator_is_no_part_of_a_stitched_module():
    with pytest.raises(SpaceError, match=r"translation: expected a PyTorch module, got Affine; .*\.to_torch"):
        Stitched(torch.nn.Linear(8, 6), Affine().fit(X, Y), torch.nn.Linear(4, 2))


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


TRANSLATIONS = {
    "inverse": lambda: InverseRelativeProjection("ridge").fit(X, np.tile(Y, 5)),
    "procrustes": lambda: Procrustes().fit(X, Y),
    **{one: lambda one=one: RelativeProjection(one).fit(X, anchors=np.arange(20)) for one in SIMILARITIES},
    "whitened": lambda: RelativeProjection(whiten=True).fit(X, anchors=np.arange(20)),
}


@pytest.mark.parametrize("translation", TRANSLATIONS)
def test_a_stitched_module_as_onnx_gives_the_same(translation, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    convolution = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()
    )
    encoder = torch.nn.Sequential(convolution, torch.nn.Linear(16, 6))
    pictures = torch.rand(9, 1, 4, 4)
    translated = TRANSLATIONS[translation]().to_torch()
    width = translated(encoder(pictures)).shape[1]
    stitched = Stitched(encoder, translated, torch.nn.Linear(width, 3)).eval()
    stitched.save(tmp_path, pictures[:2], onnx=True)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    for n in (1, 9):
        (found,) = session.run(["Y"], {"X": pictures[:n].numpy()})
        expected = stitched(pictures[:n]).detach().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_what_cannot_be_traced_is_refused_and_leaves_no_folder(tmp_path, monkeypatch):
    class Loop(torch.nn.Module):
        def forward(self, X):
            return X if X.sum() > 0 else -X

    class NoOnnx(torch.nn.Module):
        def forward(self, X):
            return torch.linalg.eigvalsh(X[:, :, None] * X[:, None])

    here = torch.nn.Identity(), torch.nn.Identity()
    with pytest.raises(SpaceError, match=r"that torch.export can trace"):
        Stitched(*here, Loop()).save(tmp_path / "model", torch.rand(3, 4))
    with pytest.raises(SpaceError, match=r"that ONNX can trace.*use onnx=False"):
        Stitched(*here, NoOnnx()).save(tmp_path / "model", torch.rand(3, 4), onnx=True)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SpaceError, match=r"relscope\[onnx\]"):
        Stitched(*here, torch.nn.Identity()).save(tmp_path / "model", torch.rand(3, 4), onnx=True)
    assert list(tmp_path.iterdir()) == []


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
