"""The Stitch page before there is anything to stitch: what it does, and two tasks that can be made here."""

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
        "1,797 scans of handwritten digits. Four architectures learn to classify them, each from its own random start.",
    ),
    "wikipedia": (
        WIKIPEDIA,
        (TfidfSvd(), MiniLM((2, 4, 6))),
        "Wikipedia: TF-IDF and MiniLM · about 2 min",
        "5,482 sentences of 16 articles. The label is the article. Encoders: TF-IDF and layers of MiniLM.",
    ),
}


def draw() -> None:
    """Two sentences and two buttons; only progress bars while a task is being made."""
    under_way = any(not job.status().ended for job in encoding_jobs.awaited())
    st.html(
        '<div class="relscope-lead" style="max-width: 46rem; padding: 1.5rem 0 0.5rem">'
        '<p style="font-size: 1.6rem; line-height: 1.3; font-weight: 600; letter-spacing: -0.01em; margin: 0 0 0.75rem">'
        "Take the encoder of one model and the classifier of another. Nothing is trained again. Does it still work?</p>"
        '<p style="margin: 0">Two networks that were trained on the same task use different coordinates, so the head of one '
        "cannot read the rows of the other. Relative to a few shared anchors, their rows are nearly the same. This page "
        "combines every encoder with every head through anchors and scores the answers.</p></div>"
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
    st.caption("Or encode your own labelled data with two or more encoders on the Spaces page.")


def _make(dataset: DatasetSpec, encoders: tuple[Encoder, ...]) -> None:
    found = raw_data.preview(dataset)
    encoding_jobs.submit(dataset, found.digest, found.name, encoders)
