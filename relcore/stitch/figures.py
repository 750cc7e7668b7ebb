"""Figures of stitching from recipes: every encoder with every head, and what one such pair confuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METHODS, STITCH_METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import SpaceSpec
from relcore.figures.charts import Matrices, MatrixPanel
from relcore.figures.export import Exportable, chart_exportable
from relcore.stitch.stitching import StitchResult, StitchSpec
from relcore.tasks.recipe import Recipe, load_all

SHOWN = {"score": "score", "gap": "gap to not stitched"}
_WHY_NONE = "no answer: the dimensions differ, so this head cannot read these rows"


@dataclass(frozen=True, kw_only=True)
class StitchMatrix(Recipe):
    """One heat map per method: encoders down, heads across, the diagonal not stitched; the LaTeX form is
    the summary.
    """

    figure: ClassVar[str] = "stitch-matrix"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    stitching: StitchSpec = StitchSpec()
    metric: str = "accuracy"
    show: str = "score"

    def draw(self, result: StitchResult | None = None) -> Exportable:
        result = result or self.stitching.run(load_all(self.spaces, self.digests, self.figure))
        data = stitch_matrices(result, self.metric, self.show)
        tables = (lambda: printed_summary(result), lambda: cell_table(result))
        return chart_exportable(data, self.to_json(), "relscope-stitching", *tables)


@dataclass(frozen=True, kw_only=True)
class StitchConfusion(Recipe):
    """Confusion matrix of a head on another encoder, beside the one on its own; `encoder` and `head` count
    from 0.
    """

    figure: ClassVar[str] = "stitch-confusion"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    stitching: StitchSpec = StitchSpec()
    method: str
    encoder: int
    head: int

    def draw(self, result: StitchResult | None = None) -> Exportable:
        result = result or self.stitching.run(load_all(self.spaces, self.digests, self.figure))
        chosen = self.method, self.encoder, self.head
        data = confusion_matrices(result, *chosen)
        return chart_exportable(
            data, self.to_json(), "relscope-confusion", lambda: result.class_scores(*chosen)
        )


def stitch_matrices(result: StitchResult, metric: str = "accuracy", show: str = "score") -> Matrices:
    """The heat maps of a result.

    Raises
    ------
    SpaceError
        An unknown metric or form, MAE of labels without an order.
    """
    need_one_of("metric", metric, result.metrics)
    need_one_of("show", show, SHOWN)
    panels = tuple(_panel(result, method, metric, show) for method in result.spec.methods)
    title = STITCH_METRICS[metric].title
    scale = 0.0, 1.0  # of accuracy and F1 always, so that figures compare
    if show == "gap":
        most = max(float(np.nanmax(panel.values, initial=0.0)) for panel in panels)
        scale = 0.0, max(0.05, float(np.ceil(most * 20) / 20))
        title = "steps of error more than not stitched" if metric == "mae" else f"{title} lost to stitching"
    elif metric == "mae":  # from the worst there is, palest, to 0
        worst = max(float(np.nanmax(panel.values)) for panel in panels)
        scale = max(worst, result.chance("mae"), 0.1), 0.0
    notes, n = "; ".join(f"{panel.title}: {panel.note}" for panel in panels), len(result.encoders)
    alt = (
        f"Heat maps of {title}, {n} encoders by {n} heads, one per method. {notes}. Chance"
        f" {short(result.chance(metric))}."
    )
    return Matrices(panels, scale, title, alt, "encoder", "head of")


def gaps(result: StitchResult, method: str, metric: str = "accuracy") -> np.ndarray:
    """What is lost against the same head on its own encoder, (E, E): points of accuracy or F1, or steps of
    MAE more.
    """
    mean, _ = result.matrix(method, metric)
    return mean - np.diag(mean) if metric == "mae" else np.diag(mean) - mean


def short_names(names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Names without the words that all of them end in, and these words: of encodings of one dataset mostly
    its name.
    """
    words = [name.split(" ") for name in names]
    n = 0
    while n + 1 < min(map(len, words)) and len({tuple(one[-n - 1 :]) for one in words}) == 1:
        n += 1
    kept = tuple(" ".join(one[: len(one) - n]).rstrip(" ,·") for one in words)
    if not n or len(set(kept)) < len(kept):
        return tuple(names), ""
    return kept, " ".join(words[0][-n:]).lstrip(" ,·")


