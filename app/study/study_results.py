"""What a study has found so far: figure, answer in numbers, every run in a table, and a run that other pages can open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from app import compute, exports, session
from app.encode import encoding_jobs, raw_data
from app.fitting import fit_to_pair
from app.jobs import engine
from app.plain_text import plain
from app.tables import chosen_rows
from app.widgets import space_name
from relcore.figures.export import lines_exportable
from relcore.numbers import counted
from relcore.sources.catalog import SpaceSpec
from relcore.store import digest_of
from relcore.studies.figures import StudyChart
from relcore.studies.runs import StudyRuns, run_row
from relcore.studies.study import Opening, Study

_CHOSEN = "relscope.study-run"


def draw(runs: StudyRuns) -> None:
    """Everything below the button; while runs are under way it follows them."""
    if runs.standing(engine()).under_way:
        _live(runs)
        return
    table = _table(runs)
    if table.empty:
        st.caption("No run has finished yet. Results appear here as soon as the first runs finish.")
        return
    _conclusion(runs, table)
    chart = _figure(runs, table, live=False)
    if chart:
        exports.export_bar(StudyChart(runs.spec.to_json(), chart).draw(table), f"studies-{chart}")
    _findings(runs, table)
    _runs(runs, table)


@st.fragment(run_every=2.0)
def _live(runs: StudyRuns) -> None:
    table = _table(runs)
    if table.empty:
        return
    _conclusion(runs, table)
    if _figure(runs, table, live=True):
        _findings(runs, table)


def _table(runs: StudyRuns) -> pd.DataFrame:
    """`run_table`; a finished run never changes, so that each is read once."""
    rows = {number: row for number, key in enumerate(runs.keys) if (row := _row(key))}
    return pd.DataFrame.from_dict(rows, orient="index")


def _row(key: str) -> dict[str, Any] | None:
    known, store = _rows(), engine().store
    place = key, store.made(key) is None  # a run that came with Relscope may be repeated here
    if place not in known and (row := run_row(key, store)):
        known[place] = row
    return known.get(place) if store.has(key) else None


@st.cache_resource(show_spinner=False)
def _rows() -> dict[tuple[str, bool], dict[str, Any]]:
    return {}


def _conclusion(runs: StudyRuns, table: pd.DataFrame) -> None:
    if told := plain(runs.study.conclusion(runs.spec.settings, table) or ""):
        so_far = "" if len(table) == len(runs) else f" So far: {len(table):,} of {counted(len(runs), 'run')}."
        st.markdown(f"**{told}**{so_far}")


def _figure(runs: StudyRuns, table: pd.DataFrame, live: bool) -> str | None:
    """The chart that is chosen, by name; None where there is nothing to draw yet."""
    charts = runs.study.charts(runs.spec.settings, table)
    if not charts:
        st.caption("No run has finished training yet.")
        return None
    names = list(charts)
    chart = names[0]
    if len(names) > 1:
        key = f"studies.{runs.study.kind}.chart"
        chosen = st.segmented_control("Chart", names, default=names[0], required=True, key=key, label_visibility="collapsed")
        chart = chosen if chosen in names else names[0]
    figure = lines_exportable(charts[chart]).interactive(exports.theme())  # the conclusion stands above it already
    has_keys = any(len(line.keys) for line in charts[chart].lines)
    if live or not has_keys:
        exports.chart(figure, f"studies.figure-{chart}")
        return chart
    key = f"studies.figure-{chart}"
    figure.update_layout(clickmode="event+select", dragmode="zoom")
    figure.update_traces(unselected={"marker": {"opacity": 0.45}}, selector={"mode": "markers"})
    exports.chart(figure, key, picked=_pick)
    return chart


def _pick(points: Sequence[Mapping[str, Any]]) -> None:
    if points and points[0].get("customdata"):
        st.session_state[_CHOSEN] = points[0]["customdata"][0]


def _findings(runs: StudyRuns, table: pd.DataFrame) -> None:
    found = runs.study.findings(runs.spec.settings, table)
    if found.empty:
        return
    numbers = {name: st.column_config.NumberColumn(format="%.3f") for name in ("value", "low", "high")}
    numbers["low"] = st.column_config.NumberColumn("95 % from", format="%.3f")
    numbers["high"] = st.column_config.NumberColumn("to", format="%.3f")
    st.dataframe(found, hide_index=True, column_config=numbers, key=f"studies.findings-{runs.study.kind}")


def _runs(runs: StudyRuns, table: pd.DataFrame) -> None:
    """Every run with every setting; one that is selected, here or in the figure, can be opened."""
    shown = table.drop(columns=["key", *(name for name in table if _is_curve(table[name]) or (table[name] == "").all())])
    st.markdown(f"#### {counted(len(table), 'run')}")
    seconds = st.column_config.NumberColumn(format="%.1f", help="On one core of this machine")
    place = digest_of(list(table.key), st.session_state.get(_CHOSEN))[:8]  # other runs, or a click in the figure: none chosen
    rows = chosen_rows(shown, f"studies.runs-{place}", column_config={"seconds": seconds}, hide_index=False)
    st.download_button(
        "All runs as CSV",
        shown.to_csv(index_label="run"),
        f"{runs.study.kind}-runs.csv",
        "text/csv",
        key="studies.csv",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )
    key = table.key.iloc[rows[0]] if rows else st.session_state.get(_CHOSEN)
    if key in set(table.key):
        _one(runs, key, int(table.index[table.key == key][0]))
    else:
        st.caption("Select a run, in the table or in the figure, to open it on the other pages.")


def _one(runs: StudyRuns, key: str, number: int) -> None:
    """The run that is selected, and the way to the other pages."""
    opening = _opening(key, runs.study, runs.settings[number])
    told = ", ".join(f"{name} {value}" for name, value in _short(runs.settings[number]).items())
    with st.container(border=True):
        st.markdown(f"**Run {number}**")
        st.caption(plain(told))
        if opening is None:
            st.caption("This run has nothing that other pages can show.")
            return
        st.button(
            "Open that run",
            key="studies.open",
            icon=":material/open_in_new:",
            type="primary",
            help=_what(opening),
            on_click=session.guarded,
            args=(open_run, opening, f"open run {number} of {runs.study.title}"),
        )


@st.cache_resource(max_entries=16, show_spinner=False)
def _opening(key: str, _study: Study, _settings: dict[str, Any]) -> Opening | None:
    """Its anchors may take a k-means over all rows."""
    return _study.opening(_settings)


def _short(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if not isinstance(value, list | dict)}


def _what(opening: Opening) -> str:
    if opening.encoders:
        return "Trains the encoders of this run again, to the same bytes, and adds their spaces to the session."
    return "Makes its spaces source and target, with its anchors."


def open_run(opening: Opening, step: str) -> None:
    """Spaces, anchors and encoders of a run into the session; what has to be encoded joins it when it is there."""
    if opening.encoders:
        found = raw_data.preview(opening.dataset)
        encoding_jobs.submit(opening.dataset, found.digest, found.name, opening.encoders)
        under_way = len(encoding_jobs.awaited())
        if under_way:
            session.announce(f"{under_way} being encoded: the spaces join the session when they are there.")
        return
    spaces = session.workspace().spaces
    new = tuple(spec for spec in opening.spaces if spec not in spaces)
    source, target = opening.spaces
    changed = replace(session.workspace(), spaces=(*spaces, *new), source=source, target=target)
    changed = replace(changed, anchors=opening.anchors, anchors_from="", pinned=())
    session.become(step, fit_to_pair(changed, compute.matched(source, target)))
    session.announce(f"{_names(opening.spaces)}, with {counted(len(opening.anchors), 'anchor')}: see Compare.")


def _names(spaces: tuple[SpaceSpec, ...]) -> str:
    return " and ".join(map(space_name, spaces))


def _is_curve(column: pd.Series) -> bool:
    return column.map(lambda value: isinstance(value, list)).any()
