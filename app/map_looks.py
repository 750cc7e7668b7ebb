"""Caches around what a map shows beside its points, by the rules of `compute`: keys are digests, results are shared."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import compute
from relcore.comparing.prominence import prominent_rows
from relcore.spaces import LatentSpace, Match
from relcore.store import digest_of
from relcore.views import View


def prominence(pair: Match, drawn: View) -> np.ndarray:
    """Positions among the drawn rows, those first whose names matter most."""
    return _prominence(compute.pair_key(pair), drawn.digest, digest_of(drawn.categories), pair.source, drawn)


@st.cache_resource(max_entries=32, show_spinner=False)
def _prominence(key: str, rows: str, categories: str, _space: LatentSpace, _view: View) -> np.ndarray:
    return prominent_rows(_space, _view)
