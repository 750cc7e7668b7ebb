"""Choose a study by its question, see how long it takes, run, stop and resume it. The store keeps the
runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from app import compute, exports, messages, session
from app.jobs import cost_in_words, queue
from app.named_files import with_file_paths
from app.page_settings import remembered, segments
from app.places import RESEARCH
from app.plain_text import plain, plain_name
from app.tables import report_table
from app.workspace import Workspace
from relcore.base.names import STUDIES
from relcore.base.numbers import counted
from relcore.base.records import parse, without_paths
from relcore.base.report import delimited_text
from relcore.base.settings import Setting
from relcore.figures.export import chart_exportable
from relcore.runs.jobs import in_words
from relcore.studies.papers import PaperRow, named_rows, rows_of_study
from relcore.studies.report import StudyChart, study_report
from relcore.studies.runs import StudyProgress, StudyRuns, run_row
from relcore.studies.study import Study, StudySpec, study_of
from relcore.studies.terms import data_in_words, terms_in

_GIVEN = "relscope.given-"
_STOPPING = "relscope.stopping-study"
_TOPIC = "studies.topic"
_KIND = "studies.kind"
_START = ":material/play_arrow:"


def choose_study() -> Study | None:
    """Draw choosers of a topic and of one of its questions, and a field that searches all topics."""
    studies = {kind: study_of(kind) for kind in STUDIES.working()}
    topics = dict.fromkeys(study.topic for study in studies.values())
    opening = _with_finished_runs(studies)
    first_topic = None
    if opening:
        first_topic = studies[opening].topic
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="studies-choosers"):
        topic = segments("Topic", list(topics), _TOPIC, first_topic)
        search = st.text_input(
            "Search",
            key="studies.search",
            placeholder="anchors, Fig. 6, trained …",
            icon=":material/search:",
            width=260,
        ).lower()
    rows = named_rows(search)
    kinds = _kinds_of(studies, topic, search, rows)
    if rows:
        _row_links(rows, "In Papers:", with_paper=True)
    if rows and not kinds:
        return messages.info(f"No study measures {rows[0].name}. See Papers.", ":material/menu_book:")
    if not kinds:
        return messages.info("No study matches. Change the search.", ":material/search_off:")
    if st.session_state.get(_KIND, kinds[0]) not in kinds:  # the saved study belongs to another topic
        st.session_state[_KIND] = kinds[0]

    if len(kinds) == 1:
        study = studies[kinds[0]]
        st.session_state[_KIND] = study.kind
        st.markdown(f"**{plain(study.question)}**  \n:small[{plain(f'{study.title} · {study.paper}')}]")
        return study

    def stay() -> None:  # the search can find the study in another topic; show that topic
        st.session_state[_TOPIC] = studies[st.session_state[_KIND]].topic

    kind = remembered(
        st.radio,
        "Study",
        kinds,
        index=kinds.index(opening) if opening in kinds else 0,
        format_func=lambda kind: plain(studies[kind].question),
        captions=[plain(f"{studies[kind].title} · {studies[kind].paper}") for kind in kinds],
        key=_KIND,
        label_visibility="collapsed",
        horizontal=True,
        on_change=stay,
    )
    return studies[kind]


def _with_finished_runs(studies: Mapping[str, Study]) -> str | None:
    """The first kind of study with finished runs: the page opens on it, so that it shows a picture."""
    finished = queue().store.finished
    if not finished:
        return None
    return next((kind for kind in studies if kind in finished.groups), None)


def _kinds_of(
    studies: Mapping[str, Study], topic: str | None, search: str, rows: Sequence[PaperRow]
) -> list[str]:
    """The kinds of studies that measure the `rows` that the search names; if it names none, those that have
    all its words; without a search, those of the topic."""
    if rows:
        return [kind for kind in studies if not set(rows).isdisjoint(rows_of_study(kind))]
    words = search.split()
    if words:
        return [kind for kind, study in studies.items() if _fits(study, words)]
    return [kind for kind, study in studies.items() if study.topic == topic]


def _fits(study: Study, words: list[str]) -> bool:
    text = f"{study.title} {study.question} {study.paper} {study.topic} {study.__doc__}".lower()
    return all(word in text for word in words)


def choose_options(study: Study, workspace: Workspace) -> StudySpec:
    asked = (option for option in study.options if len(option.choices) != 1)
    return StudySpec.of(study, {option.name: _choose(study, option, workspace) for option in asked})


def _choose(study: Study, option: Setting, workspace: Workspace) -> Any:
    look = {"key": f"studies.{study.kind}.{option.name}", "help": option.help or None}
    if not option.choices:
        given = _GIVEN + look["key"]  # a value from a study file holds until the user moves the toggle
        on = remembered(st.toggle, option.label, on_change=st.session_state.pop, args=(given, None), **look)
        if given := st.session_state.get(given):
            return given
        if on and option.name == "spaces":
            # The digest makes new runs if the file changes.
            return tuple(
                json.dumps({**spec.to_json(), "digest": compute.load_space(spec).digest}, sort_keys=True)
                for spec in (workspace.source, workspace.target)
            )
        if on and not workspace.anchors:
            st.caption("No anchors in this session yet: choose some in Explore.")
        return workspace.anchors if on else ()
    look |= {"format_func": option.shown, "options": list(option.choices)}
    if option.is_tuple:
        look |= {"selection_mode": "multi", "default": option.default}
        # Pills that allow several choices cannot require one, so an empty choice means the default.
        return remembered(st.pills, option.label, **look) or option.default
    if len(option.choices) > 5:
        return remembered(st.selectbox, option.label, index=look["options"].index(option.default), **look)
    look |= {"default": option.default, "required": True}
    return remembered(st.segmented_control, option.label, **look)


def introduce(study: Study) -> None:
    """Draw links to the tables and figures of papers that the study reproduces."""
    if rows := rows_of_study(study.kind):
        # Rows of papers that no study can measure come last.
        compared = sorted(rows, key=lambda row: "nothing to measure" in row.why_not)
        _row_links(compared, "In the papers:")


def _row_links(rows: Sequence[PaperRow], label: str, with_paper: bool = False) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(label, width="content")
        for row in rows:
            name = row.name
            if with_paper:
                name = f"{row.name}, {row.paper.short}"
            st.button(
                name,
                key=f"studies.{'found' if with_paper else 'row'}-{row.id}",
                type="tertiary",
                icon=":material/menu_book:",
                help=f"{row.title}: opens Papers, where printed and measured values stand side by side",
                on_click=_open_row,
                args=(row,),
            )


def open_key(row: PaperRow) -> str:
    """The widget key that tells whether a row of Papers is open."""
    return f"papers.open-{row.id}"


def _open_row(row: PaperRow) -> None:
    st.session_state.update({RESEARCH.key: RESEARCH.tabs[1], open_key(row): True})
    shown = {"papers.paper": row.paper.id, "papers.search": row.name, "papers.verdict": "All"}
    st.session_state.update(shown)


def control(runs: StudyRuns) -> None:
    """Draw the progress of the runs, the button that starts or resumes them, or a line about the finished
    ones."""
    standing = runs.progress(queue())
    if standing.under_way:
        _follow(runs)
        return
    st.session_state.pop(_STOPPING, None)
    if standing.failed:
        more = ""
        if len(standing.failed) > 1:
            more = f" and {len(standing.failed) - 1} more"
        messages.warning(f"{standing.failed[0]}{more}", icon=":material/error:")
    if standing.done < len(runs):
        _offer_start(runs, standing)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(_finished_in_words(runs, standing)), width="content")
        if runs.bundled_group(queue().store):
            _offer_here(runs, standing)


def _offer_start(runs: StudyRuns, standing: StudyProgress) -> None:
    """Draw the button that computes the missing runs, with their price."""
    total = counted(len(runs), "run")
    label = f"Start {total}"
    if standing.done:
        label = _resume(standing.done, total)
    stopped = ""
    if standing.stopped:
        stopped = "Stopped. "
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"{label}{_price(runs)}",
            key="studies.start",
            type="primary",
            icon=_START,
            on_click=session.guarded,
            args=(runs.start, queue()),
        )
        st.caption(
            f"{stopped}{queue().n_workers} runs at a time. Finished runs are saved: you"
            " can leave this page, or stop and resume. A stopped run starts again from its beginning."
            f" {_measured_where(runs)}"
        )


def _finished_in_words(runs: StudyRuns, standing: StudyProgress) -> str:
    """A text that says where the runs were computed: here, or before they came with Relscope."""
    n_here = _computed_here(runs)
    total = counted(len(runs), "run")
    made = runs.bundled_group(queue().store)
    if not made:
        came = _own_in_words(runs)
    elif n_here:
        came = f"{n_here:,} of {total} computed here; the other runs shown came with Relscope."
    else:
        came = f"The {total} shown come with Relscope. {made.in_words}"
    if n_here == len(runs):
        return f"All done. {came}"
    if standing.stopped:
        return f"Stopped. {came}"
    return came


def _offer_here(runs: StudyRuns, standing: StudyProgress) -> None:
    """Draw the button that computes runs on this machine that came with Relscope."""
    n_here = _computed_here(runs)
    verb = "Run these here"
    if n_here or standing.stopped:
        verb = _resume(n_here, counted(len(runs), "run"))
    st.button(
        f"{verb}{_price(runs, own=True)}",
        key="studies.here",
        type="tertiary",
        icon=_START,
        on_click=session.guarded,
        args=(runs.start, queue(), True),
        help="Computes these runs again here, in place of Relscope's. You can stop and resume."
        f" {_measured_where(runs)}",
    )


def _resume(n_done: int, total: str) -> str:
    return f"Resume: {n_done:,} of {total} done"


def _computed_here(runs: StudyRuns) -> int:
    """Number of runs that were computed on this machine."""
    return len(runs) - len(runs.missing(queue().store, own=True))


def _own_in_words(runs: StudyRuns) -> str:
    """A text on runs that were all computed here: their number, the end of the last one, and their time. If
    the same runs came with Relscope, it ends with their conclusion."""
    store = queue().store
    facts = [entry.metadata for key in runs.keys if (entry := store.summary(key))]
    ended = datetime.fromtimestamp(max(one.get("finished", 0.0) for one in facts))
    took = in_words(sum(one["seconds"] for one in facts))
    text = f"{counted(len(runs), 'run')}, computed here until {ended:%Y-%m-%d %H:%M}, {took} on one core."
    came = runs.bundled_table(store)
    if len(came) < len(runs):
        return text
    settings = runs.spec.settings
    conclusion = runs.study.conclusion(settings, came)
    if conclusion == runs.study.conclusion(settings, _table(runs)):
        return f"{text} The same runs that came with Relscope show the same."
    return f"{text} The same runs that came with Relscope: {conclusion}"


@st.fragment(run_every=1.0)
def _follow(runs: StudyRuns) -> None:
    standing = runs.progress(queue())
    stopping = st.session_state.get(_STOPPING) == runs.spec
    share = min(1.0, (standing.done + standing.begun) / standing.total)
    if not standing.under_way:
        st.rerun()
    if stopping:
        saved = f"{standing.done:,} of {counted(standing.total, 'run')} saved"
        st.progress(share, text=f"Stopping … {saved}. Unfinished runs start again at Resume.")
        return
    left = _left_in_words(standing)
    with st.container(horizontal=True, vertical_alignment="center"):
        now = "starting"
        if standing.running:
            now = f"{standing.running:,} under way"
        done = f"{standing.done:,} of {counted(standing.total, 'run')} done, {now}"
        st.progress(share, text=f"{done}{left}")
        st.button("Stop", key="studies.stop", icon=":material/stop:", on_click=_stop, args=(runs,))
    if standing.message:
        st.progress(standing.part, text=plain(standing.message))


def _left_in_words(standing: StudyProgress) -> str:
    """The time left, as estimated from the runs that are done, or the time so far before one is done: the
    first runs also load libraries and train networks that all runs use."""
    if standing.done:
        return f" · {cost_in_words(standing.seconds_left)} left"
    if standing.running:
        return f" for {in_words(standing.seconds_so_far)} · the first runs take longest"
    return ""


def _stop(runs: StudyRuns) -> None:
    """Stop all runs in another thread, because each stop waits for a process. Meanwhile the page says that
    they are stopping."""
    st.session_state[_STOPPING] = runs.spec
    threading.Thread(target=runs.stop, args=(queue(),), daemon=True).start()


def offer_files(spec: StudySpec) -> None:
    with st.popover("Study file", icon=":material/description:", key="studies.file"):
        text = json.dumps(without_paths(spec.to_json()), indent=2) + "\n"
        exports.download(
            "Save these choices",
            text,
            f"{spec.kind}.json",
            "application/json",
            "studies.save",
            help="A JSON file. The command relscope study also reads it.",
        )
        given = st.file_uploader("Open a study file", type="json", key="studies.upload", max_upload_size=1)
        if given is not None:
            st.button(
                f"Open {plain_name(given.name)}",
                key="studies.open-file",
                icon=":material/upload:",
                on_click=session.guarded,
                args=(_open_file, given.getvalue()),
            )


def _open_file(content: bytes) -> None:
    open_spec(StudySpec.from_json(with_file_paths(parse(content, "study file"))))


def open_spec(spec: StudySpec) -> None:
    shown = {_KIND: spec.kind, _TOPIC: study_of(spec.kind).topic, "studies.search": ""}
    st.session_state.update(shown)
    for option in study_of(spec.kind).options:
        key = f"studies.{spec.kind}.{option.name}"
        value = spec.settings[option.name]
        if option.choices:
            if option.is_tuple:
                st.session_state[key] = list(value)
            else:
                st.session_state[key] = value
        else:
            st.session_state[key] = bool(value)
            st.session_state[_GIVEN + key] = value


def _price(runs: StudyRuns, own: bool = False) -> str:
    store = queue().store
    n_workers = queue().n_workers
    return f" · {cost_in_words(runs.pace(store) * runs.expected(store, n_workers, own))}"


def _measured_where(runs: StudyRuns) -> str:
    """A sentence that says on which machine the runs were measured whose time the `_price` tells."""
    if len(runs.missing(queue().store, own=True)) < len(runs):
        return "The time is estimated from the runs of this machine."
    return "The time was measured on another machine; here it may be longer or shorter."


def draw(runs: StudyRuns) -> None:
    if runs.progress(queue()).under_way:
        _live(runs)
    else:
        _results(runs, live=False)


@st.fragment(run_every=2.0)
def _live(runs: StudyRuns) -> None:
    _results(runs, live=True)


def _results(runs: StudyRuns, live: bool) -> None:
    table = _table(runs)
    if table.empty:
        st.caption("No run has finished yet. The first points appear as soon as one has.")
        return
    # Do not count runs here, because the count in the bar above may differ for a moment.
    if live and runs.bundled_group(queue().store):
        own = _table(runs, own=True)
        waits = "Until your first run is done, the runs of Relscope are shown."
        text = "Only the runs of this machine are shown, as they come."
        if own.empty:
            text = waits
        st.caption(text)
        table = table if own.empty else own
    report = study_report(runs, table, queue().store)
    # The progress bar shows the counts, so leave them out of the sentence.
    if live:
        st.caption("The answer and the chart follow the bar some seconds later, so they may have fewer runs.")
        sentence = report.sentence.partition(" So far: ")[0]
    else:
        sentence = report.sentence
    answer, colon, rest = sentence.partition(": ")
    whole = not colon or "(" in answer  # the sentence has no separate answer
    if whole:
        shown = f"**{plain(sentence)}**"
    else:
        shown = f"**{plain(answer)}:** {plain(rest)}"
    st.markdown(shown)
    chart = _figure(runs, table)
    if chart and not live:
        exports.export_bar(StudyChart(runs.spec.to_json(), chart).draw(table), f"studies-{chart}")
    findings = report.tables[1]
    if findings.shown and (chart or not live):
        with st.expander("All findings with intervals", icon=":material/table_rows:"):
            report_table(findings)
    if not live:
        _runs(runs, table)


def _table(runs: StudyRuns, own: bool = False) -> pd.DataFrame:
    """The table of the runs. A run of this machine replaces the same run that came with Relscope. With `own`,
    bundled runs are left out. Each run is read once, because a finished run never changes."""
    keys = [key for key in runs.keys if not (own and queue().store.bundled_group(key))]
    rows = {number: row for number, key in enumerate(runs.keys) if key in keys and (row := _row(key))}
    return pd.DataFrame.from_dict(rows, orient="index")


def _row(key: str) -> dict[str, Any] | None:
    """The settings and values of a run, as a row of the table; None if its result is not in the store."""
    store = queue().store
    if not store.has(key):
        return None
    rows = _rows()
    is_own = store.bundled_group(key) is None  # a run that came with Relscope may also be run here
    if (key, is_own) not in rows:
        row = run_row(key, store)
        if row is None:
            return None
        rows[key, is_own] = row
    return rows[key, is_own]


@st.cache_resource(show_spinner=False)
def _rows() -> dict[tuple[str, bool], dict[str, Any]]:
    """The rows that were read, by the key of the run and whether it was run here. All sessions share them."""
    return {}


def _figure(runs: StudyRuns, table: pd.DataFrame, place: str = "studies") -> str | None:
    charts = runs.study.charts(runs.spec.settings, table)
    if not charts:
        st.caption("No run has finished training yet.")
        return None
    chart, *others = charts
    if others:
        chosen = st.segmented_control(
            "Chart",
            list(charts),
            default=chart,
            required=True,
            key=f"{place}.{runs.study.kind}.chart",
            label_visibility="collapsed",
        )
        chart = chosen if chosen in charts else chart
    # The figure has no title, because the conclusion stands above.
    exports.chart(
        chart_exportable(charts[chart]).interactive(exports.theme()),
        f"{place}.{runs.study.kind}.figure-{chart}",
    )
    told = []
    if runs.study.reading:
        told.append(f"How to read it: {runs.study.reading}")
    if data := data_in_words(runs.study, runs.spec.settings):
        told.append(f"Data: {data}")
    conclusion = runs.study.conclusion(runs.spec.settings, table)
    if terms := terms_in(f"{conclusion} {charts[chart]}"):
        told.append(f"Terms: {'; '.join(terms)}.")
    st.caption("  \n".join(map(plain, told)))
    return chart


def _runs(runs: StudyRuns, table: pd.DataFrame) -> None:
    lists = [name for name in table if table[name].map(lambda value: isinstance(value, list)).any()]
    blank = [name for name in table if name not in lists and (table[name] == "").all()]
    shown = table.drop(columns=["key", *lists, *blank])
    st.markdown(f"### {counted(len(table), 'run')}")
    seconds = st.column_config.NumberColumn(format="%.1f", help="On one core of this machine")
    st.dataframe(shown, key="studies.runs", column_config={"seconds": seconds})
    csv = delimited_text(shown.rename_axis("run").reset_index())
    name = f"{runs.study.kind}-runs.csv"
    exports.download("All runs as CSV", csv, name, "text/csv", "studies.csv", type="tertiary")


def draw_finished(spec: StudySpec, place: str) -> None:
    """If there are finished runs, draw their conclusion and their charts."""
    runs = StudyRuns(study_of(spec.kind), spec)
    if not (table := _table(runs)).empty:
        conclusion = plain(runs.study.conclusion(spec.settings, table))
        st.markdown(f"**The study {plain(runs.study.title)}:** {conclusion}")
        _figure(runs, table, place)


def page(workspace: Workspace) -> None:
    if (study := choose_study()) is None:
        return
    answer, beside = st.columns([2.9, 1], gap="large")
    with beside:
        with st.popover("Method details", icon=":material/tune:", key="studies.details"):
            st.caption(" ".join((study.__doc__ or "").split()))
            spec = choose_options(study, workspace)
        offer_files(spec)
        introduce(study)
    runs = StudyRuns(study, spec)
    place = answer
    if runs.progress(queue()).complete:  # the answer comes first
        place = beside
    with place:
        control(runs)
    with answer:
        draw(runs)
