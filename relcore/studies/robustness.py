"""How robust are relative spaces? Noise in one space, fewer anchors, and anchors that are paired wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.magnitude import lengths
from relcore.charts.lines import Lines
from relcore.represent.anchors import select_anchors
from relcore.represent.similarity import RelativeProjection
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.comparison import held_out, score_pair
from relcore.studies.material import SPACES, word_pair, word_specs
from relcore.studies.runs import average, circumstances, findings_over, lines_over, means_at
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid

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


class Robustness(Study):
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
        Option("n_states", "Random states", (3, 5, 10), 3, help="Each draws the anchors and the harm."),
        SPACES,
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        harm = options["harm"]
        shared = {"harm": harm, "n_anchors": options["n_anchors"], "spaces": list(options["spaces"])}
        return grid(options, shared, amount=_AMOUNTS[harm])

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        rng = np.random.default_rng(state)
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        target, rows = pair.target.vectors, [space.rows(anchors) for space in (pair.source, pair.target)]
        target, rows = harmed(target, rows, settings["harm"], settings["amount"], rng)
        split = replace(held_out(pair, anchors), random_state=state)
        values: dict[str, Any] = {"anchors used": len(rows[0]), "rows": len(split.test)}
        for form in ("relative", "whitened"):
            projection = RelativeProjection(whiten=form == "whitened")
            made = [
                projection.fit(X, anchors=own).transform(X)
                for X, own in zip((pair.source.vectors, target), rows, strict=True)
            ]
            found = score_pair(*made, split, k=10, n_queries=_QUERIES)
            values |= {f"{form} {name}": float(found[name]) for name in ("mrr", "jaccard")} | {
                "chance": found["mrr"].null.mean
            }
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 5.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        n_rows, n_anchors = int(table["rows"].iloc[0]), table.n_anchors.iloc[0]
        told = f"k = 10, {_QUERIES:,} of {n_rows:,} held-out rows as queries, {n_anchors} anchors"
        note = circumstances(table, told)
        baselines = (("chance of MRR", average(table, "chance")),)
        return {
            "scores": Lines(
                tuple(lines_over(table, "amount", _MEASURES)),
                HARMS[options["harm"]],
                "score",
                baselines=baselines,
                note=note,
            )
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            findings_over(table.sort_values("amount"), "amount", _MEASURES) if len(table) else []
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        amounts = sorted(set(table.amount)) if len(table) else []
        if len(amounts) < 2:
            return ""
        middle = amounts[len(amounts) // 2]
        ends = [
            means_at(table, "amount", amount, ["relative mrr", "whitened mrr"])
            for amount in (amounts[0], middle)
        ]
        if not all(ends):
            return ""
        (relative, whitened), (relative_harmed, whitened_harmed) = (
            [one.told() for one in end] for end in ends
        )
        return (
            f"Where the {HARMS[options['harm']]} goes from {amounts[0]:g} to {middle:g}, the MRR of relative"
            f" rows goes from {relative} to {relative_harmed}, and that of whitened rows from {whitened} to"
            f" {whitened_harmed}."
        )

    def opening(self, settings: Settings) -> Opening:
        pair = word_pair(settings["spaces"], Store())
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"])
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors.tolist()))


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
