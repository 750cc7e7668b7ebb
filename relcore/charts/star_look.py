"""StarLook: how the anchors of a scene are drawn, apart from where they are."""

from __future__ import annotations

from dataclasses import dataclass

from relcore.spaces import SpaceError

SIZES = (0.3, 2.0)
OPACITIES = (0.1, 1.0)


@dataclass(frozen=True)
class StarLook:
    """How anchors are drawn above the points, on screen and in print.

    Attributes
    ----------
    size : float
        A factor of the usual diameter, `relcore.figures.marks.star_size`; `SIZES`.
    opacity : float
        `OPACITIES`.
    shown : bool
        False draws no star. The anchors keep their rows.
    """

    size: float = 1.0
    opacity: float = 1.0
    shown: bool = True

    def __post_init__(self) -> None:
        for name, (low, high) in (("size", SIZES), ("opacity", OPACITIES)):
            if not low <= getattr(self, name) <= high:
                raise SpaceError(f"stars: {name}: expected {low:g} to {high:g}, got {getattr(self, name)!r}")
