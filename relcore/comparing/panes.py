"""The panes of two spaces that are in memory, for scripts and notebooks; the app and `relscope figure` draw from recipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relcore.comparing.scene import ComparisonRecipe, comparison_scene
from relcore.figures.export import Exportable, scene_exportable
from relcore.reduction import ReductionSpec
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import Match
from relcore.views import default_view


def panes_of(pair: Match, anchors: Sequence[str]) -> Exportable:
    """All rows of both spaces, absolute above and relative below, by PCA fitted on the first space; anchors by id.

    A notebook shows the figure; ``save("panes.pdf")`` writes it. It carries no recipe, since only the caller knows where the
    spaces come from.

    Examples
    --------
    >>> from relcore import load_words, match, select_anchors
    >>> pair = match(*(load_words(name, limit=300) for name in ("word2vec-novels", "fasttext-novels")))
    >>> figure = panes_of(pair, select_anchors(pair.source, 30))
    >>> len(figure.table())  # a row of numbers for each point
    300
    """
    named = (SpaceSpec("file", space.name) for space in (pair.source, pair.target))
    view = replace(default_view(pair.source), everything=True)
    recipe = ComparisonRecipe(*named, tuple(anchors), view=view, reduction=ReductionSpec(fit="first"))
    return scene_exportable(comparison_scene(recipe, pair))
