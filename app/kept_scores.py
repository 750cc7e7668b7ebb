"""What is kept of live scores, by the rules of `compute`: the scores, and the last passes over the held-out rows.

With a kept pass the difference to the anchors of the next step takes no pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock

import streamlit as st

from relcore.block_scores.scoring import PassedPair
from relcore.comparison import ProjectionSpec
from relcore.metrics.calibration import Score
from relcore.spaces import Match

DIFFERENCE_ROWS = 20_000  # rows on which a change of the scores is measured, as it is shown with each step


def is_scored_quickly(pair: Match) -> bool:
    """Whether live scores take less than half a second, for which the sidebar can wait."""
    return len(pair) <= DIFFERENCE_ROWS


@dataclass(frozen=True)
class KeptScores:
    """Representation → scores, filled by whoever asks first; another session that asks meanwhile waits for the lock."""

    found: dict[str, dict[str, Score]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


@st.cache_resource(max_entries=96, show_spinner=False)
def kept_scores(
    key: str, anchors_key: str, spec: ProjectionSpec, k: int, convention: str, metrics: tuple[str, ...]
) -> KeptScores:
    """The scores of one anchor set."""
    return KeptScores()


def keeper(key: str, anchors_key: str, *settings: Hashable) -> Callable[[str, PassedPair], None]:
    """What `score_forms` is to call with the pass of each representation."""
    return _passes(key, anchors_key, settings).__setitem__


def kept_pass(form: str, key: str, anchors_key: str, *settings: Hashable) -> PassedPair | None:
    """The pass over the rows that are not among these anchors; None where none was made, or where it is too long ago."""
    return _passes(key, anchors_key, settings).get(form)


@st.cache_resource(max_entries=8, show_spinner=False)
def _passes(key: str, anchors_key: str, settings: tuple[Hashable, ...]) -> dict[str, PassedPair]:
    return {}
