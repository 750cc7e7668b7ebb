"""Drift between two versions: the verdict, the four shares of the change, changed neighbours by class, all checks."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, results
from app.drift.series_panel import series
from app.drift.shares_bar import shares_bar
from app.drift.threshold_choosers import thresholds_of
from app.plain_text import plain, plain_html
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.drift.drift_check import Drift, DriftCheck
from relcore.drift.figures import DriftChart
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES
from relcore.drift.reports import ordered
from relcore.drift.sentences import cautions, circumstances, headline, told
from relcore.drift.verdict import QUANTITIES, SITUATIONS, Verdict
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError

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
    figure = DriftChart(old=specs[0], new=specs[1], digests=digests, drift=task, thresholds=thresholds).draw(drift)
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
    options, found, place = list(labels), [], results.place_of(workspace.spaces, workspace.source, workspace.target)
    for side, usual in (("Old version", workspace.source), ("New version", workspace.target)):
        look = {"key": f"drift.{side.split()[0].lower()}-{place}", "width": 260, **_KEEP}
        found.append(st.selectbox(side, options, options.index(usual), format_func=labels.get, **look))
    return tuple(found)


def _verdict(drift: Drift, verdict: Verdict) -> None:
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


def _checks(verdict: Verdict) -> None:
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
    look = {name: st.column_config.NumberColumn(format="%.3f", width=65) for name in ("value", "noise", "threshold")}
    look |= {"alarm": st.column_config.CheckboxColumn(width=55), "situation": st.column_config.TextColumn(width=125)}
    look |= {"quantity": st.column_config.TextColumn(width=90), "class": st.column_config.TextColumn(width=90)}
    st.dataframe(table, hide_index=True, height=400, column_config=look, key="drift.checks")
