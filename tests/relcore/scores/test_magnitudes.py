"""Spaces of any magnitude that is not refused: every score equals a float64 one computed here, or has a note."""

import numpy as np
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.base.names import INVERSES, SIMILARITIES
from relcore.base.rows import unit_rows
from relcore.represent.inverse import InverseRelativeProjection, recovery_errors
from relcore.represent.projection import RelativeProjection
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.comparison import held_out, score_pair
from relcore.scores.neighbours import jaccard
from relcore.scores.score import Score
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 200
D = 16
K = 30
IDS = [f"w{row}" for row in range(N)]
ANCHORS = IDS[:K]
rng = np.random.default_rng(0)
HIDDEN = rng.normal(size=(N, 6))
A, B = (
    (HIDDEN @ rng.normal(size=(6, D)) + 0.3 * rng.normal(size=(N, D))).astype(np.float32) for _ in range(2)
)
POWERS = (-25, 25)


def times(X, power):
    return np.ldexp(X, power)


def scores(X, Y, projection, convention="mutual"):
    pair = match(LatentSpace(X, IDS), LatentSpace(Y, IDS))
    assert len(pair) == N
    found = {}
    for form in REPRESENTATIONS:
        made = represent(pair, form, ANCHORS, projection)
        split = held_out(pair, ANCHORS, form)
        scored = score_pair(*made, split, convention=convention)
        found |= {(form, name): float(score) for name, score in scored.items()}
    return found


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_power_of_two_changes_no_bit_of_any_score(similarity):
    projection = ProjectionSpec(similarity, center=similarity != "euclidean")
    plain = scores(A, B, projection)
    for power in (-25, 25):
        assert scores(times(A, power), times(B, -power), projection) == plain


@pytest.mark.parametrize("method", INVERSES)
def test_power_of_two_changes_no_bit_of_translation(method):
    def translated(X, Y):
        return InverseRelativeProjection(method, lengths="mean").fit(X[:K], Y[:K]).transform(X)

    plain = translated(A, B)
    for power in POWERS:
        found = translated(times(A, power), times(B, -power))
        np.testing.assert_array_equal(found, times(plain, -power))
        told = recovery_errors(found, times(B, -power), times(B.mean(axis=0), -power))
        assert told.equals(recovery_errors(plain, B, B.mean(axis=0)))


def test_rows_of_very_different_lengths_have_their_directions():
    lengths = 10.0 ** np.linspace(-8, 8, N)[:, None]
    X = (A * lengths).astype(np.float32)
    truth = X.astype(np.float64)
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    np.testing.assert_allclose(unit_rows(X), truth, atol=1e-6)
    relative = RelativeProjection(center=False).fit(X, anchors=np.arange(K)).transform(X)
    np.testing.assert_allclose(relative, truth @ truth[:K].T, atol=1e-6)
    assert jaccard(X, A) == jaccard(A, A) == 1
    space = LatentSpace(X, IDS)
    assert not len(space.zero_rows)
    np.testing.assert_allclose(space.norms, np.linalg.norm(X.astype(np.float64), axis=1), rtol=1e-6)


def truth(X, Y, form, center, k=10):
    """The scores in extended precision, by the definitions; neighbours by the distances of unit rows,
    which lose no digits.
    """
    X, Y = (rows.astype(np.longdouble) for rows in (X, Y))
    if form == "relative":
        moved = [rows - rows.mean(axis=0) if center else rows for rows in (X, Y)]
        X, Y = ((unit(rows) @ unit(rows)[:K].T)[K:] for rows in moved)
    a = unit(X)
    b = unit(Y)
    own, other = (np.argsort(((rows[:, None] - b) ** 2).sum(axis=2), axis=1)[:, :k] for rows in (b, a))
    shared = np.array(
        [len(set(one) & set(two)) for one, two in zip(own.tolist(), other.tolist(), strict=True)]
    )
    hits = other == np.arange(len(b))[:, None]
    X, Y = (
        (rows / np.abs(rows).max()).astype(np.float64) for rows in (X - X.mean(axis=0), Y - Y.mean(axis=0))
    )
    squares = [np.sum((left.T @ right) ** 2) for left, right in ((X, Y), (X, X), (Y, Y))]
    return {
        "jaccard": np.mean(shared / (2 * k - shared)),
        "mrr": np.mean(hits.any(axis=1) / (1 + hits.argmax(axis=1))),
        "cosine": float(np.mean(np.sum(a * b, axis=1))),
        "cka": squares[0] / np.sqrt(squares[1] * squares[2]),
    }


