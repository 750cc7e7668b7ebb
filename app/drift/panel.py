"""Drift between two versions: the verdict, the four shares of the change, changed neighbours by class, all
checks.
"""

from __future__ import annotations

from dataclasses import fields

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
from relcore.drift.check import Drift, DriftCheck, cautions, circumstances, headline, shares_told, told
from relcore.drift.figures import DriftChart, DriftLines, DriftMap
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES
from relcore.drift.reports import ordered
from relcore.drift.series import AGAINST, MOST_VERSIONS, DriftSeries
from relcore.drift.verdict import QUANTITIES, SITUATIONS, DriftVerdict, Thresholds, as_toml
from relcore.figures.style import Theme

# Drift over a series of versions: one line per quantity, and a heat map of versions by versions.

_SERIES_STARTS_ITSELF = 20.0  # seconds
_SERIES_KEEP = {"persist_state": "session"}


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
                **_SERIES_KEEP,
            )
        )
        against = st.segmented_control(
            "Compare with",
            AGAINST,
            default="previous",
            format_func=lambda name: AGAINST[name].title,
            key="drift.against",
            required=True,
            **_SERIES_KEEP,
        )
    if len(specs) < 2:
        messages.info("Choose two versions or more.", icon=":material/timeline:")
        return
    task = DriftSeries()
    found = results.computed(
        task, specs, label=f"Compare {len(specs)} versions", unasked_seconds=_SERIES_STARTS_ITSELF
    )
    if found is None:
        return
    st.html(f'<p class="relscope-lead"><b>{plain_html(found.headline(against))}</b></p>')
    digests = tuple(compute.load_space(spec).digest for spec in specs)
    lines = DriftLines(spaces=specs, digests=digests, series=task, against=against).draw(found)
    heat = DriftMap(spaces=specs, digests=digests, series=task).draw(found)
    for figure, key in ((lines, "drift-lines"), (heat, "drift-map")):
        exports.chart(figure.interactive(exports.theme()), f"{key}.chart", tools=False)
        exports.export_bar(figure, key)
    st.caption(
        plain(
            f"{found.n:,} rows that all versions have, {found.n_queries:,} of them as queries, k = {found.k}."
            f" Churn: share of the nearest neighbours that changed, by chance {short(found.chance_churn)}. ρ:"
            " what remains after shift, scale and rotation. Rows of the map are old versions, columns new"
            " ones."
        )
    )


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
    if not shares:
        return _sentence(
            f"The versions have {drift.widths[0]:,} and {drift.widths[1]:,} dimensions, so their rows cannot"
            f" be subtracted. The best rotation between them leaves ρ = {short(drift.rho)}."
        )
    if not any(shares.values()):
        return _sentence("The vectors of both versions are the same.")
    colors = dict(zip(shares, theme.category_colors(len(shares)), strict=True))
    parts = "".join(
        f'<span style="flex: {share:.4f} 0 0; background: {colors[step]}; color: #fff; text-align: center;'
        ' overflow: hidden;">'
        f"{short(share) if share >= _LABELLED else ''}</span>"
        for step, share in shares.items()
    )
    legend = "".join(
        '<span style="white-space: nowrap;"><span style="display: inline-block; width: 0.7rem; height:'
        f' 0.7rem; border-radius: 2px; background: {colors[step]}; margin-right: 0.35rem;"></span><b>{step}'
        f' {short(share)}</b> <span style="opacity: 0.75;">{_MEANT[step]}</span></span>'
        for step, share in shares.items()
    )
    told = ", ".join(f"{step} {short(share)}" for step, share in shares.items())
    more = (
        f"ρ = {general(drift.rho)}; the mean moved by {general(drift.shift)} of the spread, scale ×"
        f" {general(drift.scale)}"
    )
    if min(shares["shift"], shares["rotation"]) > _NOTED:
        more += ". A rotation about zero also turns the mean row, which counts as shift."
    return (
        '<div style="display: flex; flex-direction: column; gap: 0.35rem;"><div style="font-size: 0.85rem;'
        ' opacity: 0.8;">Shares of the squared change</div><div role="img" aria-label="Shares of the change:'
        f' {plain_html(told)}" style="display: flex; height: 1.6rem; line-height: 1.6rem; border-radius:'
        f' 0.3rem; overflow: hidden; font-variant-numeric: tabular-nums; gap: 1px;">{parts}</div><div'
        ' style="display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; font-size:'
        f' 0.85rem;">{legend}<span>{plain_html(more)}</span></div></div>'
    )


def _sentence(text: str) -> str:
    return f'<p style="margin: 0;">{plain_html(text)}</p>'


# Thresholds of the drift gate in a popover, and the file for `relscope drift --thresholds`.


