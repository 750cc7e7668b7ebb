"""Training jobs of autoencoders for both sections of the Reconstruction tab: the button, jobs under way, stored results."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import exports, session
from app.encode import encoding_costs
from app.jobs import asked_again, engine
from app.page_settings import kept
from app.stitch import reconstruction_setup
from app.stitch.reconstruction_setup import Setup
from relcore.engine import Job
from relcore.reconstructing.job import ReconstructionSpec
from relcore.reconstructing.result import Crossed
from relcore.task import task_job


def offer(setup: Setup, specs: tuple[ReconstructionSpec, ...], key: str, noun: str) -> None:
    """The button with its cost; nothing where every job has been started."""
    left = tuple(spec for spec in specs if engine().job(spec.key()) is None)
    if not left:
        return
    n_missing, seconds = reconstruction_setup.cost(setup, left)
    nouns = noun if n_missing == 1 else f"{noun}s"
    label = f"Train {n_missing} {nouns} · {encoding_costs.in_words(seconds)}" if n_missing else f"Stitch the {noun}s again"
    begin = {"on_click": session.guarded, "args": (_submit, setup, left)}
    st.button(label, type="primary", icon=":material/play_arrow:", key=key, width="stretch", **begin)
    costs = [reconstruction_setup.expected(setup, spec) for spec in left]
    st.caption("Finished models are saved; a stopped job resumes with them." + encoding_costs.learned(costs))


def _submit(setup: Setup, specs: Sequence[ReconstructionSpec]) -> None:
    for spec in specs:
        likely = reconstruction_setup.expected(setup, spec)
        engine().submit(spec.key(), task_job, title=f"{spec.title} · {setup.name}", expected=likely, task=spec)


def under_way(setup: Setup, specs: Sequence[ReconstructionSpec]) -> list[Job]:
    """Jobs of these kinds that are not done."""
    found = []
    for spec in specs:
        job = engine().job(spec.key())
        if job and asked_again(job):
            _submit(setup, [spec])
            job = engine().job(spec.key())
        if job and job.status().state != "done":
            found.append(job)
    return found


def stored(specs: Sequence[ReconstructionSpec]) -> dict[ReconstructionSpec, Crossed]:
    """The results that are in the store."""
    found = {spec: engine().store.get(spec.key()) for spec in specs if engine().store.has(spec.key())}
    return {spec: spec.read(entry) for spec, entry in found.items() if entry is not None}


def live_curves(jobs: list[Job]) -> None:
    """The losses of the models in training, one line per model."""
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
    one = kept(one_box.selectbox, first, states, key=f"{name}.first")
    others = [state for state in states if state != one]
    return one, kept(other_box.selectbox, second, others, key=f"{name}.second-{one}")
