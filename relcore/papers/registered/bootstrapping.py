"""Runs of bootstrapping."""

from __future__ import annotations

from relcore.papers.paper_run import PICTURES, PaperRun

RUNS = {
    "bootstrap-words": PaperRun(
        "Anchors of words found from 15 pairs",
        "bundled Word2Vec and FastText, the 2,000 most frequent words, 100 d",
        "bootstrapped:words",
        {"rows": 2000, "n_anchors": 300, "n_seeds": 15, "k": 10, "random_states": [0], "steps": 250},
        minutes=2,
    ),
    "bootstrap-digits": PaperRun(
        "Anchors of pictures found from 15 pairs",
        f"{PICTURES}, through a CNN and a ViT trained here, 64 d",
        "bootstrapped:digits",
        {"n_anchors": 300, "n_seeds": 15, "k": 10, "random_states": [0, 1, 2], "steps": 250},
        minutes=2,
    ),
    "bootstrap-stitch": PaperRun(
        "Heads stitched through anchors found from 15 pairs",
        f"{PICTURES}, through a CNN and a ViT; 2,000 Wikipedia sentences through MiniLM's layers 4 and 6",
        "bootstrapped:heads",
        {"n_anchors": 300, "n_seeds": 15, "random_states": [0, 1, 2]},
        minutes=2,
    ),
}
