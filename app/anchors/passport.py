"""A passport of the session's anchors, by which a model can be checked later."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd

from app import compute, exports
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.passport.passport import FEWEST_ANCHORS, SUFFIX, Passport, PassportCard


def of_anchors(workspace: Workspace, spec: SpaceSpec) -> Passport:
    """The passport of the session's anchors in a space. Raises a SpaceError if there are too few anchors."""
    space = compute.load_space(spec)
    rows = space.index.get_indexer(pd.Index(workspace.anchors, dtype=object))
    return Passport.of(space.take(rows[rows >= 0]), PassportCard(space.name))


def download_of_anchors(workspace: Workspace, spec: SpaceSpec, key: str) -> None:
    """Draw a button that downloads a passport of the session's anchors. If there are too few anchors, draw
    nothing."""
    if len(workspace.anchors) < FEWEST_ANCHORS:
        return
    with suppress(SpaceError):  # a passport cannot hold zero vectors or ids with line breaks
        download(of_anchors(workspace, spec), key)


def download(passport: Passport, key: str) -> None:
    """Draw a button that downloads a passport."""
    exports.download(
        "Download the anchors as passport",
        passport.to_bytes,
        f"{passport.space.name}{SUFFIX}",
        "application/octet-stream",
        key,
        help="One file of the anchors and their vectors, to check a model by later. See docs/passport.md.",
    )
