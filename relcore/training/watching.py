"""`watch`, which keeps what a network's layers give for the same rows while the network is trained."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from relcore.base.access import expand_home
from relcore.base.arguments import need_number, need_whole
from relcore.base.errors import SpaceError
from relcore.base.records import to_json
from relcore.base.writing import claim_name, discard, new_folder, own_name, unfinished_folder, write
from relcore.encode.batches import InputBatch, batches_of, preparation
from relcore.encode.layer_rows import LayerRows
from relcore.encode.row_files import file_name
from relcore.nn.capture import Pooling, undisturbed
from relcore.spaces.space import LatentSpace
from relcore.training.budget import FrameBudget
from relcore.training.runs import CARD, METRICS, LoggedMetrics, Run, RunCard, frame_name, open_run

if TYPE_CHECKING:
    from torch import nn

_MOST_POINTS = 1000  # of a metric
_SHARE = 0.03  # of the time of a training
_MANY = 5  # frames
_SECONDS = 2.0  # between two writes of the metrics
# Rounding by other kernels, as a share of the largest number of a layer. Float32 has 24 bits, so sums over
# thousands of numbers are exact to about 1e-6.
_ROUNDING = 1e-4


class LogSteps:
    """Chooses at most `most` steps that are evenly spaced on the scale of log(1 + step).

    With the `total` number of steps, the choice is fixed in advance. Without it, or beyond it, the first
    `most` steps are chosen. A later step is chosen if its distance from the last chosen one is at least
    1/most of the scale so far. If this makes one too many, the step whose neighbours are closest to each
    other is dropped.
    """

    def __init__(self, most: int, total: int | None = None) -> None:
        need_whole("steps", most, 2)
        if total is not None:
            need_whole("total", total)
        self.most = most
        self.chosen: list[int] = []
        self._planned: frozenset[int] = frozenset()
        self._total = total or 0
        if total:
            self._planned = frozenset(_evenly_spaced(most, total))

    def is_due(self, step: int) -> bool:
        if not self.chosen:
            return True
        if step <= self.chosen[-1]:
            return False
        if step <= self._total:
            # A planned step may be skipped, if the caller does not count by ones.
            return any(self.chosen[-1] < planned <= step for planned in self._planned)
        if len(self.chosen) < self.most and not self._planned:
            return True
        whole = np.log1p(step)
        return bool(whole - np.log1p(self.chosen[-1]) >= whole / self.most)

    def choose(self, step: int) -> int | None:
        """Add a step after the last one. Returns the step to drop, if there is one."""
        self.chosen.append(step)
        if len(self.chosen) <= max(self.most, 2):
            return None
        scale = np.log1p(self.chosen)
        return self.chosen.pop(int(np.argmin(scale[2:] - scale[:-2])) + 1)

    def n_left(self, step: int) -> int | None:
        """The number of planned steps from this one on, if this one is due; None without a plan."""
        if not self._planned or step > self._total:
            return None
        return 1 + sum(planned > step for planned in self._planned)


def _evenly_spaced(most: int, total: int) -> list[int]:
    """At most `most` of the whole numbers 0 … total, evenly spaced on the scale of log(1 + number)."""
    best = [0, total]
    for n in range(most, most**2):
        steps = np.unique(np.rint(np.expm1(np.linspace(0, np.log1p(total), n))).astype(int)).tolist()
        if len(steps) > most:
            break
        best = steps
        if len(steps) in (most, total + 1):
            break
    return best


class Watch:
    """A training that is watched: what `relcore.watch` returns, for a ``with`` statement.

    Attributes
    ----------
    folder : Path
        The folder of the run. It differs from the one that was asked for if that had files in it.
    n_steps : int
        The number of the last step.
    n_left_out : int
        The number of frames that were left out to keep the budget.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import torch
    >>> import relcore
    >>> with relcore.watch(mkdtemp() + "/first", torch.nn.Linear(4, 3), torch.eye(4)) as run:
    ...     run.step(loss=0.5)
    ...     run.log(accuracy=0.9)
    >>> run.folder.name, run.n_steps, run.open().metric("accuracy").tolist()
    ('first', 1, [nan, 0.9])
    """

    folder: Path
    n_steps: int

    def __init__(
        self,
        folder: Path,
        rows_of: _ProbeRows,
        plan: _FramePlan,
        name: str,
        optimizer: Any = None,
        first_step: int = 0,
    ) -> None:
        self.folder = folder
        self.n_steps = first_step
        self._rows_of = rows_of
        self._plan = plan
        self._name = name
        self._optimizer = optimizer
        self._metrics: dict[str, _Metric] = {}
        self._entered = False
        self._handle: Any = None
        self._written = time.monotonic()
        self._silent = _is_copy()  # of several processes that train one network, the first one writes

    def __enter__(self) -> Self:
        if self._entered:
            raise SpaceError("watch: expected one `with` block, got a second one; call relcore.watch again")
        self._entered = True
        if not self._silent:
            self._make_folder()
        if self._optimizer is not None:
            self._handle = self._optimizer.register_step_post_hook(lambda *_: self._count({}))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if self._handle is not None:
            self._handle.remove()
        if self._silent:
            return
        if kind is None and self._plan.kept.chosen[-1] < self.n_steps:
            self._add_frame()
        self._write_metrics(ended=True)
        if self._plan.left_out_many():
            warnings.warn(f"{self.folder}: {self._plan.left_out_note()}", stacklevel=2)

    @property
    def n_left_out(self) -> int:
        return self._plan.n_left_out

    def step(self, number: int | None = None, /, **metrics: Any) -> None:
        """Count one step of the training, after it was made, and log metrics of it, such as ``loss=…``.

        A step is what you count: a batch or an epoch. A frame is kept if it is due.

        Parameters
        ----------
        number : int, optional
            The number of this step, if steps are not counted by ones.
        **metrics : float or tensor with one number

        Raises
        ------
        SpaceError
            The steps are counted by the optimizer (use `log`), the number is not above the last one, or a
            metric is no number.
        """
        if self._optimizer is not None:
            raise SpaceError(
                "step: expected run.log(…), because the steps of the optimizer are counted, got run.step(…)"
            )
        self._count(metrics, number)

    def log(self, **metrics: Any) -> None:
        """Log metrics of the last step, such as ``accuracy=…``, without counting a step."""
        if self._silent:
            return
        for name, value in metrics.items():
            number = _checked(name, value)
            self._metrics.setdefault(name, _Metric()).add(self.n_steps, number)
        if time.monotonic() - self._written > _SECONDS:
            self._write_metrics()

    def open(self) -> Run:
        """The run as it is on disk now."""
        return open_run(self.folder)

    def _count(self, metrics: Mapping[str, Any], number: int | None = None) -> None:
        if not self._entered:
            raise SpaceError("step: expected a `with relcore.watch(…) as run:` around the training, got none")
        if number is None:
            number = self.n_steps + 1
        if number <= self.n_steps:
            raise SpaceError(
                f"step: expected a number above the last one, {self.n_steps}, got {number!r:.40}"
            )
        self._plan.budget.step(number - self.n_steps)
        self.n_steps = number
        self.log(**metrics)
        if not self._silent and self._plan.wants(number):
            self._add_frame()

    def _make_folder(self) -> None:
        """Make the folder with its card and the first frame. It gets its name when all of this is in it."""
        with self._plan.budget.frame():
            self._write_first_frame()
        self._plan.keep(self.n_steps)

    def _write_first_frame(self) -> None:
        rows = self._rows_of(self._plan.has_many_left(self.n_steps))
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with unfinished_folder(self.folder) as partial:
            frame = partial / frame_name(self.n_steps)
            frame.mkdir()
            self._rows_of.save(rows, frame)
            card = self._rows_of.card(rows, self._name)
            (partial / CARD).write_text(json.dumps(to_json(card)), encoding="utf-8")
            self.folder = claim_name(partial, self.folder)

    def _add_frame(self) -> None:
        """Write a frame of the last step. If that fails, there is a warning, and the training continues."""
        self._rows_of.wait()
        many_left = self._plan.has_many_left(self.n_steps)
        try:
            with self._plan.budget.frame(), new_folder(self.folder / frame_name(self.n_steps)) as partial:
                self._rows_of.save(self._rows_of(many_left), partial)
        except Exception as error:  # whatever it is, hours of training are worth more
            warnings.warn(f"{self.folder}: no frame of step {self.n_steps}: {error!s:.300}", stacklevel=4)
            return
        dropped = self._plan.keep(self.n_steps)
        if dropped is not None:
            discard(self.folder / frame_name(dropped))
        if time.monotonic() - self._written > _SECONDS:  # early frames follow each other quickly
            self._write_metrics()

    def _write_metrics(self, ended: bool = False) -> None:
        steps = {name: metric.points()[0] for name, metric in self._metrics.items()}
        values = {name: metric.points()[1] for name, metric in self._metrics.items()}
        logged = LoggedMetrics(self.n_steps, ended, steps, values, self.n_left_out)
        try:
            write(self.folder / METRICS, json.dumps(to_json(logged)).encode())
        except (SpaceError, OSError) as error:
            warnings.warn(f"{self.folder}: metrics were not written: {error!s:.300}", stacklevel=4)
        self._written = time.monotonic()


class _FramePlan:
    """Which steps get a frame: those that are due on the logarithmic scale, if the budget allows them."""

    def __init__(self, most: int, total: int | None, budget: float | None) -> None:
        if budget is not None:
            need_number("budget", budget, low=0, high=1)
        self.kept = LogSteps(most, total)
        self.budget = FrameBudget(budget)
        self._due = LogSteps(most, total)  # those that would be kept without a budget
        self._total = total

    @property
    def n_left_out(self) -> int:
        if self.budget.share is None:
            return 0
        return max(0, len(self._due.chosen) - len(self.kept.chosen))

    def wants(self, step: int) -> bool:
        """Whether a step that the training has made gets a frame."""
        if not self._due.is_due(step):
            return False
        frames_left = self._due.n_left(step)
        self._due.choose(step)
        return self.budget.affords(frames_left, self._steps_left(step))

    def has_many_left(self, step: int) -> bool:
        """Whether enough frames follow that a trial, which costs as much as one, can pay."""
        return self.budget.n_affordable(self._steps_left(step)) >= _MANY

    def keep(self, step: int) -> int | None:
        """Add a step that has its frame. Returns the step whose frame is dropped, if there is one."""
        if not self._due.chosen or self._due.chosen[-1] < step:
            self._due.choose(step)
        return self.kept.choose(step)

    def left_out_many(self) -> bool:
        """Whether more than a tenth of the frames were left out. Of a long training, those of the first steps
        are, because the budget is not known yet."""
        return self.n_left_out > len(self.kept.chosen) / 9

    def left_out_note(self) -> str:
        n_due = self.n_left_out + len(self.kept.chosen)
        return (
            f"{self.n_left_out} of {n_due} frames were left out, because watching may take"
            f" {self.budget.share:.0%} of the time of the training (it took {self.budget.spent_share:.0%});"
            " budget=None keeps all"
        )

    def _steps_left(self, step: int) -> int | None:
        if self._total is None or step > self._total:
            return None
        return self._total - step


class _Metric:
    """The values of a metric at no more than 1,000 steps, and at the last one."""

    def __init__(self) -> None:
        self._steps = LogSteps(_MOST_POINTS)
        self._values: dict[int, Any] = {}
        self._last: tuple[int, Any] = (0, None)

    def add(self, step: int, value: Any) -> None:
        self._last = step, value
        if self._steps.is_due(step):
            dropped = self._steps.choose(step)
            self._values[step] = _finite(value)
            if dropped is not None:
                del self._values[dropped]

    def points(self) -> tuple[list[int], list[float | None]]:
        step, value = self._last
        values = self._values | {step: _finite(value)}
        return [*values], [*values.values()]


def _checked(name: str, value: Any) -> Any:
    """The value as a number. Of a tensor, a copy without its graph, because reading it would wait for the
    GPU."""
    if hasattr(value, "detach") and value.numel() == 1:
        return value.detach().clone()
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise SpaceError(
            f"{name}: expected a number or a tensor with one, got {value!r:.60}; log its mean"
        ) from None


def _finite(value: Any) -> float | None:
    number = float(value)
    if isfinite(number):
        return number
    return None


class _ProbeRows:
    """A function that returns the rows (n, d) of each layer for the probe, with the network as it is now."""

    def __init__(
        self,
        model: nn.Module,
        probe: Any,
        layers: str | Sequence[str] | None,
        pooling: Pooling,
        processor: Any,
        dtype: np.dtype,
    ) -> None:
        while type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
            model = model.module
        self.model = model
        self.dtype = dtype
        self._how = layers, pooling
        with undisturbed(model):
            self._batches = [*batches_of(probe, preparation(model, processor), self._layers().size)]
        self.n = sum(map(len, self._batches))
        if not self.n:
            raise SpaceError("probe: expected at least one item, got none")
        self._reads_faster: bool | None = None  # None before the first frame on the CPU
        self.labels: Any = None
        if all(batch.labels for batch in self._batches):
            self.labels = [label for batch in self._batches for label in batch.labels or ()]
        self.ids: Any = None

    def name(self, ids: Any, labels: Any) -> None:
        """Give the rows these ids, and these labels instead of those of the data."""
        self.ids = ids
        if labels is not None:
            self.labels = labels

    def _layers(self) -> LayerRows:
        # Made again each time: a trainer may have moved the network to another device.
        return LayerRows(self.model, *self._how, device="cpu" if self._on_cpu() else "auto")

    def _on_cpu(self) -> bool:
        return all(one.device.type == "cpu" for one in self.model.parameters())

    def __call__(self, many_follow: bool) -> dict[str, np.ndarray]:
        """The rows now. If many frames follow, a faster way to read them is tried."""
        rows = self._rows(self._batches)
        if many_follow and self._reads_faster is None and self._on_cpu():
            self._try_channels_last(rows)
        return rows

    def wait(self) -> None:
        """Wait until the network's device has done the work of the training. Without that, the time of a
        frame would include it."""
        import torch

        for kind in {one.device.type for one in self.model.parameters()} - {"cpu", "meta"}:
            getattr(torch, kind).synchronize()

    def _try_channels_last(self, rows: Mapping[str, np.ndarray]) -> None:
        """From the next frame on, give pictures to a convolutional network with the channels as the last axis
        in memory, if it then returns these rows, up to rounding. On a CPU, it reads them in half the time."""
        self._reads_faster = False
        if not _has_convolutions(self.model):
            return
        batches = [replace(batch, inputs=_channels_last(batch.inputs)) for batch in self._batches]
        try:
            others = self._rows(batches)
        except Exception:  # such as that of `view`, which needs the usual order in memory
            return
        for layer, values in rows.items():
            if np.abs(values - others[layer]).max() > _ROUNDING * np.abs(values).max():
                return
        self._batches = batches
        self._reads_faster = True

    def _rows(self, batches: Sequence[InputBatch]) -> dict[str, np.ndarray]:
        parts: dict[str, list[np.ndarray]] = {}
        with self._layers() as rows_of:
            for batch in batches:
                for layer, rows in rows_of(batch).items():
                    parts.setdefault(layer, []).append(rows)
        order = np.argsort(np.concatenate([batch.rows for batch in self._batches]))
        found = {}
        for layer, each in parts.items():
            found[layer] = np.concatenate(each)[order].astype(self.dtype, copy=False)
            if not np.isfinite(found[layer]).all():
                raise SpaceError(f"layer {layer!r}: expected finite numbers, got NaN or infinity")
        return found

    def card(self, rows: Mapping[str, np.ndarray], name: str) -> RunCard:
        space = LatentSpace(np.zeros((self.n, 1)), self.ids, labels=self.labels, name="probe")
        labels = None
        if space.labels is not None:
            labels = space.labels.tolist()
        files = [*_files(rows).values()]
        return RunCard(name, own_name(), [*rows], files, self.n, space.ids.tolist(), labels)

    def save(self, rows: Mapping[str, np.ndarray], folder: Path) -> None:
        for layer, name in _files(rows).items():
            np.save(folder / f"{name}.npy", rows[layer], allow_pickle=False)


def _has_convolutions(model: nn.Module) -> bool:
    """Whether a network has several convolutions of pictures, so that their order in memory matters."""
    from torch import nn

    return sum(isinstance(module, nn.Conv2d) for module in model.modules()) > 1


def _channels_last(inputs: Any) -> Any:
    """The same inputs, with pictures (m, channels, height, width) copied into memory channels last."""
    import torch

    if isinstance(inputs, Mapping):
        return {name: _channels_last(one) for name, one in inputs.items()}
    if isinstance(inputs, torch.Tensor) and inputs.ndim == 4:
        # Not by `contiguous`, which does nothing for a single channel.
        return torch.empty_like(inputs, memory_format=torch.channels_last).copy_(inputs)
    return inputs


def _files(rows: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Layer → the name of its file, without suffix."""
    names = {layer: file_name(layer) for layer in rows}
    if len({name.lower() for name in names.values()}) < len(names):
        return {layer: f"{number}-{name}" for number, (layer, name) in enumerate(names.items())}
    return names


