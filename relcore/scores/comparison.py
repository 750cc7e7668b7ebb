"""Scores of two spaces with the same rows, in their absolute, relative and whitened representations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relcore.base.errors import need_one_of
from relcore.base.names import METRICS
from relcore.base.plugins import named_in_errors
from relcore.engine.nearest import largest_k, need_k
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.represent.strategies import shared_anchors
from relcore.scores.neighbours import CONVENTIONS, queries_decide
from relcore.scores.passes import EXTRA_NEIGHBOURS, AlignedPair, Done, RowPair
from relcore.scores.roles import NO_ROWS, RowRoles, ScoreRequest
from relcore.scores.score import Interval, Score
from relcore.spaces.matching import Match
from relcore.spaces.split import Split


def sample_pair(match: Match, anchor_ids: Sequence[str], n_most: int, random_state: int = 0) -> Match:
    """The matched spaces, reduced to these anchors and at most `n_most` other rows. If there are no more
    rows, they are unchanged.

    The rows are drawn as in `Split.queries`, so the queries are the same as without the reduction.
    """
    anchors = match.source.rows(anchor_ids)
    if len(match) - len(anchors) <= n_most:
        return match
    others = Split.held_out(match.ids, anchors, random_state).queries(n_most)
    rows = np.union1d(anchors, others)
    return replace(match, source=match.source.take(rows), target=match.target.take(rows))


def held_out(
    match: Match,
    anchor_ids: Sequence[str] = (),
    representation: str = "relative",
    k: int = 0,
    convention: str = "paper",
) -> Split:
    """The split into anchors and the rows that scores of this representation use: all rows except the
    anchors.

    All rows are used for "absolute", and if there are no `anchor_ids` (as in the first paper).

    Raises
    ------
    SpaceError
        Anchors that the source lacks; no rows besides the anchors; if k is given, too few rows for k
        neighbours.
    """
    need_one_of("convention", convention, CONVENTIONS)
    anchors = match.source.rows(() if representation == "absolute" else anchor_ids)
    split = Split.held_out(match.source.ids, anchors)
    if k:
        n = len(split.test)
        need_k(k, n, largest_k(n, convention))
    return split


def metrics_of_a_pair(more: bool = False) -> dict[str, str]:
    """The titles, by name, of the metrics that score a pair of spaces. `more` includes metrics that are
    computed only if they are chosen by name."""
    kinds = {"pair", "more"} if more else {"pair"}
    return {name: entry.title for name, entry in METRICS.items() if kinds & set(entry.of)}


def class_labels(match: Match) -> np.ndarray | None:
    """The class of each row, "" for rows without a class. None unless most rows have a class.

    They are the labels of the source; if it has none, those of the target.
    """
    if match.source.labels is None:
        labels = match.target.labels
    else:
        labels = match.source.labels
    if labels is not None and 2 * np.count_nonzero(labels != "") > len(labels):
        return labels
    return None


def score_pair(
    source: np.ndarray, target: np.ndarray, split: Split, *, metrics: Sequence[str] = (), **settings: Any
) -> dict[str, Score]:
    """The scores of two row-aligned spaces (n, d) on the test rows of the split, by these metrics (default:
    all). `settings` are further arguments of `AlignedPair.of`.

    The queries are `n_queries` of the test rows (default: all). They are searched among all test rows. A
    metric is left out if it needs equal widths or the `labels` of the n rows, and they are missing.

    Raises
    ------
    SpaceError
        The number of rows differs from that of the split.
    """
    return scores_of(AlignedPair.of_arrays(source, target, split, **settings), metrics)


def scores_of(pair: AlignedPair, metrics: Sequence[str] = ()) -> dict[str, Score]:
    """The scores of a pair by these metrics (default: all). A metric is left out if it needs equal widths or
    labels, and the pair lacks them. If a plugin fails, a SpaceError names it."""
    scores = {}
    for name in metrics or metrics_of_a_pair():
        entry = METRICS[name]
        if "labels" in entry.needs and not pair.rows.labelled:
            continue
        with named_in_errors(entry.plugin):
            scores[name] = entry.load()().score(pair)
    return {name: score for name, score in scores.items() if score is not None}


def score_differences(
    before: tuple[np.ndarray, np.ndarray], now: tuple[np.ndarray, np.ndarray], split: Split, **settings: Any
) -> dict[str, Interval]:
    """The change of each score of `score_pair`, with its 95 % interval, on the same held-out rows and
    queries. `settings` are those of `score_pair`.

    The split must list the anchors of `before` and those of `now`, because a row that is an anchor in one of
    them is not scored in either.
    """
    earlier = AlignedPair.of_arrays(*before, split, **settings)
    later = AlignedPair.of_arrays(*now, split, **settings)
    return differences_of(earlier, later)


def differences_of(before: AlignedPair, now: AlignedPair) -> dict[str, Interval]:
    changes = {name: METRICS[name].load()().difference(before, now) for name in metrics_of_a_pair()}
    return {name: change for name, change in changes.items() if change is not None}


def groups_of(representations: Sequence[str]) -> list[tuple[str, ...]]:
    """The representations in two groups: "absolute", which is scored on all rows, and all others."""
    absolute = tuple(name for name in representations if name == "absolute")
    others = tuple(name for name in representations if name != "absolute")
    return [group for group in (absolute, others) if group]


def score_representations(
    match: Match,
    representations: Sequence[str],
    anchor_ids: Sequence[str],
    projection: ProjectionSpec,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    metrics: Sequence[str] = (),
    labels: np.ndarray | None = None,
    done: Done = lambda parts, n_parts: None,
    device: str | None = None,
    keep: Callable[[str, AlignedPair], None] | None = None,
) -> dict[str, dict[str, Score]]:
    """The scores of each representation on its held-out rows. If there are many rows, all representations
    share one pass over them.

    Up to rounding, the scores equal those of `score_pair`; they need only the memory of a few blocks.
    ``done(parts, n_parts)`` is called to report progress. ``keep(representation, pair)`` is called with each
    representation and its pair of spaces, which `anchor_differences` can use.
    """
    for representation in representations:
        need_one_of("representation", representation, REPRESENTATIONS)
    if all(name == "absolute" for name in representations):
        anchor_ids = ()
    else:
        anchor_ids = shared_anchors(anchor_ids, match.source, match.target)
    anchors = match.source.rows(anchor_ids)
    request = ScoreRequest(
        (),
        projection,
        k,
        convention,
        cosines=keep is not None,
        extra_neighbours=EXTRA_NEIGHBOURS if keep else 0,
    )
    rows = RowPair(match.source.vectors, match.target.vectors, match.ids, labels, device, done)
    splits: dict[str, Split] = {}
    parts = []
    for group in groups_of(representations):
        split = held_out(match, anchor_ids, group[0], k, convention)
        splits |= dict.fromkeys(group, split)
        own = NO_ROWS
        if group[0] != "absolute":
            own = anchors
        roles = RowRoles(len(match), own, split.queries(n_queries), split.untested, rows.labelled)
        parts.append((replace(request, representations=group), roles))
    pairs = {}
    for sums in rows.sums_of(parts):
        for representation in sums.plan.representations:
            made = partial(represent, match, representation, anchor_ids, projection)
            pairs[representation] = AlignedPair.passed(
                rows, representation, sums, splits[representation], made
            )
    scores = {name: scores_of(pairs[name], metrics) for name in representations}
    if keep is not None:
        for representation, pair in pairs.items():
            pair.searched.slim()
            keep(representation, pair)
    return scores


# The effect of other anchors on the scores of one representation, with one pass for each set of anchors.


def anchor_differences(
    match: Match,
    representation: str,
    before: Sequence[str],
    now: Sequence[str],
    projection: ProjectionSpec,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    labels: np.ndarray | None = None,
    device: str | None = None,
    kept: Mapping[tuple[str, ...], AlignedPair] | None = None,
) -> dict[str, Interval]:
    """The change of each score of a representation, with its 95 % interval, if the anchors `now` replace the
    anchors `before`.

    Scored rows are those that are no anchor in either set. Up to rounding, the changes equal those of
    `score_differences`. `kept` maps anchors to the pairs that `score_representations` made with them;
    these need no further pass over the rows.
    """
    split = held_out(match, tuple(dict.fromkeys((*now, *before))), representation, k, convention)
    queries = split.queries(n_queries)
    if not queries_decide(len(split.test), len(queries)):

        def represented(anchors: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
            source, target = represent(match, representation, anchors, projection)
            return source, target

        return score_differences(
            represented(before),
            represented(now),
            split,
            k=k,
            convention=convention,
            n_queries=n_queries,
            labels=labels,
        )
    request = ScoreRequest((representation,), projection, k, convention, sums=False, cosines=True)
    pair = RowPair(match.source.vectors, match.target.vectors, match.ids, labels, device)

    def passed(anchors: Sequence[str]) -> AlignedPair:
        used: Sequence[str] = ()
        if representation != "absolute":
            used = shared_anchors(anchors, match.source, match.target)
        known = (kept or {}).get(tuple(anchors))
        if known is not None and (narrowed := known.narrowed(request, split, queries)):
            return narrowed
        chosen = match.source.rows(used)
        roles = RowRoles(len(match), chosen, queries, split.untested, pair.labelled)
        (seen,) = pair.sums_of([(request, roles)])
        return AlignedPair.passed(pair, representation, seen, split)

    first = passed(before)
    second = first
    if representation != "absolute":
        second = passed(now)
    return differences_of(first, second)
