"""Table 1 of the first paper: neighbours of words, absolute and relative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from relcore.anchors.selection import select_anchors
from relcore.comparison import ProjectionSpec, held_out, represent, score_pair
from relcore.evaluation import Split
from relcore.metrics.calibration import Score
from relcore.papers.ours import SHARE
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report
from relcore.spaces import Match
from relcore.store import Store
from relcore.studies.material import word_pair

FORMS = {
    "absolute": ("absolute", False),
    "relative": ("relative", False),
    "relative, centred": ("relative", True),
    "relative, whitened (ours)": ("whitened", True),
}
PUBLISHED = ("absolute", "relative")  # the paper's own forms, which are also scored as it scores them
_NAMES = {"word2vec-novels": "Word2Vec", "fasttext-novels": "FastText"}


def neighbours(settings: Settings, store: Store, report: Report) -> Measured:
    """Both directions, each form; Jaccard, MRR and cosine in the paper's convention, Jaccard of mutual neighbours beside.

    "held-out rows": no anchor is a query or a candidate. "as published": the anchors are scored, too, and a relative space
    reproduces its own anchors.
    """
    pair = word_pair((), store)
    ways = (Match(pair.target, pair.source, 0, 0, 0), pair)
    steps = [(state, form, way) for state in settings["random_states"] for form in FORMS for way in ways]
    rows = []
    for done, (state, form, way) in enumerate(steps):
        report(done, len(steps), f"{form}, random state {state}")
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        representation, center = FORMS[form]
        made = represent(way, representation, anchors, ProjectionSpec(center=center))
        scored = {"held-out rows": anchors} | ({"as published": ()} if form in PUBLISHED else {})
        for told, left_out in scored.items():
            split = replace(held_out(way, left_out), random_state=state)
            for which, metric, score in _scores(made, split, settings, way is pair):
                name = which or f"{_NAMES[way.source.name]} → {_NAMES[way.target.name]}"
                row = {"label": f"{form}, {told}, {name}", "metric": metric, "value": float(score), "baseline": score.null.mean}
                unit = "−1 … 1" if metric == "cosine" else SHARE
                rows.append({**row, "unit": unit, "n": score.n_queries, "k": score.k})
    return Measured(grouped(rows))


def _scores(
    made: tuple[np.ndarray, np.ndarray], split: Split, settings: Settings, both_ways: bool
) -> Iterator[tuple[str, str, Score]]:
    """Which direction or pair the score is of, its name, and the score."""
    asked = {"k": settings["k"], "n_queries": settings["n_queries"]}
    scores = score_pair(*made, split, **asked)
    for metric, name in (("jaccard", "Jaccard"), ("mrr", "MRR"), ("cosine", "cosine")):
        yield "", name, scores[metric]
    if both_ways:
        yield "Word2Vec and FastText", "Jaccard, mutual", score_pair(*made, split, convention="mutual", **asked)["jaccard"]
