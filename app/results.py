"""Results that may take long. They come from the store, are computed at once if that is quick, or come from a
job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages
from app.jobs import cost_in_words, follow, queue, retry_requested
from app.page_settings import open_tab
from app.places import Place, go
from app.plain_text import plain
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.encodings import put_space
from relcore.catalog.task import Task, inputs_of, task_job
from relcore.runs.entries import Entry, FinishedGroup, digest_of
from relcore.runs.jobs import Job
from relcore.spaces.space import LatentSpace

AT_ONCE_SECONDS = 1.0
UNASKED_SECONDS = 20.0  # a longer computation waits for a click
_ASKED = "relscope.results-asked"
_LATEST = "relscope.results-latest"
_HERE = "relscope.results-here"
_PLACE = "relscope.results-place"
_AWAITED = "relscope.results-awaited"
Result = TypeVar("Result")


def result_of(
    task: Task[Result],
    specs: Sequence[SpaceSpec] = (),
    *,
    label: str,
    spaces: Sequence[LatentSpace] | None = None,
    slower: float = 1.0,
    unasked_seconds: float = 0.0,
    icon: str = ":material/play_arrow:",
    details: DeltaGenerator | None = None,
    alone: bool = True,
) -> Result | None:
    """The result of a task. Until it is known, the page shows its cost or its progress, and None is returned.

    A quick task runs at once. A job of up to `unasked_seconds` starts by itself; with `alone`, it stops the
    previous job of its kind. A longer task waits for a button that shows `label` and the cost. `slower` is
    how many times longer a task takes in a worker. For a bundled result, `details` (by default the place
    above the result) gets a button that computes it on this machine. Raises a SpaceError if the task runs at
    once and its data do not fit.
    """
    if spaces is None:
        spaces = [compute.load_space(spec) for spec in specs]
    key = task.key(spaces)
    store = queue().store
    made = store.bundled_group(key)
    here = key in _keys(_HERE)
    seconds = slower * task.seconds(spaces)
    cost = cost_in_words(seconds)
    if made and not here:
        result = _read(key, False, task, lambda: store.get(key))
        if result is not None:
            with details or nullcontext():
                _offer_here(made, key, cost)
            return result
    job = queue().job(key)
    if made and job and job.status().state == "done":  # the user chose to compute a bundled result here
        job = None
    if job is not None and not retry_requested(job):
        return _followed(job, task, made is not None)
    if job is None and seconds < slower * AT_ONCE_SECONDS:
        with st.spinner(f"{plain(task.title)} …"):
            return task.compute(store, spaces, partial(messages.warning, icon=":material/save:"))
    by_itself = seconds <= slower * unasked_seconds
    if job is None and not by_itself and not here and key not in _keys(_ASKED):
        _offer_start(task, key, f"{label} · {cost}", icon)
        return None
    if alone and by_itself:
        _cancel_previous(task, key)
    st.session_state[_latest(task)] = key
    title = task.title
    if not alone:
        title = f"{task.title}: {spaces[0].name}"
    inputs = _inputs(specs, spaces)
    job = queue().submit(key, task_job, title=title, expected=seconds, here=here, task=task, inputs=inputs)
    if job.status().state == "done":
        return _read(key, True, task, job.result)
    if not by_itself and (place := st.session_state.get(_PLACE)):
        _awaited()[key] = place, open_tab(place.key)
    follow([job])
    return None


def _followed(job: Job, task: Task[Result], is_bundled: bool) -> Result | None:
    """The result of a job or, before it has ended, None below its progress. A user who dismisses a job that
    computes a bundled result here gets the bundled one again."""
    if job.status().state == "done":
        return _read(job.key, True, task, job.result)
    if is_bundled:
        follow([job], dismiss=lambda job: _keys(_HERE).discard(job.key))
    else:
        follow([job])
    return None


def _offer_start(task: Task[Result], key: str, label: str, icon: str) -> None:
    st.button(
        label,
        on_click=_keys(_ASKED).add,
        args=(key,),
        key=f"{task.kind}.start",
        type="primary",
        icon=icon,
    )
    st.caption("This runs as a background job: you can continue to work, and the result is saved.")


def _inputs(specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace]) -> list[str]:
    """The keys under which workers find the spaces in the store."""
    store = queue().store
    if specs:
        return inputs_of(store, specs, spaces)
    return [put_space(store, space) for space in spaces]


def finished_result(task: Task[Result], spaces: Sequence[LatentSpace]) -> Result | None:
    """The result of a task if its job has finished, otherwise None. Nothing is computed."""
    key = task.key(spaces)
    job = queue().job(key)
    if job is None or job.status().state != "done":
        return None
    return _read(key, True, task, job.result)


def _latest(task: Task[Result]) -> str:
    """The state key of the latest job of this kind."""
    return f"{_LATEST}.{task.kind}"


def _cancel_previous(task: Task[Result], key: str) -> None:
    """Cancel the latest job of the task's kind, unless it is the job of this key or has ended."""
    before = st.session_state.get(_latest(task))
    if not before or before == key:
        return
    job = queue().job(before)
    if job and not job.status().ended:
        job.cancel()


def draw_elsewhere(place: Place | None) -> None:
    """Draw the progress of jobs that the user started in another place or tab. When a job has ended, offer to
    go there."""
    st.session_state[_PLACE] = place
    with st.container(key="elsewhere"):
        for key, (of, tab) in list(_awaited().items()):
            _draw_awaited(key, of, tab, here=place is of and open_tab(of.key) == tab)


def _draw_awaited(key: str, of: Place, tab: str, *, here: bool) -> None:
    """Draw the progress of a job that was started in this place and tab. `here` is whether these are open."""
    job = queue().job(key)
    forget = {"on_click": _awaited().pop, "args": (key, None)}
    if job is None or (job.status().ended and (here or job.status().state == "cancelled")):
        del _awaited()[key]
        return
    if here:
        return
    with st.container(key=f"elsewhere-{key[:8]}"):
        if not job.status().ended:
            follow([job])
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            ended = "failed"
            if job.status().state == "done":
                ended = "is done"
            st.markdown(f"{plain(job.title)} {ended}.", width="content")
            if st.button("Show", key=f"results.show-{key[:8]}", type="primary"):
                go(of, tab)
            st.button("Later", key=f"results.later-{key[:8]}", type="tertiary", **forget)


def _awaited() -> dict[str, tuple[Place, str]]:
    """A dictionary of the place and the tab where the user started each job, by the job's key."""
    return st.session_state.setdefault(_AWAITED, {})


@st.cache_resource(max_entries=32, show_spinner=False)
def _read(key: str, here: bool, _task: Task[Result], _entry: Callable[[], Entry | None]) -> Result | None:
    entry = _entry()
    if entry is None:
        return None
    return _task.read(entry)


def _offer_here(made: FinishedGroup, key: str, cost: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"This result comes with Relscope. {made.in_words}", width="content")
        st.button(
            f"Run it here · {cost}",
            key=f"results.here-{key[:8]}",
            type="tertiary",
            icon=":material/play_arrow:",
            help="Computes the result again on this machine, and then shows the new one.",
            on_click=_keys(_HERE).add,
            args=(key,),
        )


def _keys(name: str) -> set[str]:
    """The set of result keys that the session stores under this name: requested results, or results to
    compute on this machine although they are bundled."""
    return st.session_state.setdefault(name, set())


def place_of(specs: Sequence[SpaceSpec], *more: Any) -> str:
    """A short digest of these spaces. A chooser whose default depends on them has it in its key, so that
    other spaces get a new chooser."""
    return digest_of(tuple(specs), *more)[:8]
