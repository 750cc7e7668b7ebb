"""The words of Start: two models of the same words, their maps, and how many words match."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app import compute, exports, session
from app.components.small_maps import SmallMap, small_maps
from app.saving import DEFAULT_ANCHORS
from app.workspace import BUNDLED, Workspace
from relcore.base.numbers import percent
from relcore.maps.pane_maps import OWN, orient_pairs
from relcore.maps.views import View, default_view
from relcore.scores.score import Score
from relcore.spaces.matching import Match

MODELS = "Word2Vec", "FastText"
N_ANCHORS = int(DEFAULT_ANCHORS.split(" ")[1])
_NEAREST = 60  # words around each pivot on a map
_USUAL = Workspace()
_AXES = {  # of the two maps
    OWN: ("own axes", "own axes"),
    "absolute": ("own axes", "the same axes"),
    "relative": ("by similarities", "by similarities"),
}


@dataclass(frozen=True, eq=False)
class Words:
    """The bundled words of both models, and the rows that are drawn."""

    pair: Match
    drawn: View

    @property
    def names(self) -> np.ndarray:
        return self.pair.ids[self.drawn.rows]


def words() -> Words:
    pair = compute.matched(*BUNDLED)
    view = replace(default_view(pair.source), n_nearest=_NEAREST)
    return Words(pair, compute.view(pair, replace(_USUAL, view=view)))


def anchors(pair: Match, n: int = N_ANCHORS) -> tuple[str, ...]:
    """The anchors that Explore opens with, or another number of them by the same strategy and random
    state."""
    strategy, _, random_state = session.anchors_origin(Workspace(anchors_from=DEFAULT_ANCHORS))
    return compute.select_anchors(pair, n, strategy, random_state)


def score(pair: Match, form: str, by: tuple[str, ...] = ()) -> Score:
    """The mean reciprocal rank as in Explore; its `top1` is the share of rows that match."""
    settings = _USUAL.projection, _USUAL.k, _USUAL.convention
    return compute.live_scores(pair, form, by, *settings, alone=True)["mrr"]


def chance(found: Score) -> str:
    """The chance level in words: one of all rows is nearest."""
    return percent(1 / found.n)


def draw_maps(
    of: Words, form: str, key: str, pair: Match | None = None, by: tuple[str, ...] = (), second: str = ""
) -> None:
    """Both models in one representation, turned for display as in Explore; stars are anchors.

    `second` names the target where it is not FastText.
    """
    theme, names = exports.theme(), of.names
    palette = np.array([*theme.category_colors(len(of.drawn.category_names)), theme.neutral])
    small_maps(
        _maps(pair or of.pair, of.drawn, form, by, (MODELS[0], second or MODELS[1])),
        key,
        names=names,
        colors=palette[of.drawn.categories].tolist(),
        labelled=np.flatnonzero(np.isin(names, of.drawn.category_names)),
        starred=np.flatnonzero(np.isin(names, by)),
    )


@compute.cached(64)
def _maps(
    pair: Match, drawn: View, form: str, by: tuple[str, ...], models: tuple[str, str]
) -> list[SmallMap]:
    settings = _USUAL.projection, _USUAL.reduction
    reference = compute.pca_coordinates(pair, drawn, OWN, (), *settings)[0][0]
    picture = compute.pca_coordinates(pair, drawn, form, by, *settings)
    turned = orient_pairs({form: picture}, reference, pair, _USUAL.reduction)[form][0]
    ends = [(xy.min(axis=0), xy.max(axis=0)) for xy in turned]
    if form != OWN:  # one scale for both
        low, high = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
        ends = [(low, high)] * 2
    titles = [f"{name}, {axes}" for name, axes in zip(models, _AXES[form], strict=True)]
    alt = f" of {len(drawn.rows)} words in the colours of their nearest of {len(drawn.category_names)} words"
    return [
        SmallMap(title, xy, (low + high) / 2, 0.56 * float((high - low).max()), f"Map: {title}{alt}")
        for title, xy, (low, high) in zip(titles, turned, ends, strict=True)
    ]
