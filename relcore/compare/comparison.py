"""`compare`, all scores of two spaces at once, and `Comparison`, its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_sequence, need_whole, random_generator
from relcore.base.environment import resolve
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS
from relcore.base.report import Report, Reported
from relcore.compare.reports import comparison_report
from relcore.engine.nearest import largest_k, need_k
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.represent.strategies import Strategy, select_anchors, unscored_first, usual_anchors
from relcore.runs.progress_line import long_call, show_step
from relcore.scores.comparison import class_labels, metrics_of_a_pair, score_representations
from relcore.scores.score import Score
from relcore.scores.score_report import LIVE_QUERIES, score_table
from relcore.spaces.matching import Match, match, need_columns_in_one_order
from relcore.spaces.space import MatrixLike

_USUAL_PROJECTION = ProjectionSpec()


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Reported):
    """All scores of two spaces, absolute and relative to anchors, each with its chance level.

    Attributes
    ----------
    scores : representation → metric → Score
        For example ``scores["relative"]["mrr"]``.
    pair : Match
        The rows that were compared.
    anchors : tuple of ids

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> compare(X, 2 * X, anchors=0, metrics=["cka"]).table[["form", "metric", "score"]]
           form      metric  score
    0  absolute  linear CKA    1.0
    """

    scores: Mapping[str, Mapping[str, Score]]
    pair: Match
    anchors: tuple[str, ...]

    @property
    def table(self) -> pd.DataFrame:
        """The scores with all digits, one row per representation and metric."""
        return score_table(self.scores)

    def report(self) -> Report:
        return comparison_report(self.scores, self.pair, self.anchors)


@long_call
def compare(
    source: MatrixLike,
    target: MatrixLike,
    anchors: Sequence[str] | int | None = None,
    *,
    strategy: Strategy = "random",
    projection: ProjectionSpec = _USUAL_PROJECTION,
    k: int = 10,
    convention: Literal["mutual", "paper"] = "paper",
    n_queries: int | None = LIVE_QUERIES,
    metrics: Sequence[str] = (),
    random_state: int = 0,
    device: str = "auto",
) -> Comparison:
    """Score how similar two spaces are, absolute and relative to anchors, by all scores at once. They are the
    scores of the command `compare` with the same settings.

    Parameters
    ----------
    source, target : LatentSpace, or matrix (n, d) in any form
        Rows are paired by id, rows of arrays by number.
    anchors : ids, or how many, optional
        By default, 300 rows, but at most a fifth. Without anchors (0), only absolute scores are computed.
    strategy, random_state
        How anchors are chosen, if their number is given (see `select_anchors`).
    projection : ProjectionSpec
        The settings of relative rows.
    k, convention : int, "paper" or "mutual"
        The neighbours, as in `jaccard`.
    n_queries : int or None
        Number of random held-out rows whose neighbours are searched. None searches those of all.
    metrics : names, optional
        Scores to compute instead of the usual ones, such as ``["svcca", "rsa"]``; ``["all"]`` computes all.
    device : str
        As in `jaccard`.

    Raises
    ------
    SpaceError
        No shared rows; columns in two orders; anchors that a space lacks; too few rows for k neighbours; an
        unknown score; no score that exists for these spaces.

    Examples
    --------
    >>> from relcore import compare, load_words
    >>> first, second = (load_words(name, limit=1000) for name in ("word2vec-novels", "fasttext-novels"))
    >>> compared = compare(first, second, anchors=100)
    >>> relative, absolute = (compared.scores[name]["mrr"] for name in ("relative", "absolute"))
    >>> relative > absolute, relative.n
    (True, 900)
    """
    names = named_metrics(metrics, "metrics")
    need_whole("k", k)
    if n_queries is not None:
        need_whole("n_queries", n_queries)
    random_generator(random_state)
    need_columns_in_one_order(source, target)
    pair = match(source, target)
    chosen = _anchors_of(pair, anchors, strategy, random_state)
    for n in (len(pair), len(pair) - len(chosen)):
        need_k(k, n, largest_k(n, convention), f" of {pair.source.name!r} and {pair.target.name!r}")
    representations: Sequence[str] = ("absolute",)
    if chosen:
        representations = tuple(REPRESENTATIONS)
    scores = score_representations(
        pair,
        representations,
        chosen,
        projection,
        k=k,
        convention=convention,
        n_queries=n_queries,
        metrics=names,
        labels=class_labels(pair),
        done=show_step,
        device=resolve(device),
    )
    return Comparison(need_scores(scores, "metrics"), pair, chosen)


def _anchors_of(
    pair: Match, anchors: Sequence[str] | int | None, strategy: Strategy, random_state: int
) -> tuple[str, ...]:
    if anchors is None:
        anchors = usual_anchors(len(pair))
    if not isinstance(anchors, int | np.integer):
        return tuple(need_ids("anchors", anchors))
    need_whole("anchors", anchors, 0, len(pair))
    if not anchors:
        return ()
    space = unscored_first(pair.source, int(anchors))
    return tuple(select_anchors(space, int(anchors), strategy, random_state=random_state))


def named_metrics(asked: Sequence[str], argument: str) -> tuple[str, ...]:
    """The names of the metrics of a pair that are asked for, in any spelling; ``("all",)`` asks for all.

    Raises
    ------
    SpaceError
        An unknown metric. The message names the argument.
    """
    need_sequence(argument, asked, "names of scores")
    every = metrics_of_a_pair(more=True)
    spelt = {name.replace("-", " "): name for name in every}
    if tuple(asked) == ("all",):
        return tuple(name for name in METRICS.working() if name in every)
    names = tuple(spelt.get(str(name).replace("-", " ").lower(), name) for name in asked)
    for name in names:
        need_one_of(argument, name, ["all", *every])
    return names


def need_scores(scores: Mapping[str, Mapping[str, Score]], argument: str) -> dict[str, Mapping[str, Score]]:
    """The representations that have scores. Raises a SpaceError that names the argument if none has."""
    scored = {name: by_metric for name, by_metric in scores.items() if by_metric}
    if not scored:
        raise SpaceError(
            f"{argument}: expected scores that exist for these two spaces, got none; these two differ in"
            " width or lack labels: choose other scores"
        )
    return scored
