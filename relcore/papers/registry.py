"""The runs that stand beside the papers' numbers: what each does, on what, with which sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PaperRun:
    """One run.

    Attributes
    ----------
    title, data : str
        What it does; what on.
    function : "module:name"
        Under relcore.papers; called with settings, store, report, gives `Measured`.
    settings : dict
        JSON values: every size, so that a run on a laptop takes minutes.
    minutes : float
        Roughly, on one core that does nothing else.
    local : str
        What it needs in the data folder; "" where all is bundled.
    version : int
        Raise it when the same settings would give other numbers.
    """

    title: str
    data: str
    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 1.0
    local: str = ""
    version: int = 1


_WORDS = "bundled Word2Vec and FastText, 20,000 words, 100 d"
_DIGITS = "scikit-learn's 1,797 digits, 8 × 8; an MLP, a CNN, a residual CNN and a ViT trained here, 64 d"
_SENTENCES = "2,000 sentences of 16 Wikipedia articles; TF-IDF + SVD and MiniLM's layers 2, 4 and 6, 384 d"
_TREC = "TREC, 5,452 questions to train on and 500 to test, 6 classes; TF-IDF + SVD and MiniLM's layers 2, 4 and 6"
_EVERYDAY = "438 bundled everyday sentences in English, Spanish, French and Japanese; TF-IDF + SVD a language"
_PICTURES = "scikit-learn's digits, 8 × 8"
_FIVE = [0, 1, 2, 3, 4]

RUNS: dict[str, PaperRun] = {
    "words": PaperRun(
        "Neighbours of words",
        _WORDS,
        "word_spaces:neighbours",
        {"n_anchors": 300, "k": 10, "n_queries": 2000, "random_states": _FIVE},
        minutes=2,
    ),
    "quantisation": PaperRun(
        "Quantised words", _WORDS, "from_studies:quantisation", {"n_anchors": 300, "n_states": 3}, minutes=2
    ),
    "codes": PaperRun(
        "Codes of autoencoders, turned onto each other",
        f"{_PICTURES}; absolute autoencoders with 2 and 64 numbers in the middle",
        "pictures:codes",
        {"random_states": [0, 1, 2, 3], "epochs": 30, "widths": [2, 64]},
        minutes=2,
    ),
    "autoencoders": PaperRun(
        "Autoencoders stitched",
        _PICTURES,
        "pictures:autoencoders",
        {"variational": False, "random_states": [0, 1, 2], "epochs": 30, "n_anchors": 200, "width": 500},
        minutes=3,
    ),
    "variational": PaperRun(
        "Variational autoencoders stitched",
        _PICTURES,
        "pictures:autoencoders",
        {"variational": True, "random_states": [0, 1, 2], "epochs": 30, "n_anchors": 200, "width": 500},
        minutes=3,
    ),
    "training-digits": PaperRun(
        "Heads on absolute and on relative rows",
        _DIGITS,
        "from_studies:training",
        {"data": "digits", "n_anchors": 500, "n_states": 6},
        minutes=3,
    ),
    "similarity-digits": PaperRun(
        "Similarity to a reference, digits",
        "60 networks of many settings on scikit-learn's digits, 8 × 8",
        "from_studies:similarity",
        {"data": "digits", "n_runs": 60},
        minutes=3,
    ),
    "similarity-cora": PaperRun(
        "Similarity to a reference, Cora",
        "60 runs of the paper's grid on Cora, 2,708 nodes",
        "from_studies:similarity",
        {"data": "Cora", "n_runs": 60},
        minutes=40,
        local="planetoid/Cora",
    ),
    "anchor-count": PaperRun(
        "Number of anchors, frozen encoders",
        _DIGITS,
        "from_studies:anchor_count",
        {"data": "digits", "n_states": 3},
        minutes=2,
    ),
    "trained-count": PaperRun(
        "Number of anchors, trained along",
        f"{_PICTURES}; an MLP",
        "from_studies:trained_count",
        {"architecture": "mlp", "epochs": 12, "n_states": 3},
        minutes=2,
    ),
    "stitch-digits": PaperRun(
        "Every encoder with every head, digits",
        _DIGITS,
        "stitched:relative_heads",
        {"data": "digits", "n_anchors": 300, "head": "mlp", "random_states": _FIVE},
        minutes=5,
    ),
    "stitch-sentences": PaperRun(
        "Every encoder with every head, sentences",
        _SENTENCES,
        "stitched:relative_heads",
        {"data": "sentences", "n_anchors": 768, "head": "logistic", "random_states": [0, 1, 2]},
        minutes=3,
    ),
    "stitch-trec": PaperRun(
        "Every encoder with every head, TREC",
        _TREC,
        "stitched:relative_heads",
        {"data": "trec", "n_anchors": 768, "head": "logistic", "random_states": [0, 1, 2]},
        minutes=4,
        local="trec",
    ),
    "inverse-digits": PaperRun(
        "Absolute heads reached by inversion, digits",
        _DIGITS,
        "stitched:absolute_heads",
        {"data": "digits", "n_anchors": 300, "omega": 8, "delta": 0.65, "random_states": _FIVE},
    ),
    "inverse-sentences": PaperRun(
        "Absolute heads reached by inversion, sentences",
        _SENTENCES,
        "stitched:absolute_heads",
        {"data": "sentences", "n_anchors": 768, "omega": 8, "delta": 0.7, "random_states": [0, 1, 2]},
        minutes=2,
    ),
    "inverse-trec": PaperRun(
        "Absolute heads reached by inversion, TREC",
        _TREC,
        "stitched:absolute_heads",
        {"data": "trec", "n_anchors": 768, "omega": 8, "delta": 0.7, "random_states": [0, 1, 2]},
        minutes=3,
        local="trec",
    ),
    "languages": PaperRun(
        "Sentences find their translations",
        _EVERYDAY,
        "languages:translations_found",
        {"n_anchors": 300, "k": 10, "n_components": 128, "random_states": _FIVE},
    ),
    "translation": PaperRun(
        "Sentences carried into English",
        _EVERYDAY,
        "languages:carried_over",
        {"n_anchors": 300, "k": 10, "n_components": 128, "omega": 8, "delta": 0.7, "random_states": _FIVE},
    ),
    "rescale-layers": PaperRun(
        "Rescaled inside MiniLM",
        "500 sentences of 16 Wikipedia articles; MiniLM, its embedding and 6 blocks",
        "rescaled:layers",
        {"n_train": 400, "n_test": 100, "span": 16.0, "n_alphas": 9},
        minutes=2,
    ),
    "rescale-input": PaperRun(
        "Rescaled at the input of small networks",
        f"{_PICTURES}, through a CNN trained here, 64 d",
        "rescaled:inputs",
        {"random_states": [0, 1, 2], "span": 32.0, "n_alphas": 41},
    ),
    "norms": PaperRun("Lengths of rows", f"{_DIGITS}. {_SENTENCES}", "rescaled:lengths", {}),
    "grid-digits": PaperRun(
        "δ × ω, digits",
        f"{_PICTURES}, from a CNN to a ViT trained here, 64 d",
        "rescaled:grid",
        {"data": "digits", "source": 1, "target": 3, "n_anchors": 300, "random_state": 0},
    ),
    "grid-sentences": PaperRun(
        "δ × ω, sentences",
        "2,000 sentences of 16 Wikipedia articles, from TF-IDF + SVD to MiniLM's layer 6, 384 d",
        "rescaled:grid",
        {"data": "sentences", "source": 0, "target": 3, "n_anchors": 768, "random_state": 0},
        minutes=2,
    ),
    "grid-trec": PaperRun(
        "δ × ω, TREC",
        "TREC, 5,952 questions, 6 classes, from TF-IDF + SVD to MiniLM's layer 6, 384 d",
        "rescaled:grid",
        {"data": "trec", "source": 0, "target": 3, "n_anchors": 768, "random_state": 0},
        minutes=3,
        local="trec",
    ),
    "cross-domain": PaperRun(
        "Across looks of the digits",
        f"{_PICTURES}, as scanned, inverted and thick; an MLP and a CNN trained on each",
        "stitched:across_looks",
        {"looks": ["plain", "inverted", "thick"], "networks": ["mlp", "cnn"], "n_anchors": 1000, "omega": 16, "delta": 0.8},
        minutes=2,
    ),
    "bootstrap-words": PaperRun(
        "Anchors of words found from 15 pairs",
        "bundled Word2Vec and FastText, the 2,000 most frequent words, 100 d",
        "bootstrapped:words",
        {"rows": 2000, "n_anchors": 300, "n_seeds": 15, "k": 10, "random_states": [0], "steps": 250},
        minutes=2,
    ),
    "bootstrap-digits": PaperRun(
        "Anchors of pictures found from 15 pairs",
        f"{_PICTURES}, through a CNN and a ViT trained here, 64 d",
        "bootstrapped:digits",
        {"n_anchors": 300, "n_seeds": 15, "k": 10, "random_states": [0, 1, 2], "steps": 250},
        minutes=2,
    ),
    "bootstrap-stitch": PaperRun(
        "Heads stitched through anchors found from 15 pairs",
        f"{_PICTURES}, through a CNN and a ViT; 2,000 Wikipedia sentences through MiniLM's layers 4 and 6",
        "bootstrapped:heads",
        {"n_anchors": 300, "n_seeds": 15, "random_states": [0, 1, 2]},
        minutes=2,
    ),
}
