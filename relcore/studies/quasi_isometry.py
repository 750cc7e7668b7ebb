"""Does quantisation make spaces more similar? Points become the centroids of their clusters before they become relative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.anchors.selection import select_anchors
from relcore.charts.lines import Lines
from relcore.evaluation import Split
from relcore.magnitude import brought
from relcore.metrics.neighbours import find_neighbours
from relcore.progress import Report
from relcore.projection import RelativeProjection
from relcore.store import Store
from relcore.studies.material import SPACES, word_pair, word_specs
from relcore.studies.statistics import mean
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid
from relcore.studies.summary import circumstances, findings_over, points_over

FORMS = {
    "absolute": "absolute",
    "relative": "relative",
    "t = 1": "quantised, t = 1",
    "t = 1.5": "quantised, t = 1.5",
    "t = 2": "quantised, t = 2",
}
_DISTANCES = {
    "cosine distance": "cosine distance (the paper's)",
    "distance": "Euclidean distance",
    "unit distance": "Euclidean distance of unit rows",
}
_TOLD = {"cosine distance": "cosine distance", "mrr": "MRR"}
_ROWS, _K = 2000, 10


class QuasiIsometry(Study):
    """Fig. 7: Ward clusters of the unit rows and anchors cut at distance t, as the paper's code does it, without centring.

    The paper's score is the mean cosine distance between paired rows, 1 − cosine (appendix A.3); its code prints the Euclidean
    distance, which stands beside it. Quantised rows are shorter (their anchors are centroids, no unit vectors), and shorter
    rows are nearer, so the Euclidean distance of unit rows is there, too. MRR says what quantising costs: words of one cluster
    become one row, and none of them is found any more. All on rows that are no anchors.
    """

    kind = "quasi-isometry"
    title = "Quasi-isometry"
    question = "Does quantisation make two spaces more similar?"
    paper = "Moschella et al. 2023, Fig. 7"
    version = 2
    options = (
        Option("n_anchors", "Anchors", (100, 300), 300),
        Option("n_states", "Random states", (3, 5, 10), 5, help=f"Each draws the anchors and the {_ROWS:,} words compared."),
        SPACES,
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {"n_anchors": options["n_anchors"], "spaces": list(options["spaces"])}
        return grid(options, shared, form=FORMS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        rows = Split.held_out(pair.ids, pair.source.rows(anchors), state).queries(_ROWS)
        made = [_form(space.vectors, space.rows(anchors), rows, settings["form"]) for space in (pair.source, pair.target)]
        chance = float(np.sum(1 / np.arange(1, _K + 1)) / len(rows))  # of 1/rank where the order is random and ends at k
        values: dict[str, Any] = {"rows": len(rows), "k": _K, "mrr chance": chance}
        if made[0].shape != made[1].shape:  # absolute rows of two widths
            return RunResult(values | dict.fromkeys((*_DISTANCES, "mrr")))
        units = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in made]
        values["cosine distance"] = 1 - float(np.einsum("ij,ij->i", *units).mean(dtype=np.float64))
        values["distance"] = float(np.linalg.norm(made[0] - made[1], axis=1).mean())
        values["unit distance"] = float(np.linalg.norm(units[0] - units[1], axis=1).mean())
        values["mrr"] = float(find_neighbours(*made, k=_K).reciprocal_rank.mean(dtype=np.float64))
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 2.0 if settings["form"] in ("absolute", "relative") else 4.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        forms = [form for form in FORMS if form in set(table.form)]
        told = f"{int(table['rows'].iloc[0]):,} words that are no anchors, {table.n_anchors.iloc[0]} anchors, k = {_K}"
        note = circumstances(table, told, "bars")
        look = {"kind": "points", "x_names": tuple(FORMS[form] for form in forms), "note": note}
        found = {"mrr": "MRR", "mrr chance": "chance level"}
        return {
            "distance": Lines(
                tuple(points_over(table, "form", forms, _DISTANCES)), "representation", "mean distance (0 = equal)", **look
            ),
            "MRR": Lines(
                tuple(points_over(table, "form", forms, found)),
                "representation",
                "MRR (1 = each word is its own nearest neighbour)",
                **look,
            ),
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = _DISTANCES | {"mrr": "MRR"}
        return findings_table(findings_over(table, "form", measures, FORMS) if len(table) else [])

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        ends = ("relative", "t = 2")
        parts = dict(list(table.groupby("form"))) if len(table) else {}
        told = {(form, column): mean(parts[form][column].astype(float)) for form in ends if form in parts for column in _TOLD}
        if len(told) < len(ends) * len(_TOLD) or not all(one.has_interval for one in told.values()):
            return ""
        changes = [
            f"the {name} from {told[ends[0], column].told()} to {told[ends[1], column].told()}"
            for column, name in _TOLD.items()
        ]
        return f"Quantising relative rows with t = 2 takes {' and '.join(changes)}."

    def opening(self, settings: Settings) -> Opening:
        pair = word_pair(settings["spaces"], Store())
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"])
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors.tolist()))


def _form(vectors: np.ndarray, anchors: np.ndarray, rows: np.ndarray, form: str) -> np.ndarray:
    """The rows of one space in this form, each of unit length before it becomes relative."""
    if form == "absolute":
        X, _ = brought(vectors[rows])
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    if form == "relative":
        return RelativeProjection(center=False).fit(vectors, anchors=anchors).transform(vectors[rows])
    projection = RelativeProjection("quantised", center=False, threshold=float(form.removeprefix("t = ")))
    return projection.fit(vectors[rows], anchors=vectors[anchors]).transform(vectors[rows])
