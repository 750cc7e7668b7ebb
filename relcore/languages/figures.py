"""Figures of what parallel anchors carry: sentences that find their translation, heads across languages, pictures and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relcore import __version__, record
from relcore.charts.lines import Line, Lines
from relcore.figures.export import Exportable, lines_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.languages.across import AcrossResult, head_across
from relcore.languages.captioned import CaptionSpec, ZeroShot, classes_of, encode_captions, zero_shot
from relcore.languages.retrieval import METRICS, RetrievalResult, RetrievalSpec, pair_up, retrieve
from relcore.metrics.calibration import Score
from relcore.names import METHODS
from relcore.recipe import load_again, need_same_content
from relcore.sources.catalog import SpaceSpec
from relcore.sources.encoder import Encoder, encoder_from_json, encoder_to_json
from relcore.spaces import LatentSpace, SpaceError, quote
from relcore.stitching.one_item import encode_items
from relcore.stitching.spec import StitchSpec
from relcore.store import Store

Pairs = Sequence[tuple[str, str]]


def draw_cross_lingual(
    specs: tuple[SpaceSpec, SpaceSpec],
    spec: RetrievalSpec,
    *,
    pairs: Pairs = (),
    digests: Sequence[str] = (),
    result: RetrievalResult | None = None,
) -> Exportable:
    """Methods down, scores across: how well rows of the first space find their partners in the second."""
    if result is None:
        result = retrieve(pair_up(*_load(specs, digests), pairs), spec)
    methods = list(result.scores)
    scores = [[result.scores[method][metric] for metric in METRICS] for method in methods]
    k, n = result.spec.k, len(result.ids)
    panel = MatrixPanel(
        "",
        tuple(METHODS[method].title for method in methods),
        ("found first", f"MRR, k = {k}", f"Jaccard, k = {k}"),
        np.array(scores, dtype=float),
        tuple(tuple(f"{score:.2f}\nchance {score.null.mean:.2f}" for score in line) for line in scores),
        tuple(tuple(_told(score) for score in line) for line in scores),
    )
    best = max(methods, key=lambda method: result.scores[method]["mrr"])
    alt = f"Heat map of retrieval from {result.names[0]} to {result.names[1]}, {n} pairs looked for through {spec.n_anchors} "
    alt += f"known ones; best by MRR {METHODS[best].title}, {result.scores[best]['mrr']:.2f}."
    recipe = _recipe("cross-lingual", specs, digests) | {"retrieval": spec.to_json(), "pairs": [list(pair) for pair in pairs]}
    data = Matrices((panel,), (0, 1), "score", alt)
    return matrices_exportable(data, recipe, "relscope-cross-lingual", result.wide, result.table)


def draw_across(
    specs: tuple[SpaceSpec, SpaceSpec],
    spec: StitchSpec,
    pairs: Pairs,
    *,
    digests: Sequence[str] = (),
    result: AcrossResult | None = None,
) -> Exportable:
    """Methods down: a head of the first space asked about rows of the second, through pairs of sentences."""
    if result is None:
        store, sides = Store(), list(zip(*pairs, strict=True))
        spaces = _load(specs, digests)
        anchors = [encode_items(one, sentences, store) for one, sentences in zip(specs, sides, strict=True)]
        result = head_across(*spaces, *anchors, spec)
    methods = list(result.accuracy)
    values = np.array([[result.accuracy[method], result.home[method]] for method in methods])
    foot = f"chance {result.chance:.2f}", "not stitched"
    panel = MatrixPanel(
        "",
        tuple(METHODS[method].title for method in methods),
        ("stitched", "head at home"),
        values,
        tuple(tuple(f"{value:.2f}\n{foot[column]}" for column, value in enumerate(line)) for line in values),
        tuple(
            (
                f"{line[0]:.3f} of {result.n:,} rows of {result.names[1]}\nchance {result.chance:.3f}, a head of its own "
                f"{result.ceiling:.3f}",
                f"{line[1]:.3f} on held-out rows of {result.names[0]}, not stitched",
            )
            for line in values
        ),
        marked=tuple((row, 1) for row in range(len(methods))),
    )
    alt = f"Heat map of accuracy: the head of {result.names[0]} on rows of {result.names[1]} by {len(methods)} methods, "
    alt += f"chance {result.chance:.2f}, a head of its own {result.ceiling:.2f}."
    recipe = _recipe("across-languages", specs, digests)
    recipe |= {"stitching": record.to_json(spec), "pairs": [list(pair) for pair in pairs]}
    data = Matrices((panel,), (0, 1), "accuracy", alt)
    return matrices_exportable(data, recipe, "relscope-across-languages", result.table, result.table)


def draw_zero_shot(
    images: SpaceSpec,
    encoder: Encoder,
    spec: CaptionSpec,
    *,
    digests: Sequence[str] = (),
    result: ZeroShot | None = None,
) -> Exportable:
    """Accuracy by the number of pictures with captions, beside chance and a head that was trained on labels."""
    if result is None:
        (space,) = _load((images,), digests)
        texts = encode_captions(classes_of(space), spec.templates, encoder, Store())
        result = zero_shot(space, texts, spec, encoder.title, unseen_rows(images, space))
    line = Line(f"{len(result.classes)} classes by captions", result.counts, result.accuracy)
    baselines = (("chance", result.chance), ("head trained on labels", result.head))
    alt = f"Accuracy against the number of pictures with captions: {result.accuracy[0]:.2f} with {result.counts[0]}, "
    alt += f"{result.accuracy[-1]:.2f} with {result.counts[-1]}; chance {result.chance:.2f}, head trained on labels "
    alt += f"{result.head:.2f}."
    chart = Lines((line,), "pictures with captions", "accuracy", log_x=True, baselines=baselines, y_range=(0, 1.02), alt=alt)
    recipe = _recipe("zero-shot", (images,), digests) | {"encoder": encoder_to_json(encoder), "captions": spec.to_json()}
    return lines_exportable(chart, recipe, "relscope-zero-shot", result.wide)


def unseen_rows(spec: SpaceSpec, space: LatentSpace) -> np.ndarray | None:
    """The rows whose labels the pictures' encoder did not see in training; None where it saw none."""
    seen = spec.encoder.seen_rows(space) if spec.encoder else ()
    return np.delete(np.arange(len(space)), seen) if len(seen) else None


