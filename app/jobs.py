"""Jobs on the page: one queue for the whole app, and a progress bar with a stop button for each job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import compute, messages, session
from app.plain_text import plain
from app.sharing import Member
from app.workspace import ScoreSettings
from relcore.base.access import is_shared
from relcore.base.errors import SpaceError
from relcore.base.names import REDUCTIONS
from relcore.base.records import parse
from relcore.catalog.catalog import SpaceSpec, need_access
from relcore.catalog.encodings import put_space
from relcore.catalog.task import task_job
from relcore.compare.reports import ExactScores
from relcore.encoders.dataset import DatasetSpec, dataset_place
from relcore.encoders.encoder import Encoder
from relcore.maps.pane_maps import (
    View,
    fitting_reduction,
    pane_blocks,
    pane_matrices,
    reduction_note,
    representation_of_pane,
)
from relcore.maps.principal_axes import ReductionSpec, n_fitted
from relcore.maps.reduction import align_maps, put_blocks, reduce_job, reduce_on_gpu_job, reduction_seconds
from relcore.represent.representations import ProjectionSpec
from relcore.runs.entries import digest_of
from relcore.runs.jobs import WAITS, Job, JobQueue, JobStatus, in_words
from relcore.runs.store import Store
from relcore.scores.score import Score
from relcore.spaces.matching import Match

_AGAIN = "relscope.job-again"

# Version of stored results. Increase it when a change of the code changes the results of the same settings.
RESULTS = 3


class OwnQueue:
    """The `JobQueue` as one session may use it. Attributes that are not defined here are those of the queue.

    It checks access before it submits a job to a worker. In a shared app, a session sees only its own jobs.
    """

    def __init__(self, queue: JobQueue, member: Member) -> None:
        self._queue = queue
        self._member = member

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def submit(self, key: str, function: Callable[..., None], here: bool = False, **arguments: Any) -> Job:
        """Submit a job like `JobQueue.submit`. Raises a SpaceError for data that this session may not
        read."""
        need_access_to_all(arguments, self.store)
        known = self.store.has(key, own=here)
        job = self._queue.submit(key, function, here=here, **arguments)
        if known:
            self._member.found.add(key)
        else:
            self._member.made.add(key)
        self._member.stopped.discard(key)
        return self._own(job)

    def job(self, key: str) -> Job | None:
        """Return a job like `JobQueue.job`. The key of a job depends only on the data, so any session that
        has the data may read its result."""
        job = self._queue.job(key)
        mine = job is not None and (
            not is_shared() or key in self._member.made or job.status().state == "done"
        )
        return self._own(job) if mine else None

    def jobs(self) -> list[Job]:
        return [
            self._own(job) for job in self._queue.jobs() if not is_shared() or job.key in self._member.made
        ]

    def _own(self, job: Job) -> Job:
        if is_shared():
            return OwnJob(job, self._member)
        return job


class OwnJob:
    """A `Job` that several sessions may share. It is cancelled only when the last of these sessions
    stops it."""

    def __init__(self, job: Job, member: Member) -> None:
        self._job = job
        self._member = member

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)

    def status(self) -> JobStatus:
        status = self._job.status()
        stopped = self.key in self._member.stopped and not status.ended
        if stopped:
            return replace(status, state="cancelled", error="cancelled")
        return status

    def cancel(self) -> None:
        if self._member.wanted_by_others(self.key):
            self._member.stopped.add(self.key)
        else:
            self._job.cancel()


def need_access_to_all(arguments: Any, store: Store) -> None:
    """Raise a SpaceError unless this session may read all data to which a job's arguments refer."""
    inner: Iterable = ()
    if isinstance(arguments, str) and arguments.startswith("{"):  # a study's settings contain spaces as JSON
        with suppress(SpaceError):
            described = parse(arguments, "settings")
            if isinstance(described, Mapping) and "source" in described:
                named = {name: value for name, value in described.items() if name != "digest"}
                arguments = SpaceSpec.from_json(named)
    if isinstance(arguments, SpaceSpec):
        need_access(arguments, store)
        # The worker encodes again if the store lost the encoding.
        if is_shared() and arguments.source == "encoding":
            inner = arguments.dataset, arguments.encoder
    elif isinstance(arguments, DatasetSpec):
        dataset_place(arguments)
    elif isinstance(arguments, Encoder):
        arguments.content()
    elif isinstance(arguments, Mapping):
        inner = arguments.values()
    elif isinstance(arguments, list | tuple):
        inner = arguments
    elif is_dataclass(arguments) and not isinstance(arguments, type):
        inner = [getattr(arguments, field.name) for field in fields(arguments)]
    for argument in inner:
        need_access_to_all(argument, store)


