"""Answers to the hand that drags an anchor in the browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.base.environment import resolve
from relcore.base.names import REDUCTIONS
from relcore.base.rows import unit_rows
from relcore.compare.live import LiveComparison
from relcore.compare.live_rows import MOST_NUMBERS, Overtaken
from relcore.maps.pane_maps import OWN, TWO
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.channel import PROBE, SCORE, maps_answer, read_request, sampled_places
from relcore.panes.page import PageUnits
from relcore.represent.representations import ProjectionSpec
from relcore.represent.similarity import mean_of
from relcore.scores.score_report import LIVE_QUERIES
from relcore.spaces.matching import Match

FOLLOWING = ("relative", "whitened", TWO)  # representations whose maps follow a moved anchor


@dataclass(frozen=True)
class LiveAnswers:
    """Answers the requests that panes send while an anchor is dragged.

    `shown` and `anchors` are the numbers of the rows that the panes show, and of the anchors.
    """

    following: LiveComparison
    anchors: Sequence[int]
    shown: np.ndarray
    k: int = 10
    convention: str = "paper"

    def read(self, message: bytes) -> np.ndarray | None:
        """Read a request by `read_request`; None if the message is no request."""
        return read_request(message, len(self.shown))

    def answer(self, request: np.ndarray, overtaken: Callable[[], bool] = lambda: False) -> bytes:
        """Move or add the anchor of a request, and return the answer as bytes.

        An answer begins with the serial number and the kind of the request. For scores, no anchor moves, and
        four float32 numbers follow; if a later move has `overtaken()` the request, the answer is empty. For
        maps, it continues with the number of near rows and of placed rows as int32, the near rows of each
        space, the similarities of the watched row to the anchor as float32, and the maps as float16.
        """
        _, kind, anchor, place, watched, most, *more = map(int, request)
        following = self.following
        if kind == SCORE:
            try:
                scores = following.scores(self.k, self.convention, LIVE_QUERIES, overtaken)
            except Overtaken:
                return b""
            return request[:2].tobytes() + np.array(scores, "<f4").tobytes()
        row = int(self.shown[place])
        if kind == PROBE:
            anchors = [*self.anchors, row]
        else:
            moved = int(self.shown[anchor])
            anchors = [row if one == moved else one for one in self.anchors]
        if len(set(anchors)) == len(anchors):  # if a dragged anchor lies on another anchor, nothing changes
            following.set_anchors(anchors)
        n = len(self.shown)
        chosen = None
        if 0 < most < n:
            chosen = np.array([*sampled_places(n, most), *more])
        maps, near = following.frame(chosen, row)
        sides = range(len(following.sides))
        similar = [np.nan] * len(sides)
        if 0 <= watched < len(following.held.pair):
            anchor_of = following.held.anchor
            similar = [anchor_of(side, row) @ anchor_of(side, watched) for side in sides]
        return maps_answer(request, n if chosen is None else len(chosen), maps, near, similar)


# with more anchors than FEW, moving one hardly changes a map
FEW = 16
SPREAD = "farthest-point"
N_SPREAD = 8


def live_header(panes: Sequence[str], n_anchors: int, n_spaces: int = 2) -> dict[str, Any]:
    """What the browser must know before an anchor is dragged, if each representation has one pane per space:
    which panes follow the anchor, the number of anchors (0 if there are at most `FEW`), and the number of
    anchors in a selection by `SPREAD`."""
    following = np.repeat([name in FOLLOWING for name in panes], n_spaces)
    many = n_anchors if n_anchors > FEW else 0
    return {"panes": np.flatnonzero(following).tolist(), "many": many, "spread": N_SPREAD}


MOST_IN_A_PAGE = 20_000  # number of rows drawn on a page whose anchors can be dragged
_IN_A_PAGE = (OWN, "absolute", "relative", TWO)  # representations on a page whose anchors can be dragged


def page_units(
    pair: Match,
    rows: np.ndarray,
    panes: Sequence[str],
    n_anchors: int,
    projection: ProjectionSpec,
    reduction: ReductionSpec,
) -> PageUnits | None:
    """The data that an HTML page needs so that anchors can be dragged on it. `rows` (m,) are the drawn rows.
    None if there are more than `MOST_IN_A_PAGE` rows or more than `FEW` anchors, or if the maps cannot
    follow."""
    if why_not(pair, projection, reduction) or reduction.align:
        return None
    following = [name for name in panes if name in FOLLOWING]
    if not following or not set(panes) <= set(_IN_A_PAGE):
        return None
    if n_anchors == 0 or n_anchors > FEW or len(rows) > MOST_IN_A_PAGE:
        return None
    units = []
    for space in pair.spaces:
        origin = None
        if projection.center:
            origin = mean_of(space)
        units.append(unit_rows(space.vectors[rows], origin))
    header = live_header(panes, n_anchors, len(pair.spaces))
    header["widths"] = [space.dimension for space in pair.spaces]
    header["shared"] = reduction.fit == "first"
    header["representations"] = np.repeat(following, len(pair.spaces)).tolist()
    return PageUnits(header, tuple(units))


def why_not(pair: Match, projection: ProjectionSpec, reduction: ReductionSpec) -> str:
    """The reason why the maps of this pair, with these settings and on the chosen device, cannot follow a
    dragged anchor; "" if they can."""
    widest = max(space.dimension for space in pair.spaces)
    if reduction.method != "pca":
        title = REDUCTIONS[reduction.method].title
        return f"{title} takes too long to follow a star. Choose PCA as the map to drag anchors."
    if reduction.n_components != 2:
        return "In three dimensions stars cannot be dragged. Choose a map of two dimensions."
    if projection.similarity != "cosine":
        return "Maps follow a star only if the similarity is the cosine: ★ anchors, Method details."
    if len(pair) * widest > MOST_NUMBERS and resolve() == "cpu":
        return "Without a GPU these are too many rows to follow a star: add and remove anchors instead."
    return ""
