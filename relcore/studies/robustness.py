"""How robust are relative spaces? Noise in one space, fewer anchors, and anchors that are paired wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.magnitude import lengths
from relcore.figures.charts import Lines
from relcore.represent.similarity import RelativeProjection
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.comparison import held_out, score_pair
from relcore.studies.material import SPACES, OnWords, word_pair
from relcore.studies.statistics import chart, count_of, lines_over, mean_at, sentence
from relcore.studies.study import Option, RunResult, Settings, grid, states

HARMS = {
    "noise": "noise (share of the mean row's length)",
    "missing": "share of the anchors that are missing",
    "wrong": "share of the anchors that are paired wrongly",
}
_AMOUNTS = {
    "noise": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0),
    "missing": (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95),
    "wrong": (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0),
}
_MEASURES = {
    "relative mrr": "relative: MRR",
    "whitened mrr": "whitened: MRR",
    "relative jaccard": "relative: Jaccard",
    "whitened jaccard": "whitened: Jaccard",
}
_QUERIES = 2000


class Robustness(OnWords):
    """Two word spaces; the target is harmed, the source stays unchanged. MRR and Jaccard at k = 10, the
    paper's convention.
    """

    kind = "robustness"
    title = "Robustness"
    question = "How robust are relative spaces?"
    paper = "Not in the papers"
    version = 2  # held-out rows alone are scored
    options = (
        Option("harm", "Harm", tuple(HARMS), "wrong", names=("noise", "missing anchors", "wrong pairs")),
        Option("n_anchors", "Anchors", (100, 300), 300),
        states("the anchors and the harm"),
        SPACES,
    )
    by, measures = "amount", _MEASURES

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "harm n_anchors spaces", amount=_AMOUNTS[options["harm"]])

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        rng = np.random.default_rng(state)
        anchors = self.anchors(settings, pair)
        target, rows = pair.target.vectors, [space.rows(anchors) for space in (pair.source, pair.target)]
        target, rows = harmed(target, rows, settings["harm"], settings["amount"], rng)
        split = replace(held_out(pair, anchors), random_state=state)
        values: dict[str, Any] = {"anchors used": len(rows[0]), "rows": len(split.test)}
        for form in ("relative", "whitened"):
            projection = RelativeProjection(whiten=form == "whitened")
            relative = [
                projection.fit(X, anchors=own).transform(X)
                for X, own in zip((pair.source.vectors, target), rows, strict=True)
            ]
            scores = score_pair(*relative, split, k=10, n_queries=_QUERIES)
            values |= {f"{form} {name}": float(scores[name]) for name in ("mrr", "jaccard")}
            values["chance"] = scores["mrr"].null.mean
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 5.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        held_out = count_of(table, "held-out rows as queries", "rows")
        rows = f"k = 10, {_QUERIES:,} of {held_out}, {table.n_anchors.iloc[0]} anchors"
        lines, titles = lines_over(table, "amount", _MEASURES), (HARMS[options["harm"]], "score")
        return {"scores": chart(table, lines, titles, rows, {"chance of MRR": "chance"})}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        amounts = sorted(set(table.amount))
        least, middle = amounts[0], amounts[len(amounts) // 2]
        columns = ("relative mrr", "whitened mrr")
        return sentence(
            f"Where the {HARMS[options['harm']]} goes from {least:g} to {middle:g}, the MRR of relative rows"
            " goes from {} to {}, and that of whitened rows from {} to {}.",
            *(mean_at(table, "amount", amount, name) for name in columns for amount in (least, middle)),
        )


def harmed(
    target: np.ndarray, rows: list[np.ndarray], harm: str, amount: float, rng: np.random.Generator
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The target (n, d) and the anchors' rows in both spaces, after harm; an amount of 0 changes nothing.

    "noise": normal, its expected length the amount times the mean length of a row. "missing": this share of
    the anchors is unknown to both, one always stays. "wrong": this share of the target's anchors is permuted
    among each other, none stays where it was.
    """
    if harm == "noise":
        scale = amount * lengths(target).mean() / np.sqrt(target.shape[1])
        return target + (scale * rng.normal(size=target.shape)).astype(np.float32), rows
    k = len(rows[0])
    chosen = rng.permutation(k)[: round(amount * k)]
    if harm == "missing":
        kept = np.setdiff1d(np.arange(k), chosen[: k - 1])
        return target, [own[kept] for own in rows]
    moved = rows[1].copy()
    moved[chosen] = rows[1][np.roll(chosen, 1)]
    return target, [rows[0], moved]
