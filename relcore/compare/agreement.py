"""How well the neighbours of a row agree between two spaces."""

from __future__ import annotations

import numpy as np
import pandas as pd

from relcore.base.rows import derived_unit_rows, unit_rows
from relcore.engine.nearest import nearest_within
from relcore.represent.similarity import mean_of
from relcore.scores.neighbours import jaccard_rows
from relcore.spaces.matching import Match


def centred_neighbours(match: Match, rows: np.ndarray, k: int) -> list[np.ndarray]:
    """Two arrays (m, k): the k nearest neighbours of these rows in the source and in the target, by cosine
    after centring."""
    k = min(k, len(match) - 1)
    spaces = match.source, match.target
    return [nearest_within(derived_unit_rows(space.vectors, mean_of(space)), rows, k) for space in spaces]


def neighbour_agreement(match: Match, rows: np.ndarray, k: int = 50) -> pd.DataFrame:
    """A table of these rows, sorted by the overlap of their neighbours in the two spaces, smallest first.

    Neighbours are searched in the absolute spaces (mutual kNN). Columns: row, id, overlap (Jaccard, 0 … 1),
    count (if known).
    """
    table = pd.DataFrame(
        {"row": rows, "id": match.ids[rows], "overlap": jaccard_rows(*centred_neighbours(match, rows, k))}
    )
    if match.source.counts is None:
        return table.sort_values("overlap", kind="stable", ignore_index=True)
    table["count"] = match.source.counts[rows]
    return table.sort_values(["overlap", "count"], ascending=[True, False], kind="stable", ignore_index=True)


def neighbours_of(
    match: Match, identifier: str, k: int = 10, made: tuple[np.ndarray, np.ndarray] | None = None
) -> pd.DataFrame:
    """A table of the k nearest neighbours of one row in both spaces. Columns: source, source cosine, target,
    target cosine, and whether it is a neighbour in both spaces.

    Neighbours are searched by cosine after centring: in the absolute spaces or, if it is given, in their
    representation `made`.
    """
    row = match.source.rows([identifier])
    k = min(k, len(match) - 1)
    if made is None:
        near = centred_neighbours(match, row, k)
        spaces = (match.source.vectors, match.target.vectors)
        means = [mean_of(match.source), mean_of(match.target)]
    else:
        near = [nearest_within(derived_unit_rows(X), row, k) for X in made]
        spaces = made
        means = [None, None]
    columns: dict[str, np.ndarray] = {}
    for side, space, mean, (nearest,) in zip(("source", "target"), spaces, means, near, strict=True):
        columns[side] = match.ids[nearest]
        columns[f"{side} cosine"] = unit_rows(space[nearest], mean) @ unit_rows(space[row], mean)[0]
    columns["source shared"] = np.isin(columns["source"], columns["target"])
    columns["target shared"] = np.isin(columns["target"], columns["source"])
    return pd.DataFrame(columns)


AGREEMENT_ROWS = (500, 4000)  # minimum and maximum number of rows whose neighbourhoods are compared
