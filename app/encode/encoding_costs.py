"""The expected time of an encoding, shown before it starts, and durations in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.encode.raw_data import Preview
from app.jobs import engine
from relcore import job_status
from relcore.pace import Expected, expect
from relcore.sources.encoder import Encoder


def expected(encoder: Encoder, preview: Preview) -> Expected | None:
    """What the encoder's author measured, at the pace of the last encodings of this kind here; None where nobody has."""
    known = encoder.seconds(preview.n, preview.pixels)
    kind = f"encode/{type(encoder).__name__}/{getattr(encoder, 'architecture', '')}".rstrip("/")
    return None if known is None else expect(engine().store, kind, known)


def in_words(duration: float | None) -> str:
    """``"about 7 s"``, ``"about 3 min"``."""
    if duration is None:
        return "time unknown, depends on the model"
    return f"about {job_status.in_words(duration)}"


def learned(found: Iterable[Expected | None]) -> str:
    """A sentence for the end of a caption if one of these times comes from earlier jobs here; else ""."""
    return " The estimate comes from the last jobs here." if any(one and one.learned for one in found) else ""


def together(durations: Sequence[float], n_processes: int) -> float:
    """Seconds until the last of several has ended, `n_processes` at a time."""
    busy = [0.0] * n_processes
    for duration in durations:
        busy[busy.index(min(busy))] += duration
    return max(busy)
