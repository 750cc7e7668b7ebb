"""Drift between two versions: the verdict, the four shares of the change, changed neighbours by class, all
checks.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, results
from app.plain_text import plain, plain_html
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import general, short
from relcore.catalog.catalog import SpaceSpec
from relcore.drift.check import (
    AGAINST,
    MOST_VERSIONS,
    QUANTITIES,
    SITUATIONS,
    Drift,
    DriftCheck,
    DriftSeries,
    DriftVerdict,
    Thresholds,
    as_toml,
    cautions,
    circumstances,
    headline,
    shares_told,
    told,
)
from relcore.drift.figures import DriftChart, DriftLines, DriftMap
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES
from relcore.drift.reports import ordered
from relcore.figures.style import Theme

_MODES = ("Two versions", "A series")
_STARTS_ITSELF = 20.0  # seconds
_SHORT = {EVERYTHING_NEW: "everything new", NEW_QUERIES: "new queries"}
_KEEP = {"persist_state": "session"}


def draw(workspace: Workspace) -> None:
    """The content of the tab."""
    choosers = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    mode = _MODES[0]
    if len(workspace.spaces) > 2:
        look = {"key": "drift.mode", "required": True, "help": "A series: all versions, in order.", **_KEEP}
        mode = choosers.segmented_control("Compare", _MODES, default=mode, **look)
    try:
        (two_versions if mode == _MODES[0] else series)(workspace, choosers)
    except SpaceError as error:
        messages.error(error)


def series(workspace: Workspace, choosers: DeltaGenerator) -> None:
    """Choosers of the versions and of what each is compared with, then both figures."""
    labels = space_labels(workspace.spaces)
    with choosers:
        specs = tuple(
            st.multiselect(
                "Versions, in their order",
                list(labels),
                list(labels)[:MOST_VERSIONS],
                format_func=labels.get,
                key=f"drift.versions-{results.place_of(workspace.spaces)}",
                max_selections=MOST_VERSIONS,
                **_KEEP,
            )
        )
        against = st.segmented_control(
            "Compare with",
            AGAINST,
            default="previous",
            format_func=lambda name: AGAINST[name].title,
            key="drift.against",
            required=True,
            **_KEEP,
        )
    if len(specs) < 2:
        messages.info("Choose two versions or more.", icon=":material/timeline:")
        return
    task = DriftSeries()
    drift = results.computed(
        task, specs, label=f"Compare {len(specs)} versions", unasked_seconds=_STARTS_ITSELF
    )
    if drift is None:
        return
    st.html(f'<p class="relscope-lead"><b>{plain_html(drift.headline(against))}</b></p>')
    settings = {"spaces": specs, "digests": _digests(specs), "series": task}
    for recipe in (DriftLines(**settings, against=against), DriftMap(**settings)):
        figure, key = recipe.draw(drift), recipe.figure
        exports.chart(figure.interactive(exports.theme()), f"{key}.chart", tools=False)
        exports.export_bar(figure, key)
    st.caption(
        f"{drift.n:,} rows that all versions have, {drift.n_queries:,} of them as queries, k = {drift.k}."
        f" Churn: share of the nearest neighbours that changed, by chance {short(drift.chance_churn)}. ρ:"
        " what remains after shift, scale and rotation. Rows of the map are old versions, columns new ones."
    )


def _digests(specs: tuple[SpaceSpec, ...]) -> tuple[str, ...]:
    return tuple(compute.load_space(spec).digest for spec in specs)


def two_versions(workspace: Workspace, choosers: DeltaGenerator) -> None:
    """Choosers of the old and the new version, and what changed between them."""
    labels = space_labels(workspace.spaces)
    place = results.place_of(workspace.spaces, workspace.source, workspace.target)
    with choosers:
        old, new = (
            st.selectbox(
                f"{side} version",
                list(labels),
                list(labels).index(usual),
                format_func=labels.get,
                key=f"drift.{side.lower()}-{place}",
                width=260,
                **_KEEP,
            )
            for side, usual in (("Old", workspace.source), ("New", workspace.target))
        )
        thresholds = thresholds_of()
    if old == new:
        messages.info("Choose two different versions.", icon=":material/difference:")
        return
    task, specs = DriftCheck(shared=True), (old, new)
    drift = results.computed(task, specs, label="Measure the drift", unasked_seconds=_STARTS_ITSELF)
    if drift is None:
        return
    verdict = drift.judged(thresholds)
    st.html(f'<p class="relscope-lead"><b>{plain_html(headline(drift, verdict))}</b></p>')
    for place, situation in zip(st.columns(2, gap="medium"), SITUATIONS, strict=True):
        alarm = verdict.alarmed([situation])
        (place.warning if alarm else place.success)(
            f"{plain(told(drift, verdict, situation))}  \n:small[{plain(SITUATIONS[situation].help)}]",
            icon=":material/notifications_active:" if alarm else ":material/check:",
        )
    for caution in cautions(drift, verdict):
        st.caption(plain(caution))
    recipe = DriftChart(old=old, new=new, digests=_digests(specs), drift=task, thresholds=thresholds)
    figure = recipe.draw(drift)
    st.html(shares_bar(drift, exports.theme()))
    chart, listed = st.columns(2, gap="medium")
    with chart:
        exports.chart(figure.interactive(exports.theme()), "drift.chart", tools=False)
    with listed:
        _checks(verdict)
    st.caption(plain(circumstances(drift)))
    exports.export_bar(figure, "drift")


def _checks(verdict: DriftVerdict) -> None:
    """All checks: those of all rows, then classes with an alarm."""
    columns = st.column_config
    widths = {"situation": 125, "quantity": 90, "class": 90}
    look = {name: columns.TextColumn(width=width) for name, width in widths.items()}
    look["alarm"] = columns.CheckboxColumn(width=55)
    look |= {name: columns.NumberColumn(format="%.3f", width=65) for name in ("value", "noise", "threshold")}
    table = pd.DataFrame(
        {
            "alarm": check.alarm,
            "situation": _SHORT[check.measure.situation],
            "quantity": QUANTITIES[check.measure.quantity].title,
            "class": check.measure.group or "all rows",
            "value": check.measure.value,
            "noise": check.measure.noise,
            "threshold": check.threshold,
        }
        for check in ordered(verdict)
    )
    st.dataframe(table, hide_index=True, height=400, column_config=look, key="drift.checks")


# The four shares of a change as one bar.

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
    if not any(shares.values()):
        sentence = "The vectors of both versions are the same."
        if not shares:
            sentence = (
                f"The versions have {drift.widths[0]:,} and {drift.widths[1]:,} dimensions, so their rows"
                f" cannot be subtracted. The best rotation between them leaves ρ = {short(drift.rho)}."
            )
        return f'<p style="margin: 0;">{plain_html(sentence)}</p>'
    parts, legend = [], []
    for (step, share), color in zip(shares.items(), theme.category_colors(len(shares)), strict=True):
        parts.append(
            f'<span style="flex: {share:.4f} 0 0; background: {color}; color: #fff; text-align: center;'
            f' overflow: hidden;">{short(share) if share >= _LABELLED else ""}</span>'
        )
        legend.append(
            '<span style="white-space: nowrap;"><span style="display: inline-block; width: 0.7rem; height:'
            f' 0.7rem; border-radius: 2px; background: {color}; margin-right: 0.35rem;"></span><b>{step}'
            f' {short(share)}</b> <span style="opacity: 0.75;">{_MEANT[step]}</span></span>'
        )
    listed = ", ".join(f"{step} {short(share)}" for step, share in shares.items())
    more = (
        f"ρ = {general(drift.rho)}; the mean moved by {general(drift.shift)} of the spread, scale ×"
        f" {general(drift.scale)}"
    )
    if min(shares["shift"], shares["rotation"]) > _NOTED:
        more += ". A rotation about zero also turns the mean row, which counts as shift."
    return (
        '<div style="display: flex; flex-direction: column; gap: 0.35rem;"><div style="font-size: 0.85rem;'
        ' opacity: 0.8;">Shares of the squared change</div><div role="img" aria-label="Shares of the change:'
        f' {plain_html(listed)}" style="display: flex; height: 1.6rem; line-height: 1.6rem; border-radius:'
        f' 0.3rem; overflow: hidden; font-variant-numeric: tabular-nums; gap: 1px;">{"".join(parts)}</div>'
        '<div style="display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; font-size:'
        f' 0.85rem;">{"".join(legend)}<span>{plain_html(more)}</span></div></div>'
    )


def thresholds_of() -> Thresholds:
    """The thresholds in a popover, at first the defaults, and their file for the command."""
    tables = {}
    with st.popover("Thresholds", icon=":material/tune:", key="drift.thresholds"):
        st.caption(
            "An alarm fires when the change exceeds the noise level (float16 rounding) by the threshold."
        )
        for column, situation in zip(st.columns(2, gap="medium"), SITUATIONS, strict=True):
            column.markdown(f"**{SITUATIONS[situation].title}**")
            usual = getattr(Thresholds(), situation)
            values = {}
            for name, share in vars(usual).items():
                quantity = QUANTITIES[name.removeprefix("class_")]
                values[name] = column.number_input(
                    f"{quantity.title}, each class" if name.startswith("class_") else quantity.title,
                    0.0,
                    1.0,
                    share,
                    0.01,
                    key=f"drift.{situation}.{name}",
                    help=f"{quantity.help[0].upper()}{quantity.help[1:]}.",
                    format="%.3f",
                    **_KEEP,
                )
            tables[situation] = type(usual)(**values)
        thresholds = Thresholds(**tables)
        st.download_button(
            "Download for the command",
            data=as_toml(thresholds),
            file_name="thresholds.toml",
            mime="application/toml",
            key="drift.thresholds-file",
            on_click="ignore",
            icon=":material/download:",
            help="relscope drift OLD NEW --thresholds thresholds.toml",
        )
    return thresholds
