"""The figures of a stitching: a heat map per method, and confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METHODS, STITCH_METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.task import SpacesRecipe
from relcore.figures.export import Exportable, chart_exportable
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.spaces.matching import short_names
from relcore.stitch.stitching import (
    StitchResult,
    StitchSpec,
    by_score,
    cell_table,
    printed_summary,
    summary_table,
)

SHOWN = {"score": "score", "gap": "gap to not stitched"}
_COPY = "absolute"
_WHY_NONE = "no answer: the dimensions differ, so this classifier cannot read these rows"


@dataclass(frozen=True, kw_only=True)
class StitchMatrix(SpacesRecipe, figure="stitch-matrix"):
    """A figure with one heat map per method: encoders as rows, heads as columns. On the diagonal, each
    encoder has its own head.

    Examples
    --------
    >>> from relcore import SpaceSpec, StitchMatrix
    >>> StitchMatrix(spaces=tuple(SpaceSpec("file", f"{name}.npz") for name in "ab")).figure
    'stitch-matrix'
    """

    stitching: StitchSpec = StitchSpec()
    metric: str = "accuracy"
    show: str = "score"

    def draw(self, result: StitchResult | None = None) -> Exportable:
        result = self.computed(result)
        data = stitch_matrices(result, self.metric, self.show)
        tables = (lambda: printed_summary(result), lambda: cell_table(result))
        return chart_exportable(data, self.to_json(), "relscope-stitching", *tables)


@dataclass(frozen=True, kw_only=True)
class StitchConfusion(SpacesRecipe, figure="stitch-confusion"):
    """A figure with two confusion matrices of a head: on another encoder, and on its own encoder."""

    stitching: StitchSpec = StitchSpec()
    method: str
    encoder: int
    head: int

    def draw(self, result: StitchResult | None = None) -> Exportable:
        result = self.computed(result)
        chosen = self.method, self.encoder, self.head
        data = confusion_matrices(result, *chosen)
        return chart_exportable(
            data, self.to_json(), "relscope-confusion", lambda: result.class_scores(*chosen)
        )


def stitch_matrices(result: StitchResult, metric: str = "accuracy", show: str = "score") -> Matrices:
    """One heat map per method, of scores or of what stitching loses (`show`).

    Raises
    ------
    SpaceError
        An unknown metric; an unknown form; MAE for labels without an order.
    """
    need_one_of("metric", metric, result.metrics)
    need_one_of("show", show, SHOWN)
    rows = dict(zip(result.spec.methods, summary_table(result, metric).itertuples(), strict=True))
    order = panel_order(result, metric)
    panels = []
    best = rows[order[0]]
    for method in order:
        row = rows[method]
        panel = _panel(result, method, metric, show, row)
        if len(order) > 1 and best.pairs and short(row.stitched) == short(best.stitched):
            panel = replace(panel, title=f"{panel.title} · best")
        panels.append(panel)
    title = STITCH_METRICS[metric].title
    lowest_too = ""
    if show == "gap":
        most = max(float(np.nanmax(panel.values, initial=0.0)) for panel in panels)
        scale = 0.0, max(0.05, float(np.ceil(most * 20) / 20))
        if metric == "mae":
            title = "error added by stitching, in steps"
        else:
            title = f"{title} lost to stitching"
    elif metric == "mae":  # the scale begins with the worst value (palest) and ends with 0
        worst = max(float(np.nanmax(panel.values)) for panel in panels)
        scale = max(worst, result.chance("mae"), 0.1), 0.0
    else:
        scale = _scale_of(result, metric)
        lowest = min(float(np.nanmin(panel.values, initial=1.0)) for panel in panels)
        if lowest < scale[0]:
            lowest_too = f" ({short(scale[0], 2)} or less: palest)"
    notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    n = len(result.encoders)
    alt = (
        f"Heat maps of {title}, {n} encoders by {n} classifiers, one per method. {notes}. Chance"
        f" {short(result.chance(metric))}."
    )
    return Matrices(tuple(panels), scale, f"{title}{lowest_too}", alt, "encoder", "classifier of")


def _scale_of(result: StitchResult, metric: str) -> tuple[float, float]:
    """The range of the scores of all methods but the plain copy, to steps of .05. The plain copy is often
    near chance; if the scale reached down to it, the other methods would have one colour."""
    methods = [method for method in result.spec.methods if method != _COPY] or result.spec.methods
    scores = np.concatenate([result.matrix(method, metric)[0].ravel() for method in methods])
    if np.isnan(scores).all():
        return 0.0, 1.0
    low = np.floor(20 * np.nanmin(scores) + 1e-9) / 20
    high = np.ceil(20 * np.nanmax(scores) - 1e-9) / 20
    return float(min(low, high - 0.05)), float(high)


def panel_order(result: StitchResult, metric: str) -> tuple[str, ...]:
    """The methods, best first. Second comes the plain copy of the rows, which shows what the others add."""
    first, *others = by_score(result, metric)
    return (first, *sorted(others, key=lambda method: method != _COPY))


def gaps(result: StitchResult, method: str, metric: str = "accuracy") -> np.ndarray:
    """How much each pair loses compared with the same head on its own encoder, (E, E): in points or, for MAE,
    in steps."""
    mean, _ = result.matrix(method, metric)
    if metric == "mae":
        return mean - np.diag(mean)
    return np.diag(mean) - mean


def _panel(result: StitchResult, method: str, metric: str, show: str, row: pd.Series) -> MatrixPanel:
    """The heat map of a method: the score of each encoder (row) with the classifier of each encoder (column)
    or, if `show` is not "score", what it loses against the classifier's own encoder."""
    mean, deviation = result.matrix(method, metric)
    lost = gaps(result, method, metric)
    several = len(result.runs) > 1
    values = mean if show == "score" else lost
    every = range(len(result.encoders))
    names = short_names(result.encoders)[0]

    def text(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return ""
        spread = ""
        if several and show == "score":
            spread = f"\n± {short(deviation[i, j])}"
        return short(values[i, j]) + spread

    def hover(i: int, j: int) -> str:
        if np.isnan(mean[i, j]):
            return _WHY_NONE
        spread = ""
        if several:
            spread = f" ± {short(deviation[i, j])} over {len(result.runs)} random states"
        own = "not stitched"
        if i != j:
            own = f"not stitched {short(mean[j, j])}"
        return (
            f"{STITCH_METRICS[metric].title} {short(mean[i, j])}{spread}\n{own}\n"
            f"chance {short(result.chance(metric))}\n{result.tested}"
        )

    texts = tuple(tuple(text(i, j) for j in every) for i in every)
    hovers = tuple(tuple(hover(i, j) for j in every) for i in every)
    diagonal = tuple((i, i) for i in every)
    note = _note(result, method, metric, show, row)
    return MatrixPanel(METHODS[method].title, names, names, values, texts, hovers, note, diagonal)


def _note(result: StitchResult, method: str, metric: str, show: str, row: pd.Series) -> str:
    if not row.pairs:
        return "no two encoders of equal dimension"
    some = ""
    if row.pairs < row.of:
        some = f" ({row.pairs} of {counted(row.of, 'pair')})"
    if show == "gap":
        off = ~np.eye(len(result.encoders), dtype=bool)
        return f"mean gap {short(float(np.nanmean(gaps(result, method, metric)[off])))}{some}"
    spread = ""
    if len(result.runs) > 1:
        spread = f" ± {short(row.stitched_deviation)}"
    title = STITCH_METRICS[metric].title
    return f"{title} {short(row.stitched)}{spread} stitched{some}, {short(row.own)} not stitched"


def confusion_matrices(result: StitchResult, method: str, encoder: int, head: int) -> Matrices:
    """Two heat maps with the share of each answer for each true class: for this pair, and for the head on its
    own encoder.

    Raises
    ------
    SpaceError
        A method that the result lacks; an invalid index of an encoder; a pair without answers.
    """
    names = result.encoders
    need_one_of("method", method, result.spec.methods)
    for role, number in (("encoder", encoder), ("head", head)):
        if not (type(number) is int and 0 <= number < len(names)):
            raise SpaceError(f"{role}: expected a number from 0 to {len(names) - 1}, got {number!r}")
    if np.isnan(result.matrix(method)[0][encoder, head]):
        raise SpaceError(
            f"{names[encoder]} with the classifier of {names[head]}: {_WHY_NONE}; choose another method"
        )
    if encoder == head:
        pairs = [(encoder, head)]
    else:
        pairs = [(encoder, head), (head, head)]
    panels = tuple(_confusion_panel(result, method, *pair) for pair in pairs)
    notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    classes = counted(len(result.classes), "class", "classes")
    alt = f"Confusion matrices of {METHODS[method].title}, {classes}. {notes}."
    return Matrices(panels, (0.0, 1.0), "share of the true class", alt, "label", "answer", across=len(panels))


def _confusion_panel(result: StitchResult, method: str, encoder: int, head: int) -> MatrixPanel:
    counts = result.confusion(method, encoder, head)
    support = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(support, 1)
    names, _ = short_names(result.encoders)
    if encoder == head:
        own = "its own classifier"
    else:
        own = f"classifier of {names[head]}"
    texts = tuple(tuple(f"{count:,}" if count else "" for count in row) for row in counts.tolist())
    hover = tuple(
        tuple(
            f"{count:,} of {total:,} answers, {100 * share:.1f} %"
            for count, share in zip(row, line, strict=True)
        )
        for row, line, (total,) in zip(counts.tolist(), shares.tolist(), support.tolist(), strict=True)
    )
    mean, _ = result.matrix(method)
    how = "not stitched" if encoder == head else "stitched"
    note = f"{how}, accuracy {short(mean[encoder, head])}, {counts.sum():,} answers"
    return MatrixPanel(
        f"{names[encoder]} → {own}", result.classes, result.classes, shares, texts, hover, note
    )
