"""Runs that are compared again while they grow."""

from dataclasses import replace

import numpy as np
import pytest

import relcore
from relcore.training.agreement import OWN, RELATIVE, TO_LAST
from relcore.training.comparison import RunComparison

STEPS = (0, 1, 2, 5, 10, 20, 40, 80, 100, 120)


@pytest.fixture(scope="module", params=[6, 40], ids=["few axes", "many axes"])
def runs(request, tmp_path_factory):
    """Two runs whose rows move from noise to places that they share up to a rotation."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    d = request.param
    goal = rng.normal(size=(80, d)) * np.linspace(3, 0.2, d)
    for name in ("first", "second"):
        (folder / name).mkdir()
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        noise = rng.normal(size=goal.shape)
        for number, step in enumerate(STEPS):
            share = number / (len(STEPS) - 1)
            np.save(folder / name / f"step-{step}.npy", share * goal @ turn + (1 - share) * noise)
    return relcore.open_runs(folder)


def at(run, *numbers):
    """The run as it was when it had only these frames."""
    frames = tuple(run._frames[number] for number in numbers)
    return replace(run, steps=run.steps[list(numbers)], _frames=frames)


def without_last(result):
    return result.table[result.table.quantity != TO_LAST].reset_index(drop=True)


def test_runs_that_grew_have_the_scores_of_runs_that_are_compared_once(runs):
    growing = RunComparison(to_last=False)
    for n in range(2, len(STEPS) + 1):
        result = growing.compare([at(run, *range(n)) for run in runs])
    whole = relcore.compare_runs(runs)
    assert TO_LAST not in set(result.table.quantity)
    assert result.table.equals(without_last(whole))
    assert result.rises == whole.rises
    ended = growing.of_ended_runs().compare(runs)
    assert ended.table.equals(whole.table)
    for axes in (OWN, RELATIVE):
        np.testing.assert_allclose(ended.places[axes], whole.places[axes], atol=1e-5)


def test_only_a_new_frame_is_compared(runs, monkeypatch):
    growing = RunComparison(to_last=False)
    growing.compare([at(run, *range(5)) for run in runs])
    measured = []
    monkeypatch.setattr(
        "relcore.training.comparison.find_neighbours",
        lambda *given, known=relcore.training.comparison.find_neighbours: measured.append(1) or known(*given),
    )
    growing.compare([at(run, *range(6)) for run in runs])
    assert len(measured) == 2  # on own axes and relative to anchors
    growing.compare([at(run, 0, 1, 3, 4, 5) for run in runs])  # as when a training thins its frames
    assert len(measured) == 2


def test_a_new_frame_moves_none_of_the_earlier_ones_against_each_other(runs):
    growing = RunComparison(to_last=False)
    for n in range(2, len(STEPS)):
        growing.places([at(run, *range(n)) for run in runs], OWN)
    steps, places = growing.places(runs, OWN)
    assert steps.tolist() == list(STEPS)
    assert places.shape == (2, len(STEPS), 80, 2)
    # Each frame is rotated to the one before it in all axes; the map shows two of them.
    exact = relcore.compare_runs(runs).places[OWN]
    moved = np.linalg.norm(np.diff(places, axis=1), axis=-1).mean()
    assert moved < 1.25 * np.linalg.norm(np.diff(exact, axis=1), axis=-1).mean()


def test_other_rows_are_compared_anew(runs, tmp_path):
    growing = RunComparison()
    growing.compare(runs)
    rng = np.random.default_rng(1)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for step in STEPS:
            np.save(tmp_path / name / f"step-{step}.npy", rng.normal(size=(80, 6)))
    others = relcore.open_runs(tmp_path)
    assert growing.compare(others).table.equals(relcore.compare_runs(others).table)


def test_of_a_run_that_grows_alone_a_few_frames_are_compared_with_its_last_one(runs):
    result = RunComparison(to_last=False).compare(runs[:1])
    whole = relcore.compare_runs(runs[:1]).table
    assert 4 < len(result.table) < len(whole)
    known = whole[whole.step.isin(result.table.step)].reset_index(drop=True)
    assert result.table.equals(known)
