"""Outcome: the anchors found, with scores of the relative spaces by true, seed and found anchors on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relcore.anchors.bootstrap import BootstrapResult, Pairs
from relcore.comparison import score_pair
from relcore.evaluation import Split
from relcore.metrics.calibration import Score
from relcore.numbers import counted
from relcore.projection import RelativeProjection
from relcore.spaces import LatentSpace

FORMS = ("ground truth", "seeds", "found", "found, continuous")
SCORES = ("jaccard", "mrr", "cosine")
SCORED_QUERIES = 2000


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was found, and its quality if the truth is known.

    Attributes
    ----------
    share : float
        Share of the anchors beyond the seeds with their true partner, 0 … 1; NaN without a truth.
    scores : form → metric → Score
        Of the spaces relative to all true anchors, to the seeds alone, to the found ones, on held-out rows
        (`relative_scores`); empty without a truth.
    n_shared : int
        Rows whose partner is known.
    """

    result: BootstrapResult
    share: float
    scores: Mapping[str, Mapping[str, Score]]
    n_shared: int

    @property
    def known(self) -> bool:
        return self.n_shared > 0

    @property
    def n_hidden(self) -> int:
        """Anchors beyond the seeds."""
        return len(self.result.anchors) - self.result.n_seeds

    @property
    def headline(self) -> str:
        """The verdict, unless the spaces fit, and what was found."""
        result = self.result
        verdict = "" if result.success else f"{result.verdict.capitalize()}. "
        if self.known and self.n_hidden:
            return f"{verdict}{100 * self.share:.1f} % of the {self.n_hidden:,} hidden anchors found."
        return f"{verdict}{counted(len(result.anchors), 'anchor')} found, {counted(len(result.pairs), 'row')} matched."

    def wrong(self) -> Pairs:
        """Wrong anchors beyond the seeds: source id and the id it was matched to."""
        return tuple(pair for pair in self.result.anchors[self.result.n_seeds :] if pair[0] != pair[1]) if self.known else ()


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

    "found, continuous" takes the target's anchors as the paper's method optimised them, before they are replaced by the nearest
    rows; only that method has it. Rows are compared that are in both spaces and held out: not seeds, not anchors, and not
    matched with one. `as_published` compares all rows, anchors included. `center` False reproduces the paper; `back` takes the
    target's vectors as queries among those of the source. Empty if fewer than k + 2 rows are left.
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
    """The rows in both spaces except anchors and rows matched with one; None if no row is left."""
    ids = source.ids[source.index.isin(target.index)]
    taken = np.array([identifier for pair in result.anchors for identifier in pair], dtype=object)
    used = np.flatnonzero(np.isin(ids, taken))
    return Split.held_out(ids, used) if len(used) < len(ids) else None