@st.cache_resource(show_spinner=False)
def whole_queue() -> JobQueue:
    return JobQueue()


def queue() -> OwnQueue | JobQueue:
    """The job queue of this session. Code outside of a session gets the shared queue."""
    if get_script_run_ctx(suppress_warning=True):
        return OwnQueue(whole_queue(), session.member())
    return whole_queue()


def reduction(
    pair: Match,
    drawn: View,
    pane: str,
    anchors: tuple[str, ...],
    projection: ProjectionSpec,
    spec: ReductionSpec,
) -> tuple[list[np.ndarray], str] | Job:
    """Coordinates by UMAP or t-SNE with a note. Until they are computed, returns the job that computes
    them."""
    pane, spec = representation_of_pane(pane, spec)
    needed = compute.needed_anchors(pane, anchors)
    n = len(drawn.rows)
    shapes = [(n, len(needed) or space.dimension) for space in pair.spaces]
    shown = fitting_reduction([width for _, width in shapes], spec)
    # The job of a map need not run again, because aligning only rotates finished maps.
    fitting = replace(shown, align=False)
    drawn_of = (compute.pair_key(pair), drawn.digest, pane, needed, projection)
    key = digest_of("reduction 2", RESULTS, fitting, *drawn_of)
    is_sampled = n_fitted(n, fitting) < n
    if is_sampled:
        key = digest_of(key, "fitted on", n_fitted(n, fitting))
    job = queue().job(key)
    if job is None or retry_requested(job):
        settings = (pair, drawn.rows, needed, projection, pane)
        if is_sampled:
            blocks = pane_blocks(*settings)
        else:
            blocks = ([matrix] for matrix in pane_matrices(*settings))
        inputs = [digest_of("drawn rows", i, RESULTS, *drawn_of) for i in range(len(shapes))]
        for matrix, blocks_of_space, shape in zip(inputs, blocks, shapes, strict=True):
            put_blocks(queue().store, matrix, blocks_of_space, shape)
        job = _submit_reduction(key, pane, shapes, fitting, inputs)
    if job.status().state != "done":
        return job
    arrays = job.result().arrays
    coordinates = align_maps([arrays[f"coordinates_{i}"] for i in range(len(shapes))], shown)
    return coordinates, reduction_note(shown, n_rows=n)


def _submit_reduction(
    key: str, pane: str, shapes: Sequence[tuple[int, int]], spec: ReductionSpec, inputs: Sequence[str]
) -> Job:
    """Submit the job that reduces stored matrices of these shapes. `inputs` are their keys."""
    title = f"{REDUCTIONS[spec.method].title} map"
    if pane != "absolute":
        title = f"{title}, {pane}"
    work = reduce_job
    if spec.method.endswith("-gpu"):
        work = reduce_on_gpu_job
    seconds = reduction_seconds(shapes, spec)
    return queue().submit(key, work, title=title, expected=seconds, spec=spec, inputs=inputs)


@compute.cached(32)
def _exact_task(pair: Match, representation: str, settings: ScoreSettings) -> tuple[ExactScores, str]:
    """The task that scores a representation with every held-out row as a query, and the key of its result."""
    anchors = settings.anchors
    k = compute.scored_neighbours(pair, anchors, settings.k, settings.convention)
    task = ExactScores.on(representation, anchors, settings.projection, k, settings.convention)
    return task, task.key((pair.source, pair.target))


def exact_scores(
    pair: Match, representation: str, settings: ScoreSettings, *, start: bool = False
) -> dict[str, Score] | Job | None:
    """Scores with every held-out row as a query. Until they are computed, returns the job that computes them.
    Returns None if there is no job and `start` is False."""
    task, key = _exact_task(pair, representation, settings)
    job = queue().job(key)
    ended = job is None or job.status().state in ("failed", "cancelled")
    if (start and ended) or (job and retry_requested(job)):
        inputs = [put_space(queue().store, space) for space in (pair.source, pair.target)]
        job = queue().submit(key, task_job, title=task.title, task=task, inputs=inputs)
    if job and job.status().state == "done":
        return task.read(job.result()).scores
    return job


