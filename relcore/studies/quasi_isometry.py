"""Does quantising make spaces more alike? Points replaced by the centroids of their clusters before they become relative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.anchors.selection import select_anchors
from relcore.figures.lines import Lines
from relcore.metrics.cka import mean_cosine
from relcore.metrics.neighbours import find_neighbours
from relcore.projection import RelativeProjection
from relcore.store import Store
from relcore.studies.material import SPACES, word_pair, word_specs
from relcore.studies.study import Opening, Option, Report, RunResult, Settings, Study, findings_table
from relcore.studies.summary import circumstances, findings_over, points_over

FORMS = {
    "absolute": "absolute",
    "relative": "relative",
    "t = 1": "quantised, t = 1",
    "t = 1.5": "quantised, t = 1.5",
    "t = 2": "quantised, t = 2",
}
_MEASURES = {"cosine": "mean cosine", "mrr": "MRR"}
_ROWS = 2000


class QuasiIsometry(Study):
    """Fig. 7: Ward clusters of the unit rows and anchors cut at distance t, as the paper's code does it, without centring.

    The paper's score is the mean Euclidean distance between paired rows. Quantised rows are shorter (their anchors are
    centroids, no unit vectors), and shorter rows are nearer: so the distance of rows of unit length, the cosine and MRR stand
    beside it.
    """

    kind = "quasi-isometry"
    title = "Quasi-isometry"
    question = "Does quantising make two spaces more alike?"
    paper = "Moschella et al. 2023, Fig. 7"
    options = (
        Option("n_anchors", "Anchors", (100, 300), 300),
        Option("n_states", "Random states", (3, 5, 10), 5, help=f"Each draws the anchors and the {_ROWS:,} words compared."),
        SPACES,
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {"n_anchors": options["n_anchors"], "spaces": list(options["spaces"])}
        return [{"form": form, **shared, "random_state": state} for state in range(options["n_states"]) for form in FORMS]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        rows = np.sort(np.random.default_rng(state).choice(len(pair), min(_ROWS, len(pair)), replace=False))
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        made = [_form(space.vectors, space.rows(anchors), rows, settings["form"]) for space in (pair.source, pair.target)]
        values: dict[str, Any] = {"rows": len(rows)}
        if made[0].shape != made[1].shape:
            return RunResult(
                values | dict.fromkeys(("distance", "cosine", "unit distance", "mrr"))
            )  # absolute rows of two widths
        values["distance"] = float(np.linalg.norm(made[0] - made[1], axis=1).mean())
        cosine = mean_cosine(*made)
        values["cosine"] = float(cosine)
        units = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in made]
        values["unit distance"] = float(np.linalg.norm(units[0] - units[1], axis=1).mean())
        values["mrr"] = float(find_neighbours(*made, k=10).mrr(n_permutations=2))
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 2.0 if settings["form"] in ("absolute", "relative") else 4.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        forms = [form for form in FORMS if form in set(table.form)]
        told = f"{int(table['rows'].iloc[0]):,} words, {table.n_anchors.iloc[0]} anchors"
        note = circumstances(table, told, "bars")
        look = {"kind": "points", "x_names": tuple(FORMS[form] for form in forms), "note": note}
        distances = {"distance": "of the rows (the paper's)", "unit distance": "of rows of unit length"}
        return {
            "distance": Lines(
                tuple(points_over(table, "form", forms, distances)), "representation", "mean distance (0 = equal)", **look
            ),
            "similarity": Lines(
                tuple(points_over(table, "form", forms, _MEASURES)), "representation", "score (1 = equal)", **look
            ),
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = {"distance": "distance", "unit distance": "distance at unit length", **_MEASURES}
        return findings_table(findings_over(table, "form", measures, FORMS) if len(table) else [])

    def opening(self, settings: Settings) -> Opening:
        pair = word_pair(settings["spaces"], Store())
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"])
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors.tolist()))


def _form(vectors: np.ndarray, anchors: np.ndarray, rows: np.ndarray, form: str) -> np.ndarray:
    """The rows of one space in this form, each of unit length before it becomes relative."""
    if form == "absolute":
        X = vectors[rows]
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    if form == "relative":
        return RelativeProjection(center=False).fit(vectors, anchors=anchors).transform(vectors[rows])
    projection = RelativeProjection("quantised", center=False, threshold=float(form.removeprefix("t = ")))
    return projection.fit(vectors[rows], anchors=vectors[anchors]).transform(vectors[rows])
