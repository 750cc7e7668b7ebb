"""Compare two spaces: the same rows absolute, relative and whitened, with every score beside its chance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.anchors.diagnostics import coinciding_anchors
from relcore.anchors.selection import shared_anchors
from relcore.evaluation import Split
from relcore.magnitude import centred
from relcore.metrics.calibration import Score
from relcore.metrics.cautions import long_row
from relcore.metrics.metric import AlignedPair
from relcore.metrics.neighbours import Neighbours, find_neighbours
from relcore.metrics.paired import Difference
from relcore.names import METRICS, SIMILARITIES
from relcore.numbers import counted
from relcore.projection import RelativeProjection
from relcore.similarity import mean_row
from relcore.spaces import Match, SpaceError, need_one_of
from relcore.translation import Procrustes

LIVE_QUERIES = 300  # held-out rows whose neighbours are looked up where scores are to come at once; their interval is ± .02


@dataclass(frozen=True)
class ProjectionSpec:
    """How relative spaces are made: the parameters of `RelativeProjection` except `whiten`, which is another representation."""

    similarity: str = "cosine"
    center: bool = True
    ridge: float = 0.3
    threshold: float = 1.5

    def __post_init__(self) -> None:
        need_one_of("similarity", self.similarity, SIMILARITIES)
        for name in ("ridge", "threshold"):
            if not 0 < (value := getattr(self, name)) < np.inf:
                raise SpaceError(
                    f"{name}: expected a number above 0, got {value!r}; try the default, {getattr(type(self), name)}"
                )

    def projection(self, whiten: bool = False) -> RelativeProjection:
        """An unfitted projection; whitening is always of the cosine."""
        similarity = "cosine" if whiten else self.similarity
        return RelativeProjection(similarity, self.center, whiten, self.ridge, self.threshold)


REPRESENTATIONS = ("absolute", "relative", "whitened", "procrustes")


def represent(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[np.ndarray, np.ndarray]:
    """Both spaces as "absolute" (n, d), "relative" or "whitened" (n, k), or the source rotated into the target ("procrustes").

    Procrustes is a reference: it uses both spaces and the same anchors. The matrices
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
        mean = mean_row(target)  # as on Invert, where it is the same map
        made = centred(procrustes.transform(source), mean), centred(target, mean)
    else:
        projection = spec.projection(whiten=representation == "whitened")
        made = tuple(projection.fit(X, anchors=rows).transform(X) for X in (source, target))
    for matrix in made:
        matrix.flags.writeable = False
    return made


def held_out(match: Match, anchor_ids: Sequence[str] = (), representation: str = "relative") -> Split:
    """The rows that scores of this representation use: those that are not anchors, or all rows where no anchors are used.

    The latter holds for "absolute", and for other representations without `anchor_ids`, as the first paper published them.

    Raises
    ------
    SpaceError
        Anchors that the source lacks, or no row beside them.
    """
    return Split.held_out(match.ids, match.source.rows(() if representation == "absolute" else anchor_ids))


def metrics_of_a_pair() -> dict[str, str]:
    """Name → title of the metrics that a pair is scored by."""
    return {name: entry.title for name, entry in METRICS.items() if "pair" in entry.of}


def class_labels(match: Match) -> np.ndarray | None:
    """The classes of the rows, "" for a row without one; None unless most rows have one, as the categories of words do not.

    They are the source's, or the target's where the source has none.
    """
    labels = match.target.labels if match.source.labels is None else match.source.labels
    return labels if labels is not None and 2 * np.count_nonzero(labels != "") > len(labels) else None


def score_pair(
    source: np.ndarray,
    target: np.ndarray,
    split: Split,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    metrics: Sequence[str] = (),
    labels: np.ndarray | None = None,
) -> dict[str, Score]:
    """Scores of two row-aligned spaces (n, d) on the split's test rows, by these metrics, default all of them.

    Neighbours of `n_queries` of the test rows, default all, are looked up among the test rows. A metric that needs one width
    is left out where there are two, and one that needs the `labels` of the n rows where there are none.

    Raises
    ------
    SpaceError
        Matrices of other rows than the split's.
    """
    pair = AlignedPair.of(source, target, split, k, convention, n_queries, labels=labels)
    scores = {name: METRICS[name].load()().score(pair) for name in metrics or metrics_of_a_pair()}
    return {name: score for name, score in scores.items() if score is not None}


def score_differences(
    before: tuple[np.ndarray, np.ndarray],
    now: tuple[np.ndarray, np.ndarray],
    split: Split,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    labels: np.ndarray | None = None,
) -> dict[str, Difference]:
    """The change of each score of `score_pair`, on the same held-out rows and queries, with 95 % intervals.

    The split's anchors are those of both: a row that is an anchor before or now is in neither score.
    """
    pairs = [AlignedPair.of(*matrices, split, k, convention, n_queries, labels=labels) for matrices in (before, now)]
    found = {name: METRICS[name].load()().difference(*pairs) for name in metrics_of_a_pair()}
    return {name: difference for name, difference in found.items() if difference is not None}


