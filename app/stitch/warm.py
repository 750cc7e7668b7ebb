"""Encoders that are loaded and stay so, for what is typed, drawn or uploaded: the first use takes seconds, the next no time."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.jobs import asked_again, engine, follow
from relcore.experiments.one_item import ItemEncoder, Untrained, item_encoder, train_again_job, trained_key, why_not
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError


def encoders(specs: Sequence[SpaceSpec]) -> tuple[dict[SpaceSpec, ItemEncoder], dict[SpaceSpec, str]]:
    """Those that are ready, and why the others are not; what has to be learnt again is a job, with a button before it."""
    ready, others = {}, {}
    for spec in dict.fromkeys(specs):
        if reason := why_not(spec):
            others[spec] = reason
            continue
        try:
            ready[spec] = _encoder(spec)
        except Untrained:
            others[spec] = "has lost its trained weights"
            _offer_training(spec)
        except SpaceError as error:
            others[spec] = str(error)
    return ready, others


# A MiniLM weighs 90 MB, a word space up to some hundred: few are kept.
@st.cache_resource(max_entries=8, show_spinner="Loading the encoder …")
def _encoder(spec: SpaceSpec) -> ItemEncoder:
    return item_encoder(spec, engine().store)


def _offer_training(spec: SpaceSpec) -> None:
    key = trained_key(spec, engine().store)
    job = engine().job(key)
    if job is None:
        st.button(
            f"Train {spec.encoder.title} again",
            key=f"warm.train-{key[:8]}",
            icon=":material/model_training:",
            help="Its weights were removed from the store to make room. The same settings give the same weights.",
            on_click=_train,
            args=(key, spec),
        )
        return
    if asked_again(job):
        job = _train(key, spec)
    follow([job])


def _train(key: str, spec: SpaceSpec):
    return engine().submit(key, train_again_job, title=f"{spec.encoder.title}, trained again", spec=spec)
