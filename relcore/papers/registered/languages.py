"""Runs on sentences in four languages."""

from __future__ import annotations

from relcore.papers.paper_run import EVERYDAY, FIVE, PaperRun

RUNS = {
    "languages": PaperRun(
        "Sentences find their translations",
        EVERYDAY,
        "languages:translations_found",
        {"n_anchors": 300, "k": 10, "n_components": 128, "random_states": FIVE},
        version=2,
    ),
    "translation": PaperRun(
        "Sentences carried into English",
        EVERYDAY,
        "languages:carried_over",
        {"n_anchors": 300, "k": 10, "n_components": 128, "omega": 8, "delta": 0.7, "random_states": FIVE},
        version=2,
    ),
    "captions": PaperRun(
        "Heads across languages, captions",
        "4,000 captions of Multi30k in English, German and French; TF-IDF + SVD a language, 300 d; the classes are 5 clusters "
        "of MiniLM's rows of the English captions",
        "captions:across_languages",
        {
            "languages": ["en", "de", "fr"],
            "n_captions": 4000,
            "n_classes": 5,
            "n_components": 300,
            "n_anchors": 438,
            "random_states": [0, 1, 2],
        },
        minutes=3,
        local="multi30k",
    ),
}
