"""An inversion that follows sliders: its maps are those of a fresh computation, and no set of anchors is
inverted twice.
"""

from dataclasses import replace

import numpy as np
import pytest

from relcore.invert.inversion import InversionSpec, PairedRows
from relcore.invert.sliders import LiveInversion, SlidAnswers
from relcore.panes.channel import SCORE, SLIDE, sampled_places
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 200
K = 40
RIDGES = (0.01, 1.0, 30.0)
SLIDERS = {"delta": None, "omega": None, "ridge": RIDGES}


def rows_of(widths=(12, 10), k=K):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, 8))
    ids = [f"r{row}" for row in range(N)]
    sides = [hidden @ rng.normal(size=(8, d)) + 0.3 * rng.normal(size=(N, d)) for d in widths]
    return PairedRows(match(*(LatentSpace(side, ids) for side in sides)), ids[:k], "forward")


def asked(serial, kind, slider=0, position=0, most=0):
    return np.array([serial, kind, slider, position, -1, most], "<i4").tobytes()


def maps_of(answer):
    near, m = np.frombuffer(answer[8:16], "<i4")
    assert near == 0
    return np.frombuffer(answer[24:], "<f2").reshape(2, m)


def in_full_range(coordinates):
    low = coordinates.min(axis=0)
    high = coordinates.max(axis=0)
    return ((2 * coordinates - low - high) / (high - low)).T


@pytest.mark.parametrize(
    ("method", "k"),
    [("pruned", K), ("ridge", 8), ("whitened", K)],  # fewer anchors than dimensions, and more
)
def test_the_map_is_that_of_a_fresh_inversion(method, k):
    rows = rows_of(k=k)
    start = InversionSpec(method=method, random_state=3, tuned=True)
    live = LiveInversion(rows, start)
    rng = np.random.default_rng(1)
    for _ in range(30):
        numbers = {
            "delta": rng.uniform(0, 0.6),
            "omega": int(rng.integers(1, 20)),
            "ridge": rng.exponential(),
        }
        spec = replace(start, tuned=False, **numbers)
        found = rows.invert(spec)
        expected = rows.coordinates(found.recovered)[1]
        np.testing.assert_allclose(live.coordinates(spec), expected, atol=1e-5 * np.ptp(expected))
        assert live.cosine(spec) == pytest.approx(float(found.scores[spec.title]), abs=1e-6)


def test_map_of_anchors_in_plane_is_that_of_pseudo_inverse():
    rows = rows_of((12, 2))
    rows = PairedRows(
        match(rows.source, LatentSpace(np.pad(rows.target.vectors, ((0, 0), (0, 3))), rows.target.ids)),
        rows.source.ids[:K].tolist(),
        "forward",
    )
    spec = InversionSpec(delta=0.0)
    expected = rows.coordinates(rows.invert(spec).recovered)[1]
    np.testing.assert_allclose(
        LiveInversion(rows, spec).coordinates(spec), expected, atol=1e-5 * np.ptp(expected)
    )


def test_no_kept_anchors_are_inverted_twice():
    spec = InversionSpec(omega=8)
    live = LiveInversion(rows_of(), spec)
    for omega in (8, 3, 1, 8):
        live.coordinates(replace(spec, omega=omega))
    solved = len(live._solved)
    assert solved <= 8
    live.coordinates(replace(spec, delta=0.0))  # all prunings keep all anchors
    assert len(live._solved) == solved + 1


def test_answers_are_maps_of_the_slider_s_value():
    rows = rows_of()
    start = InversionSpec(method="ridge", ridge=1.0)
    answers = SlidAnswers(LiveInversion(rows, start), SLIDERS)
    expected = in_full_range(rows.coordinates(rows.invert(replace(start, ridge=30.0)).recovered)[1])
    answer = answers.answer(answers.read(asked(7, SLIDE, 2, 2000)))
    assert answer[:8] == asked(7, SLIDE)[:8]
    np.testing.assert_allclose(maps_of(answer), expected, atol=2e-3)
    few = answers.answer(answers.read(asked(8, SLIDE, 2, 2000, 20)))
    np.testing.assert_array_equal(maps_of(few), maps_of(answer)[:, sampled_places(N, 20)])
    score = answers.answer(answers.read(asked(9, SCORE)))
    inversion = rows.invert(replace(start, ridge=30.0))
    assert np.frombuffer(score[8:12], "<f4")[0] == pytest.approx(
        float(inversion.scores[inversion.spec.title])
    )
    assert answers.answer(answers.read(asked(9, SCORE)), lambda: True) == b""


@pytest.mark.parametrize(
    "message",
    [b"", asked(1, 0), asked(1, SLIDE, 3)],
)
def test_other_messages_are_no_requests(message):
    assert SlidAnswers(LiveInversion(rows_of(), InversionSpec()), SLIDERS).read(message) is None