def score_table(scores: Mapping[str, Mapping[str, Score]]) -> pd.DataFrame:
    """Scores by representation (`form`) and metric as a long table, each row with its settings and its chance level.

    Columns: metric, form, score, null_low, null_high (95 % band), low, high (sampling interval, NaN where all rows are
    queries), chance (the chance level's mean), convention, k, n, queries.
    """
    rows = []
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            title = METRICS[metric].title + (f", k = {score.k}" if score.k else "")
            rows.append({"metric": title, "form": form, "convention": score.convention, **score.facts()})
    columns = ["metric", "form", "score", "null_low", "null_high", "low", "high", "chance", "convention", "k", "n", "queries"]
    return pd.DataFrame(rows)[columns]


def score_notes(scores: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """The notes of scores by representation, each once and with the scores that have it; mostly none."""
    places: dict[str, list[str]] = {}
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            if score.note:
                places.setdefault(score.note, []).append(f"{METRICS[metric].title} ({form})")
    return [f"{', '.join(where)}: {note}" for note, where in places.items()]


def cautions(match: Match, anchor_ids: Sequence[str]) -> list[str]:
    """Sentences about what decides relative scores beside the likeness of the spaces: long rows that move a mean, and anchors
    that coincide; mostly none."""
    if not len(anchor_ids):
        return []
    told = (long_row(space) or coinciding_anchors(space, anchor_ids) for space in (match.source, match.target))
    return [sentence for sentence in told if sentence]


def neighbour_facts(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """``Jaccard and MRR: k = 10, paper convention``, of the scores that read neighbour lists; "" where none does."""
    every = {metric: score for by_metric in scores.values() for metric, score in by_metric.items() if score.k}
    if not every:
        return ""
    *titles, last = [METRICS[metric].title for metric in METRICS if metric in every]
    first = next(iter(every.values()))
    return f"{', '.join(titles)}{' and ' * bool(titles)}{last}: k = {first.k}, {first.convention} convention"


def rows_scored(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """``n = 19,700 held-out rows, no anchor among them (absolute: all 20,000 rows)``."""
    counts = {form: next(iter(by_metric.values())).n for form, by_metric in scores.items()}
    absolute = counts.pop("absolute", None)
    if not counts:
        return f"n = {counted(absolute, 'row')}"
    all_rows = f" (absolute: all {counted(absolute, 'row')})" if absolute else ""
    return f"n = {counted(next(iter(counts.values())), 'held-out row')}, no anchor among them{all_rows}"


def centred_neighbours(match: Match, rows: np.ndarray, k: int) -> Neighbours:
    """The k neighbours of these rows in each of the two spaces, by cosine after centring, the row itself left out."""
    moved = (centred(space.vectors, mean_row(space.vectors)) for space in (match.source, match.target))
    return find_neighbours(*moved, k=min(k, len(match) - 1), convention="mutual", queries=rows)


def neighbour_agreement(match: Match, rows: np.ndarray, k: int = 50) -> pd.DataFrame:
    """The share of neighbours that each of these rows keeps from one space to the other, smallest first.

    Mutual kNN in the absolute spaces: no anchors are involved. Columns: row, id, overlap (Jaccard, 0 … 1), count (if known);
    of equal overlaps the more frequent row comes first.
    """
    table = pd.DataFrame({"row": rows, "id": match.ids[rows], "overlap": centred_neighbours(match, rows, k).overlap})
    if match.source.counts is None:
        return table.sort_values("overlap", kind="stable", ignore_index=True)
    table["count"] = match.source.counts[rows]
    return table.sort_values(["overlap", "count"], ascending=[True, False], kind="stable", ignore_index=True)


def neighbours_of(
    match: Match, identifier: str, k: int = 10, made: tuple[np.ndarray, np.ndarray] | None = None
) -> pd.DataFrame:
    """One row's k nearest in both spaces side by side: source, source cosine, target, target cosine, and whether shared.

    By cosine in the absolute spaces after centring, or in another representation `made` of both, such as that of `represent`.
    """
    row, k = match.source.rows([identifier]), min(k, len(match) - 1)
    found = centred_neighbours(match, row, k) if made is None else find_neighbours(*made, k=k, convention="mutual", queries=row)
    columns: dict[str, np.ndarray] = {}
    for side, space, (lists,) in (("source", found.source, found.own), ("target", found.target, found.other)):
        columns[side] = match.ids[lists]
        columns[f"{side} cosine"] = space[lists] @ space[row[0]]
    columns["source shared"] = np.isin(columns["source"], columns["target"])
    columns["target shared"] = np.isin(columns["target"], columns["source"])
    return pd.DataFrame(columns)
