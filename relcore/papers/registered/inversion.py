"""Runs of the inverse projection's figures: rescaling, lengths, δ × ω."""

from __future__ import annotations

from relcore.papers.paper_run import DIGITS, FIVE, PICTURES, SENTENCES, WORDS, PaperRun

RUNS = {
    "rescale-layers": PaperRun(
        "Rescaled inside MiniLM",
        "500 sentences of 16 Wikipedia articles; MiniLM, its embedding and 6 blocks",
        "rescaled:layers",
        {"n_train": 400, "n_test": 100, "span": 16.0, "n_alphas": 9},
        minutes=2,
        version=2,
    ),
    "rescale-input": PaperRun(
        "Rescaled at the input of small networks",
        f"{PICTURES}, through a CNN trained here, 64 d",
        "rescaled:inputs",
        {"random_states": [0, 1, 2], "span": 32.0, "n_alphas": 41},
        version=2,
    ),
    "norms": PaperRun("Lengths of rows", f"{DIGITS}. {SENTENCES}", "rescaled:lengths", version=3),
    "grid-digits": PaperRun(
        "δ × ω, digits",
        f"{PICTURES}, from a CNN to a ViT trained here, 64 d",
        "rescaled:grid",
        {"data": "digits", "source": 1, "target": 3, "n_anchors": 300, "random_state": 0},
        version=3,
    ),
    "grid-sentences": PaperRun(
        "δ × ω, sentences",
        "2,000 sentences of 16 Wikipedia articles, from TF-IDF + SVD to MiniLM's layer 6, 384 d",
        "rescaled:grid",
        {"data": "sentences", "source": 0, "target": 3, "n_anchors": 768, "random_state": 0},
        version=3,
        minutes=2,
    ),
    "grid-trec": PaperRun(
        "δ × ω, TREC",
        "TREC, 5,952 questions, 6 classes, from TF-IDF + SVD to MiniLM's layer 6, 384 d",
        "rescaled:grid",
        {"data": "trec", "source": 0, "target": 3, "n_anchors": 768, "random_state": 0},
        version=3,
        minutes=3,
        local="trec",
    ),
    "completion": PaperRun(
        "Anchor completion, words",
        WORDS,
        "completion:completion",
        {"n_anchors": 300, "delta": 0.7, "omegas": [1, 8], "n_queries": 2000, "random_states": FIVE},
        minutes=0.5,
    ),
}
