"""The budget of a watched training, on a clock that the tests move."""

import numpy as np
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.training import budget, watching
from relcore.training.budget import FrameBudget
from relcore.training.watching import LogSteps

torch = pytest.importorskip("torch")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(budget, "perf_counter", clock)
    return clock


@pytest.fixture
def watched(clock, monkeypatch, tmp_path):
    """A function that trains for some steps of a second each, with frames of `cost` seconds, the first of
    which costs three times as much, and returns the run."""
    rows = np.zeros((20, 2), np.float32)

    def train(n_steps, cost, name="run", first_step_takes=1.0, **settings):
        n_frames = [0]

        def rows_of(self, many_follow):
            n_frames[0] += 1
            clock.now += cost if n_frames[0] > 1 else 3 * cost
            return {"output": rows}

        monkeypatch.setattr(watching._ProbeRows, "__call__", rows_of)
        with relcore.watch(tmp_path / name, torch.nn.Linear(4, 2), torch.zeros(20, 4), **settings) as run:
            for step in range(n_steps):
                clock.now += first_step_takes if step == 0 else 1.0
                run.step()
        return run

    return train


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("cost", [0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("n_steps", [30, 276, 3000])
def test_frames_take_at_most_their_share_unless_the_first_and_the_last_do(
    watched, clock, n_steps, cost, known
):
    run = watched(n_steps, cost, total=n_steps if known else None)
    spent = clock.now - n_steps
    first_and_last = 4 * cost
    assert spent <= max(0.03 * n_steps, first_and_last) + 1e-6
    steps = run.open().steps
    assert (steps[0], steps[-1]) == (0, n_steps)
    if known and n_steps == 3000 and cost <= 3:  # much of the budget is used
        assert len(steps) >= min(58, 0.03 * n_steps / cost / 3)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_slow_first_step_is_not_taken_for_the_speed_of_the_training(watched, clock):
    watched(276, 2.9, total=276, first_step_takes=20.0)
    assert clock.now - 295 <= 4 * 2.9 + 1e-6


def test_without_a_budget_all_frames_are_kept(watched):
    planned = LogSteps(60, 276)
    expected = []
    for step in range(277):
        if planned.is_due(step):
            planned.choose(step)
            expected.append(step)
    run = watched(276, 100.0, total=276, budget=None)
    assert run.open().steps.tolist() == expected
    assert (run.n_left_out, run.open().n_left_out) == (0, 0)


def test_a_warning_and_the_run_say_how_many_frames_were_left_out(watched):
    with pytest.warns(UserWarning, match="may take 3% of the time of the training .it took") as caught:
        run = watched(276, 3.0, total=276)
    kept = len(run.open())
    all_frames = len(watched(276, 3.0, "all", total=276, budget=None).open())
    assert run.n_left_out == all_frames - kept > 0
    assert run.open().n_left_out == run.n_left_out
    assert f"{run.n_left_out} of {all_frames} frames were left out" in str(caught[0].message)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_steps_of_a_slower_run_are_some_of_those_of_a_faster_one(watched):
    cheap = watched(3000, 0.5, "cheap", total=3000).open().steps
    dear = watched(3000, 4.0, "dear", total=3000).open().steps
    assert len(dear) < len(cheap)
    assert {*dear[3:]} <= {*cheap}


def test_the_last_frame_is_always_affordable(clock):
    poor = FrameBudget(0.0)
    with poor.frame():
        clock.now += 5
    for _ in range(9):
        clock.now += 1
        poor.step()
    assert poor.affords(frames_left=1, steps_left=0)
    assert not poor.affords(frames_left=2, steps_left=9)
    assert not poor.affords(frames_left=None, steps_left=None)


@pytest.mark.parametrize("share", [-0.1, 1.5, "all", float("nan")])
def test_a_budget_is_a_share(share, tmp_path):
    with pytest.raises(SpaceError, match="budget: expected a number from 0 to 1"):
        relcore.watch(tmp_path, torch.nn.Linear(4, 2), torch.zeros(20, 4), budget=share)
