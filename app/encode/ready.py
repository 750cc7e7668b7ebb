"""Find those encoders of the present spaces that can encode a new text or picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.jobs import queue
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.dataset import DatasetSpec, dataset_place
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.stitch.try_it import ItemEncoder, item_encoder, joined_encoder, why_not


def encoders(specs: Sequence[SpaceSpec]) -> tuple[dict[SpaceSpec, ItemEncoder], dict[SpaceSpec, str]]:
    """The loaded encoder of each space, and for each space without one the reason."""
    ready = {}
    others = {spec: reason for spec in specs if (reason := why_not(spec))}
    usable = [spec for spec in dict.fromkeys(specs) if spec not in others]
    for spec in usable:
        joined = joined_encoder(spec, usable)
        trained = ""
        if isinstance(joined, TrainedEncoder):
            trained = spec.option("key")
        try:
            dataset_place(spec.dataset)  # check access first, because all sessions share the cache
            joined.content()
            ready[spec] = replace(_encoder(spec.dataset, joined, trained, spec), spec=spec)
        except SpaceError as error:
            others[spec] = str(error)
    return ready, others


# Cache few encoders, because MiniLM takes 90 MB of memory, and a space of words may take 100 MB.
@st.cache_resource(max_entries=8, show_spinner="Loading the encoder …")
def _encoder(dataset: DatasetSpec, joined: Encoder, trained: str, _spec: SpaceSpec) -> ItemEncoder:
    """The loaded encoder, as it was prepared for a dataset. All spaces that are layers of one model share it.
    `trained` identifies the weights if Relscope trained them."""
    return item_encoder(_spec, queue().store, joined)
