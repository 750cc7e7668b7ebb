"""`FrameBudget`, which keeps the frames of a watched training within a share of its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from statistics import median
from time import perf_counter

_RECENT = 15  # steps whose median is the duration of those to come
_FEWEST = 3  # the first step of a training is often slow, so it alone tells nothing of the others


class FrameBudget:
    """Measures what frames and the training cost, and tells which frames to write.

    Parameters
    ----------
    share : float or None
        The largest share of the training's time that frames may take. None affords all frames.

    Examples
    --------
    >>> budget = FrameBudget(0.03)
    >>> with budget.frame():
    ...     pass  # the first frame is written here
    >>> budget.step()
    >>> budget.affords(frames_left=1, steps_left=0)  # the last frame
    True
    """

    def __init__(self, share: float | None) -> None:
        self.share = share
        self._trained = 0.0  # seconds between frames
        self._spent = 0.0  # seconds of all frames
        self._cost = 0.0  # seconds of the last frame
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._since = perf_counter()

    @property
    def spent_share(self) -> float:
        """The time of all frames so far, as a share of the training's time; 0 before any training."""
        if not self._trained:
            return 0.0
        return self._spent / self._trained

    @contextmanager
    def frame(self) -> Iterator[None]:
        """The block within which a frame is made and written."""
        start = perf_counter()
        self._trained += start - self._since
        try:
            yield
        finally:
            self._since = perf_counter()
            self._cost = self._since - start
            self._spent += self._cost

    def step(self, n_steps: int = 1) -> None:
        """Note that the training has made a step, or several, since the last call."""
        now = perf_counter()
        self._trained += now - self._since
        self._recent.append((now - self._since) / n_steps)
        self._since = now

    def n_affordable(self, steps_left: int | None) -> float:
        """How many more frames, with the last one, the budget allows. If the steps that are left are not
        known, it is what the time until now allows."""
        if self.share is None:
            return inf
        seconds = self._trained
        if steps_left is not None and len(self._recent) >= _FEWEST:
            seconds += steps_left * median(self._recent)
        return (self.share * seconds - self._spent) / max(self._cost, 1e-9)

    def affords(self, frames_left: int | None, steps_left: int | None) -> bool:
        """Whether to write a frame that is due.

        If the number of frames that are left is known (this one included), all of them are written, or every
        second, fourth, eighth, …: the densest choice that the budget allows. Frames are counted from the last
        one. So of two trainings of the same length, one has frames at all steps at which the other has some.
        """
        affordable = self.n_affordable(steps_left)
        if frames_left is None or steps_left is None or len(self._recent) < _FEWEST:
            return frames_left == 1 or affordable >= 2  # this frame and the last one
        later = frames_left - 1
        spacing = 1
        while spacing <= later and 1 + later // spacing > affordable:
            spacing *= 2
        return later % spacing == 0
