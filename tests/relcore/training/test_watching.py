import random

import numpy as np
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.training.watching import LogSteps

torch = pytest.importorskip("torch")


def network(seed=0, width=6):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(4, width), torch.nn.BatchNorm1d(width), torch.nn.Dropout(0.5)
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))


def train(model, n_steps, after=lambda **metrics: None):
    """Trains with dropout and batches drawn by all three generators, so that any disturbance shows."""
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(n_steps):
        rows = torch.rand(8, 4) + random.random() + float(np.random.rand())  # noqa: NPY002
        loss = model(rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after(loss=loss)


def seeded(seed=1):
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


PROBE = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)


def test_the_weights_are_those_of_a_training_that_nobody_watches(tmp_path):
    alone = network()
    seeded()
    train(alone, 50)
    watched = network()
    seeded()
    with relcore.watch(tmp_path / "run", watched, PROBE, ["*"], budget=None) as run:
        train(watched, 50, run.step)
        assert watched.training
    assert len(run.open()) > 40
    for name, value in alone.state_dict().items():
        assert torch.equal(value, watched.state_dict()[name]), name


def test_frames_hold_the_rows_of_the_network_at_their_steps(tmp_path):
    model = network()
    with relcore.watch(
        tmp_path / "run", model, PROBE, ["0", "output"], ids=list("abcdefghijklmnopqrst"), budget=None
    ) as run:
        before = relcore.encode(model, PROBE, layers=["0", "output"])
        train(model, 30, run.step)
    after = relcore.encode(model, PROBE, layers=["0", "output"])
    opened = relcore.open_run(tmp_path / "run")
    assert opened.layers == ("0", "output")
    assert opened.ids[:3].tolist() == ["a", "b", "c"]
    for layer in opened.layers:
        np.testing.assert_allclose(opened.rows(0, layer), before[layer].vectors, atol=1e-6)
        np.testing.assert_allclose(opened.rows(-1, layer), after[layer].vectors, atol=1e-6)
    assert (opened.steps[0], opened.steps[-1], opened.growing) == (0, 30, False)


@pytest.mark.parametrize("n_steps", [10, 59, 60, 61, 500, 20_000])
@pytest.mark.parametrize("known", [True, False])
def test_steps_are_even_on_a_logarithmic_scale(n_steps, known):
    frames = LogSteps(60, n_steps if known else None)
    n_written = 0
    for step in range(n_steps + 1):
        if frames.is_due(step) or step == n_steps:
            frames.choose(step)
            n_written += 1
    chosen = np.array(frames.chosen)
    assert (chosen[0], chosen[-1]) == (0, n_steps)
    assert min(n_steps + 1, 50) <= len(chosen) <= 60
    assert np.all(np.diff(chosen) > 0)
    # No gap is much wider than that of an even scale, except between neighbouring whole numbers.
    gaps = np.diff(np.log1p(chosen))[np.diff(chosen) > 1]
    even = np.log1p(n_steps) / 59
    assert gaps.max(initial=0) <= 3 * even
    most_written = 60 * (1 + np.log(np.log1p(n_steps) / np.log(2)))
    if known:
        most_written = len(chosen)
    assert n_written <= most_written


def test_metrics_of_a_long_training_keep_their_last_value_and_at_most_1000_points(tmp_path):
    model = network()
    with relcore.watch(tmp_path / "run", model, PROBE, total=5000, steps=3, budget=None) as run:
        for step in range(1, 5001):
            run.step(loss=1 / step)
            if step % 1000 == 0:
                run.log(accuracy=torch.tensor(step / 5000))
    opened = run.open()
    steps, values = opened.metrics["loss"]
    assert len(steps) <= 1001
    assert (steps[-1], values[-1]) == (5000, 1 / 5000)
    np.testing.assert_allclose(values, 1 / steps)
    assert opened.metrics["accuracy"][0].tolist() == [1000, 2000, 3000, 4000, 5000]
    assert opened.steps.tolist() == [0, 70, 5000]
    np.testing.assert_array_equal(opened.metric("accuracy"), [np.nan, np.nan, 1])


