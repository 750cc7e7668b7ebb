"""kill -9 at random moments of a training that is watched: what is there opens, and every frame is whole."""

import random

import numpy as np
import pytest

import relcore
from tests.faults import victims
from tests.waiting import until

torch = pytest.importorskip("torch")
WIDTH = 200
N = 300


def train(folder):
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, WIDTH)
    with relcore.watch(folder, model, torch.ones(N, 4), ["output"], steps=8, budget=None) as run:
        for step in range(1, 10**6):
            model.weight.data.fill_(step)
            model.bias.data.zero_()
            run.step(loss=step)


@pytest.mark.parametrize("n_kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_training_leaves_a_run_that_opens(tmp_path, n_kills):
    draw = random.Random(n_kills)
    for kill in range(n_kills):
        folder = tmp_path / str(kill)
        process = victims.started(train, str(folder))
        until(lambda folder=folder, process=process: folder.is_dir() or process.exitcode is not None)
        assert victims.killed(process, draw.uniform(0, 0.2))
        run = relcore.open_run(folder)
        assert 1 <= len(run) <= 9  # one more than eight if it was killed before the drop
        assert not run.growing
        for frame, step in enumerate(run.steps[1:], 1):
            np.testing.assert_array_equal(run.rows(frame), np.full((N, WIDTH), 4 * step, np.float32))
    assert len(relcore.open_runs(tmp_path)) == n_kills
    with relcore.watch(tmp_path / "0", torch.nn.Linear(4, 2), torch.ones(N, 4)) as again:
        pass
    assert again.folder.name == "0-2"
    assert [*tmp_path.glob(".*")] == []  # the next run removes the unfinished files of killed runs