def _is_copy() -> bool:
    """Whether this is one of several processes that train one network, but not the first one."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return False
    return distributed.get_rank() != 0


def watch(
    folder: str | Path,
    model: nn.Module,
    probe: Any,
    layers: str | Sequence[str] | None = None,
    *,
    steps: int = 60,
    total: int | None = None,
    budget: float | None = _SHARE,
    optimizer: Any = None,
    ids: Sequence[str] | np.ndarray | None = None,
    labels: Sequence[str] | np.ndarray | None = None,
    pooling: Pooling = "auto",
    processor: Any = None,
    half: bool = False,
    name: str = "",
    first_step: int = 0,
) -> Watch:
    """A context manager that keeps what the layers give for the probe at up to 60 steps of a training.

    Call `step` of it after each step. Steps are chosen evenly on a logarithmic scale, from 0 (before the
    training) to the last one; some are left out to keep the budget. The training is not disturbed: training
    mode, gradients, buffers and random states are as before, so the weights are the same.

    Each frame is written whole, so a killed training leaves a run that `open_run` opens. If the folder has
    files, the run gets the next free name: first-2, first-3, …; `folder` of the result tells it.

    Parameters
    ----------
    folder : str or Path
        A new folder for this run, such as ``"runs/first"``.
    model : nn.Module
    probe : array, tensor, list, Dataset or DataLoader
        n items in any form that `relcore.encode` takes, always the same. Use held-out ones; 500 are enough.
    layers : str or list of str, optional
        Names or patterns of modules, as `relcore.layers` lists them. By default what the network returns.
    steps : int
        The largest number of frames.
    total : int, optional
        The number of steps of the training, if known. Then no frame is written that is dropped later.
    budget : float, optional
        The largest share of the training's time that frames may take, by measured seconds; the first and the
        last one are always written. None keeps all frames, at steps that do not depend on the machine.
    optimizer : torch.optim.Optimizer, optional
        Count its steps. Then call `log` for metrics, and not `step`.
    ids, labels, pooling, processor
        As in `relcore.encode`.
    half : bool
        Whether to keep float16 instead of float32.
    name : str
        The name of the run; by default that of its folder.
    first_step : int
        The number of steps that the network was trained before.

    Raises
    ------
    SpaceError
        The layers, the probe or its columns do not fit. Errors after the start are warnings.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import torch
    >>> import relcore
    >>> model = torch.nn.Linear(4, 3)
    >>> with relcore.watch(mkdtemp() + "/1", model, torch.eye(4), steps=5, total=1000, budget=None) as run:
    ...     for _ in range(1000):  # a training has its steps here
    ...         run.step(loss=0.5)
    >>> run.open().steps.tolist()
    [0, 5, 31, 177, 1000]
    """
    plan = _FramePlan(steps, total, budget)
    need_whole("first_step", first_step, 0)
    if not hasattr(model, "named_modules"):
        raise SpaceError(f"model: expected a PyTorch network, got {type(model).__name__}")
    dtype = np.dtype(np.float16 if half else np.float32)
    rows_of = _ProbeRows(model, probe, layers, pooling, processor, dtype)
    rows_of.name(ids, labels)
    place = Path(os.path.abspath(expand_home(folder)))
    return Watch(place, rows_of, plan, name, optimizer, first_step)
