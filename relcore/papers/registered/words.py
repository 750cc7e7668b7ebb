"""Runs on words."""

from __future__ import annotations

from relcore.papers.paper_run import FIVE, WORDS, PaperRun

RUNS = {
    "words": PaperRun(
        "Neighbours of words",
        WORDS,
        "word_spaces:neighbours",
        {"n_anchors": 300, "k": 10, "n_queries": 2000, "random_states": FIVE},
        minutes=2,
        version=2,
    ),
    "quantisation": PaperRun(
        "Quantised words", WORDS, "from_studies:quantisation", {"n_anchors": 300, "n_states": 5}, minutes=2, version=2
    ),
}
