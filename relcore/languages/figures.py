"""Figures of parallel anchors: cross-lingual retrieval, a head across languages, pictures and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.charts.lines import Line, Lines
from relcore.figures.export import Exportable, lines_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.languages.across import AcrossResult, HeadAcross
from relcore.languages.captioned import CaptionSpec, EncodeCaptions, ZeroShot, classes_of, zero_shot
from relcore.languages.retrieval import METRICS, RetrievalResult, RetrievalSpec, pair_up, retrieve
from relcore.metrics.calibration import Score
from relcore.names import METHODS
from relcore.numbers import band, short
from relcore.recipe import Recipe, load_all
from relcore.sources.catalog import SpaceSpec
from relcore.sources.encoder import Encoder
from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.spec import StitchSpec
from relcore.store import Store

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class CrossLingual(Recipe):
    """Scores of retrieval by method, from the first space to the second; `pairs` of ids where the ids of the two differ."""

    figure: ClassVar[str] = "cross-lingual"

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()
    retrieval: RetrievalSpec
    pairs: Pairs = ()

    def draw(self, result: RetrievalResult | None = None) -> Exportable:
        result = result or retrieve(pair_up(*load_all(self.spaces, self.digests, self.figure), self.pairs), self.retrieval)
        k, n = result.spec.k, len(result.ids)
        lines = [[by_metric[metric] for metric in METRICS] for by_metric in result.scores.values()]
        panel = _panel(
            result.scores,
            ("found first", f"MRR, k = {k}", f"Jaccard, k = {k}"),
            np.array(lines, dtype=float),
            [[f"{short(score, 2)}\nchance {short(score.null.mean, 2)}" for score in line] for line in lines],
            [[_told(score) for score in line] for line in lines],
        )
        best = max(result.scores, key=lambda method: result.scores[method]["mrr"])
        alt = f"Heat map of retrieval from {result.names[0]} to {result.names[1]}, {n} queries through {result.spec.n_anchors} "
        alt += f"known pairs; best by MRR {METHODS[best].title}, {short(result.scores[best]['mrr'], 2)}."
        data = Matrices((panel,), (0, 1), "score", alt)
        return matrices_exportable(data, self.to_json(), "relscope-cross-lingual", result.wide, result.table)


@dataclass(frozen=True, kw_only=True)
class AcrossLanguages(Recipe):
    """Accuracy of a head of the first space on rows of the second by method, through pairs of sentences."""

    figure: ClassVar[str] = "across-languages"

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()
    stitching: StitchSpec
    pairs: Pairs = ()

    def __post_init__(self) -> None:
        if len(self.pairs) < 2:
            raise SpaceError(f"recipe of across-languages: expected two pairs or more, got {len(self.pairs)}")

    def draw(self, result: AcrossResult | None = None) -> Exportable:
        if result is None:
            task = HeadAcross(self.spaces, self.pairs, self.stitching)
            result = task.run(load_all(self.spaces, self.digests, self.figure))
        values = np.array([[result.accuracy[method], result.home[method]] for method in result.accuracy])
        foot = f"chance {short(result.chance, 2)}", "not stitched"
        beside = f"chance {short(result.chance)}, head of its own {short(result.ceiling)}"
        told = f"on {result.n:,} rows of {result.names[1]}\n{beside}", f"on held-out rows of {result.names[0]}, not stitched"
        panel = _panel(
            result.accuracy,
            ("stitched", "head at home"),
            values,
            [[f"{short(value, 2)}\n{below}" for value, below in zip(line, foot, strict=True)] for line in values],
            [[f"{short(value)} {rest}" for value, rest in zip(line, told, strict=True)] for line in values],
            marked=tuple((row, 1) for row in range(len(values))),
        )
        alt = f"Heat map of accuracy: the head of {result.names[0]} on rows of {result.names[1]} by {len(values)} methods, "
        alt += f"chance {short(result.chance, 2)}, a head of its own {short(result.ceiling, 2)}."
        data = Matrices((panel,), (0, 1), "accuracy", alt)
        return matrices_exportable(data, self.to_json(), "relscope-across-languages", result.table, result.table)


@dataclass(frozen=True, kw_only=True)
class PicturesAndWords(Recipe):
    """Accuracy by the number of pictures with captions, beside chance and a head trained on labels; `spaces` is one space."""

    figure: ClassVar[str] = "zero-shot"

    spaces: tuple[SpaceSpec]
    digests: tuple[str, ...] = ()
    encoder: Encoder
    captions: CaptionSpec

    def draw(self, result: ZeroShot | None = None) -> Exportable:
        if result is None:
            (space,) = load_all(self.spaces, self.digests, self.figure)
            texts = EncodeCaptions(classes_of(space), self.captions.templates, self.encoder).run((), Store())
            result = zero_shot(space, texts.rows, self.captions, self.encoder.title, unseen_rows(self.spaces[0], space))
        line = Line(f"{len(result.classes)} classes by captions", result.counts, result.accuracy)
        baselines = (("chance", result.chance), ("head trained on labels", result.head))
        first, *_, last = (f"{short(score, 2)} with {n}" for n, score in zip(result.counts, result.accuracy, strict=True))
        alt = f"Accuracy by the number of pictures with captions: {first}, {last}; chance {short(result.chance, 2)}, head "
        alt += f"trained on labels {short(result.head, 2)}."
        axes = {"log_x": True, "y_range": (0, 1.02)}
        chart = Lines((line,), "pictures with captions", "accuracy", baselines=baselines, alt=alt, **axes)
        return lines_exportable(chart, self.to_json(), "relscope-zero-shot", result.wide)


def unseen_rows(spec: SpaceSpec, space: LatentSpace) -> np.ndarray | None:
    """The rows whose labels the encoder of the pictures did not see in training; None if it saw none."""
    seen = spec.encoder.seen_rows(space) if spec.encoder else ()
    return np.delete(np.arange(len(space)), seen) if len(seen) else None


def _panel(
    methods: Sequence[str],
    columns: tuple[str, ...],
    values: np.ndarray,
    texts: list[list[str]],
    hover: list[list[str]],
    marked: tuple[tuple[int, int], ...] = (),
) -> MatrixPanel:
    """One row per method."""
    rows = tuple(METHODS[method].title for method in methods)
    return MatrixPanel("", rows, columns, values, tuple(map(tuple, texts)), tuple(map(tuple, hover)), marked=marked)


def _told(score: Score) -> str:
    null = score.null
    neighbours = f", k = {score.k}" if score.metric != "first" else ""
    return f"{short(score)}\nchance {short(null.mean)} ({band(max(0, null.low), null.high)})\nn = {score.n:,}{neighbours}"
