"""Compare two spaces: the same rows absolute, relative and whitened, with every score beside its chance
level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import need_one_of, quote
from relcore.base.magnitude import centred, lengths
from relcore.base.names import METRICS, SIMILARITIES
from relcore.base.numbers import counted, short
from relcore.base.settings import check, setting
from relcore.represent.anchors import coinciding_anchors, shared_anchors
from relcore.represent.similarity import RelativeProjection, mean_of, mean_row
from relcore.represent.translation import Procrustes
from relcore.scores.metric import AlignedPair
from relcore.scores.neighbours import CONVENTIONS, need_k
from relcore.scores.score import Difference, Score
from relcore.spaces.space import LatentSpace, Match
from relcore.spaces.split import Split

# held-out rows whose neighbours are looked up where scores are to come at once; their interval is ± .02
LIVE_QUERIES = 300


@dataclass(frozen=True)
class ProjectionSpec:
    """How relative spaces are made: the parameters of `RelativeProjection` except `whiten`, which is
    another representation.
    """

    similarity: str = setting(
        "cosine",
        choices=SIMILARITIES,
        help="Similarity of a row to an anchor; quantised: cosine after clustering (Moschella et al.).",
    )
    center: bool = setting(
        True,
        label="Centre first",
        help="Subtract each space's mean row first, so that shifts have no effect (Maiorca et al. 2024).",
    )
    ridge: float = setting(
        0.3,
        label="Whitening ridge λ",
        above=0,
        metavar="λ",
        step=0.1,
        help="λ of the whitened form; λ = 1 counts as much as one average anchor.",
    )
    threshold: float = setting(
        1.5,
        label="Cut of the clustering",
        above=0,
        step=0.5,
        help="Of the quantised similarity: Ward distance at which the clustering is cut.",
    )

    __post_init__ = check

    def projection(self, whiten: bool = False) -> RelativeProjection:
        """An unfitted projection; whitening is always of the cosine."""
        similarity = "cosine" if whiten else self.similarity
        return RelativeProjection(similarity, self.center, whiten, self.ridge, self.threshold)


RowMap = Callable[[np.ndarray], np.ndarray]
REPRESENTATIONS = ("absolute", "relative", "whitened", "procrustes")


def represent(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[np.ndarray, np.ndarray]:
    """Both spaces as "absolute" (n, d), "relative" or "whitened" (n, k), or the source rotated into the
    target ("procrustes").

    Procrustes is a reference: it uses both spaces and the same anchors. The matrices
    are read-only, like those of a space, as caches share them.

    Raises
    ------
    SpaceError
        Anchors that a space lacks, none or twice the same; an unknown representation.
    """
    spaces = match.source.vectors, match.target.vectors
    maps = representation_maps(match, representation, anchor_ids, spec)
    if representation == "absolute":
        return spaces
    rows = maps[0](spaces[0]), maps[1](spaces[1])
    for matrix in rows:
        matrix.flags.writeable = False
    return rows


def representation_maps(
    match: Match, representation: str, anchor_ids: Sequence[str], spec: ProjectionSpec
) -> tuple[RowMap, RowMap]:
    """What makes of rows of the source and of the target (m, d) their representation (m, w): `represent` in
    parts.
    """
    need_one_of("representation", representation, REPRESENTATIONS)
    source, target = match.source.vectors, match.target.vectors
    if representation == "absolute":
        return (np.asarray,) * 2
    rows = match.source.rows(shared_anchors(anchor_ids, match.source, match.target))
    if representation == "procrustes":
        procrustes = Procrustes().fit(source[rows], target[rows])
        mean = mean_row(target)  # as on Invert, where it is the same map
        return (lambda X: centred(procrustes.transform(X), mean)), partial(centred, mean=mean)
    whiten, maps = representation == "whitened", []
    for X in (source, target):
        maps.append(spec.projection(whiten).fit(X, anchors=rows).transform)
    return tuple(maps)


def sample_pair(match: Match, anchor_ids: Sequence[str], n_most: int, random_state: int = 0) -> Match:
    """The pair of these anchors and at most `n_most` other rows, drawn at random; the pair itself where it
    has no more.
    """
    anchors = match.source.rows(anchor_ids)
    free = np.ones(len(match), dtype=bool)
    free[anchors] = False
    others = np.flatnonzero(free)
    if len(others) <= n_most:
        return match
    rows = np.union1d(anchors, np.random.default_rng(random_state).choice(others, n_most, replace=False))
    return replace(match, source=match.source.take(rows), target=match.target.take(rows))


def held_out(
    match: Match,
    anchor_ids: Sequence[str] = (),
    representation: str = "relative",
    k: int = 0,
    convention: str = "paper",
) -> Split:
    """The rows that scores of this representation use: those that are not anchors, or all rows where no
    anchors are used.

    The latter holds for "absolute", and for other representations without `anchor_ids`, as the first paper
    published them.

    Raises
    ------
    SpaceError
        Anchors that the source lacks; no row beside them, or too few for k neighbours, where k is given.
    """
    need_one_of("convention", convention, CONVENTIONS)
    anchors = match.source.rows(() if representation == "absolute" else anchor_ids)
    split = Split.held_out(match.source.ids, anchors)
    if k:
        need_k(k, len(split.test), len(split.test) - (convention == "mutual"))
    return split


def metrics_of_a_pair() -> dict[str, str]:
    """Name → title of the metrics that a pair is scored by."""
    return {name: entry.title for name, entry in METRICS.items() if "pair" in entry.of}


def class_labels(match: Match) -> np.ndarray | None:
    """The classes of the rows, "" for a row without one; None unless most rows have one, as the categories of
    words do not.

    They are the source's, or the target's where the source has none.
    """
    labels = match.target.labels if match.source.labels is None else match.source.labels
    return labels if labels is not None and 2 * np.count_nonzero(labels != "") > len(labels) else None


def score_pair(
    source: np.ndarray, target: np.ndarray, split: Split, *, metrics: Sequence[str] = (), **settings: Any
) -> dict[str, Score]:
    """Scores of two row-aligned spaces (n, d) on the split's test rows, by these metrics, default all of
    them; `settings` are the other fields of `AlignedPair`.

    Neighbours of `n_queries` of the test rows, default all, are looked up among the test rows. A metric that
    needs one width is left out where there are two, and one that needs the `labels` of the n rows where there
    are none.

    Raises
    ------
    SpaceError
        Matrices of other rows than the split's.
    """
    return scores_of(AlignedPair.of(source, target, split, **settings), metrics)


def scores_of(pair: AlignedPair, metrics: Sequence[str] = ()) -> dict[str, Score]:
    """By these metrics, default all of them; without those that need one width, or labels, where there are
    none.
    """
    scores = {}
    for name in metrics or METRICS:
        of_pairs = bool(metrics) or "pair" in METRICS[name].of
        if of_pairs and (score := METRICS[name].load()().score(pair)) is not None:
            scores[name] = score
    return scores


def score_differences(
    before: tuple[np.ndarray, np.ndarray], now: tuple[np.ndarray, np.ndarray], split: Split, **settings: Any
) -> dict[str, Difference]:
    """The change of each score of `score_pair`, with its settings, on the same held-out rows and queries,
    with 95 % intervals.

    The split's anchors are those of both: a row that is an anchor before or now is in neither score.
    """
    return differences_of(*(AlignedPair.of(*rows, split, **settings) for rows in (before, now)))


def differences_of(before: AlignedPair, now: AlignedPair) -> dict[str, Difference]:
    changes = {name: METRICS[name].load()().difference(before, now) for name in metrics_of_a_pair()}
    return {name: change for name, change in changes.items() if change is not None}


def score_table(scores: Mapping[str, Mapping[str, Score]]) -> pd.DataFrame:
    """Scores by representation (`form`) and metric as a long table, each row with its settings and its chance
    level.

    Columns: metric, form, score, null_low, null_high (95 % band), low, high (sampling interval, NaN where all
    rows are queries), chance (the chance level's mean), convention, k, n, queries; where neighbours are
    approximate also search, recall, recall_low, recall_high (95 % interval), recall_queries.
    """
    rows = []
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            title = METRICS[metric].title + (f", k = {score.k}" if score.k else "")
            title += f", approximate ({score.recall.search})" if score.recall else ""
            rows.append({"metric": title, "form": form, "convention": score.convention, **score.facts()})
    columns = ["metric", "form", "score", "null_low", "null_high", "low", "high", "chance", "convention"]
    table, recall = pd.DataFrame(rows), ["search", "recall", "recall_low", "recall_high", "recall_queries"]
    return table.filter([*columns, "k", "n", "queries", *recall])


def score_notes(
    scores: Mapping[str, Mapping[str, Score]], match: Match | None = None, anchor_ids: Sequence[str] = ()
) -> list[str]:
    """The notes of scores by representation, each once and with the scores that have it; with `match` also
    what decides relative scores beside the likeness of the spaces: long rows, anchors that coincide.
    """
    places: dict[str, list[str]] = {}
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            for note in filter(None, (score.note, score.recall and score.recall.caution(score.k))):
                places.setdefault(note, []).append(f"{METRICS[metric].title} ({form})")
    notes = []
    for note, where in places.items():
        notes.append(f"{', '.join(where)}: {note}")
    for space in (match.source, match.target) if match and len(anchor_ids) else ():
        notes.append(long_row(space) or coinciding_anchors(space, anchor_ids))
    return list(filter(None, notes))


_MOVED = 0.25  # of the other rows' spread


def long_row(space: LatentSpace) -> str:
    """Says that one row moves the mean of a space, and so every centred score; "" where none does."""
    far = lengths(space.vectors, mean_of(space)).astype(np.float64)
    row, n = int(far.argmax()), len(far)
    if n < 3 or not far[row]:
        return ""
    moved = 1 / (n - 1)  # of the row's distance: the other rows' mean lies as far on the other side
    others = np.delete(far, row) / far[row]
    spread = np.sqrt(max(np.mean(others**2) - moved**2, 0))
    if moved <= _MOVED * spread:
        return ""
    return (
        f"One long row, {quote(space.ids[[row]])}, moves the mean of {quote([space.name])} by"
        f" {short(moved / max(spread, 1e-9), 1)} times the spread of the other rows, so it decides centred"
        " scores. Leave it out."
    )


def circumstances(scores: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """``n = 19,700 held-out rows, no anchor among them (absolute: all 20,000 rows)``, and where scores read
    neighbour lists ``Jaccard and MRR: k = 10, paper convention, 300 of them as queries (± …)``.
    """
    absolute, others, titles = "", "", {}
    for form, by_metric in scores.items():
        n = next(iter(by_metric.values())).n
        if form == "absolute":
            absolute = counted(n, "row")
        else:
            others = others or counted(n, "held-out row")
        for name, score in by_metric.items():
            if score.k:
                titles.setdefault(METRICS[name].title, score)
    rows = f"n = {others}, no anchor among them{f' (absolute: all {absolute})' * bool(absolute)}"
    parts = [rows if others else f"n = {absolute}"]
    if titles:
        (*names, last), first = titles, next(iter(titles.values()))
        sampled = f", {first.n_queries:,} of them as queries (± is the 95 % sampling interval)"
        parts.append(
            f"{', '.join(names)}{' and ' * bool(names)}{last}: k = {first.k}, {first.convention} convention"
            f"{sampled * bool(first.interval)}"
        )
    return parts
