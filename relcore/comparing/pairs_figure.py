"""The heat map of all pairs: the score of every space with every other, its chance level beneath it, all else on hover."""

from __future__ import annotations

from relcore.comparing.pair_scores import PairScores
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.metrics.calibration import Score
from relcore.numbers import in_cell

_MOST_TOLD = 30  # pairs in the text alternative


def pair_matrices(scores: PairScores, framed: tuple[str, ...] = ()) -> Matrices:
    """One panel in the order of the spaces; a space with itself is dotted, the pair named in `framed` has a frame."""
    every = range(len(scores.names))
    texts = tuple(tuple(_text(scores.scores[i][j], i != j) for j in every) for i in every)
    hover = tuple(tuple(scores.told(i, j) for j in every) for i in every)
    frames = ()
    if len(framed) == 2 and set(framed) <= set(scores.names):
        i, j = map(scores.names.index, framed)
        frames = tuple({(i, j), (j, i)})
    diagonal = tuple((i, i) for i in every)
    panel = MatrixPanel("", scores.names, scores.names, scores.values, texts, hover, marked=diagonal, framed=frames)
    pairs = [(i, j) for i in every for j in every if i < j]
    told = "; ".join(
        f"{scores.names[i]} and {scores.names[j]}: {in_cell(scores.values[i, j]) or 'none'}" for i, j in pairs[:_MOST_TOLD]
    )
    more = "; and more" if len(pairs) > _MOST_TOLD else ""
    alt = f"Heat map of {scores.title}, {len(every)} by {len(every)} spaces. {told}{more}."
    return Matrices((panel,), (0.0, 1.0), scores.title, alt)


def _text(score: Score | None, with_chance: bool) -> str:
    """``".87"`` and, in small print, ``"chance .031"``."""
    if score is None:
        return ""
    return in_cell(float(score)) + (f"\nchance {in_cell(score.null.mean)}" if with_chance and score.null else "")