def test_the_steps_of_an_optimizer_are_counted(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with relcore.watch(tmp_path / "run", model, PROBE, optimizer=optimizer, budget=None) as run:
        for _ in range(5):
            model(torch.rand(8, 4)).square().mean().backward()
            optimizer.step()
            run.log(loss=0.5)
        with pytest.raises(SpaceError, match=r"expected run\.log"):
            run.step()
    optimizer.step()
    assert run.open().steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert run.open().metrics["loss"][0].tolist() == [1, 2, 3, 4, 5]


def test_a_second_run_in_a_folder_gets_the_next_name(tmp_path):
    for width in (5, 6):
        with relcore.watch(tmp_path / "run", network(width=width), PROBE, "0") as run:
            run.step()
    assert run.folder == tmp_path / "run-2"
    first, second = relcore.open_runs(tmp_path)
    assert (first.name, first.rows(0).shape) == ("run", (20, 5))
    assert (second.name, second.rows(0).shape) == ("run-2", (20, 6))


def test_a_run_is_read_while_it_grows(tmp_path):
    with relcore.watch(tmp_path / "run", network(), PROBE, steps=4, budget=None) as run:
        run.step(loss=1.0)
        run.step(loss=1.0)
        early = relcore.open_run(run.folder)
        assert early.growing
        assert early.steps.tolist() == [0, 1, 2]
        for _ in range(98):
            run.step(loss=0.5)
        later = early.refresh()
        assert len(later) == 4
        with pytest.raises(SpaceError, match="thinned"):
            early.rows(2)
    assert not later.refresh().growing
    assert later.refresh().steps[-1] == 100


def test_a_frame_that_cannot_be_written_is_a_warning_and_the_training_goes_on(tmp_path):
    model = network()
    with relcore.watch(tmp_path / "run", model, PROBE, budget=None) as run:
        weights = model[3].weight.detach().clone()
        model[3].weight.data.fill_(np.nan)
        with pytest.warns(UserWarning, match="no frame of step 1.*NaN"):
            run.step(loss=float("nan"))
        model[3].weight.data.copy_(weights)
        run.step(loss=1.0)
    opened = run.open()
    assert opened.steps.tolist() == [0, 2]
    np.testing.assert_array_equal(opened.metrics["loss"][1], [np.nan, 1])


def test_half_precision_is_kept_in_half_the_bytes(tmp_path):
    for half in (False, True):
        with relcore.watch(tmp_path / str(half), network(), PROBE, half=half):
            pass
    whole, half = (relcore.open_run(tmp_path / name).rows(0) for name in ("False", "True"))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, whole, atol=1e-3)
    sizes = [next((tmp_path / name).glob("step-*/output.npy")).stat().st_size for name in ("False", "True")]
    assert sizes[0] - sizes[1] == 20 * 2 * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layers": "missing"}, "layers: expected names of modules"),
        ({"steps": 1}, "steps"),
        ({"total": 0}, "total"),
        ({"labels": ["a"]}, "expected 20 labels"),
        ({"model": len}, "expected a PyTorch network"),
        ({"probe": np.zeros((0, 4), np.float32)}, "expected at least one item"),
    ],
)
def test_wrong_arguments_leave_no_folder(tmp_path, given, message):
    with pytest.raises(SpaceError, match=message):  # noqa: SIM117
        with relcore.watch(tmp_path / "run", **{"model": network(), "probe": PROBE} | given):
            pass
    assert [*tmp_path.iterdir()] == []


def test_steps_need_their_block_and_rising_numbers(tmp_path):
    run = relcore.watch(tmp_path / "run", network(), PROBE, budget=None)
    with pytest.raises(SpaceError, match="expected a `with"):
        run.step()
    with run:
        run.step(10)
        with pytest.raises(SpaceError, match="expected a number above the last one, 10"):
            run.step(10)
        with pytest.raises(SpaceError, match="loss: expected a number"):
            run.step(loss=[1, 2])
    with pytest.raises(SpaceError, match="a second one"):
        run.__enter__()


class Pictures(torch.nn.Module):
    """A network of two convolutions. It notes whether pictures come channels last, and what it saw."""

    def __init__(self, flatten):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(1, 5, 3)
        self.second = torch.nn.Conv2d(5, 3, 3)
        self.flatten = flatten
        self.seen = []

    def forward(self, pictures):
        self.seen.append(pictures.stride()[1] == 1)
        return self.flatten(self.second(self.first(pictures).relu()))


def rows_by_frame(folder, model):
    """The rows of frames before, amid and after a training without randomness, and what they should be."""
    pictures = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    expected = []
    with relcore.watch(folder, model, pictures, ["second", "output"], budget=None) as run:
        for step in range(4):
            expected.append(relcore.encode(model, pictures, layers=["second", "output"]))
            if step < 3:
                optimizer.zero_grad()
                model(pictures).square().sum().mul(1e-3).backward()
                optimizer.step()
                run.step()
    return run.open(), expected


def test_convolutions_read_the_probe_channels_last_from_the_second_frame_on(tmp_path):
    model = Pictures(lambda maps: maps.flatten(1))
    found, expected = rows_by_frame(tmp_path / "run", model)
    assert model.seen[0] is False  # the first frame is an ordinary pass
    assert sum(model.seen) == 1 + 3  # one is compared with it, the others are frames
    for frame, spaces in enumerate(expected):
        for layer in ("second", "output"):
            np.testing.assert_allclose(found.rows(frame, layer), spaces[layer].vectors, rtol=1e-4, atol=1e-6)


def test_a_network_that_needs_the_usual_order_in_memory_gets_it(tmp_path):
    model = Pictures(lambda maps: maps.view(len(maps), -1))  # `view` refuses maps that are channels last
    found, expected = rows_by_frame(tmp_path / "run", model)
    assert sum(model.seen) == 1
    for frame, spaces in enumerate(expected):
        np.testing.assert_array_equal(found.rows(frame, "output"), spaces["output"].vectors)


@pytest.mark.slow
def test_a_network_that_gives_other_rows_channels_last_gets_the_usual_order(tmp_path):
    model = Pictures(lambda maps: maps.flatten(1) + maps.stride()[1])  # the output depends on the order
    found, expected = rows_by_frame(tmp_path / "run", model)
    assert sum(model.seen) == 1
    for frame, spaces in enumerate(expected):
        np.testing.assert_array_equal(found.rows(frame, "output"), spaces["output"].vectors)
