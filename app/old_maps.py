"""What a pane shows while UMAP or t-SNE works: the last finished map of the same rows, or PCA; marked as old."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app import compute, jobs, session
from app.workspace import Workspace
from relcore.engine import Job
from relcore.names import REDUCTIONS
from relcore.spaces import Match
from relcore.views import View


@dataclass(frozen=True)
class PairMap:
    """Coordinates of both spaces, and a note on how they came about.

    Where they are not what was chosen: `old` says what they are, `earlier` whether they are a finished map rather than PCA,
    and `job` is what to wait for.
    """

    coordinates: list[np.ndarray]
    note: str
    old: str = ""
    earlier: bool = False
    job: Job | None = None


def pair_map(pair: Match, drawn: View, pane: str, workspace: Workspace) -> PairMap:
    """The map of one representation as it can be drawn now."""
    method = workspace.reduction.method
    settings = pair, drawn, pane, workspace.anchors, workspace.projection, workspace.reduction
    if method == "pca":
        return PairMap(*compute.pca_coordinates(*settings))
    place = compute.pair_key(pair), drawn.digest, pane, method, workspace.reduction.n_components
    found = jobs.reduction(*settings)
    if isinstance(found, tuple):
        session.keep_map(place, (workspace.anchors, found))
        return PairMap(*found)
    anchors, earlier = session.kept_map(place) or (None, None)
    what = "PCA" if earlier is None else "Earlier settings" if anchors == workspace.anchors else "Earlier anchors"
    title, state = REDUCTIONS[method].title, found.status().state
    ended = {"failed": f"{what}: {title} failed", "cancelled": f"{what}: {title} was stopped"}
    told = ended.get(state, f"{what} until {title} is done")
    return PairMap(*(earlier or compute.pca_coordinates(*settings)), told, earlier is not None, found)