def _told(score: Score) -> str:
    null = score.null
    asked = f", k = {score.k}" if score.metric != "first" else ""
    return f"{score:.3f}\nchance {null.mean:.3f} ({max(0, null.low):.3f} … {null.high:.3f})\nn = {score.n:,}{asked}"


def _load(specs: Sequence[SpaceSpec], digests: Sequence[str]) -> list[LatentSpace]:
    spaces = [load_again(spec) for spec in specs]
    for space, digest in zip(spaces, digests or [""] * len(spaces), strict=True):
        need_same_content(space, digest)
    return spaces


def _recipe(figure: str, specs: Sequence[SpaceSpec], digests: Sequence[str]) -> dict[str, Any]:
    described = [spec.to_json() for spec in specs]
    return {"relscope": __version__, "figure": figure, "spaces": described, "digests": list(digests)}


def _common(settings: dict[str, Any], figure: str, n: int, *own: str) -> tuple[tuple[SpaceSpec, ...], list[str]]:
    """Spaces and digests of a recipe, once its other settings are those that its figure has."""
    expected = {"spaces", "digests", *own}
    spaces, digests = settings.get("spaces"), settings.get("digests", [])
    lists = isinstance(spaces, list) and len(spaces) == n and isinstance(digests, list) and len(digests) in (0, n)
    wrong = [name for name in own if name != "pairs" and not isinstance(settings.get(name), Mapping)]
    if not lists or wrong or set(settings) - expected:
        raise SpaceError(
            f"recipe of {figure}: expected {quote(sorted(expected))}, {n} of spaces and as many digests, got "
            f"{quote(sorted(settings))}"
        )
    return tuple(SpaceSpec.from_json(one) for one in spaces), digests


def _pairs(settings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs = settings.get("pairs", [])
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(cell, str) for cell in pair) for pair in pairs
    ):
        raise SpaceError(f"recipe: expected pairs as a list of two strings each, got {pairs!r:.80}")
    return tuple((one, other) for one, other in pairs)


def _cross_lingual(settings: dict[str, Any]) -> Exportable:
    specs, digests = _common(settings, "a cross-lingual figure", 2, "retrieval", "pairs")
    spec = RetrievalSpec.from_json(settings["retrieval"])
    return draw_cross_lingual(specs, spec, pairs=_pairs(settings), digests=digests)


def _across(settings: dict[str, Any]) -> Exportable:
    specs, digests = _common(settings, "a head across languages", 2, "stitching", "pairs")
    pairs = _pairs(settings)
    if len(pairs) < 2:
        raise SpaceError(f"recipe of a head across languages: expected two pairs or more, got {len(pairs)}")
    return draw_across(specs, record.from_json(StitchSpec, settings["stitching"]), pairs, digests=digests)


def _zero_shot(settings: dict[str, Any]) -> Exportable:
    (images,), digests = _common(settings, "pictures and words", 1, "encoder", "captions")
    encoder, spec = encoder_from_json(settings["encoder"]), CaptionSpec.from_json(settings["captions"])
    return draw_zero_shot(images, encoder, spec, digests=digests)


FIGURES = {"cross-lingual": _cross_lingual, "across-languages": _across, "zero-shot": _zero_shot}
