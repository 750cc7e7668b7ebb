"""Pictures of the story that are HTML: a score, bars of two models, columns of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.glossary.terms import linked_html
from app.plain_text import plain_html
from app.start.words import MODELS, chance
from relcore.base.numbers import percent, short
from relcore.scores.score import Score


def number(found: Score, meaning: str) -> str:
    """The share of rows that match, large, with its chance level and on how many rows it was measured."""
    measured = f"By chance {chance(found)}. Measured with {found.n_queries:,} of {found.n:,} words."
    return (
        f'<p class="relscope-number"><b>{percent(found.top1)}</b> <span>{linked_html(meaning)}</span></p>'
        f'<p class="relscope-chance">{linked_html(measured)}</p>'
    )


def bars(
    title: str, values: Mapping[str, Sequence[float]], limit: float, models: Sequence[str] = MODELS
) -> str:
    """Under each name a bar for each model, from the middle to the left where negative."""
    rows = "".join(
        f"<div><span>{plain_html(name)}</span>{''.join(_bar(value, limit) for value in pair)}</div>"
        for name, pair in values.items()
    )
    legend = "".join(f"<span><i></i>{name}</span>" for name in models)
    return f'<section class="relscope-bars"><h4>{title}</h4><p>{legend}</p>{rows}</section>'


def _bar(value: float, limit: float) -> str:
    share = float(np.clip(value / limit, -1, 1)) * 50
    place = f"left:{50 + min(share, 0):.1f}%;width:{abs(share):.1f}%"
    return f'<em><i style="{place}"></i></em><b>{short(value, 2)}</b>'


def columns(shares: Mapping[str, float | None], now: str) -> str:
    """A column for each name: the share of rows that match, none where it was not tried yet."""
    drawn = "".join(
        f'<div class="{"now" if name == now else ""}"><b>{"" if share is None else percent(share)}</b>'
        f'<i style="height:{100 * (share or 0):.1f}%"></i><span>{plain_html(name)}</span></div>'
        for name, share in shares.items()
    )
    many = " many" if len(shares) > 8 else ""
    return f'<div class="relscope-columns{many}" aria-hidden="true">{drawn}</div>'