def _panel(result: StitchResult, method: str, metric: str, show: str) -> MatrixPanel:
    mean, deviation = result.matrix(method, metric)
    lost, several = gaps(result, method, metric), len(result.runs) > 1
    values = mean if show == "score" else lost
    every, names = range(len(result.encoders)), short_names(result.encoders)[0]

    def text(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return ""
        spread = f"\n± {short(deviation[i, j])}" if several and show == "score" else ""
        return short(values[i, j]) + spread

    def hover(i: int, j: int) -> str:
        if np.isnan(mean[i, j]):
            return _WHY_NONE
        spread = f" ± {short(deviation[i, j])} over {len(result.runs)} random states" if several else ""
        return (
            f"{STITCH_METRICS[metric].title} {short(mean[i, j])}{spread}\n"
            f"not stitched{'' if i == j else f' {short(mean[j, j])}'}\n"
            f"chance {short(result.chance(metric))}\n{result.tested}"
        )

    cells = (tuple(tuple(of(i, j) for j in every) for i in every) for of in (text, hover))
    diagonal, note = tuple((i, i) for i in every), _note(result, method, metric, show)
    return MatrixPanel(METHODS[method].title, names, names, values, *cells, note, diagonal)


def _note(result: StitchResult, method: str, metric: str, show: str) -> str:
    row = summary_table(result, metric).iloc[result.spec.methods.index(method)]
    if not row.pairs:
        return "no two encoders of equal dimension"
    some = f" ({row.pairs} of {counted(row.of, 'pair')})" if row.pairs < row.of else ""
    if show == "gap":
        off = ~np.eye(len(result.encoders), dtype=bool)
        return f"mean gap {short(float(np.nanmean(gaps(result, method, metric)[off])))}{some}"
    spread = f" ± {short(row.stitched_deviation)}" if len(result.runs) > 1 else ""
    return f"stitched {short(row.stitched)}{spread}{some} · not stitched {short(row.own)}"


def confusion_matrices(result: StitchResult, method: str, encoder: int, head: int) -> Matrices:
    """Shares of each true class by answer: of the pair, and of the head on its own encoder where that is
    another.

    Raises
    ------
    SpaceError
        A method that the result has not, numbers of no encoder, a pair without answers.
    """
    names = result.encoders
    need_one_of("method", method, result.spec.methods)
    for role, number in (("encoder", encoder), ("head", head)):
        if not (type(number) is int and 0 <= number < len(names)):
            raise SpaceError(f"{role}: expected a number from 0 to {len(names) - 1}, got {number!r}")
    if np.isnan(result.matrix(method)[0][encoder, head]):
        raise SpaceError(
            f"{names[encoder]} with the head of {names[head]}: {_WHY_NONE}; choose another method"
        )
    pairs = [(encoder, head)] if encoder == head else [(encoder, head), (head, head)]
    panels = tuple(_confusion_panel(result, method, *pair) for pair in pairs)
    alt = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    alt = (
        f"Confusion matrices of {METHODS[method].title}, {counted(len(result.classes), 'class', 'classes')}."
        f" {alt}."
    )
    return Matrices(panels, (0.0, 1.0), "share of the true class", alt, "label", "answer", across=len(panels))


def _confusion_panel(result: StitchResult, method: str, encoder: int, head: int) -> MatrixPanel:
    counts = result.confusion(method, encoder, head)
    support = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(support, 1)
    names, _ = short_names(result.encoders)
    own = "its own head" if encoder == head else f"head of {names[head]}"
    texts = tuple(tuple(f"{count:,}" if count else "" for count in row) for row in counts.tolist())
    hover = tuple(
        tuple(
            f"{count:,} of {total:,} answers, {100 * share:.1f} %"
            for count, share in zip(row, line, strict=True)
        )
        for row, line, (total,) in zip(counts.tolist(), shares.tolist(), support.tolist(), strict=True)
    )
    mean, _ = result.matrix(method)
    note = (
        f"{'not stitched' if encoder == head else 'stitched'}, accuracy {short(mean[encoder, head])},"
        f" {counts.sum():,} answers"
    )
    return MatrixPanel(
        f"{names[encoder]} → {own}", result.classes, result.classes, shares, texts, hover, note
    )


def cell_table(result: StitchResult) -> pd.DataFrame:
    """One row per method, encoder, head and metric; columns also score, deviation, not_stitched (the same
    head on its own encoder), chance, test_rows, random_states. NaN where there is no answer."""
    rows, names = [], result.encoders
    for method, metric in product(result.spec.methods, result.metrics):
        mean, deviation = result.matrix(method, metric)
        for i, j in np.ndindex(mean.shape):
            titles = METHODS[method].title, names[i], names[j], STITCH_METRICS[metric].title
            rows.append((*titles, mean[i, j], deviation[i, j], mean[j, j], result.chance(metric)))
    columns = ["method", "encoder", "head", "metric", "score", "deviation", "not_stitched", "chance"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(test_rows=result.n_test, random_states=len(result.runs))


def summary_table(result: StitchResult, metric: str = "accuracy") -> pd.DataFrame:
    """`StitchResult.summary` of one metric, with the numbers of test rows and random states."""
    found = result.summary()
    found = found[found.metric == STITCH_METRICS[metric].title].drop(columns="metric").reset_index(drop=True)
    return found.assign(test_rows=result.n_test, random_states=len(result.runs))


def printed_summary(result: StitchResult) -> pd.DataFrame:
    """The summary as a paper prints it: one row per method, scores with their deviations; chance as the
    last row.
    """
    several, chance, printed = len(result.runs) > 1, {"method": "chance"}, []

    def score(mean: float, deviation: float) -> str:
        spread = f" ± {deviation:.3f}" if several else ""
        return "–" if np.isnan(mean) else f"{mean:.3f}{spread}"

    for method in result.spec.methods:
        printed.append({"method": METHODS[method].title})
    for metric in result.metrics:
        stitched, own = (f"{STITCH_METRICS[metric].title}, {how}" for how in ("stitched", "not stitched"))
        for line, row in zip(printed, summary_table(result, metric).itertuples(), strict=True):
            line[stitched] = score(row.stitched, row.stitched_deviation)
            line[own] = score(row.own, row.own_deviation)
            line["pairs"] = f"{row.pairs} of {row.of}"
        chance |= dict.fromkeys((stitched, own), f"{result.chance(metric):.3f}")
    return pd.DataFrame([*printed, chance]).fillna("")
