"""Table 1 of the first paper: neighbours of words, absolute and relative."""

from __future__ import annotations

from dataclasses import replace

from relcore.anchors.selection import select_anchors
from relcore.comparison import ProjectionSpec, held_out, represent, score_pair
from relcore.papers.ours import SHARE
from relcore.papers.runs import Measured, Report, Settings
from relcore.papers.summaries import grouped
from relcore.spaces import Match
from relcore.store import Store
from relcore.studies.material import word_pair

FORMS = {
    "absolute": ("absolute", False),
    "relative, as published": ("relative", False),
    "relative, centred": ("relative", True),
    "relative, whitened (ours)": ("whitened", True),
}
_NAMES = {"word2vec-novels": "Word2Vec", "fasttext-novels": "FastText"}


def neighbours(settings: Settings, store: Store, report: Report) -> Measured:
    """Both directions, each form; Jaccard, MRR and cosine in the paper's convention, Jaccard of mutual neighbours beside."""
    pair = word_pair((), store)
    ways = (Match(pair.target, pair.source, 0, 0, 0), pair)
    steps = [(state, form, way) for state in settings["random_states"] for form in FORMS for way in ways]
    rows = []
    for done, (state, form, way) in enumerate(steps):
        report(done, len(steps), f"{form}, random state {state}")
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        representation, center = FORMS[form]
        made = represent(way, representation, anchors, ProjectionSpec(center=center))
        split, asked = (
            replace(held_out(way, anchors), random_state=state),
            {"k": settings["k"], "n_queries": settings["n_queries"]},
        )
        scores = score_pair(*made, split, **asked)
        found = {"Jaccard": scores["jaccard"], "MRR": scores["mrr"], "cosine": scores["cosine"]}
        if way is pair:  # the same both ways
            found["Jaccard, mutual"] = score_pair(*made, split, convention="mutual", **asked)["jaccard"]
        names = f"{_NAMES[way.source.name]} → {_NAMES[way.target.name]}"
        for metric, score in found.items():
            told = names if metric != "Jaccard, mutual" else "Word2Vec and FastText"
            row = {"label": f"{form}, {told}", "metric": metric, "value": float(score), "n": score.n_queries, "k": score.k}
            unit = "−1 … 1" if metric == "cosine" else SHARE
            rows.append({**row, "unit": unit, "baseline": score.null.mean})
    return Measured(grouped(rows))
