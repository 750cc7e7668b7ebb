"""ThresholdChange: what a migration does to a similarity threshold, as a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.migration.follow_up import Fitted, FollowUp
from relcore.migration.thresholds import ThresholdOutcome, restore_threshold, score_pairs, usual_threshold
from relcore.spaces import need_one_of

SYSTEMS = {"bridge": "bridged queries", "re-embed": "the new model"}


@dataclass(frozen=True, kw_only=True)
class ThresholdChange(FollowUp[ThresholdOutcome]):
    """A threshold of the old model, and the map that restores it after bridging or re-embedding.

    Attributes
    ----------
    threshold : float, optional
        A cosine of the old model; by default what ten rows per query reach.
    system : one of `SYSTEMS`
    """

    kind: ClassVar[str] = "migration-threshold"
    result: ClassVar[str] = "relcore.migration.thresholds:ThresholdOutcome"
    title: ClassVar[str] = "Similarity threshold"

    threshold: float | None = None
    system: str = "bridge"

    def __post_init__(self) -> None:
        need_one_of("system", self.system, SYSTEMS)

    def measure(self, found: Fitted) -> ThresholdOutcome:
        state = self.migration.random_state
        pairs = score_pairs(found.system("keep"), found.system(self.system), found.trial.own, state)
        threshold = usual_threshold(pairs) if self.threshold is None else self.threshold
        return restore_threshold(pairs, threshold, state)


def printed(outcome: ThresholdOutcome) -> pd.DataFrame:
    """Before and after the map: KS distance, wrong decisions, rows accepted."""
    return pd.DataFrame(
        {
            "scores": ["old model", "without the map", "with the map", "of another query, with the map"],
            "KS distance": [0.0, outcome.ks_before, outcome.ks_after, np.nan],
            "wrong decisions": [0.0, outcome.error_before, outcome.error_after, outcome.chance],
            "rows per query": [outcome.accepted_old, outcome.accepted_before, outcome.accepted_after, np.nan],
        }
    )
