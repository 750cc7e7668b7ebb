"""One row's neighbours in both spaces, cached like all results of `app.compute`."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.compute import pair_key, represent
from relcore.comparing import row_neighbours
from relcore.comparison import ProjectionSpec
from relcore.spaces import Match
from relcore.store import digest_of


def neighbours_of(
    pair: Match,
    identifier: str,
    k: int,
    form: str = "absolute",
    anchors: tuple[str, ...] = (),
    projection: ProjectionSpec | None = None,
) -> pd.DataFrame:
    """One row's neighbours in both spaces in one representation, side by side; see `relcore.comparing.row_neighbours`."""
    if form == "absolute":
        anchors, projection = (), None
    return _neighbours_of(pair_key(pair), identifier, k, form, digest_of(anchors), projection, pair, anchors)


@st.cache_data(max_entries=256, show_spinner=False)
def _neighbours_of(
    key: str,
    identifier: str,
    k: int,
    form: str,
    anchors_key: str,
    projection: ProjectionSpec | None,
    _pair: Match,
    _anchors: tuple[str, ...],
) -> pd.DataFrame:
    made = represent(_pair, form, _anchors, projection) if projection else None
    return row_neighbours.neighbours_of(_pair, identifier, k, made)
