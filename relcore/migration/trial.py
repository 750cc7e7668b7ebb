"""Trials: judged queries on the whole corpus, or held-out pairs as queries on each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.evaluation import row_keys
from relcore.migration.evaluate import Trial
from relcore.migration.pairing import FEWEST
from relcore.migration.retrieval import Judgement, Relevance, relevance_of, same_label
from relcore.migration.split import Parts
from relcore.migration.truth import neighbours_of
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace, Match, SpaceError, match

MOST_QUERIES = 2_000
MOST_ROWS = 100_000


def judged_trial(
    spaces: Sequence[LatentSpace], judgements: Sequence[Judgement], random_state: int = 0
) -> tuple[Trial, tuple[str, ...], list[str]]:
    """Queries with a relevant row, on the old corpus, of which at most 100,000 rows; their ids, and cautions.

    The pairs stay in the corpus, as they will in use. Re-embedding is measured where every row has a new vector.

    Raises
    ------
    SpaceError
        No relevant row among known ids.
    """
    old, new, old_queries, new_queries = spaces
    asked = match(old_queries, new_queries)
    relevance, unknown = relevance_of(judgements, asked.ids, old.ids)
    answered = _sampled(asked.ids, np.flatnonzero(relevance.counts), random_state, MOST_QUERIES)
    place = new.index.get_indexer(old.index)
    trial = Trial(
        unit_rows(asked.source.vectors[answered]),
        unit_rows(asked.target.vectors[answered]),
        unit_rows(old.vectors),
        unit_rows(new.vectors[place]) if (place >= 0).all() else None,
        relevance.take(answered),
        None,
        np.arange(len(old)),
    )
    cautions = [
        f"{unknown[name]:,} judgements name {what}, and are left out."
        for name, what in (("queries", "unknown queries"), ("rows", "rows that the old vectors lack"))
        if unknown[name]
    ]
    if trial.new_corpus is None:
        n = int((place >= 0).sum())
        cautions.append(f"Re-embedding is not measured: {n:,} of {len(old):,} rows have a new vector.")
    return trial.with_fewer_rows(MOST_ROWS, random_state), tuple(asked.ids[answered]), cautions


def held_out_trial(paired: Match, parts: Parts, relevance: str, truth: str, k: int, random_state: int = 0) -> Trial:
    """Held-out pairs as queries, at most 2,000, that search the held-out rows: the fitted ones are not searched.

    Parameters
    ----------
    relevance : "neighbours" or "labels"
        What is relevant: the k rows that `truth.neighbours_of` finds, or all rows of the query's label.

    Raises
    ------
    SpaceError
        No labels, or labels that no two held-out rows share; too few held-out rows.
    """
    held = parts.held_out
    need_held_out(len(held))
    held = np.sort(_sampled(paired.ids, held, random_state, MOST_ROWS))
    old, new = unit_rows(paired.source.vectors[held]), unit_rows(paired.target.vectors[held])
    queries = np.sort(_sampled(paired.ids[held], np.arange(len(held)), random_state, MOST_QUERIES))
    if relevance == "labels":
        found = _by_label(paired, held, queries)
        kept = np.flatnonzero(found.counts)
        if len(kept) < FEWEST:
            raise SpaceError(f"labels: expected {FEWEST} held-out rows or more that share a label, got {len(kept)}")
        queries, found = queries[kept], found.take(kept)
    else:
        found = neighbours_of(truth, old, new, queries, min(k, len(held) - 1))
    return Trial(old[queries], new[queries], old, new, found, queries, held)


def need_held_out(n: int) -> None:
    """Raise a SpaceError where too few rows are held out."""
    if n < FEWEST:
        raise SpaceError(f"pairs: expected {FEWEST} or more held out, got {n} that repeat no fitted row; embed more rows")


def _by_label(paired: Match, held: np.ndarray, queries: np.ndarray) -> Relevance:
    labels = paired.source.labels if paired.source.labels is not None else paired.target.labels
    if labels is None:
        raise SpaceError("labels: expected a label per row of the old or of the new vectors, got none; leave this out")
    return same_label(labels[held], queries)


def _sampled(ids: np.ndarray, rows: np.ndarray, random_state: int, most: int) -> np.ndarray:
    """At most this number of the rows, by their ids' keys, in the order of the rows."""
    if len(rows) <= most:
        return rows
    keys = row_keys(ids[rows], "queries", random_state)
    return rows[np.sort(np.argsort(keys)[:most])]
