"""A run that stands beside a paper's numbers, and the data that several of them use, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WORDS = "bundled Word2Vec and FastText, 20,000 words, 100 d"
DIGITS = "scikit-learn's 1,797 digits, 8 × 8; an MLP, a CNN, a residual CNN and a ViT trained here, 64 d"
_TEXTS = "four independent encoders: TF-IDF + SVD (384 d), pooled Word2Vec (100 d), pooled FastText (100 d), MiniLM (384 d)"
SENTENCES = f"2,000 sentences of 16 Wikipedia articles; {_TEXTS}"
TREC = f"TREC, 5,452 questions to train on and 500 to test, 6 classes; {_TEXTS}"
EVERYDAY = "438 bundled everyday sentences in English, Spanish, French and Japanese; TF-IDF + SVD a language"
PICTURES = "scikit-learn's digits, 8 × 8"
MNIST = "MNIST reduced to 14 × 14 pixels, the first 10,000 pictures of its training part, 1,000 of them to try"
MNIST_NETWORKS = (
    "MNIST reduced to 14 × 14 pixels, the first 5,000 pictures of its training part, 1,000 of them to test; an MLP, a CNN, a "
    "residual CNN and a ViT trained here on the others, 64 d"
)
FIVE = [0, 1, 2, 3, 4]


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
