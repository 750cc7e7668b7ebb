"""Heads of users in a stitching: on their own rows they answer as they do alone, and on others by translations."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from relcore import LatentSpace, SpaceError, StitchSpec, stitch_matrix

RNG = np.random.default_rng(0)
CLASSES = ("blue", "green", "red")
TARGETS = RNG.integers(0, 3, 300)
X = (RNG.normal(size=(300, 8)) + 3 * RNG.normal(size=(3, 8))[TARGETS]).astype(np.float32)
TURNED = (X @ np.linalg.qr(RNG.normal(size=(8, 8)))[0]).astype(np.float32)
IDS = [f"row {row}" for row in range(300)]
LABELS = np.array(CLASSES)[TARGETS]
SPACES = [LatentSpace(rows, IDS, labels=LABELS, name=name) for rows, name in ((X, "one"), (TURNED, "two"))]
SPEC = StitchSpec(("absolute", "procrustes"), n_anchors=40, test_ids=tuple(IDS[200:]))


def module(weights, bias):
    torch = pytest.importorskip("torch")
    made = torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.BatchNorm1d(3, affine=False, eps=0)).train()
    with torch.no_grad():
        made[0].weight.copy_(torch.from_numpy(weights))
        made[0].bias.copy_(torch.from_numpy(bias))
    return made


@pytest.mark.parametrize("kind", ["probabilities", "answers", "module"])
def test_heads_of_a_user_read_both_encoders(kind):
    fitted = LogisticRegression().fit(X[:200], LABELS[:200])
    head = fitted
    if kind == "answers":  # it has no probabilities
        head = fitted = RidgeClassifier().fit(X[:200], LABELS[:200])
    if kind == "module":
        head = module(fitted.coef_, fitted.intercept_)
    result = stitch_matrix(SPACES, SPEC, heads=[head, None])
    assert any("which no recipe holds" in note for note in result.report().notes)
    own = fitted.score(X[200:], LABELS[200:])
    procrustes, _ = result.matrix("procrustes")
    absolute, _ = result.matrix("absolute")
    assert own > 0.9
    assert procrustes[0, 0] == absolute[0, 0] == pytest.approx(own)
    assert procrustes[1, 0] == pytest.approx(own, abs=0.02)  # the translation is a rotation
    assert absolute[1, 0] < 0.7
    trained = stitch_matrix(SPACES, SPEC)
    assert procrustes[:, 1] == pytest.approx(
        trained.matrix("procrustes")[0][:, 1]
    )  # the head that is trained
    if kind == "module":
        assert head.training
        assert head[1].running_mean.tolist() == [0, 0, 0]


def test_a_head_of_permuted_labels_tells_nothing():
    """The negative control: 100 test rows, so chance is .37 ± .05."""
    order = np.random.default_rng(1).permutation(200)
    head = LogisticRegression().fit(X[:200], LABELS[:200][order])
    accuracy, _ = stitch_matrix(SPACES, SPEC, heads=[head, None]).matrix("procrustes")
    assert accuracy[1, 0] < 0.55


def test_wrong_heads_are_refused():
    torch = pytest.importorskip("torch")
    head = LogisticRegression().fit(X[:200], LABELS[:200])
    other = LogisticRegression().fit(X[:200], LABELS[:200] == "red")
    relative = StitchSpec(("relative",), n_anchors=40)
    for heads, spec, match in (
        ([head], SPEC, "expected a list of 2"),
        ([head, None], relative, "expected methods that translate rows"),
        ([other, None], SPEC, "for the classes"),
        ([len, None], SPEC, "expected a PyTorch module"),
        ([torch.nn.Linear(8, 4), None], SPEC, "expected scores"),
        ([torch.nn.Linear(5, 3), None], SPEC, "expected a head that reads rows"),
    ):
        with pytest.raises(SpaceError, match=match):
            stitch_matrix(SPACES, spec, heads=heads)
