"""Compare two spaces: the same rows absolute, relative and whitened, with every score beside its chance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.anchors.selection import shared_anchors
from relcore.metrics.calibration import Score
from relcore.metrics.cka import linear_cka, mean_cosine
from relcore.metrics.neighbours import Neighbours, find_neighbours
from relcore.progress import Context
from relcore.projection import RelativeProjection
from relcore.similarity import SIMILARITIES, mean_row
from relcore.spaces import Match, SpaceError, need_one_of
from relcore.translation import Procrustes

LIVE_QUERIES = (
    300  # rows asked for their neighbours where scores are to come at once; the interval that goes with them is ± .02
)


@dataclass(frozen=True)
class ProjectionSpec:
    """How relative spaces are made; the parameters of `RelativeProjection` less `whiten`, which is a row of its own."""

    similarity: str = "cosine"
    center: bool = True
    ridge: float = 0.3
    threshold: float = 1.5

    def __post_init__(self) -> None:
        need_one_of("similarity", self.similarity, SIMILARITIES)

    def projection(self, whiten: bool = False) -> RelativeProjection:
        """An unfitted projection; whitening is always of the cosine."""
        similarity = "cosine" if whiten else self.similarity
        return RelativeProjection(similarity, self.center, whiten, self.ridge, self.threshold)


REPRESENTATIONS = ("absolute", "relative", "whitened", "procrustes")


def represent(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[np.ndarray, np.ndarray]:
    """Both spaces as "absolute" (n, d), "relative" or "whitened" (n, k), or the source rotated into the target ("procrustes").

    Procrustes is the reference for what a method that sees both spaces at once can reach with the same anchors. The matrices
    are read-only, like those of a space, as caches share them.

    Raises
    ------
    SpaceError
        Anchors that a space lacks, none or twice the same; an unknown representation.
    """
    if representation not in REPRESENTATIONS:
        raise SpaceError(f"representation: expected one of {', '.join(REPRESENTATIONS)}, got {representation!r}")
    source, target = match.source.vectors, match.target.vectors
    if representation == "absolute":
        return source, target
    rows = match.source.rows(shared_anchors(anchor_ids, match.source, match.target))
    if representation == "procrustes":
        procrustes = Procrustes().fit(source[rows], target[rows])
        mean = procrustes.target_mean_.astype(np.float32)
        made = procrustes.transform(source) - mean, target - mean
    else:
        projection = spec.projection(whiten=representation == "whitened")
        made = tuple(projection.fit(X, anchors=rows).transform(X) for X in (source, target))
    for matrix in made:
        matrix.flags.writeable = False
    return made


def score_pair(
    source: np.ndarray,
    target: np.ndarray,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    random_state: int = 0,
) -> dict[str, Score]:
    """All scores of two row-aligned spaces: ``jaccard``, ``mrr``, ``cosine``, ``cka``; those that need one width only there."""
    same_width = source.shape[1] == target.shape[1]
    scores: dict[str, Score] = {}
    if same_width or convention == "mutual":
        found = find_neighbours(source, target, k, convention, n_queries=n_queries, random_state=random_state)
        scores["jaccard"] = found.jaccard()
        if same_width:
            scores["mrr"] = found.mrr()
            scores["cosine"] = mean_cosine(found.source, found.target, of_unit_length=True)
    scores["cka"] = linear_cka(source, target)
    return scores


def score_job(context: Context, *, inputs: Sequence[str], k: int, convention: str) -> None:
    """`score_pair` with every row asked, as a job of the Engine; `inputs` are store keys of the two matrices."""
    entries = [context.store.get(key) for key in inputs]
    if None in entries:
        raise SpaceError(f"the matrices are no longer in {context.store.root}; ask for the scores again")
    context.report(0, 1, "asking every row for its neighbours")
    scores = score_pair(*(entry.arrays["matrix"] for entry in entries), k=k, convention=convention)
    context.put({}, {"scores": {metric: score.to_json() for metric, score in scores.items()}})


METRIC_NAMES = {"jaccard": "Jaccard", "mrr": "MRR", "cosine": "cosine", "cka": "linear CKA"}


def score_table(scores: Mapping[str, Mapping[str, Score]]) -> pd.DataFrame:
    """Scores by representation (`form`) and metric as a long table, each row with its circumstances and its null.

    Columns: metric, form, score, null_low, null_high (95 % band), low, high (sampling interval, NaN where all rows were
    asked), chance (the null's mean), convention, k, n, queries.
    """
    rows = []
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            low, high = score.interval or (np.nan, np.nan)
            null = score.null
            rows.append(
                {
                    "metric": METRIC_NAMES[metric] + (f", k = {score.k}" if score.k else ""),
                    "form": form,
                    "score": float(score),
                    "null_low": null.low if null else np.nan,
                    "null_high": null.high if null else np.nan,
                    "low": low,
                    "high": high,
                    "chance": null.mean if null else np.nan,
                    "convention": score.convention,
                    "k": score.k,
                    "n": score.n,
                    "queries": score.n_queries,
                }
            )
    return pd.DataFrame(rows)


def centred_neighbours(match: Match, rows: np.ndarray, k: int) -> Neighbours:
    """The k neighbours of these rows in each of the two spaces, by cosine after centring, the row itself left out."""
    centred = (space.vectors - mean_row(space.vectors) for space in (match.source, match.target))
    return find_neighbours(*centred, k=min(k, len(match) - 1), convention="mutual", queries=rows)


def neighbour_agreement(match: Match, rows: np.ndarray, k: int = 50) -> pd.DataFrame:
    """How much of its neighbourhood each of these rows keeps from one space to the other, least first.

    Mutual kNN in the absolute spaces: no anchors are involved. Columns: row, id, overlap (Jaccard, 0 … 1), count (if known);
    of equal overlaps the more frequent row comes first.
    """
    table = pd.DataFrame({"row": rows, "id": match.ids[rows], "overlap": centred_neighbours(match, rows, k).overlap})
    if match.source.counts is None:
        return table.sort_values("overlap", kind="stable", ignore_index=True)
    table["count"] = match.source.counts[rows]
    return table.sort_values(["overlap", "count"], ascending=[True, False], kind="stable", ignore_index=True)


def neighbours_of(match: Match, identifier: str, k: int = 10) -> pd.DataFrame:
    """One row's k nearest in both spaces side by side: source, source cosine, target, target cosine, and whether shared."""
    row = match.source.rows([identifier])
    found = centred_neighbours(match, row, k)
    columns: dict[str, np.ndarray] = {}
    for side, space, (lists,) in (("source", found.source, found.own), ("target", found.target, found.other)):
        columns[side] = match.ids[lists]
        columns[f"{side} cosine"] = space[lists] @ space[row[0]]
    columns["source shared"] = np.isin(columns["source"], columns["target"])
    columns["target shared"] = np.isin(columns["target"], columns["source"])
    return pd.DataFrame(columns)
