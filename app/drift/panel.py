"""Drift between two versions of a model: the verdict, the conditions of the gate, the rows before and after,
the kinds of rows that changed more or less, and all numbers."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from app import compute, exports, messages, results, session
from app.asking import Panel, lead_sentence
from app.drift.gate import draw_gate
from app.drift.moved_map import draw_moved_rows
from app.drift.passport import PASSPORT
from app.glossary.card import caption
from app.link.unpaired import draw_unconfirmed_links, draw_unpaired_rows
from app.page_settings import remembered, segments
from app.plain_text import plain
from app.tables import report_table, short_numbers
from app.widgets import space_labels
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import NoCommonId
from relcore.base.report import Report, delimited_text
from relcore.catalog.catalog import SpaceSpec
from relcore.drift.broken_rows import broken_table
from relcore.drift.chart import DriftChart
from relcore.drift.check import FEWEST_ROWS as FEWEST_COMPARED
from relcore.drift.check import Drift, DriftCheck, report
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES, ROWS
from relcore.drift.thresholds import Thresholds, as_toml
from relcore.drift.verdict import QUANTITIES, SITUATIONS, TABLES, DriftVerdict, by_severity
from relcore.explain.explanation import FEWEST_ROWS, Explain
from relcore.explain.moved import moved_in_words
from relcore.spaces.ids import GuessedIds

_HEIGHT = 400  # pixels; height of a table with many checks
_ABOUT = (
    "Did an update of the model, a library or a setting change your vectors? Drift compares the same rows"
    " before and after. It raises an alarm if more changed than you allow, or if rows are broken."
)
_SHORT = {EVERYTHING_NEW: "everything new", NEW_QUERIES: "new queries", ROWS: "broken rows"}


def draw(workspace: Workspace) -> None:
    st.caption(_ABOUT)
    text = "A passport: a few anchors with the vectors that they had."
    modes = {"Two versions": _VERSIONS, "A passport": PASSPORT}
    choosers = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with choosers:
        mode = segments("Compare", tuple(modes), "drift.mode", help=text)
    modes[mode].draw(workspace, choosers)


@dataclass(frozen=True)
class DriftInputs:
    """The specs of the old and the new version, whether the change was planned, and the thresholds."""

    specs: tuple[SpaceSpec, SpaceSpec]
    planned: bool
    thresholds: Thresholds


def two_versions(workspace: Workspace) -> DriftInputs | None:
    labels = space_labels(workspace.spaces)
    pair = (workspace.source, workspace.target)
    place = results.place_of(workspace.spaces, *pair)
    specs = []
    look = {"format_func": labels.get, "width": 260}
    for side, usual in zip(("Old", "New"), pair, strict=True):
        look |= {"index": list(labels).index(usual), "key": f"drift.{side.lower()}-{place}"}
        specs.append(remembered(st.selectbox, f"{side} version", list(labels), **look))
    text = "Another model: neighbourhoods and coordinates may differ, so only broken rows raise an alarm."
    changes = {"version": "A version", "model": "Another model, planned"}
    planned = segments("New is", changes, "drift.change", help=text) == "model"
    thresholds = thresholds_of()
    (old, new) = specs
    if old == new:
        messages.info("Choose two different versions.", icon=":material/difference:")
        return None
    return DriftInputs((old, new), planned, thresholds)


def drift_of(setup: DriftInputs) -> Drift | None:
    """The drift; None while a job computes it. If the two versions share no ids, or too few confirmed links,
    the page says what to do."""
    try:
        pair = compute.matched_models(*setup.specs)
    except NoCommonId:
        words = "**The two versions share no row ids.** Drift compares rows that both versions have embedded."
        draw_unpaired_rows(session.workspace(), setup.specs, words, "drift", _show_example)
        return None
    n_confirmed = compute.n_held_out(pair)
    if isinstance(pair.ids, GuessedIds) and n_confirmed < FEWEST_COMPARED:
        counts = (len(pair), n_confirmed, FEWEST_COMPARED)
        draw_unconfirmed_links(setup.specs, counts, "Drift", _show_example)
        return None
    return results.result_of(
        DriftCheck(), setup.specs, label="Measure the drift", unasked_seconds=results.UNASKED_SECONDS
    )


def _show_example() -> None:
    session.compare("show the example of Drift", *BUNDLED)


def draw_drift(setup: DriftInputs, drift: Drift) -> None:
    verdict = drift.judged(setup.thresholds)
    situations = tuple(SITUATIONS)
    if setup.planned:
        situations = ()
    drift_report = report(drift, verdict, situations)
    lead_sentence(drift_report)
    _offer_broken_rows(setup, drift)
    draw_gate(verdict, (*situations, ROWS))
    for caution in drift_report.facts["cautions"]:
        st.caption(plain(caution))
    draw_moved_rows(setup.specs)
    if drift.n >= FEWEST_ROWS:
        _changed_rows(setup, drift)
    _numbers(setup, drift, verdict, drift_report)


def _offer_broken_rows(setup: DriftInputs, drift: Drift) -> None:
    """A download of all broken rows, of which the headline names three."""
    if not any(one.n for one in drift.broken):
        return

    def table() -> str:
        (old, new) = map(compute.load_space, setup.specs)
        return delimited_text(broken_table(old, new, DriftCheck().jitter))

    label = "Download all broken rows"
    exports.download(label, table, "broken-rows.csv", "text/csv", "drift.broken", type="tertiary")


def _numbers(setup: DriftInputs, drift: Drift, verdict: DriftVerdict, drift_report: Report) -> None:
    """The parts of the change, the changed neighbours by class, and all conditions."""
    checks, *shares = drift_report.tables
    (old, new) = setup.specs
    digests = compute.digests(setup.specs)
    recipe = DriftChart(old=old, new=new, digests=digests, drift=DriftCheck(), thresholds=setup.thresholds)
    figure = recipe.draw(drift)
    with st.expander("All numbers", icon=":material/table_rows:"):
        for table in shares:
            report_table(table)
        if any(measure.group for measure in drift.measures):
            exports.chart(figure.interactive(exports.theme()), "drift.chart")
        _checks(verdict)
        caption(plain(checks.caption))
        exports.export_bar(figure, "drift")


def _changed_rows(setup: DriftInputs, drift: Drift) -> None:
    """Which kinds of rows changed more or less, at once or after a click."""
    st.subheader("Which kinds of rows changed more or less", anchor=False)
    task = Explain(k=drift.k, items=setup.specs)
    explanation = results.result_of(
        task, setup.specs, label="Find the kinds of rows", unasked_seconds=results.UNASKED_SECONDS
    )
    if explanation is None:
        return
    sentence = moved_in_words(explanation.moved)
    if not sentence:
        sentence = f"No kind of rows changed more than others ({explanation.n_features:,} features tried)."
    st.markdown(plain(sentence))
    caption(
        f"The share of a row's {explanation.k} nearest neighbours that changed. It is measured on rows that"
        " were not used to find the kinds. This says which rows changed, not why: noise of one size changes"
        " more neighbours where rows are dense."
    )


_VERSIONS = Panel(two_versions, drift_of, draw_drift)


def _checks(verdict: DriftVerdict) -> None:
    columns = st.column_config
    widths = {"situation": 115, "quantity": 120, "class": 70}
    look = {name: columns.TextColumn(width=width) for name, width in widths.items()}
    look[""] = columns.TextColumn(width=30)
    look |= dict.fromkeys(("value", "noise"), columns.Column(width=60))
    look["surely"] = columns.Column(width=65, help="By how much the value is surely above the noise level.")
    look["threshold"] = columns.Column(width=80, help="✗ is an alarm: *surely* is above it.")
    table = pd.DataFrame(
        {
            "": _mark(check.alarm),
            "situation": _SHORT[check.measure.situation],
            "quantity": QUANTITIES[check.measure.quantity].title,
            "class": check.measure.group or "all rows",
            "value": check.measure.value,
            "noise": check.measure.noise,
            "surely": check.sure,
            "threshold": check.threshold,
        }
        for check in by_severity(verdict)
    )
    height = "content"
    if len(table) > 10:
        height = _HEIGHT
    st.dataframe(
        short_numbers(table),
        hide_index=True,
        height=height,
        column_config=look,
        key="drift.checks",
    )


def _mark(alarm: bool) -> str:
    if alarm:
        return "✗"
    return "✓"


def thresholds_of() -> Thresholds:
    tables = {}
    with st.popover("Thresholds", icon=":material/tune:", key="drift.thresholds"):
        st.caption(
            "An alarm fires when the change exceeds the noise level (float16 rounding) by the threshold, or"
            " when a larger share of rows than this is newly broken."
        )
        for column, situation in zip(st.columns(3, gap="medium"), TABLES, strict=True):
            column.markdown(f"**{TABLES[situation].title}**")
            usual = getattr(Thresholds(), situation)
            values = {}
            for name, share in vars(usual).items():
                quantity = QUANTITIES[name.removeprefix("class_")]
                label = quantity.title
                if name.startswith("class_"):
                    label = f"{label}, each class"
                values[name] = remembered(
                    column.number_input,
                    label,
                    0.0,
                    1.0,
                    share,
                    0.01,
                    key=f"drift.{situation}.{name}",
                    help=f"{quantity.help[0].upper()}{quantity.help[1:]}.",
                    format="%.3f",
                )
            tables[situation] = type(usual)(**values)
        thresholds = Thresholds(**tables)
        exports.download(
            "Download for the command",
            as_toml(thresholds),
            "thresholds.toml",
            "application/toml",
            "drift.thresholds-file",
            help="relscope drift OLD NEW --thresholds thresholds.toml",
        )
    return thresholds
