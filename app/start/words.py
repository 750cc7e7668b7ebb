"""The words of Start and of the story: their spaces, anchors and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from app import compute, exports, session
from app.components.small_maps import SmallMap, small_maps
from app.glossary.terms import linked_html
from app.plain_text import plain_html
from app.saving import DEFAULT_ANCHORS
from app.workspace import BUNDLED, Workspace
from relcore.base.numbers import percent
from relcore.maps.pane_maps import OWN, View, default_view, orient_pairs
from relcore.scores.score import Score
from relcore.spaces.matching import Match

MODELS = "Word2Vec", "FastText"
N_ANCHORS = int(DEFAULT_ANCHORS.split(" ")[1])
NEAREST = 60  # words drawn around each example word
USUAL = Workspace()
_AXES = {  # the axes of both maps, in words for their titles
    OWN: ("own axes", "own axes"),
    "absolute": ("own axes", "same axes"),
    "relative": ("by similarities", "by similarities"),
}


@dataclass(frozen=True, eq=False)
class Words:
    """The bundled words of both models, and the words that are drawn."""

    pair: Match
    drawn: View

    @property
    def names(self) -> np.ndarray:
        return self.pair.ids[self.drawn.rows]


def words() -> Words:
    pair = compute.matched_models(*BUNDLED)
    view = replace(default_view(pair.source), n_nearest=NEAREST)
    return Words(pair, compute.view(pair, replace(USUAL, view=view)))


def anchors(pair: Match, n: int = N_ANCHORS) -> tuple[str, ...]:
    """The anchors with which Explore opens. With another `n`, n anchors are chosen by the same strategy and
    random state."""
    strategy, _, random_state = session.anchors_origin(Workspace(anchors_from=DEFAULT_ANCHORS))
    return compute.select_anchors(pair, n, strategy, random_state)


def score(pair: Match, representation: str, by: tuple[str, ...] = ()) -> Score:
    """The mean reciprocal rank of matching rows, as Explore shows it. Its attribute `top1` is the share of
    rows that match."""
    settings = replace(USUAL, anchors=by).scoring
    return compute.live_scores(pair, representation, settings, alone=True)["mrr"]


def chance(found: Score) -> str:
    """The chance level in words: the probability that the right one of all rows is nearest."""
    return percent(1 / found.n)


def draw_maps(
    of: Words,
    representation: str,
    key: str,
    pair: Match | None = None,
    by: tuple[str, ...] = (),
    second: str = "",
) -> None:
    """Draw maps of both models in one representation, turned for display as in Explore. Stars are anchors.

    `second` is the name of the second model if it is not FastText.
    """
    theme = exports.theme()
    names = of.names
    palette = np.array([*theme.category_colors(len(of.drawn.category_names)), theme.neutral])
    small_maps(
        _maps(pair or of.pair, of.drawn, representation, by, (MODELS[0], second or MODELS[1])),
        key,
        names=names,
        colors=palette[of.drawn.categories].tolist(),
        labelled=np.flatnonzero(np.isin(names, of.drawn.category_names)),
        starred=np.flatnonzero(np.isin(names, by)),
    )


@compute.cached(64)
def _maps(
    pair: Match, drawn: View, representation: str, by: tuple[str, ...], models: tuple[str, str]
) -> list[SmallMap]:
    settings = USUAL.projection, USUAL.reduction
    reference = compute.pca_coordinates(pair, drawn, OWN, (), *settings)[0][0]
    picture = compute.pca_coordinates(pair, drawn, representation, by, *settings)
    turned = orient_pairs({representation: picture}, reference, pair, USUAL.reduction)[representation][0]
    ends = [(xy.min(axis=0), xy.max(axis=0)) for xy in turned]
    if representation != OWN:  # shared coordinates need one scale for both maps
        low = np.min([low for low, _ in ends], axis=0)
        high = np.max([high for _, high in ends], axis=0)
        ends = [(low, high)] * 2
    titles = [f"{name}, {axes}" for name, axes in zip(models, _AXES[representation], strict=True)]
    alt = f": {len(drawn.rows)} words, in the colour of the nearest of {len(drawn.category_names)} words"
    return [
        SmallMap(title, xy, (low + high) / 2, 0.56 * float((high - low).max()), f"Map: {title}{alt}")
        for title, xy, (low, high) in zip(titles, turned, ends, strict=True)
    ]


def share_number(found: Score, meaning: str) -> str:
    """The share of rows that match, as a large number in HTML. Its chance level and the number of rows stand
    below."""
    measured = f"By chance {chance(found)}. Measured on {found.n_queries:,} random words."
    return (
        f'<p class="relscope-number"><b>{percent(found.top1)}</b> <span>{linked_html(meaning)}</span></p>'
        f'<p class="relscope-chance">{linked_html(measured)}</p>'
    )


def columns(shares: Mapping[str, float | None], now: str) -> str:
    """A column chart as HTML. For each name, a column shows the share of rows that match; it is empty if the
    share is None. The column of the name `now` is highlighted."""
    drawn = ""
    for name, share in shares.items():
        highlighted = "now" if name == now else ""
        number = ""
        height = 0.0
        if share is not None:
            number = percent(share)
            height = 100 * share
        drawn += (
            f'<div class="{highlighted}"><b>{number}</b>'
            f'<i style="height:{height:.1f}%"></i><span>{plain_html(name)}</span></div>'
        )
    many = " many" if len(shares) > 8 else ""
    if [*shares.values()].count(None) == len(shares) - 1:
        drawn += "<em>Try one: its bar appears</em>"
    return f'<div class="relscope-columns{many}" aria-hidden="true">{drawn}</div>'
