"""Positions as they travel: exact for few rows, in steps of the full range for very many."""

import numpy as np

from relcore.panes.payload import (
    EXACT,
    POSITION_STEPS,
    is_quantised,
    packed_positions,
    quantised,
)


def test_steps_are_at_most_half_a_step_off_and_reach_both_ends():
    coordinates = np.random.default_rng(0).normal(size=(5000, 2)) * [3, 1e-4] + [1e3, -7]
    steps = quantised(coordinates)
    low, extent = coordinates.min(axis=0), np.ptp(coordinates, axis=0)
    assert steps.min(axis=0).tolist() == [0, 0]
    assert steps.max(axis=0).tolist() == [POSITION_STEPS, POSITION_STEPS]
    assert np.abs(steps - (coordinates - low) / extent * POSITION_STEPS).max() <= 0.5 + 1e-9


def test_many_rows_of_a_plane_travel_in_two_bytes_an_axis_and_all_others_exactly():
    many = np.random.default_rng(2).normal(size=(EXACT + 1, 3)).astype(np.float32)
    assert [is_quantised(one) for one in (many[:, :2], many[1:, :2], many)] == [True, False, False]
    assert len(packed_positions(many[:, :2])) == 4 * len(many)
    assert packed_positions(many[1:, :2]) == many[1:, :2].tobytes()
    assert packed_positions(many) == many.tobytes()
