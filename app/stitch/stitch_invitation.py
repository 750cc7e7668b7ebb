"""The Stitch page in a session without labelled spaces: what it does, on an example that comes with Relscope."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import jobs, session
from app.encode import encoding_costs, encoding_jobs, raw_data
from app.page_settings import kept
from relcore.sources.catalog import SpaceSpec
from relcore.sources.examples import EXAMPLES, Example, example_spaces


def draw(row: DeltaGenerator) -> list[SpaceSpec]:
    """In the row, the chooser of an example and what to do with it; below, the question of the page. The example's spaces."""
    with row:
        name = kept(
            st.segmented_control,
            "Example",
            list(EXAMPLES),
            default="digits",
            format_func=lambda name: EXAMPLES[name].title,
            key="stitch.example",
            required=True,
            help="Labelled spaces of your own replace the examples: encode your data on the Spaces page.",
        )
        example = EXAMPLES[name]
        specs, _ = example_spaces(name, jobs.engine().store.finished)
        with st.popover("Use it", icon=":material/add:"):
            if specs:
                st.button(
                    "Add to the session",
                    key=f"stitch.add-{name}",
                    icon=":material/add:",
                    help="Makes these spaces available on all pages, for example to compare two of them.",
                    on_click=session.guarded,
                    args=(encoding_jobs.join, specs),
                )
            st.button(
                f"{_verb(name)} · {_cost(example)}",
                key=f"stitch.make-{name}",
                icon=":material/play_arrow:",
                help="Computes the spaces on this machine, as a background job, and adds them to the session.",
                on_click=session.guarded,
                args=(_make, example),
            )
    st.caption(
        "Take the encoder of one model and the classifier of another. Nothing is trained again. Does it still work? "
        f"{example.explanation}"
    )
    return specs


def _verb(name: str) -> str:
    return "Train them here" if name == "digits" else "Encode them here"


def _cost(example: Example) -> str:
    durations = [encoder.seconds(example.n) for encoder in example.encoders]
    return encoding_costs.in_words(encoding_costs.together(durations, jobs.engine().n_workers))


def _make(example: Example) -> None:
    found = raw_data.preview(example.dataset)
    encoding_jobs.submit(example.dataset, found.digest, found.name, example.encoders, here=True)
