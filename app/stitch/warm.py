"""Encoders kept in memory for items that are typed, drawn or uploaded: only the first use takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import session
from app.jobs import asked_again, engine, follow
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder, TrainedEncoder
from relcore.sources.places import dataset_place
from relcore.spaces import SpaceError
from relcore.stitching.one_item import (
    ItemEncoder,
    Untrained,
    item_encoder,
    joined_encoder,
    train_again_job,
    trained_key,
    why_not,
)


def encoders(specs: Sequence[SpaceSpec]) -> tuple[dict[SpaceSpec, ItemEncoder], dict[SpaceSpec, str]]:
    """Encoders that are ready, and why the others are not. A button starts a job that trains a lost encoder again."""
    ready, others = {}, {spec: reason for spec in specs if (reason := why_not(spec))}
    usable = [spec for spec in dict.fromkeys(specs) if spec not in others]
    for spec in usable:
        joined = joined_encoder(spec, usable)
        trained = spec.option("key") if isinstance(joined, TrainedEncoder) else ""
        try:
            dataset_place(spec.dataset)  # before the cache, which all sessions share
            joined.content()
            ready[spec] = replace(_encoder(spec.dataset, joined, trained, spec), spec=spec)
        except Untrained:
            others[spec] = "has lost its trained weights"
            _offer_training(spec)
        except SpaceError as error:
            others[spec] = str(error)
    return ready, others


# A MiniLM weighs 90 MB, a word space up to some hundred: few are kept.
@st.cache_resource(max_entries=8, show_spinner="Loading the encoder …")
def _encoder(dataset: DatasetSpec, joined: Encoder, trained: str, _spec: SpaceSpec) -> ItemEncoder:
    """One encoder for all outputs of one model on one dataset; `trained` distinguishes encoders with their own weights."""
    return item_encoder(_spec, engine().store, joined)


def _offer_training(spec: SpaceSpec) -> None:
    key = trained_key(spec, engine().store)
    job = engine().job(key)
    if job is None:
        st.button(
            f"Train {spec.encoder.title} again",
            key=f"warm.train-{key[:8]}",
            icon=":material/model_training:",
            help="Its weights were removed from the store to make room. The same settings give the same weights.",
            on_click=session.guarded,
            args=(_train, key, spec),
        )
        return
    if asked_again(job):
        job = _train(key, spec)
    follow([job])


def _train(key: str, spec: SpaceSpec):
    return engine().submit(key, train_again_job, title=f"{spec.encoder.title}, trained again", spec=spec)
