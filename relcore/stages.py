"""Stages: the named parts of a long computation, whose progress counts their expected seconds."""

from __future__ import annotations

from collections.abc import Sequence

from relcore.progress import Report

_UNITS = 100  # of progress in a second as expected


class Stages:
    """Reports stages one after the other: ``"compiling · stage 1 of 3"``, then ``"layout: epoch 30 of 500 · stage 3 of 3"``.

    Nothing is counted in a stage that does not say how far it is; its part is done when the next one begins.

    Parameters
    ----------
    report : Report
    stages : sequence of (name, seconds)
        In their order, with the seconds that each is expected to take. Their proportions matter: they decide the time left.
    """

    def __init__(self, report: Report, stages: Sequence[tuple[str, float]]) -> None:
        self._report, self._stages = report, stages
        self._units = [max(1, round(_UNITS * seconds)) for _, seconds in stages]
        self._number = -1

    def begin(self, name: str) -> None:
        """The next stage of this name begins; those before it that never began are done."""
        self._number = [one for one, _ in self._stages].index(name, self._number + 1)
        self._tell(0, name)

    def count(self, done: int, total: int, unit: str) -> None:
        """`done` of `total` units of the present stage are done, such as epochs."""
        name, units = self._stages[self._number][0], self._units[self._number]
        self._tell(units * done // max(total, 1), f"{name}: {unit} {done} of {total}")

    def end(self) -> None:
        """All are done."""
        self._report(sum(self._units), sum(self._units), "done")

    def _tell(self, units: int, what: str) -> None:
        place = f" · stage {self._number + 1} of {len(self._stages)}" if len(self._stages) > 1 else ""
        self._report(sum(self._units[: self._number]) + units, sum(self._units), what + place)
