"""What found anchors are worth: relative spaces by true, seed and found anchors, compared on held-out rows."""

from __future__ import annotations

import numpy as np

from relcore.anchors.bootstrap import BootstrapResult
from relcore.comparison import score_pair
from relcore.evaluation import Split
from relcore.metrics.calibration import Score
from relcore.projection import RelativeProjection
from relcore.spaces import LatentSpace

FORMS = ("ground truth", "seeds", "found", "found, continuous")
SCORES = ("jaccard", "mrr", "cosine")
SCORED_QUERIES = 2000


def relative_scores(
    source: LatentSpace,
    target: LatentSpace,
    result: BootstrapResult,
    *,
    k: int = 10,
    center: bool = True,
    n_queries: int | None = SCORED_QUERIES,
    as_published: bool = False,
    back: bool = False,
) -> dict[str, dict[str, Score]]:
    """Form → metric → score: Jaccard, MRR ("paper" convention) and cosine of the spaces relative to one set of anchors.

    "found, continuous" takes the target's anchors as the paper's method optimised them, before the nearest rows are taken; it
    is there for that method alone. Only rows that both spaces have are compared, and of these only the held-out ones: rows that
    are neither seeds nor anchors nor rows that were taken for one. `as_published` compares all rows, anchors among them.
    `center` False reproduces the paper; `back` asks with the target's vectors among those of the source. Empty where fewer than
    k + 2 rows are left.
    """
    rows = target.index.get_indexer(source.index)
    own = np.flatnonzero(rows >= 0)
    split = Split.held_out(source.ids[own]) if as_published else held_out_split(source, target, result)
    if split is None or len(split.test) < k + 2:
        return {}
    X, Y = source.vectors[own], target.vectors[rows[own]]
    true = [pair for pair in ((one, one) for one, _ in result.anchors) if pair[0] in target.index]
    seeds, found = result.anchors[: result.n_seeds], result.anchors
    scores = {}
    for form, pairs in zip(FORMS, (true, seeds, found, found), strict=True):
        if not pairs or (form == FORMS[-1] and result.vectors is None):
            continue
        one, other = zip(*pairs, strict=True)
        anchors = result.vectors if form == FORMS[-1] else target.rows(other)
        first = RelativeProjection(center=center).fit(source.vectors, anchors=source.rows(one)).transform(X)
        second = RelativeProjection(center=center).fit(target.vectors, anchors=anchors).transform(Y)
        first, second = (second, first) if back else (first, second)
        scores[form] = score_pair(first, second, split, k=k, n_queries=n_queries, metrics=SCORES)
    return scores


def held_out_split(source: LatentSpace, target: LatentSpace, result: BootstrapResult) -> Split | None:
    """Rows that both spaces have, the anchors and the rows taken for them apart; None where no other row is left."""
    ids = source.ids[source.index.isin(target.index)]
    taken = np.array([identifier for pair in result.anchors for identifier in pair], dtype=object)
    used = np.flatnonzero(np.isin(ids, taken))
    return Split.held_out(ids, used) if len(used) < len(ids) else None
