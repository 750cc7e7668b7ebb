"""A study of two networks in training: when they begin to agree, and whether they do before they answer
rightly."""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.engine.training import reproducible
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.scores.estimate import Estimate
from relcore.studies.estimates import (
    chart,
    count_of,
    finding,
    findings_table,
    lines_over,
    mean,
    mean_score,
)
from relcore.studies.study import Chart, Option, RunResult, Settings, Study, states
from relcore.training.agreement import OWN, RELATIVE, TrainingResult, TrainingSpec
from relcore.training.comparison import compare_runs
from relcore.training.runs import Run, open_runs
from relcore.training.two_networks import TASKS
from relcore.training.watching import watch

if TYPE_CHECKING:
    import torch
    from torch import nn

_LAYER = "hidden"
_ANSWERS = "answers"
_PROBE = 600  # held-out digits, which are watched
_BATCH = 64
_RATE = 2e-3
_FRAMES = 24
# what is measured at each frame: column → what charts call it
_CURVES = {"agreement": "similarities to anchors", "own axes": "own axes", "accuracy": "accuracy"}
_BEGIN = 0.1  # shares of a rise
_HALF = 0.5
_LEARNED = 0.2  # rise of the accuracy, below which a network has not learned; chance makes .1 ± .012


class TrainingAgreement(Study):
    """Two networks with two hidden layers learn the digits of scikit-learn from two random states, by Adam
    at 2e-3 in batches of 64. The rows of the second hidden layer for 600 held-out digits are watched at 24
    steps, evenly spaced on a logarithmic scale. Agreement is the MRR of similarities to 120 anchors.

    Agreement and accuracy start and end at different values. So each is expressed as a share of its own rise,
    from before the training to its highest value. The study compares the numbers of batches after which both
    have made the same share for good.
    """

    options = (
        Option(
            "task",
            "Task",
            tuple(TASKS),
            "digits",
            help="What the two networks learn; the last two are controls.",
            names=[lesson.title for lesson in TASKS.values()],
        ),
        Option("widths", "Widths of the hidden layers", (16, 64, 256), (16, 64, 256), many=True),
        Option("epochs", "Epochs", (10, 30, 100), 30),
        states("the held-out digits, the batches and both networks' first weights", 10, (5, 10, 20)),
    )
    reading = (
        "Where the line of the accuracy rises earlier than that of the similarities, networks answer rightly"
        " before they agree."
    )
    data = "digits"
    shared = "task epochs"
    varied: ClassVar = {"width": "widths"}
    by = "width"

    def seconds(self, settings: Settings) -> float:
        return 1.0 + settings["epochs"] * (0.02 + settings["width"] / 6000)

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        with tempfile.TemporaryDirectory() as folder:
            labels = _train_two(settings, Path(folder), report)
            runs = open_runs(folder)
            result = compare_runs(runs, TrainingSpec(_LAYER), report=report)
            accuracies = _accuracies(runs, labels, result)
        return RunResult(_values(result, accuracies))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        charts: dict[str, Chart] = {}
        rows = count_of(table, "held-out digits", "rows")
        titles = ("batches", "MRR, accuracy")
        levels = {"chance level of the MRR": "chance"}
        for width, part in table.groupby("width"):
            curves = _curves(part)
            lines = lines_over(curves, "step", _CURVES)
            charts[f"width {width}"] = chart(curves, lines, titles, rows, levels, log_x=True)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for width, part in table.groupby("width"):
            for column in ("agreement before", "agreement after", "own axes after", "accuracy after"):
                rows.append(finding(f"width {width}, {column}", mean_score(part[column])))
            for share in (_BEGIN, _HALF):
                for curve in ("accuracy", "agreement"):
                    batches = mean(part[_batches(curve, share)])
                    rows.append(finding(f"width {width}, batches to {share:.0%} of {curve}", batches))
                rows.append(finding(f"width {width}, their ratio at {share:.0%}", _ratio(part, share)))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        rise = mean(table.groupby("random_state")["agreement rise"].mean())
        ratio = _ratio(table, _HALF)
        if not rise.has_interval:
            return ""
        changes = f"The MRR of their similarities to anchors changes by {rise:2}."
        if not ratio.has_interval:
            return f"They do not come to agree. {changes}"
        answer = "They learn both at about the same time"
        if ratio.low > 1:
            answer = "No, accuracy comes first"
        elif ratio.high < 1:
            answer = "Yes, agreement comes first"
        columns = {curve: _batches(curve, _HALF) for curve in ("accuracy", "agreement")}
        both = table.dropna(subset=list(columns.values()))
        batches = {curve: np.exp2(np.log2(both[column]).mean()) for curve, column in columns.items()}
        return (
            f"{answer}: accuracy makes half of its rise in {batches['accuracy']:,.0f} batches, agreement in"
            f" {batches['agreement']:,.0f}, {ratio:1} times as many. {changes}"
        )


def _batches(curve: str, share: float) -> str:
    """The column with the number of batches after which a curve has made this share of its rise."""
    return f"{curve}, batches to {share:.0%}"


