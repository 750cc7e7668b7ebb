"""`show`, the linked panes in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, extra, need_one_of
from relcore.base.kinds import takes_kinds
from relcore.compare.clusters import lacks_names, named_clusters
from relcore.compare.columns import with_color_column
from relcore.compare.live import LiveComparison
from relcore.compare.live_channel import FOLLOWING, N_SPREAD, SPREAD, LiveAnswers, live_header, why_not
from relcore.compare.live_rows import LiveRows
from relcore.encoders.words import load_words
from relcore.figures.scene import Scene
from relcore.maps.pane_maps import (
    COLUMN,
    GRID,
    OWN,
    PANES,
    View,
    default_view,
    drawn_panes,
    make_view,
    map_pair,
    orient_pairs,
)
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.channel import read_request
from relcore.represent.representations import ProjectionSpec
from relcore.represent.strategies import select_anchors, usual_anchors
from relcore.spaces.matching import Match, as_pair, match
from relcore.spaces.space import LatentSpace, MatrixLike

if TYPE_CHECKING:
    from relcore.panes.widget import PanesWidget
from relcore.compare.scene import MapLook, assemble_scene, prominent_rows, with_look

MOST_OTHERS = 2
_MAP = ReductionSpec(fit="first")


@extra("notebook")
@takes_kinds
def show(
    source: MatrixLike | str | Path,
    target: MatrixLike | str | Path,
    anchors: Sequence[str] | int | None = None,
    *,
    others: Sequence[MatrixLike | str | Path] = (),
    panes: Sequence[str] = GRID,
    color_by: str | Sequence[object] | None = None,
    link_zoom: bool = False,
    height: int = 640,
) -> PanesWidget:
    """Show the linked panes of two to four spaces in a widget for Jupyter, VS Code and marimo. The maps are a
    PCA fitted on the first space.

    Three traits of the widget can be read, set, and observed with ``widget.observe``: `selection` (ids),
    `selected_rows` (numbers of the shared rows) and `anchors` (ids).

    Parameters
    ----------
    source, target : LatentSpace, matrix (n, d) in any form, or path
        Rows of spaces are paired by id, rows of arrays by number. The name of a bundled space can be given as
        a path.
    anchors : ids, or how many, optional
        By default, 300 random rows, but at most a fifth of the rows. If the list is empty, only the absolute
        panes are drawn.
    others : sequence of one or two more spaces, optional
        Spaces that are drawn beside the source and the target. The rows are those that all spaces share.
        While an anchor is dragged, scores compare only source and target.
    panes : representations
        One or two representations: "own" (absolute, each space on its own axes), "absolute" (on shared axes),
        "relative", "whitened" and "procrustes".
    color_by : str or one value per row of `source`, optional
        A column, as in `ViewSpec.color_by`, or your own list of numbers or names. By default, rows are
        coloured by their labels if these are classes. Otherwise, some rows and their neighbourhoods are
        coloured.
    height : int
        Pixels for all panes together.

    Raises
    ------
    SpaceError
        A file that does not exist; no shared rows; anchors that a space lacks; an unknown pane or colour;
        anywidget is not installed.

    Examples
    --------
    >>> from relcore import load_words, show
    >>> source, target = (load_words(name, limit=500) for name in ("word2vec-novels", "fasttext-novels"))
    >>> widget = show(source, target, anchors=50)
    >>> widget.selection = ["time", "man"]
    >>> [source.ids[row] for row in widget.selected_rows]
    ['time', 'man']
    """
    from relcore.panes.widget import PanesWidget

    for pane in _as_tuple("panes", panes, "a list of representations"):
        need_one_of("panes", pane, PANES)
    if not 1 <= len(set(panes)) == len(panes) <= 2:
        raise SpaceError(f"panes: expected one or two representations, none twice, got {panes!r:.80}")
    if len(_as_tuple("others", others, "a list of spaces")) > MOST_OTHERS:
        raise SpaceError(f"others: expected at most {MOST_OTHERS} more spaces, got {len(others)}")
    source, target, *others = map(_loaded, (source, target, *others))
    source, target = as_pair(source, target)
    pair = match(source, target, *others)
    if anchors is None or (isinstance(anchors, int | np.integer) and not isinstance(anchors, bool)):
        if anchors is None:
            n_anchors = usual_anchors(len(pair))
        else:
            n_anchors = int(anchors)
        anchors = ()
        if n_anchors:
            anchors = select_anchors(pair.source, n_anchors)
    anchors = _as_tuple("anchors", anchors, "a list of ids, or a number")
    drawing, live = _drawing(pair, _view(pair, source, color_by), tuple(panes))
    return PanesWidget(pair.ids, drawing, anchors=anchors, height=height, link_zoom=link_zoom, live=live)


def _loaded(space: MatrixLike | str | Path) -> MatrixLike:
    """The space, or the words of the dataset or file that is named."""
    if isinstance(space, str | Path):
        return load_words(space)
    return space


def _as_tuple(name: str, values: Any, what: str) -> tuple:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise SpaceError(f"{name}: expected {what}, got {values!r:.80}")
    return tuple(values)


def _view(pair: Match, source: LatentSpace, color_by: str | Sequence[object] | None) -> View:
    spec = replace(default_view(pair.source), everything=True)
    if color_by is None:
        return make_view(pair.source, spec)
    if isinstance(color_by, str):
        spec = replace(spec, color_by=color_by)
        return with_color_column(pair, make_view(pair.source, spec), spec)
    values = list(_as_tuple("color_by", color_by, "a name, or one value per row of the source"))
    if len(values) != len(source):
        raise SpaceError(
            f"color_by: expected {len(source):,} values, one per row of the source, got {len(values):,}"
        )
    spec = replace(spec, color_by=f"{COLUMN}colour")
    own = pd.Series(values, index=source.ids)
    return with_color_column(pair, make_view(pair.source, spec), spec, lambda name: own)


def _drawing(
    pair: Match, view: View, panes: tuple[str, ...]
) -> tuple[Callable[[Sequence[str]], tuple[Scene, np.ndarray]], _Dragged]:
    """Two values: a function that returns the scene for given anchors, and the object that answers the panes
    while an anchor is dragged. Parts that do not depend on the anchors are computed once.
    """

    def picture(pane: str, anchors: Sequence[str]) -> tuple[list[np.ndarray], str]:
        return map_pair(pair, view.rows, pane, anchors, ProjectionSpec(), _MAP)

    widths = [space.dimension for space in pair.spaces]
    panes = drawn_panes(panes, widths, _MAP)
    first = drawn_panes(["absolute"], widths, _MAP)[0]
    absolute = picture(first, ())
    names = None
    if lacks_names(view, None):
        names = named_clusters(pair.source, view.rows, absolute[0][0])
    prominence = prominent_rows(pair.source, view)

    def draw(anchors: Sequence[str]) -> tuple[Scene, np.ndarray]:
        representations = [pane for pane in panes if anchors or pane in (OWN, "absolute")]
        if not representations:
            raise SpaceError(f"anchors: expected at least one for the {panes[0]} panes, got none")
        pictures = {}
        for pane in representations:
            if pane == first:
                pictures[pane] = absolute
            else:
                pictures[pane] = picture(pane, anchors)
        oriented = orient_pairs(pictures, absolute[0][0], pair, _MAP)
        scene = assemble_scene(pair.spaces, view, oriented, anchors)
        return replace(with_look(scene, MapLook(), None, names), prominence=prominence), view.rows

    return draw, _Dragged(pair, view.rows, panes, absolute[0][0])


class _Dragged:
    """Answers the panes of a widget while an anchor is dragged.

    All maps are rotated onto the map `reference` (m, 2).
    """

    def __init__(self, pair: Match, rows: np.ndarray, panes: tuple[str, ...], reference: np.ndarray) -> None:
        self.pair = pair
        self.rows = rows
        self.panes = panes
        self.reference = reference
        self.known: tuple[tuple[str, ...], LiveAnswers] | None = None

    @cached_property
    def held(self) -> LiveRows:
        return LiveRows(self.pair, self.rows, reference=self.reference)

    def header(self, anchors: Sequence[str]) -> dict[str, Any] | None:
        if not anchors:
            return None
        if refused := why_not(self.pair, ProjectionSpec(), _MAP):
            return {"refused": refused}
        return live_header(self.panes, len(anchors), len(self.pair.spaces))

    def answer(self, anchors: Sequence[str], message: bytes) -> bytes:
        request = read_request(message, len(self.rows))
        anchors = tuple(anchors)
        if request is None:
            return b""
        if self.known is None or self.known[0] != anchors:
            numbers = self.pair.source.rows(anchors).tolist()
            representations = [pane for pane in self.panes if pane in FOLLOWING]
            following = LiveComparison(self.held, numbers, None, _MAP, representations)
            self.known = anchors, LiveAnswers(following, numbers, self.rows)
        return self.known[1].answer(request)

    def spread(self) -> list[str]:
        return select_anchors(self.pair.source, N_SPREAD, SPREAD)


def how_to_open(path: str) -> str:
    """The command that opens a file of `atlas_table` in Embedding Atlas."""
    return f"embedding-atlas {path} --x x --y y --neighbors neighbors"
