"""The payload of the player of moving maps."""

import numpy as np

from app.components.moving_maps import packed
from relcore.figures.charts import Line, Lines, MovingPanels
from relcore.panes.payload import NO_CATEGORY, POSITION_STEPS


def moving(places, steps=(0, 1, 10), **parts):
    xs = tuple(max(step, 0.5) for step in steps)
    n = places.shape[2]
    lines = Lines(
        (Line("match", [0.5, 10], [0.2, 0.6]), Line("accuracy", [1, 10], [np.nan, 0.9])),
        "step",
        "score",
        log_x=True,
        baselines=(("chance level", 0.1),),
        y_range=(0.0, 1.0),
    )
    usual = {
        "panels": ("first", "second"),
        "frames": tuple(f"step {step}" for step in steps),
        "names": tuple(f"row {row}" for row in range(n)),
        "groups": np.arange(n) % 3 - 1,
        "group_names": ("a", "b"),
        "about": "rows",
    }
    return MovingPanels(places=places, lines=lines, xs=xs, **{**usual, **parts})


def test_places_are_drawn_where_they_are():
    places = np.random.default_rng(0).normal(size=(2, 3, 50, 2)).astype(np.float32)
    places[1, 2, 7] = 1000, 0  # an outlier, which must not make the other places less precise
    told = moving(places)
    payload = packed(told)
    steps = np.frombuffer(payload.arrays["places"], "<u2").reshape(places.shape).astype(float)
    drawn = (2 * steps / POSITION_STEPS - 1) * payload.header["zoom"]  # in units of the map, whose edge is ±1
    others = np.abs(places).max(axis=-1) < 100
    np.testing.assert_allclose(drawn[others], places[others] / told.reach, atol=2e-4)
    assert drawn[1, 2, 7, 0] > 1
    groups = np.frombuffer(payload.arrays["groups"], "<u2")
    assert groups[:4].tolist() == [NO_CATEGORY, 0, 1, NO_CATEGORY]
    assert payload.arrays["names"].decode().split("\x1f") == list(told.names)


def test_lines_lie_at_their_values_and_each_frame_knows_its_last_ones():
    header = packed(moving(np.zeros((2, 3, 4, 2), np.float32))).header
    match, accuracy = header["lines"]
    assert match["places"] == [[0, 0.2], [1, 0.6]]
    assert match["points"] == [0, 0, 1]
    assert match["texts"] == [".200", ".600"]
    assert accuracy["places"] == [[1, 0.9]]
    assert accuracy["points"] == [-1, -1, 0]
    np.testing.assert_allclose(header["shares"], np.log(np.array([0.5, 1, 10]) / 0.5) / np.log(20), atol=1e-4)
    assert dict(map(reversed, header["xTicks"]))["0"] == 0
    assert header["baselineShares"] == [0.1]
    assert (header["xTitle"], header["yTitle"]) == ("step", "score")


def test_a_run_of_one_frame_is_drawn():
    header = packed(moving(np.zeros((2, 1, 4, 2), np.float32), steps=(10,))).header
    assert header["frames"] == ("step 10",)
    assert np.isfinite(header["shares"]).all()
