"""The Stitch page before there is anything to stitch: what it is about, and two tasks that can be made here."""

from __future__ import annotations

import streamlit as st

from app import session
from app.encode import encoding_jobs, raw_data
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.sources.lsa import TfidfSvd
from relcore.sources.small_vision import SmallVision
from relcore.sources.text import MiniLM
from relcore.sources.wikipedia import TASK as WIKIPEDIA

_TASKS: dict[str, tuple[DatasetSpec, tuple[Encoder, ...], str, str]] = {
    "digits": (
        DatasetSpec("digits"),
        tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit")),
        "Digits: four networks, trained here · about 40 s",
        "1,797 scans of handwritten digits. Four architectures learn to tell them apart, each from its own random start.",
    ),
    "wikipedia": (
        WIKIPEDIA,
        (TfidfSvd(), MiniLM((2, 4, 6))),
        "Wikipedia: TF-IDF and MiniLM · about 2 min",
        "5,482 sentences of 16 articles. Which article is a sentence from? TF-IDF counts words, MiniLM's layers read it.",
    ),
}


def draw() -> None:
    """Two sentences and two buttons, or nothing but bars while what they began is under way."""
    under_way = any(not job.status().ended for job in encoding_jobs.awaited())
    st.html(
        '<div class="relscope-lead" style="max-width: 46rem; padding: 1.5rem 0 0.5rem">'
        '<p style="font-size: 1.6rem; line-height: 1.3; font-weight: 600; letter-spacing: -0.01em; margin: 0 0 0.75rem">'
        "Take the encoder of one model and the classifier of another. Nothing is trained again. Does it still work?</p>"
        '<p style="margin: 0">Two networks that learned the same task speak different coordinates, so one cannot read the '
        "other; told relative to a few anchors, items that both know, they turn out to say nearly the same. <b>Stitching</b> "
        "joins every encoder with every head in this way and counts the right answers.</p></div>"
    )
    if under_way:
        return
    with st.container(horizontal=True, gap="medium"):
        for name, (dataset, encoders, label, explanation) in _TASKS.items():
            with st.container(border=True, width=460):
                st.button(
                    label,
                    key=f"stitch.make-{name}",
                    type="primary" if name == "digits" else "secondary",
                    icon=":material/play_arrow:",
                    on_click=session.guarded,
                    args=(_make, dataset, encoders),
                    width="stretch",
                )
                st.caption(explanation)
    st.caption("Or encode labelled data of your own with two encoders or more, on the Spaces page.")


def _make(dataset: DatasetSpec, encoders: tuple[Encoder, ...]) -> None:
    found = raw_data.preview(dataset)
    encoding_jobs.submit(dataset, found.digest, found.name, encoders)
