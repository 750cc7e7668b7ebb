"""MapLook: how the linked maps are shown beside where their points lie: a second colouring, hidden classes, names, the turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.spaces import SpaceError, need_one_of, need_strings
from relcore.views import need_color

RIGHT, LOWER = "right", "lower"
FACING = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class MapLook:
    """What a figure of the linked maps shows as the screen does.

    Attributes
    ----------
    named : bool
        Write the names of classes or clusters on the maps.
    turn : tuple of 9 floats
        How maps of three dimensions are turned, the rows of a rotation matrix: right, up, to the viewer; empty is not turned.
    hidden : tuple of str
        Classes whose rows are hidden, as `Coloring.hidden`.
    second : str
        What colours the other panes, as `ViewSpec.color_by`; "" is the same for all.
    second_panes : "right" or "lower"
    second_hidden : tuple of str
        Classes of the second colouring whose rows are hidden, in all panes.
    """

    named: bool = True
    turn: tuple[float, ...] = ()
    hidden: tuple[str, ...] = ()
    second: str = ""
    second_panes: str = RIGHT
    second_hidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_strings("look: hidden", self.hidden)
        need_strings("look: second_hidden", self.second_hidden)
        need_one_of("look: second_panes", self.second_panes, (RIGHT, LOWER))
        if self.second:
            need_color("look: second", self.second)
        if self.turn:
            matrix = np.array(self.turn, dtype=np.float64)
            if len(matrix) != len(FACING) or not np.allclose(
                matrix.reshape(3, 3) @ matrix.reshape(3, 3).T, np.eye(3), atol=1e-3
            ):
                raise SpaceError(f"look: turn: expected the 9 numbers of a rotation, got {self.turn!r:.80}")

    def panes(self, n_panes: int) -> tuple[int, ...]:
        """Which of the panes have the second colouring."""
        if not self.second:
            return ()
        chosen = (2, 3) if self.second_panes == LOWER else (1, 3)
        return tuple(pane for pane in chosen if pane < n_panes)
