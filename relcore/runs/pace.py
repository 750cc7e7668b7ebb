"""Pace: measured over estimated time of work on this machine, to improve the next estimate.

The store's folder keeps one small file, ``pace.json``: for each kind of work the last few ratios of measured
to estimated seconds, and nothing else. Every estimate is multiplied by their median.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp

from relcore.runs.store import Store

FILE = "pace.json"
LAST = 9  # ratios kept of a kind: their median follows a change of machine after five runs
_KINDS = 200
_LEAST_SECONDS = 1.0  # shorter work says more of the clock and of the processes' start than of its pace
_FURTHEST = 100.0


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


def note(store: Store, kind: str, seconds: float, measured: float) -> None:
    """Work of this kind was estimated at `seconds` and took `measured` ones.

    Two simultaneous writers may lose one ratio. A store that cannot be written to keeps its old ratios.
    """
    if seconds <= 0 or max(seconds, measured) < _LEAST_SECONDS:
        return
    ratio = round(min(max(measured / seconds, 1 / _FURTHEST), _FURTHEST), 4)
    known = _read(store)
    known[kind] = [*known.pop(kind, ()), ratio][
        -LAST:
    ]  # popped, so that the kinds unused for the longest time come first
    _write(store, dict(list(known.items())[-_KINDS:]))


def _read(store: Store) -> dict[str, Sequence[float]]:
    try:
        found = json.loads((store.root / FILE).read_text(encoding="utf-8"))
        return {
            str(kind): [float(one) for one in ratios if 0 < float(one) < float("inf")]
            for kind, ratios in found.items()
        }
    except (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
    ):  # none yet, or damaged: it is only a memory of times
        return {}


def _write(store: Store, known: Mapping[str, Sequence[float]]) -> None:
    with suppress(OSError), store.scratch() as folder:
        (folder / FILE).write_text(json.dumps(known), encoding="utf-8")
        (folder / FILE).replace(store.root / FILE)


# The time left of a job: from its progress so far, and before there is any from its expected time.

_EVEN = 0.1  # share done at which the progress counts as much as the expected time
_MEMORY = 0.1  # share of the time left over which a new estimate replaces the one before
_TOO_SHORT = 0.05  # share of an estimate at which it was evidently too short, and is withdrawn


class TimeLeft:
    """Seconds left: between reports they fall with the clock, and each report corrects them a little.

    Progress is taken as proportional to time, so a job whose stages differ counts each by its expected
    seconds (`relcore.runs.progress`). A count that falls, or whose total changes, begins again.

    Parameters
    ----------
    expected : float, optional
        Seconds from the beginning, as the last such jobs took.
    """

    def __init__(self, expected: float | None = None) -> None:
        self._expected = expected
        self._began = 0.0
        self._origin = (0.0, 0)  # when the present count began, and where
        self._done, self._total = 0, 0
        self._estimated: tuple[float, float] | None = None  # seconds left, and when

    def begin(self, now: float) -> None:
        """The work begins, or begins again."""
        self._began, self._origin, self._done, self._total = now, (now, 0), 0, 0
        self._estimated = (self._expected, now) if self._expected else None

    def hear(self, done: int, total: int, now: float) -> None:
        """`done` of `total` is done at this time."""
        if self._total and (total != self._total or done < self._done):
            self._origin = (now, done)
            self._estimated = self._estimated if self._expected else None
        elif (done, total) == (self._done, self._total):
            return
        self._done, self._total = done, total
        if (rate := self.rate(now)) is None:
            return
        left, first = (total - done) / rate, self._origin[1]
        if self._expected is not None:
            share, promised = (done - first) / (total - first), self._expected - (now - self._began)
            left += (max(promised, 0.0) - left) * _EVEN * (1 - share) / (share + _EVEN)
        if (before := self._falling(now)) is not None:
            weight = 1 - exp(-(now - self._estimated[1]) / max(_MEMORY * left, 0.5))
            left = before + (left - before) * weight
        self._estimated = left, now

    def left(self, now: float) -> float | None:
        """Seconds left, None where nothing is known: no progress yet, or longer under way than was
        estimated.
        """
        left = self._falling(now)
        if not left or left <= _TOO_SHORT * self._estimated[0] or self._done == self._total > 0:
            return None
        return left

    def rate(self, now: float) -> float | None:
        """Units per second of the present count; None before its first one."""
        since, first = self._origin
        return (self._done - first) / (now - since) if self._done > first and now > since else None

    @property
    def exceeded(self) -> bool:
        """Whether `left` is None because the last estimate was too short."""
        return self._estimated is not None

    def _falling(self, now: float) -> float | None:
        return None if self._estimated is None else max(self._estimated[0] - (now - self._estimated[1]), 0.0)