def scores(
    pair: Match, representation: str, settings: ScoreSettings, *, alone: bool = False
) -> dict[str, Score]:
    """The scores of one representation. Until scores by all queries are computed, these are live scores."""
    known = exact_scores(pair, representation, settings)
    if isinstance(known, dict):
        return known
    return compute.live_scores(pair, representation, settings, alone=alone)


def follow(jobs: Sequence[Job], dismiss: Callable[[Job], None] | None = None) -> None:
    """Draw a progress bar for each running job until all have ended. A failed job shows its error.

    If `dismiss` is given, a button below the error calls it with the job.
    """
    for job in jobs:
        if job.status().state in ("failed", "cancelled"):
            with st.container(horizontal=True, vertical_alignment="center"):
                messages.warning(f"{job.title}: {_why(job)}", icon=":material/stop_circle:")
                st.button(
                    "Again",
                    key=f"again-{job.key}",
                    on_click=_request_retry,
                    args=(job,),
                )
                if dismiss:
                    st.button(
                        "Dismiss", on_click=dismiss, args=(job,), key=f"dismiss-{job.key}", type="tertiary"
                    )
    if running := [job.key for job in jobs if not job.status().ended]:
        _follow(running)


@st.fragment(run_every=0.5)
def _follow(keys: list[str]) -> None:
    jobs = [job for key in keys if (job := queue().job(key))]
    if all(job.status().ended for job in jobs):
        st.rerun()
    for job in jobs:
        status = job.status()
        share = 0.0
        if status.total:
            share = min(1.0, status.done / status.total)
        # Until the first step of a job is done, the bar shows the elapsed share of the expected time.
        if not share and status.state == "running" and job.expected:
            share = max(0.0, 1 - (status.seconds_left or 0.05 * job.expected) / job.expected)
            if status.total > 1:
                share = min(share, 0.8)
        with st.container(horizontal=True, vertical_alignment="center"):
            share_done = share
            if status.state == "done":
                share_done = 1.0
            st.progress(share_done, text=plain(_progress(job)))
            if not status.ended:
                st.button("Stop", key=f"stop-{job.key}", icon=":material/stop:", on_click=job.cancel)


def _progress(job: Job) -> str:
    status = job.status()
    if status.ended:
        return f"{job.title}: {'done' if status.state == 'done' else _why(job)}"
    if status.state == "queued":
        return f"{job.title}: {_waits_for(job, status)}"
    head, colon, rest = status.message.partition(": ")
    if colon and job.title.startswith(head):
        message = rest
    else:
        message = status.message
    if not message or job.title.startswith(message):
        message = "computing"
    counts = ""
    if status.done > 0 and status.total > 1 and " of " not in message:
        counts = f"{status.done:,} of {status.total:,}"
    time = status.time_left or f"{in_words(status.seconds)} so far"
    return f"{job.title}: {' · '.join(filter(None, (message, counts, time)))}"


def _waits_for(job: Job, status: JobStatus) -> str:
    """A phrase on why a queued job waits: other jobs occupy all workers, or its own worker is still
    starting."""
    if status.message != WAITS:
        return status.message
    running = [one.title for one in queue().jobs() if one.key != job.key and one.status().state == "running"]
    if len(running) < queue().n_workers:
        then = ""
        if job.expected:
            then = f", then {cost_in_words(job.expected)}"
        return f"starting the workers, which takes some seconds the first time{then}"
    others = ""
    if len(running) > 1:
        others = f" or {len(running) - 1} more"
    return f"after {running[0]}{others}"


def _why(job: Job) -> str:
    status = job.status()
    if status.state == "cancelled":
        return "stopped"
    return status.error or "failed"


def _request_retry(job: Job) -> None:
    st.session_state[_AGAIN] = job.key


def retry_requested(job: Job) -> bool:
    """Whether the user clicked the button that runs this failed or stopped job again."""
    if st.session_state.get(_AGAIN) != job.key or not job.status().ended:
        return False
    del st.session_state[_AGAIN]
    return True


def cost_in_words(seconds: float | None) -> str:
    if seconds is None:
        return "time unknown, depends on the model"
    return f"about {in_words(seconds)}"


def total_seconds(durations: Sequence[float]) -> float:
    return max([*durations, sum(durations) / queue().n_workers])
