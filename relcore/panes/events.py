"""Events: what the user did in the panes, as the browser reports it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from relcore.charts.scene import OPACITIES, SIZES, StarLook
from relcore.panes.payload import unpack_rows


@dataclass(frozen=True, eq=False)
class PaneEvent:
    """What the user did in the panes: brushed `rows`, cleared the brush, clicked one row, or changed how the
    maps look.

    `hidden` are the hidden classes of each colouring, as `Coloring.hidden`; `turn` is as `Scene.turn`.
    """

    kind: Literal["select", "clear", "click", "stars", "hidden", "named", "turn"]
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stars: StarLook | None = None
    hidden: tuple[tuple[str, ...], ...] | None = None
    named: bool | None = None
    turn: tuple[float, ...] | None = None

    @property
    def row(self) -> int:
        """The row that was clicked."""
        if self.kind != "click":
            raise ValueError(f"expected a click, which has one row, got {self.kind!r} of {len(self.rows)}")
        return int(self.rows[0])


def read_events(
    messages: Iterable[dict[str, Any]], version: str, n: int, answered: int
) -> tuple[list[PaneEvent], int]:
    """The events not answered before, and the serial number answered by now.

    The browser repeats what it has no answer for, as Streamlit may drop one of two messages that come close
    together. Events on other ids than `version`'s are answered but dropped: their rows are not these rows.
    """
    events = []
    for message in sorted(messages, key=lambda message: message["serial"]):
        if message["serial"] <= answered:
            continue
        answered = message["serial"]
        if message["kind"] in _LOOKS:
            events.append(_LOOKS[message["kind"]](message))
            continue
        if message["version"] != version:
            continue
        if message["kind"] == "click":
            events.append(PaneEvent("click", np.array([message["row"]], dtype=np.int64)))
        else:
            rows = unpack_rows(base64.b64decode(message["bits"]), n)
            events.append(PaneEvent("select" if len(rows) else "clear", rows))
    return events, answered


def _stars(message: dict[str, Any]) -> PaneEvent:
    look = {
        name: float(np.clip(message[name], *most)) for name, most in (("size", SIZES), ("opacity", OPACITIES))
    }
    return PaneEvent("stars", stars=StarLook(**look, shown=bool(message["shown"])))


# How the maps look does not depend on which rows they show.
_LOOKS: dict[str, Callable[[dict[str, Any]], PaneEvent]] = {
    "stars": _stars,
    "hidden": lambda message: PaneEvent(
        "hidden", hidden=tuple(tuple(map(str, one)) for one in message["hidden"])
    ),
    "named": lambda message: PaneEvent("named", named=bool(message["named"])),
    "turn": lambda message: PaneEvent(
        "turn", turn=tuple(round(float(number), 4) for number in message["turn"])
    ),
}
