"""From a dataset to spaces: choose items and encoders, see the cost, follow the jobs, compare the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from app import exports, jobs, messages, session
from app.encode import encoders
from app.encode import jobs as encoding_jobs
from app.encode.datasets import Preview, choose_dataset, show_preview
from app.encode.encoders import choose_encoders, learned
from app.plain_text import plain_name
from app.widgets import choose_pair, space_name
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.encoding import stored_encodings
from relcore.compare.figures import Training, training_of
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder
from relcore.figures.export import training_exportable
from relcore.runs.jobs import Job
from relcore.runs.progress import Expected

_STYLE = Path(__file__).resolve().parents[2] / "assets" / "encode.css"
_COMPARE = Path(__file__).resolve().parents[2] / "pages" / "compare.py"


def draw(folder: str | None) -> None:
    """The whole tab."""
    st.html(_STYLE)
    items, encoders = st.columns([5, 6], gap="large")
    with items:
        st.markdown("#### What to encode")
        chosen = choose_dataset(folder)
        if chosen:
            show_preview(chosen[1])
    with encoders:
        st.markdown("#### With what")
        if chosen:
            _encode(*chosen)
        else:
            st.caption("Choose a dataset first. The encoders for it appear here.")
        _follow()
        specs = _joined()
        if specs:
            _offer_comparison(specs)
    if specs:
        _curves(specs)


def _encode(dataset: DatasetSpec, preview: Preview) -> None:
    """Encoders, what they cost, and the button."""
    encoders = choose_encoders(preview)
    costs = {encoder: _cost(encoder, preview) for encoder in encoders}
    missing = [cost for cost in costs.values() if cost != 0.0]
    expected = {encoder: cost for encoder, cost in costs.items() if cost}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Encode" if missing or not encoders else "Add to the session",
            type="primary" if missing else "secondary",
            icon=":material/play_arrow:" if missing or not encoders else ":material/add:",
            key="encode.start",
            disabled=not encoders,
            on_click=session.guarded,
            args=(encoding_jobs.submit, dataset, preview.digest, preview.name, encoders, expected),
        )
        st.caption(_durations(missing) + learned(missing) if encoders else "Choose one encoder or more.")
    under_way = [job.arguments["encoder"] for job in encoding_jobs.awaited()]
    lines = [
        f"- {plain_name(one.title)}{f', {len(one.outputs)} spaces' * (len(one.outputs) > 1)}: {_told(cost)}"
        for one, cost in costs.items()
        if one not in under_way
    ]
    if lines:
        st.caption("\n".join(lines))


def _cost(encoder: Encoder, preview: Preview) -> Expected | float | None:
    """The expected time; 0 if the store has the encoding, None if the time is unknown."""
    try:
        stored = stored_encodings(jobs.engine().store, preview.digest, encoder)
    except (OSError, SpaceError):  # a model's folder that cannot be read: the job will say so
        stored = None
    return 0.0 if stored else encoders.expected(encoder, preview)


def _told(cost: Expected | float | None) -> str:
    return "already in the store" if cost == 0 else encoders.in_words(cost.likely if cost else None)


def _durations(missing: Sequence[Expected | None]) -> str:
    if not missing:
        return "Nothing to compute."
    known = [cost.likely for cost in missing if cost is not None]
    at_once = jobs.engine().n_workers
    duration = encoders.in_words(encoders.together(known, at_once)) if known else ""
    if len(known) < len(missing):
        return (
            f"{duration.capitalize()}, and an unknown time for the others."
            if known
            else "The time is unknown."
        )
    return (
        f"{duration.capitalize()} in all, {at_once} at a time."
        if len(known) > 1
        else f"{duration.capitalize()}."
    )


def _follow() -> None:
    """Progress bars, and the curves of trainings."""
    awaited = encoding_jobs.awaited()
    if awaited:
        running = any(not job.status().ended for job in awaited)
        st.markdown("#### In progress" if running else "#### Not finished")
        jobs.follow(awaited, below=_live_curves, dismiss=encoding_jobs.forget)


def _live_curves(followed: list[Job]) -> None:
    curves = {job.title: curve for job in followed if (curve := job.status().curve)}
    if curves:
        exports.chart(training_exportable(curves).interactive(exports.theme()), "encode.live")


def _joined() -> list[SpaceSpec]:
    """The spaces that joined last, as soon as no job is in progress."""
    return [] if any(not job.status().ended for job in encoding_jobs.awaited()) else encoding_jobs.joined()


def _offer_comparison(specs: Sequence[SpaceSpec]) -> None:
    names = ", ".join(space_name(spec) for spec in specs)
    messages.success(f"{names} joined the session.")
    pair = encoding_jobs.pair_to_compare()
    if pair and st.button(
        (
            "Compare these two"
            if len(specs) == 2
            else f"Compare {' with '.join(plain_name(space_name(one)) for one in pair)}"
        ),
        key="encode.compare",
        icon=":material/join_inner:",
        type="primary",
        help="Makes them source and target, with anchors from their shared rows.",
    ):
        choose_pair(*pair, f"compare {space_name(pair[0])} and {space_name(pair[1])}")
        st.switch_page(_COMPARE)


def _curves(specs: Sequence[SpaceSpec]) -> None:
    """The training curves, with their exports."""
    store = jobs.engine().store
    curves = {spec: training_of(spec, store) for spec in specs if store.has(spec.option("key"))}
    trained = [spec for spec, curve in curves.items() if curve]
    if trained:
        figure = Training(tuple(trained)).draw({spec.name: curves[spec] for spec in trained})
        exports.chart(figure.interactive(exports.theme()), "encode.training")
        exports.export_bar(figure, "training")
