"""Encoders of the spaces at hand that can encode a new text or picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.jobs import queue
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.encoder import DatasetSpec, Encoder, TrainedEncoder, dataset_place
from relcore.stitch.try_it import ItemEncoder, item_encoder, joined_encoder, why_not


def encoders(specs: Sequence[SpaceSpec]) -> tuple[dict[SpaceSpec, ItemEncoder], dict[SpaceSpec, str]]:
    """The loaded encoders by space, and the reason why for each space that has none."""
    ready, others = {}, {spec: reason for spec in specs if (reason := why_not(spec))}
    usable = [spec for spec in dict.fromkeys(specs) if spec not in others]
    for spec in usable:
        joined = joined_encoder(spec, usable)
        trained = spec.option("key") if isinstance(joined, TrainedEncoder) else ""
        try:
            dataset_place(spec.dataset)  # before the cache, which all sessions share
            joined.content()
            ready[spec] = replace(_encoder(spec.dataset, joined, trained, spec), spec=spec)
        except SpaceError as error:
            others[spec] = str(error)
    return ready, others


# A MiniLM weighs 90 MB, a word space up to some hundred: few are kept.
@st.cache_resource(max_entries=8, show_spinner="Loading the encoder …")
def _encoder(dataset: DatasetSpec, joined: Encoder, trained: str, _spec: SpaceSpec) -> ItemEncoder:
    """One encoder for all outputs of a model on a dataset; `trained` identifies the weights of a trained
    one."""
    return item_encoder(_spec, queue().store, joined)
