"""The nearest rows of a row in both spaces, and the share of them that the spaces have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd

from relcore.represent.similarity import mean_of, unit_rows
from relcore.scores.neighbours import jaccard_rows, own_neighbours
from relcore.spaces.space import Match


def centred_neighbours(match: Match, rows: np.ndarray, k: int) -> list[np.ndarray]:
    """The k nearest of these rows (m,) in the source and in the target, by cosine after centring, the row
    itself left out.

    Two arrays (m, k) of row numbers, nearest first; k is at most n − 1.
    """
    k = min(k, len(match) - 1)
    return [own_neighbours(space.vectors, mean_of(space), rows, k) for space in (match.source, match.target)]


def neighbour_agreement(match: Match, rows: np.ndarray, k: int = 50) -> pd.DataFrame:
    """The share of neighbours that each of these rows keeps from one space to the other, smallest first.

    Mutual kNN in the absolute spaces: no anchors are involved. Columns: row, id, overlap (Jaccard, 0 … 1),
    count (if known); of equal overlaps the more frequent row comes first.
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
    """One row's k nearest in both spaces side by side: source, source cosine, target, target cosine, and
    whether shared.

    By cosine in the absolute spaces after centring, or in another representation `made` of both, such as that
    of `represent`.
    """
    row, k = match.source.rows([identifier]), min(k, len(match) - 1)
    if made is None:
        found, spaces = centred_neighbours(match, row, k), (match.source.vectors, match.target.vectors)
        means = [mean_of(match.source), mean_of(match.target)]
    else:
        found, spaces, means = [own_neighbours(X, None, row, k) for X in made], made, [None, None]
    columns: dict[str, np.ndarray] = {}
    for side, space, mean, (near,) in zip(("source", "target"), spaces, means, found, strict=True):
        columns[side] = match.ids[near]
        columns[f"{side} cosine"] = unit_rows(space[near], mean) @ unit_rows(space[row], mean)[0]
    columns["source shared"] = np.isin(columns["source"], columns["target"])
    columns["target shared"] = np.isin(columns["target"], columns["source"])
    return pd.DataFrame(columns)
