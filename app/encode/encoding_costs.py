"""What an encoding will roughly cost, said before the click. The figures are processor seconds measured on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.encode.raw_data import Preview
from app.jobs import engine
from relcore.pace import Expected, expect
from relcore.sources.encoder import Encoder
from relcore.sources.graphs import GraphEncoder
from relcore.sources.lsa import TfidfSvd
from relcore.sources.pooled_words import PooledWords
from relcore.sources.small_vision import SmallVision
from relcore.sources.text import MiniLM

# Measured on a server's processor of 2026, one thread, torch 2: digits (1,797 of 8 × 8 pixels), 12 epochs, 0.8, 2.9, 7.4 and
# 6.7 s; 1,250 of MNIST's 28 × 28, 2 epochs, 0.5, 1.3, 2.5 and 2.7 s, so about with the square root of the pixels.
_TRAINING = {"mlp": 4.6e-5, "cnn": 1.7e-4, "residual": 4.3e-4, "vit": 3.9e-4}  # seconds a row and epoch, 64 pixels
_MINILM = 54 / 2000 / 6  # a sentence and layer: 2,000 sentences through all six 54 s
_TFIDF = 5e-4  # a sentence: 2,000 in 1.0 s
_WORDS = 2e-4  # a sentence: 2,000 in 0.4 s
_GRAPH = 0.39 / 2708  # a node and epoch: Cora, 10 epochs of a width of 300 in 3.9 s
_START = {SmallVision: 3.0, MiniLM: 5.0, GraphEncoder: 5.0, TfidfSvd: 1.0, PooledWords: 1.0}  # libraries, weights


def seconds(encoder: Encoder, preview: Preview) -> float | None:
    """Processor seconds, about; None where they depend on a model that nobody has measured."""
    start = _START.get(type(encoder))
    if isinstance(encoder, SmallVision):
        largest = max((width * height for width, height in preview.sizes), default=64)
        pixels = encoder.image_size**2 if encoder.image_size else largest
        rows = min(0.8 * preview.n, encoder.train_rows) * encoder.epochs + preview.n / 3  # encoding is the forward third
        return start + rows * _TRAINING[encoder.architecture] * (pixels / 64) ** 0.5
    if isinstance(encoder, MiniLM):
        return start + preview.n * _MINILM * max(layer % 7 for layer in encoder.layers)
    if isinstance(encoder, GraphEncoder):
        return start + preview.n * encoder.epochs * _GRAPH * encoder.width / 300 * encoder.layers / 2
    if isinstance(encoder, TfidfSvd):
        return start + preview.n * _TFIDF
    if isinstance(encoder, PooledWords):
        return start + preview.n * _WORDS
    return None


def expected(encoder: Encoder, preview: Preview) -> Expected | None:
    """The same at the pace of the last encodings of this kind here."""
    known = seconds(encoder, preview)
    kind = f"encode/{type(encoder).__name__}/{getattr(encoder, 'architecture', '')}".rstrip("/")
    return None if known is None else expect(engine().store, kind, known)


def in_words(duration: float | None) -> str:
    """``"about 7 s"``, ``"about 3 min"``."""
    if duration is None:
        return "not measured before, depends on the model"
    if duration < 100:
        return f"about {max(1, round(duration))} s"
    return f"about {round(duration / 60)} min" if duration < 5400 else f"about {duration / 3600:.1f} h"


def learned(found: Iterable[Expected | None]) -> str:
    """A sentence to put behind a caption, where one of these was learned from them; else nothing."""
    return " The time is what the last runs here took." if any(one and one.learned for one in found) else ""


def together(durations: Sequence[float], n_processes: int) -> float:
    """Seconds until the last of several has ended, `n_processes` at a time."""
    busy = [0.0] * n_processes
    for duration in durations:
        busy[busy.index(min(busy))] += duration
    return max(busy)
