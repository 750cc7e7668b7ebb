"""The time left of a job: from its progress so far, and before there is any from its expected time."""

from __future__ import annotations

from math import exp

_EVEN = 0.1  # share done at which the progress counts as much as the expected time
_MEMORY = 0.1  # share of the time left over which a new estimate replaces the one before
_TOO_SHORT = 0.05  # share of an estimate at which it was evidently too short, and is withdrawn


class TimeLeft:
    """Seconds left: between reports they fall with the clock, and each report corrects them a little.

    Progress is taken as proportional to time, so a job whose stages differ counts each by its expected seconds
    (`relcore.stages`). A count that falls, or whose total changes, begins again.

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
        found, before = self._from_progress(now), self._falling(now)
        if found is not None:
            self._estimated = (found if before is None else before + (found - before) * self._weight(found, now), now)

    def left(self, now: float) -> float | None:
        """Seconds left, None where nothing is known: no progress yet, or longer under way than was estimated."""
        found = self._falling(now)
        return found if found and found > _TOO_SHORT * self._estimated[0] and not self._done == self._total > 0 else None

    def rate(self, now: float) -> float | None:
        """Units per second of the present count; None before its first one."""
        since, first = self._origin
        return (self._done - first) / (now - since) if self._done > first and now > since else None

    @property
    def exceeded(self) -> bool:
        """Whether `left` is None because the last estimate was too short."""
        return self._estimated is not None

    def _from_progress(self, now: float) -> float | None:
        rate = self.rate(now)
        if rate is None:
            return None
        left, first = (self._total - self._done) / rate, self._origin[1]
        if self._expected is None:
            return left
        share = (self._done - first) / (self._total - first)
        return left + (max(self._expected - (now - self._began), 0.0) - left) * _EVEN * (1 - share) / (share + _EVEN)

    def _falling(self, now: float) -> float | None:
        return None if self._estimated is None else max(self._estimated[0] - (now - self._estimated[1]), 0.0)

    def _weight(self, found: float, now: float) -> float:
        return 1 - exp(-(now - self._estimated[1]) / max(_MEMORY * found, 0.5))
