"""Trainings of autoencoders on the page: what is offered, under way and stored, for the Reconstruction tab's two sections."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import exports, session
from app.encode import encoding_costs
from app.jobs import asked_again, engine
from app.stitch import reconstruction_setup
from app.stitch.reconstruction_setup import Setup
from relcore.engine import Job
from relcore.reconstructing.job import ReconstructionSpec, reconstruction_job
from relcore.store import Entry

_KEEP = {"persist_state": "session"}


def offer(setup: Setup, specs: tuple[ReconstructionSpec, ...], key: str, noun: str) -> None:
    """The button with what it costs; a line instead where nothing is left to train."""
    known = {setup.key(spec): engine().job(setup.key(spec)) for spec in specs}
    left = tuple(spec for spec in specs if known[setup.key(spec)] is None)
    if not left:
        return
    n_missing, seconds = reconstruction_setup.cost(setup, left)
    nouns = noun if n_missing == 1 else f"{noun}s"
    label = f"Train {n_missing} {nouns} · {encoding_costs.in_words(seconds)}" if n_missing else f"Stitch the {noun}s again"
    begin = {"on_click": session.guarded, "args": (_submit, setup, left)}
    st.button(label, type="primary", icon=":material/play_arrow:", key=key, width="stretch", **begin)
    costs = [reconstruction_setup.expected(setup, spec) for spec in left]
    st.caption("What is trained stays: stopped or killed, it goes on from there." + encoding_costs.learned(costs))


def _submit(setup: Setup, specs: Sequence[ReconstructionSpec]) -> None:
    for spec in specs:
        title = f"{spec.model.title} · {setup.name}" if spec.model.width > 2 else f"AE with two numbers · {setup.name}"
        likely = reconstruction_setup.expected(setup, spec)
        arguments = {"spec": spec, "dataset_digest": setup.digest}
        engine().submit(setup.key(spec), reconstruction_job, title=title, expected=likely, **arguments)


def under_way(setup: Setup, specs: Sequence[ReconstructionSpec]) -> list[Job]:
    """Jobs of these kinds that are not done."""
    found = []
    for spec in specs:
        job = engine().job(setup.key(spec))
        if job and asked_again(job):
            _submit(setup, [spec])
            job = engine().job(setup.key(spec))
        if job and job.status().state != "done":
            found.append(job)
    return found


def stored(setup: Setup, specs: Sequence[ReconstructionSpec]) -> dict[ReconstructionSpec, Entry]:
    """The results that are there."""
    found = {spec: engine().store.get(setup.key(spec)) for spec in specs if engine().store.has(setup.key(spec))}
    return {spec: entry for spec, entry in found.items() if entry is not None}


def live_curves(jobs: list[Job]) -> None:
    """The loss of what is being trained, one line a training."""
    from relcore.charts.lines import Line, Lines
    from relcore.figures.export import lines_exportable

    lines = [
        Line(f"{job.title.split(' · ')[0]}, {state}", range(1, len(losses) + 1), losses)
        for job in jobs
        for state, losses in job.status().curve.items()
    ]
    if lines:
        chart = Lines(tuple(lines), "epoch", "training loss", y_range=None)
        exports.chart(lines_exportable(chart).interactive(exports.theme()), f"reconstruct.live-{jobs[0].key[:8]}")


def choose_states(states: tuple[int, ...], first: str, second: str, prefix: str) -> tuple[int, int]:
    """Two different random states."""
    one_box, other_box, _ = st.columns([1, 1, 1])
    name = f"{prefix}-{len(states)}"
    one = one_box.selectbox(first, states, key=f"{name}.first", **_KEEP)
    others = [state for state in states if state != one]
    return one, other_box.selectbox(second, others, key=f"{name}.second-{one}", **_KEEP)
