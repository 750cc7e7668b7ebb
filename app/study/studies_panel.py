"""Choose a study and its grid, see its time, run, stop and resume it; runs are kept in the store."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from app import compute, messages, session
from app.encode.encoding_costs import learned
from app.jobs import engine, scheduler_notice
from app.own_files import rejoined
from app.page_settings import kept
from app.plain_text import plain, plain_name
from app.workspace import Workspace
from relcore.names import STUDIES
from relcore.numbers import counted
from relcore.plain_json import parse
from relcore.portable import without_paths
from relcore.sources.catalog import SpaceSpec
from relcore.studies import study_of
from relcore.studies.runs import StudyRuns
from relcore.studies.study import Option, Study, StudySpec

_GIVEN = "relscope.given-"


def choose_study() -> Study:
    """The study that is open; a study file opens its own."""
    studies = {kind: study_of(kind) for kind in STUDIES}
    finished = engine().store.finished
    opening = next((kind for kind in studies if finished and kind in finished.groups), None)  # it has something to show
    kind = kept(
        st.radio,
        "Study",
        list(studies),
        index=list(studies).index(opening) if opening else 0,
        format_func=lambda kind: studies[kind].title,
        captions=[study.paper for study in studies.values()],
        key="studies.kind",
    )
    return studies[kind]


def choose_options(study: Study, workspace: Workspace) -> StudySpec:
    """One chooser an option; what the session holds (its anchors, its spaces) is taken by a toggle."""
    chosen = {option.name: _choose(study, option, workspace) for option in study.options}
    return StudySpec.of(study, chosen)


def _choose(study: Study, option: Option, workspace: Workspace) -> Any:
    look = {"key": f"studies.{study.kind}.{option.name}", "help": option.help or None}
    if not option.choices:
        given = _GIVEN + look["key"]  # of a study file, until the toggle is moved
        on = kept(st.toggle, option.label, on_change=st.session_state.pop, args=(given, None), **look)
        return st.session_state.get(given) or (_of_session(option, workspace) if on else ())
    names = dict(zip(option.choices, option.names or map(str, option.choices), strict=True))
    look |= {"format_func": names.get}
    if option.many:
        chosen = kept(st.pills, option.label, option.choices, selection_mode="multi", default=option.default, **look)
        return chosen or option.default  # pills cannot demand a choice where several may be chosen
    if len(option.choices) > 5:
        return kept(st.selectbox, option.label, option.choices, index=option.choices.index(option.default), **look)
    return kept(st.segmented_control, option.label, option.choices, default=option.default, required=True, **look)


def _of_session(option: Option, workspace: Workspace) -> tuple[str, ...]:
    if option.name == "spaces":
        return tuple(_described(spec) for spec in (workspace.source, workspace.target))
    if not workspace.anchors:
        st.caption("No anchors in this session yet: choose some in the sidebar.")
    return workspace.anchors


def _described(spec: SpaceSpec) -> str:
    """A space with the digest of what it holds, so that a file which changes makes other runs."""
    return json.dumps({**spec.to_json(), "digest": compute.load_space(spec).digest}, sort_keys=True)


def introduce(study: Study) -> None:
    """The question, and what is done to answer it; the paper stands under the study's name already."""
    st.subheader(study.question, anchor=False)
    st.caption(" ".join((study.__doc__ or study.paper).split()))


def control(runs: StudyRuns) -> None:
    """The button with its cost, or the bar with its stop; what failed, by name."""
    standing = runs.standing(engine())
    if standing.under_way:
        _follow(runs)
        return
    if standing.failed:
        more = f" and {len(standing.failed) - 1} more" if len(standing.failed) > 1 else ""
        messages.warning(f"{standing.failed[0]}{more}", icon=":material/error:")
    missing = len(runs) - standing.done
    if not missing:
        _offer_here(runs)
        return
    likely = runs.expected(engine().store, engine().n_workers)
    cost = _duration(likely.likely)
    label = f"Start {counted(missing, 'run')}" if not standing.done else f"Resume {missing:,} of {counted(len(runs), 'run')}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"{label} · {cost}",
            type="primary",
            icon=":material/play_arrow:",
            key="studies.start",
            on_click=session.guarded,
            args=(runs.start, engine()),
        )
        kept = f"{engine().n_workers} at a time. Every finished run is saved, so you can leave this page, or stop and resume."
        st.caption(kept + learned([likely]))


def _offer_here(runs: StudyRuns) -> None:
    """That all is done and, of runs that came with Relscope, when they were computed, and a button to repeat them."""
    made = runs.made(engine().store)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        came = f" They come with Relscope. {made.in_words}" if made else ""
        st.caption(f"{counted(len(runs), 'run')}, all done.{came}", width="content")
        if made:
            cost = _duration(runs.seconds(engine().store, engine().n_workers, own=True))
            st.button(
                f"Run them here · {cost}",
                type="tertiary",
                icon=":material/play_arrow:",
                key="studies.here",
                help="Computes them again on this machine, and shows these runs from then on.",
                on_click=session.guarded,
                args=(runs.start, engine(), True),
            )


@st.fragment(run_every=1.0)
def _follow(runs: StudyRuns) -> None:
    standing = runs.standing(engine())
    if not standing.under_way:
        st.rerun()
    scheduler_notice(standing.lost)
    left = f" · {_duration(standing.seconds_left)} left" if standing.seconds_left else ""
    told = f" · {standing.message}" if standing.message else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        total = counted(standing.total, "run")
        st.progress(standing.done / standing.total, text=f"{standing.done:,} of {total}{left}{plain(told)}")
        st.button("Stop", key="studies.stop", icon=":material/stop:", on_click=runs.stop, args=(engine(),))


def offer_files(spec: StudySpec) -> None:
    """The choices as a file, and back from one."""
    with st.popover("Study file", icon=":material/description:", key="studies.file"):
        text = json.dumps(without_paths(spec.to_json()), indent=2) + "\n"
        st.download_button(
            "Save these choices",
            text,
            f"{spec.kind}.json",
            "application/json",
            key="studies.save",
            icon=":material/download:",
            help="A JSON file; relscope study takes it, too",
            on_click="ignore",
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
    open_spec(StudySpec.from_json(rejoined(parse(content, "study file"))))


def open_spec(spec: StudySpec) -> None:
    """Have the page show this study with these choices."""
    st.session_state["studies.kind"] = spec.kind
    for option in study_of(spec.kind).options:
        key, value = f"studies.{spec.kind}.{option.name}", spec.settings[option.name]
        if option.choices:
            st.session_state[key] = list(value) if option.many else value
        else:
            st.session_state[key], st.session_state[_GIVEN + key] = bool(value), value


def _duration(seconds: float) -> str:
    return f"about {max(seconds, 1):.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"
