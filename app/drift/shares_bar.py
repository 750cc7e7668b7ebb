"""The four shares of a change as one bar."""

from __future__ import annotations

from app.plain_text import plain_html
from relcore.drift.drift_check import Drift, shares_told
from relcore.figures.palette import Theme
from relcore.numbers import general, short

_LABELLED = 0.09  # of the bar: a narrower part has no room for its number
_NOTED = 0.02
_MEANT = {
    "shift": "of the mean row",
    "scale": "of all axes alike",
    "rotation": "or reflection",
    "remains": "no rotation explains it",
}


def shares_bar(drift: Drift, theme: Theme) -> str:
    """The bar with a legend, as HTML; a sentence where nothing has changed, or the widths differ."""
    shares = shares_told(drift)
    if not shares:
        return _sentence(
            f"The versions have {drift.widths[0]:,} and {drift.widths[1]:,} dimensions, so their rows cannot be subtracted. "
            f"The best rotation between them leaves ρ = {short(drift.rho)}."
        )
    if not any(shares.values()):
        return _sentence("The vectors of both versions are the same.")
    colors = dict(zip(shares, theme.category_colors(len(shares)), strict=True))
    parts = "".join(
        f'<span style="flex: {share:.4f} 0 0; background: {colors[step]}; color: #fff; text-align: center; overflow: hidden;">'
        f"{short(share) if share >= _LABELLED else ''}</span>"
        for step, share in shares.items()
    )
    legend = "".join(
        f'<span style="white-space: nowrap;"><span style="display: inline-block; width: 0.7rem; height: 0.7rem; '
        f'border-radius: 2px; background: {colors[step]}; margin-right: 0.35rem;"></span><b>{step} {short(share)}</b> '
        f'<span style="opacity: 0.75;">{_MEANT[step]}</span></span>'
        for step, share in shares.items()
    )
    told = ", ".join(f"{step} {short(share)}" for step, share in shares.items())
    more = f"ρ = {general(drift.rho)}; the mean moved by {general(drift.shift)} of the spread, scale × {general(drift.scale)}"
    if min(shares["shift"], shares["rotation"]) > _NOTED:
        more += ". A rotation about zero also turns the mean row, which counts as shift."
    return (
        '<div style="display: flex; flex-direction: column; gap: 0.35rem;">'
        '<div style="font-size: 0.85rem; opacity: 0.8;">Shares of the squared change</div>'
        f'<div role="img" aria-label="Shares of the change: {plain_html(told)}" style="display: flex; height: 1.6rem; '
        'line-height: 1.6rem; border-radius: 0.3rem; overflow: hidden; font-variant-numeric: tabular-nums; gap: 1px;">'
        f"{parts}</div>"
        f'<div style="display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; font-size: 0.85rem;">{legend}<span>{plain_html(more)}'
        "</span></div></div>"
    )


def _sentence(text: str) -> str:
    return f'<p style="margin: 0;">{plain_html(text)}</p>'
