"""Runs on sentences in four languages."""

from __future__ import annotations

from relcore.papers.paper_run import EVERYDAY, FIVE, PaperRun

RUNS = {
    "languages": PaperRun(
        "Sentences find their translations",
        EVERYDAY,
        "languages:translations_found",
        {"n_anchors": 300, "k": 10, "n_components": 128, "random_states": FIVE},
    ),
    "translation": PaperRun(
        "Sentences carried into English",
        EVERYDAY,
        "languages:carried_over",
        {"n_anchors": 300, "k": 10, "n_components": 128, "omega": 8, "delta": 0.7, "random_states": FIVE},
    ),
}
