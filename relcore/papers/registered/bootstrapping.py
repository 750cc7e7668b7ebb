"""Runs of bootstrapping."""

from __future__ import annotations

from relcore.papers.paper_run import FIVE, PICTURES, PaperRun

# Steps and learning rate are those of the paper's Table 3 for stitching: with those for retrieval (250 steps, .02) one of ten
# runs on 2,000 words had not converged.
_SIZES = {"n_anchors": 300, "n_seeds": 15, "k": 10, "steps": 125, "learning_rate": 0.05, "n_queries": 1000}

RUNS = {
    "bootstrap-words": PaperRun(
        "Anchors of words found from 15 pairs",
        "bundled Word2Vec and FastText, the 4,000 most frequent words, 100 d",
        "bootstrapped:words",
        {"rows": 4000, **_SIZES, "random_states": FIVE},
        minutes=15,
        version=2,
    ),
    "bootstrap-digits": PaperRun(
        "Anchors of pictures found from 15 pairs",
        f"{PICTURES}, through two autoencoders trained here without labels, 64 and 128 d",
        "bootstrapped:digits",
        {**_SIZES, "random_states": FIVE},
        minutes=3,
        version=2,
    ),
    "bootstrap-stitch": PaperRun(
        "Heads stitched through anchors found from 15 pairs",
        f"{PICTURES}, through two autoencoders; 2,000 Wikipedia sentences through TF-IDF + SVD and MiniLM's layers 2 and 6",
        "bootstrapped:heads",
        {"n_anchors": 300, "n_seeds": 15, "steps": 125, "learning_rate": 0.05, "random_states": [0, 1, 2]},
        minutes=5,
        version=2,
    ),
}
