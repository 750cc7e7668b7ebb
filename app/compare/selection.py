"""How many of the selected rows can become anchors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from app.workspace import MOST_ANCHORS
from relcore.spaces.split import row_keys

LIMIT_HELP = (
    f"The app takes at most {MOST_ANCHORS:,} anchors. These are drawn at random, the same ones each time."
)
FULL_HELP = f"The app takes at most {MOST_ANCHORS:,} anchors. Remove one first."


def n_offered(n_new: int, n_present: int = 0) -> int:
    return min(n_new, max(0, MOST_ANCHORS - n_present))


def offered(chosen: Sequence[str], present: Collection[str] = ()) -> tuple[str, ...]:
    """The selected ids that are not anchors yet, in their order; a random sample of them if they are too
    many."""
    present = set(present)
    new = [identifier for identifier in chosen if identifier not in present]
    room = max(0, MOST_ANCHORS - len(present))
    if len(new) <= room:
        return tuple(new)
    drawn = np.argsort(row_keys(new, "offered anchors"), kind="stable")[:room]
    return tuple(new[row] for row in np.sort(drawn))
