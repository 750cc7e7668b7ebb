"""Pace: measured over estimated time of work on this machine, to improve the next estimate.

Before any work of a kind was measured, a probe says how fast the machine is at present, beside all else that it does.

The store's folder keeps one small file, ``pace.json``: for each kind of work the last few ratios of measured to estimated
seconds, and nothing else. Every estimate is multiplied by their median.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from relcore.store import Store

FILE = "pace.json"
LAST = 9  # ratios kept of a kind: their median follows a change of machine after five runs
_KINDS = 200
_LEAST_SECONDS = 1.0  # shorter work says more of the clock and of the processes' start than of its pace
_FURTHEST = 100.0
_PROBED_SECONDS = 0.026  # of the probe on an idle core of the machine on which the formulas were measured
_PROBE_HOLDS = 60.0  # seconds
_SLOWEST = 20.0


@dataclass(frozen=True)
class Expected:
    """What a piece of work will take.

    Attributes
    ----------
    kind : str
        ``"study/anchor-count"``: runs of one kind share a pace.
    seconds : float
        By the formula or constant.
    pace : float
        Median of measured ÷ estimated seconds of the last runs of this kind; 1 where there were none.
    n : int
        Runs that it rests on.
    """

    kind: str
    seconds: float
    pace: float = 1.0
    n: int = 0

    @property
    def likely(self) -> float:
        """Seconds, as the last runs here took."""
        return self.seconds * self.pace

    @property
    def learned(self) -> bool:
        return self.n > 0


def expect(store: Store, kind: str, seconds: float) -> Expected:
    """The estimate, with what this store has learned of the kind."""
    known = _read(store).get(kind, ())
    return Expected(kind, seconds, statistics.median(known), len(known)) if known else Expected(kind, seconds)


def presently(expected: Expected) -> float:
    """Seconds to promise before a click: as the last runs took, else by the formula and what `machine` measures."""
    return expected.likely if expected.learned else expected.likely * machine()


def machine() -> float:
    """How many times as long as on an idle machine of 2026 work takes here at present; measured in .03 s, once a minute."""
    if not _probed or time.monotonic() - _probed[0] > _PROBE_HOLDS:
        _probed[:] = time.monotonic(), min(max(_probe() / _PROBED_SECONDS, 1 / _SLOWEST), _SLOWEST)
    return _probed[1]


_probed: list[float] = []  # when, and the ratio


def _probe() -> float:
    """Seconds of a small piece of work like that of the jobs: products and passes over arrays, and Python between them."""
    import numpy as np

    began, rows = time.perf_counter(), np.linspace(-1, 1, 200 * 200, dtype=np.float32).reshape(200, 200)
    for _ in range(120):
        rows = np.tanh(rows @ rows)
        sum(range(2000))
    return time.perf_counter() - began


def note(store: Store, kind: str, seconds: float, measured: float) -> None:
    """Work of this kind was estimated at `seconds` and took `measured` ones.

    Two simultaneous writers may lose one ratio. A store that cannot be written to keeps its old ratios.
    """
    if seconds <= 0 or max(seconds, measured) < _LEAST_SECONDS:
        return
    ratio = round(min(max(measured / seconds, 1 / _FURTHEST), _FURTHEST), 4)
    known = _read(store)
    known[kind] = [*known.pop(kind, ()), ratio][-LAST:]  # popped, so that the kinds unused for the longest time come first
    _write(store, dict(list(known.items())[-_KINDS:]))


def _read(store: Store) -> dict[str, Sequence[float]]:
    try:
        found = json.loads(_path(store).read_text(encoding="utf-8"))
        return {str(kind): [float(one) for one in ratios if 0 < float(one) < float("inf")] for kind, ratios in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # none yet, or damaged: it is only a memory of times
        return {}


def _write(store: Store, known: Mapping[str, Sequence[float]]) -> None:
    with suppress(OSError), store.scratch() as folder:
        (folder / FILE).write_text(json.dumps(known), encoding="utf-8")
        (folder / FILE).replace(_path(store))


def _path(store: Store) -> Path:
    return store.root / FILE
