"""How a change of anchors moves the scores of one representation, from a pass over the rows with either set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.block_scores.question import Question, RowNumbers
from relcore.block_scores.scoring import PassedPair, Passes, scored_rows
from relcore.comparison import ProjectionSpec, metrics_of_a_pair, represent, score_differences
from relcore.metrics.paired import Difference
from relcore.metrics.searched_rows import queries_decide
from relcore.names import METRICS
from relcore.spaces import Match


def anchor_differences(
    match: Match,
    form: str,
    before: Sequence[str],
    now: Sequence[str],
    projection: ProjectionSpec,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    labels: np.ndarray | None = None,
    device: str = "auto",
    kept: Mapping[tuple[str, ...], PassedPair] | None = None,
) -> dict[str, Difference]:
    """The change of each score of a representation from the anchors `before` to those `now`, with 95 % intervals.

    The differences are those of `comparison.score_differences` of the representations but for rounding, on the rows that are
    an anchor in neither set. No matrix of all rows and all anchors is formed, but for so few rows that errors need them.
    `kept` has what `score_forms` kept of some sets of anchors of this pair and form: they need no pass over the rows.

    Raises
    ------
    SpaceError
        As `comparison.represent` and `scored_rows` do.
    """
    split = scored_rows(match, tuple(dict.fromkeys((*now, *before))), form, k, convention)
    queries = split.queries(n_queries)
    if not queries_decide(len(split.test), len(queries)):
        made = (represent(match, form, anchors, projection) for anchors in (before, now))
        return score_differences(*made, split, k=k, convention=convention, n_queries=n_queries, labels=labels)
    question = Question((form,), projection, k, convention, sums=False, cosines=True)
    passes = Passes(match.source.vectors, match.target.vectors, device)
    labelled = None if labels is None else labels != ""

    def passed(anchors: Sequence[str]) -> PassedPair:
        used = () if form == "absolute" else shared_anchors(anchors, match.source, match.target)
        if (known := (kept or {}).get(tuple(anchors))) and (narrowed := known.narrowed(question, split, queries)):
            return narrowed
        rows = match.source.rows(used)
        others = np.setdiff1d(split.anchors, rows)
        numbers = RowNumbers(len(match), rows, {question.kind(form): queries}, labelled, others)
        seen = passes.seen(question, numbers)
        return PassedPair(seen, form, split, passes.take, labels=None if labels is None else labels[split.test])

    first = passed(before)
    pairs = first, first if form == "absolute" else passed(now)
    found = {name: METRICS[name].load()().difference(*pairs) for name in metrics_of_a_pair()}
    return {name: difference for name, difference in found.items() if difference is not None}
