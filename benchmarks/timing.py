"""Paired rounds: floor and contenders take turns in one run, so that whatever else the machine does hits
them all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

N, D, K = 20_000, 300, 10  # rows; width, and number of anchors; neighbours


@dataclass(frozen=True)
class Benchmark:
    """A floor, and what is measured against it.

    Attributes
    ----------
    floor : (name, call)
        The products that no implementation can avoid, into memory that is there already.
    ours : name → (call, target)
        Ours, with the ratio to the floor that it must not exceed; None where none was set.
    peers : name → call
        What people would use instead.
    """

    title: str
    floor: tuple[str, Callable[[], object]]
    ours: Mapping[str, tuple[Callable[[], object], float | None]]
    peers: Mapping[str, Callable[[], object]]
    rounds: int = 9
    note: str = ""


@dataclass(frozen=True)
class Result:
    """One line of the table: median seconds, and the median, over rounds, of the ratio to the floor of the
    same round.
    """

    name: str
    seconds: float
    ratio: float
    low: float
    high: float
    target: float | None = None

    @property
    def missed(self) -> bool:
        return self.target is not None and self.ratio > self.target


def measure(benchmark: Benchmark) -> list[Result]:
    """Floor, ours and peers, each once to warm up and then once a round, in an order that turns with the
    rounds.
    """
    calls = (
        dict([benchmark.floor])
        | {name: call for name, (call, _) in benchmark.ours.items()}
        | dict(benchmark.peers)
    )
    names = list(calls)
    seconds = np.empty((benchmark.rounds, len(names)))
    for call in calls.values():
        call()
    for turn in range(benchmark.rounds):
        for step in range(len(names)):
            column = (turn + step) % len(names)
            started = time.perf_counter()
            calls[names[column]]()
            seconds[turn, column] = time.perf_counter() - started
    ratios = seconds / seconds[:, :1]
    low, middle, high = np.percentile(ratios, [25, 50, 75], axis=0)
    targets = {name: target for name, (_, target) in benchmark.ours.items()}
    return [
        Result(name, float(np.median(seconds[:, i])), middle[i], low[i], high[i], targets.get(name))
        for i, name in enumerate(names)
    ]


def made_up(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two row-aligned matrices (20,000, 300) in float32, the second a noisy rotation of the first; the
    same every time.
    """
    rng = np.random.default_rng(seed)
    source = rng.standard_normal((N, D), dtype=np.float32)
    rotation, _ = np.linalg.qr(rng.standard_normal((D, D)))
    target = source @ rotation.astype(np.float32) + 0.5 * rng.standard_normal((N, D), dtype=np.float32)
    return source, target