def unit(X):
    return X / np.sqrt(np.sum(X * X, axis=1, keepdims=True))


CASES = {f"× {scale:g}": (scale, 0.0) for scale in (1e-10, 1, 1e10)}
CASES |= {f"+ {offset:g}": (1, offset) for offset in (1e3, 1e7)}
CASES["one column × 1e8"] = (np.array([1e8] + [1.0] * (D - 1)), 0.0)


@pytest.mark.parametrize("case", CASES)
def test_scores_of_extreme_spaces_are_those_of_float64_or_carry_note(case):
    scale, offset = CASES[case]
    X, Y = ((rows * scale + offset).astype(np.float32) for rows in (A, B))
    pair = match(LatentSpace(X, IDS), LatentSpace(Y, IDS))
    n_right = 0
    for form, center in (("absolute", True), ("relative", True), ("relative", False)):
        made = represent(pair, form, ANCHORS, ProjectionSpec(center=center))
        found = score_pair(*made, held_out(pair, ANCHORS, form))
        expected = truth(X, Y, form, center)
        for name, score in found.items():
            assert score.note or score == pytest.approx(expected[name], abs=1e-3), (form, center, name)
            n_right += not score.note
        if form == "relative" and center and "column" not in case:
            assert not any(score.note for score in found.values())
    assert n_right >= (12 if offset == 0 and "column" not in case else 5)


def test_numbers_that_float32_cannot_square_are_refused_with_remedy(tmp_path):
    ids = ["a", "b", "c"]
    refused = (
        r"wide: expected a largest number from 1e-12 to 1e\+12, .* got 1e\+{}; divide all numbers by 1e{}"
    )
    for power in (13, 40):
        with pytest.raises(SpaceError, match=refused.format(power, power)):
            LatentSpace(np.eye(3) * 10.0**power, ids, name="wide")
    with pytest.raises(SpaceError, match=r"got 1e-22; divide all numbers by 1e-22, which changes no score"):
        LatentSpace(np.eye(3) * 1e-22, ids)
    with pytest.raises(SpaceError, match=r"X: .* got 1.7e\+18; divide"):
        RelativeProjection().fit(A, anchors=np.arange(K)).transform(
            np.full((2, D), 1_700_000_000_000_000_000)
        )
    np.save(tmp_path / "huge.npy", np.eye(3) * 1e50)
    with pytest.raises(SpaceError, match=r"3 of 3 rows hold NaN or infinite values"):
        load_space(tmp_path / "huge.npy")
    rows = np.eye(3, dtype=np.float32) * np.float32(1e14)
    np.save(tmp_path / "map.npy", rows)
    with pytest.raises(SpaceError, match=r"got 5.8e\+13; divide"):
        LatentSpace(np.load(tmp_path / "map.npy", mmap_mode="r"), ids)


@pytest.mark.parametrize(("metric", "value"), [("cka", 1.1), ("cosine", np.nan)])
def test_a_score_outside_its_range_is_an_error_and_rounding_is_cut_off(metric, value):
    with pytest.raises(SpaceError, match=f"{metric}: expected a score from -?[01] to 1, got"):
        Score(value, metric=metric, n=3)
    assert Score(1 + 1e-7, metric="cka", n=3) == 1
    assert Score(-0.01, metric="cka", convention="debiased", n=3) == -0.01
