"""Runs of stitched heads: relative ones, and absolute ones by inversion."""

from __future__ import annotations

from relcore.papers.paper_run import DIGITS, FIVE, MNIST_NETWORKS, PICTURES, SENTENCES, TREC, PaperRun

RUNS = {
    "stitch-digits": PaperRun(
        "Every encoder with every head, digits",
        DIGITS,
        "stitched:relative_heads",
        {"data": "digits", "n_anchors": 300, "head": "mlp", "random_states": [0, 1, 2]},
        minutes=5,
        version=2,
    ),
    "stitch-sentences": PaperRun(
        "Every encoder with every head, sentences",
        SENTENCES,
        "stitched:relative_heads",
        {"data": "sentences", "n_anchors": 768, "head": "logistic", "random_states": [0, 1, 2]},
        minutes=3,
        version=2,
    ),
    "stitch-trec": PaperRun(
        "Every encoder with every head, TREC",
        TREC,
        "stitched:relative_heads",
        {"data": "trec", "n_anchors": 768, "head": "logistic", "random_states": [0, 1, 2]},
        minutes=4,
        local="trec",
        version=2,
    ),
    "inverse-digits": PaperRun(
        "Absolute heads reached by inversion, digits",
        DIGITS,
        "stitched:absolute_heads",
        {"data": "digits", "n_anchors": 300, "omega": 8, "delta": 0.65, "random_states": FIVE},
        version=2,
    ),
    "inverse-mnist": PaperRun(
        "Absolute heads reached by inversion, MNIST",
        MNIST_NETWORKS,
        "stitched:absolute_heads",
        {"data": "mnist", "n_anchors": 300, "omega": 8, "delta": 0.65, "random_states": FIVE},
        minutes=4,
        local="mnist",
    ),
    "inverse-sentences": PaperRun(
        "Absolute heads reached by inversion, sentences",
        SENTENCES,
        "stitched:absolute_heads",
        {"data": "sentences", "n_anchors": 768, "omega": 8, "delta": 0.7, "random_states": [0, 1, 2]},
        minutes=2,
        version=2,
    ),
    "inverse-trec": PaperRun(
        "Absolute heads reached by inversion, TREC",
        TREC,
        "stitched:absolute_heads",
        {"data": "trec", "n_anchors": 768, "omega": 8, "delta": 0.7, "random_states": [0, 1, 2]},
        minutes=3,
        local="trec",
        version=2,
    ),
    "cross-domain": PaperRun(
        "Across looks of the digits",
        f"{PICTURES}, as scanned, inverted and thick; an MLP and a CNN trained on each",
        "stitched:across_looks",
        {"looks": ["plain", "inverted", "thick"], "networks": ["mlp", "cnn"], "n_anchors": 1000, "omega": 16, "delta": 0.8},
        minutes=2,
        version=2,
    ),
}
