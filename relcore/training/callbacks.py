"""`watch_trainer` and `watch_lightning`: `relcore.watch` as callbacks of two libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, extra
from relcore.nn.capture import Pooling
from relcore.training.watching import Watch, watch


class _Watched:
    """What both callbacks do: watch from the begin of the training to its end, and log numbers. `settings`
    are arguments of `watch`."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.run: Watch | None = None

    def begin(self, model: Any, step: int, total: int | None) -> None:
        self.run = watch(model=model, total=total, first_step=step, **self.settings).__enter__()

    def step(self, number: int) -> None:
        if self.run is not None and number > self.run.n_steps:  # batches may be gathered for one step
            self.run.step(number)

    def log(self, metrics: Mapping[str, Any]) -> None:
        if self.run is not None:
            self.run.log(**{name: one for name, one in metrics.items() if _is_number(one)})

    def end(self, error: BaseException | None = None) -> None:
        if self.run is not None:
            self.run.__exit__(None if error is None else type(error), error, None)
            self.run = None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (hasattr(value, "numel") and value.numel() == 1)


def watch_trainer(
    folder: str | Path,
    probe: Any,
    layers: str | Sequence[str] | None = None,
    *,
    steps: int = 60,
    budget: float | None = 0.03,
    ids: Sequence[str] | np.ndarray | None = None,
    labels: Sequence[str] | np.ndarray | None = None,
    pooling: Pooling = "auto",
    processor: Any = None,
    half: bool = False,
    name: str = "",
) -> Any:
    """A callback of the Trainer of transformers that watches its training: ``Trainer(…, callbacks=[…])``.

    It counts the Trainer's global steps, and logs what the Trainer logs and evaluates.

    Parameters
    ----------
    folder, probe, layers, steps, budget, ids, labels, pooling, processor, half, name
        As in `relcore.watch`; texts as probe need ``processor=tokenizer``.

    Raises
    ------
    SpaceError
        transformers is not installed. Wrong arguments are refused when the training begins.

    Examples
    --------
    >>> import relcore
    >>> callback = relcore.watch_trainer("runs/first", ["a text", "another"], layers="bert.encoder.layer.1")
    >>> callback.run is None  # until the training begins
    True
    """
    watched = _Watched(
        folder=folder,
        probe=probe,
        layers=layers,
        steps=steps,
        budget=budget,
        ids=ids,
        labels=labels,
        pooling=pooling,
        processor=processor,
        half=half,
        name=name,
    )
    return _trainer_callback(watched)


def _trainer_callback(watched: _Watched) -> Any:
    with extra():
        from transformers import TrainerCallback

    class WatchCallback(TrainerCallback):  # type: ignore[misc]  # transformers has no types
        @property
        def run(self) -> Watch | None:
            return watched.run

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            watched.begin(model, state.global_step, state.max_steps or None)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watched.step(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            watched.log(logs or {})

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watched.end()

    return WatchCallback()


def watch_lightning(
    folder: str | Path,
    probe: Any,
    layers: str | Sequence[str] | None = None,
    *,
    steps: int = 60,
    budget: float | None = 0.03,
    ids: Sequence[str] | np.ndarray | None = None,
    labels: Sequence[str] | np.ndarray | None = None,
    pooling: Pooling = "auto",
    processor: Any = None,
    half: bool = False,
    name: str = "",
) -> Any:
    """A callback of PyTorch Lightning that watches a training: ``Trainer(callbacks=[…])``.

    It counts the Trainer's global steps, and logs its `callback_metrics` after each epoch.

    Parameters
    ----------
    folder, probe, layers, steps, budget, ids, labels, pooling, processor, half, name
        As in `relcore.watch`.

    Raises
    ------
    SpaceError
        Lightning is not installed. Wrong arguments are refused when the training begins.

    Examples
    --------
    >>> import torch
    >>> import relcore
    >>> try:  # Lightning is no part of Relscope
    ...     callbacks = [relcore.watch_lightning("runs/first", torch.rand(20, 4), layers="conv*")]
    ... except relcore.RelscopeError as error:
    ...     callbacks = []
    """
    watched = _Watched(
        folder=folder,
        probe=probe,
        layers=layers,
        steps=steps,
        budget=budget,
        ids=ids,
        labels=labels,
        pooling=pooling,
        processor=processor,
        half=half,
        name=name,
    )
    return _lightning_callback(watched)


def _lightning_callback(watched: _Watched) -> Any:
    lightning = _lightning()

    class WatchCallback(lightning.Callback):  # type: ignore[misc, name-defined]  # one of two libraries
        @property
        def run(self) -> Watch | None:
            return watched.run

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            total = trainer.estimated_stepping_batches
            known = isinstance(total, int) and total > 0
            watched.begin(pl_module, trainer.global_step, total if known else None)

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            watched.step(trainer.global_step)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            watched.log(trainer.callback_metrics)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            watched.log(trainer.callback_metrics)
            watched.end()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            watched.end(exception)

    return WatchCallback()


def _lightning() -> Any:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "?"):
                raise
    raise SpaceError("watch_lightning: expected PyTorch Lightning, got none; pip install lightning")
