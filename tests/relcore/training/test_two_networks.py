"""Two networks that are trained here: they come to agree on the same task, and on no other."""

import numpy as np
import pytest

from relcore.training.agreement import OWN
from relcore.training.comparison import compare_runs
from relcore.training.two_networks import PAIRS, TASKS, Adam, TwoNetworks

torch = pytest.importorskip("torch")
EPOCHS = 8


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    found = {}
    for task in TASKS:
        networks = TwoNetworks(tmp_path_factory.mktemp("two") / task, task, epochs=EPOCHS)
        assert list(networks.train()) == [*range(1, EPOCHS + 1)]
        found[task] = networks, networks.conclusion()
    return found


def test_networks_that_learn_the_same_come_to_agree_but_not_on_own_axes(trained):
    networks, told = trained["digits"]
    assert told.n_pairs == PAIRS
    assert told.rise.low > 0.1
    assert told.own < 0.05
    assert "come to match" in told.sentence()
    accuracy = [run.metric("accuracy") for run in networks.runs()]
    assert min(one[-1] for one in accuracy) > 0.8


@pytest.mark.parametrize("task", ["random", "different"])
def test_networks_that_learn_other_things_do_not(trained, task):
    networks, told = trained[task]
    assert told.rise.low < 0.02
    assert "come to match" not in told.sentence()
    result = compare_runs(networks.runs())
    assert result.agree == {"second": False}
    assert result.agreement(OWN).score.max() < 0.05


def test_a_network_of_the_stack_learns_as_it_would_alone(tmp_path):
    networks = TwoNetworks(tmp_path / "two", epochs=1)
    stack = networks._stack
    alone = stack.network(3)
    copies = [one.detach().clone() for one in alone.parameters()]
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    module = torch.nn.Sequential(*module, torch.nn.ReLU(), torch.nn.Linear(64, 10))
    with torch.no_grad():
        for mine, copy in zip(module.parameters(), copies, strict=True):
            mine.copy_(copy)
    optimizer = torch.optim.Adam(module.parameters(), lr=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(3):
        rows = torch.from_numpy(rng.integers(0, len(networks._X), (2 * PAIRS, 64)))
        labels = networks._labels.gather(1, rows)
        stack.step(networks._X[rows], labels)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(networks._X[rows[3]]), labels[3]).backward()
        optimizer.step()
    networks.close()
    for mine, stacked in zip(module.parameters(), alone.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), stacked.detach(), atol=1e-5)


def test_steps_are_those_of_adam():
    torch.manual_seed(0)
    ours = [torch.randn(4, 3).requires_grad_(), torch.randn(5).requires_grad_()]
    theirs = [one.detach().clone().requires_grad_() for one in ours]
    steps = Adam(ours, 2e-3), torch.optim.Adam(theirs, lr=2e-3)
    for _ in range(20):
        for parameters, optimizer in zip((ours, theirs), steps, strict=True):
            (parameters[0].sin().sum() * parameters[1].pow(2).sum()).backward()
            optimizer.step()
        steps[1].zero_grad()
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.detach(), other.detach())