def _ratio(table: pd.DataFrame, share: float) -> Estimate:
    """How many times as many batches agreement takes as accuracy, to make this share of its rise: the
    geometric mean, with Student's interval over random states."""
    times = table[_batches("agreement", share)] / table[_batches("accuracy", share)]
    logs = np.log2(times.astype(float)).groupby(table.random_state).mean()
    found = mean(logs)
    return Estimate(2**found.value, 2**found.low, 2**found.high, found.n)


def _curves(table: pd.DataFrame) -> pd.DataFrame:
    """One row per run and frame, with the curves. Step 0 is drawn at .5, because the axis is logarithmic."""
    frames = []
    for run in table.to_dict("records"):
        columns = {curve: run[f"{curve}, curve"] for curve in _CURVES}
        steps = np.maximum(run["steps"], 0.5)
        frames.append(
            pd.DataFrame(columns).assign(step=steps, chance=run["chance"], random_state=run["random_state"])
        )
    return pd.concat(frames)


# One run: two networks.


def _train_two(settings: Settings, folder: Path, report: Progress) -> list[np.ndarray]:
    """Train two networks, with a run of each in the folder. Returns the labels of the probe for each."""
    import torch
    from sklearn.datasets import load_digits

    state = settings["random_state"]
    X, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(state).permutation(len(X))
    images = torch.from_numpy((X / 16).astype(np.float32)[order])
    lesson = TASKS[settings["task"]]
    labels = []
    for number in range(2):
        rng = np.random.default_rng((state, number))
        labels.append(lesson.labels(digits[order], number == 1, rng))
        with reproducible(2 * state + number):
            model = _new_network(settings["width"])
            targets = torch.from_numpy(labels[-1].astype(np.int64))
            report(number, 2, f"network {number + 1} of 2")
            _train(model, images, targets, settings["epochs"], folder / f"network {number + 1}")
    return [each[:_PROBE] for each in labels]


def _new_network(width: int) -> nn.Module:
    from torch import nn

    parts = {
        "first": nn.Linear(64, width),
        "relu": nn.ReLU(),
        _LAYER: nn.Sequential(nn.Linear(width, width), nn.ReLU()),
        _ANSWERS: nn.Linear(width, 10),
    }
    return nn.Sequential(OrderedDict(parts))


def _train(model: nn.Module, images: torch.Tensor, targets: torch.Tensor, epochs: int, folder: Path) -> None:
    """Train the network on all rows but the first 600, which are watched."""
    import torch

    n_batches = len(torch.arange(_PROBE, len(images)).split(_BATCH))
    optimizer = torch.optim.Adam(model.parameters(), lr=_RATE)
    layers = [_LAYER, _ANSWERS]
    n_steps = epochs * n_batches
    watched = watch(folder, model, images[:_PROBE], layers, steps=_FRAMES, total=n_steps, budget=None)
    with watched as run:
        for _ in range(epochs):
            order = _PROBE + torch.randperm(len(images) - _PROBE)
            for batch in order.split(_BATCH):
                loss = torch.nn.functional.cross_entropy(model(images[batch]), targets[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                run.step()


def _accuracies(runs: list[Run], labels: list[np.ndarray], result: TrainingResult) -> np.ndarray:
    """The accuracy on the probe at each compared step, the mean of both networks: (t,)."""
    found = []
    for run, truth, frames in zip(runs, labels, result.frames, strict=True):
        found.append([np.mean(run.rows(int(frame), _ANSWERS).argmax(axis=1) == truth) for frame in frames])
    return np.mean(found, axis=0)


def _values(result: TrainingResult, accuracy: np.ndarray) -> dict[str, Any]:
    relative = result.agreement(RELATIVE)
    own = result.agreement(OWN).score.to_numpy()
    agreement = relative.score.to_numpy()
    curves = {"agreement": agreement, "own axes": own, "accuracy": accuracy}
    learned = {"agreement": all(result.agree.values()), "accuracy": np.ptp(accuracy) > _LEARNED}
    values: dict[str, Any] = {
        "agreement before": agreement[0],
        "agreement after": agreement[-1],
        "agreement rise": agreement[-1] - agreement[0],
        "own axes after": own[-1],
        "accuracy after": accuracy[-1],
        "chance": relative.chance.iloc[-1],
    }
    for share in (_BEGIN, _HALF):
        for curve, has_risen in learned.items():
            batches = float("nan")
            if has_risen:
                batches = _crossing(result.steps, curves[curve], share)
            values[_batches(curve, share)] = batches
    values = {name: round(float(value), 4) for name, value in values.items()}
    lists = {f"{name}, curve": np.round(curve, 4).tolist() for name, curve in curves.items()}
    return values | lists | {"steps": result.steps.tolist(), "rows": len(result.scored)}


def _crossing(steps: np.ndarray, curve: np.ndarray, share: float) -> float:
    """The number of steps after which a curve stays above this share of its rise, from its first to its
    highest value, interpolated on the scale of log(1 + step). Curves may fall first."""
    goal = curve[0] + share * (curve.max() - curve[0])
    after = int(np.flatnonzero(curve < goal)[-1]) + 1
    if after == len(curve):
        return float("nan")
    scale = np.log1p(steps)
    part = (goal - curve[after - 1]) / (curve[after] - curve[after - 1])
    return float(np.expm1(scale[after - 1] + part * (scale[after] - scale[after - 1])))