def thresholds_of() -> Thresholds:
    """The thresholds that the choosers show; at first the defaults."""
    found = {}
    with st.popover("Thresholds", icon=":material/tune:", key="drift.thresholds"):
        st.caption("How much more than numeric noise may change before the gate alarms: shares from 0 to 1.")
        for column, situation in zip(st.columns(2, gap="medium"), SITUATIONS, strict=True):
            with column:
                st.markdown(f"**{SITUATIONS[situation].title}**")
                usual = getattr(Thresholds(), situation)
                values = {
                    field.name: _chosen_of_threshold_choosers(
                        situation, field.name, getattr(usual, field.name)
                    )
                    for field in fields(usual)
                }
                found[situation] = type(usual)(**values)
        thresholds = Thresholds(**found)
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


def _chosen_of_threshold_choosers(situation: str, name: str, usual: float) -> float:
    quantity = QUANTITIES[name.removeprefix("class_")]
    title = f"{quantity.title}, each class" if name.startswith("class_") else quantity.title
    look = {
        "help": f"{quantity.help[0].upper()}{quantity.help[1:]}.",
        "format": "%.3f",
        "persist_state": "session",
    }
    return float(st.number_input(title, 0.0, 1.0, usual, 0.01, key=f"drift.{situation}.{name}", **look))


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
        mode = choosers.segmented_control("Compare", _MODES, default=_MODES[0], **look)
    try:
        if mode == _MODES[0]:
            two_versions(workspace, choosers)
        else:
            series(workspace, choosers)
    except SpaceError as error:
        messages.error(error)


def two_versions(workspace: Workspace, choosers: DeltaGenerator) -> None:
    """Choosers of the old and the new version, and what changed between them."""
    with choosers:
        specs = _chosen(workspace)
        thresholds = thresholds_of()
    if specs[0] == specs[1]:
        messages.info("Choose two different versions.", icon=":material/difference:")
        return
    task = DriftCheck(shared=True)
    drift = results.computed(task, specs, label="Measure the drift", unasked_seconds=_STARTS_ITSELF)
    if drift is None:
        return
    verdict = drift.judged(thresholds)
    _verdict(drift, verdict)
    digests = tuple(compute.load_space(spec).digest for spec in specs)
    figure = DriftChart(old=specs[0], new=specs[1], digests=digests, drift=task, thresholds=thresholds).draw(
        drift
    )
    st.html(shares_bar(drift, exports.theme()))
    chart, listed = st.columns(2, gap="medium")
    with chart:
        exports.chart(figure.interactive(exports.theme()), "drift.chart", tools=False)
    with listed:
        _checks(verdict)
    st.caption(plain(circumstances(drift)))
    exports.export_bar(figure, "drift")


def _chosen(workspace: Workspace) -> tuple[SpaceSpec, SpaceSpec]:
    labels = space_labels(workspace.spaces)
    options, found, place = (
        list(labels),
        [],
        results.place_of(workspace.spaces, workspace.source, workspace.target),
    )
    for side, usual in (("Old version", workspace.source), ("New version", workspace.target)):
        look = {"key": f"drift.{side.split()[0].lower()}-{place}", "width": 260, **_KEEP}
        found.append(st.selectbox(side, options, options.index(usual), format_func=labels.get, **look))
    return tuple(found)


def _verdict(drift: Drift, verdict: DriftVerdict) -> None:
    st.html(f'<p class="relscope-lead"><b>{plain_html(headline(drift, verdict))}</b></p>')
    for place, situation in zip(st.columns(2, gap="medium"), SITUATIONS, strict=True):
        alarm = verdict.alarmed([situation])
        with place:
            (st.warning if alarm else st.success)(
                f"{plain(told(drift, verdict, situation))}  \n:small[{plain(SITUATIONS[situation].help)}]",
                icon=":material/notifications_active:" if alarm else ":material/check:",
            )
    for one in cautions(drift, verdict):
        st.caption(plain(one))


def _checks(verdict: DriftVerdict) -> None:
    """All checks: those of all rows, then classes with an alarm."""
    checks = ordered(verdict)
    table = pd.DataFrame(
        {
            "alarm": [check.alarm for check in checks],
            "situation": [_SHORT[check.measure.situation] for check in checks],
            "quantity": [QUANTITIES[check.measure.quantity].title for check in checks],
            "class": [check.measure.group or "all rows" for check in checks],
            "value": [check.measure.value for check in checks],
            "noise": [check.measure.noise for check in checks],
            "threshold": [check.threshold for check in checks],
        }
    )
    look = {
        name: st.column_config.NumberColumn(format="%.3f", width=65)
        for name in ("value", "noise", "threshold")
    }
    look |= {
        "alarm": st.column_config.CheckboxColumn(width=55),
        "situation": st.column_config.TextColumn(width=125),
    }
    look |= {
        "quantity": st.column_config.TextColumn(width=90),
        "class": st.column_config.TextColumn(width=90),
    }
    st.dataframe(table, hide_index=True, height=400, column_config=look, key="drift.checks")
