"""Does a coarser quantisation buy a tighter bound, and at what price? Distance, neighbours and heads over
the threshold t.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.base.magnitude import brought
from relcore.base.numbers import short
from relcore.charts.lines import Lines
from relcore.represent.anchors import select_anchors
from relcore.represent.heads import fit_head
from relcore.represent.similarity import RelativeProjection, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.studies.material import (
    LABELLED,
    SPACES,
    data_option,
    ordered_pairs,
    studied_spaces,
    studied_split,
    word_pair,
    word_specs,
)
from relcore.studies.runs import average, circumstances, findings_over, lines_over, points_over
from relcore.studies.statistics import mean
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid

_THRESHOLDS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
_ROWS = 3000  # Ward clustering takes the square of the rows, in time and in memory
_K = 10
# above the rounding of float32, far below what tells rows apart: quantised rows that are equal tie, at random
_JITTER = 2e-6
DISTANCES = {
    "distance": "paired rows",
    "bound": "paired rows, 95th percentile",
    "chance distance": "permuted rows",
}
SCORES = {
    "mrr": "MRR",
    "jaccard": "Jaccard",
    "accuracy": "accuracy, stitched",
    "ratio": "distance, paired over permuted",
}


class Quantisation(Study):
    """Ward clusters of unit rows, cut at t; t = 0 is the relative space as it is.

    The clusters are those of the rows that are not tested on, and a test row joins the nearest one; or, as
    published, of all rows together, which needs the test rows in advance, though no pair of them.

    Distances are cosine distances (1 − cos) between the relative rows of the same held-out item in two
    spaces, not centred, as in A.3. A space that collapses brings every row near every other one, so the
    distance of permuted rows stands beside it: the share that is left of it, paired over permuted, says
    whether the spaces became more similar. MRR and Jaccard are mutual, among the held-out rows, k = 10, ties
    broken at random. Accuracy: a head on one encoder's rows reads another encoder's.
    """

    kind = "quantisation"
    title = "Quantisation: bound and cost"
    question = "At which thresholds does quantisation bring two spaces closer, and what does it cost?"
    paper = "Moschella et al. 2023, left open in A.3"
    options = (
        data_option("words", "digits", "sentences", default=("words", "digits")),
        Option("n_anchors", "Anchors", (100, 300), 300),
        Option(
            "clusters",
            "Clusters",
            ("held-out", "as published"),
            "held-out",
            names=("without the test rows", "of all rows, as published"),
            help=(
                "The published code clusters all rows at once. A row that comes later joins the nearest"
                " cluster."
            ),
        ),
        Option("n_states", "Random states", (3, 5, 10), 5, help="Each draws the anchors and the rows."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {name: options[name] for name in ("n_anchors", "clusters")}
        return grid(options, shared, data=options["data"], t=_THRESHOLDS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data, state = settings["data"], settings["random_state"]
        spaces = studied_spaces(data, store, report)
        split = studied_split(data, spaces[0], settings["n_anchors"], state, _ROWS)
        report(0, 1, f"clusters at t = {settings['t']:g}")
        clustered = split.train if settings["clusters"] == "held-out" else np.union1d(split.train, split.test)
        projections = [projection_at(space, split.anchors, clustered, settings["t"]) for space in spaces]
        made = [
            one.transform(space.vectors[split.test]) for one, space in zip(projections, spaces, strict=True)
        ]
        values: dict[str, Any] = {
            "distinct rows": float(np.mean([len(np.unique(rows, axis=0)) for rows in made]))
        }
        pairs = [(made[i], made[j]) for i, j in ordered_pairs(spaces)]
        distances, scores = [distances_of(*pair) for pair in pairs], [_scores(*pair, state) for pair in pairs]
        for found in (distances, scores):
            values |= {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        if data in LABELLED:
            values |= _accuracies(spaces, projections, made, split)
        values["ratio"] = (
            values["distance"] / values["chance distance"] if values["chance distance"] > 1e-6 else None
        )
        return RunResult(values | {"test rows": len(split.test)})

    def seconds(self, settings: Settings) -> float:
        return {"words": 2.0, "digits": 6.0, "sentences": 10.0}[settings["data"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        charts = {}
        for data, part in table.groupby("data", sort=False) if len(table) else ():
            note = circumstances(
                part,
                f"{data}: {part['test rows'].mean():,.0f} held-out rows, {part.n_anchors.iloc[0]} anchors",
            )
            baselines = [("chance of MRR", average(part, "chance of MRR"))]
            if data in LABELLED:
                baselines.append(("chance of accuracy", average(part, "chance of accuracy")))
            lines = (tuple(lines_over(part, "t", names)) for names in (SCORES, DISTANCES))
            x = "t (0: not quantised)"
            charts[f"{data}: price"] = Lines(next(lines), x, "score", baselines=baselines, note=note)
            charts[f"{data}: distance"] = Lines(next(lines), x, "cosine distance (0 = equal)", note=note)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for data, part in table.groupby("data", sort=False) if len(table) else ():
            names = {t: f"{data}, t = {t:g}" for t in _THRESHOLDS}
            rows += findings_over(part.sort_values("t"), "t", {**SCORES, **DISTANCES}, names)
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        told = []
        for data, part in table.groupby("data", sort=False) if len(table) else ():
            one = _told(part)
            if not one:
                return ""
            told.append(f"n {data} {one}")
        return f"O{'; o'.join(told)}." if told else ""


def projection_at(
    space: LatentSpace, anchors: np.ndarray, clustered: np.ndarray, t: float
) -> RelativeProjection:
    """The relative projection of a space to these rows, quantised at t by clusters of those; t = 0: plain
    cosines.
    """
    quantised = {"similarity": "quantised", "threshold": t} if t else {}
    return RelativeProjection(center=False, **quantised).fit(
        space.vectors[clustered], anchors=space.vectors[anchors]
    )


def distances_of(source: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Cosine distances, 0 … 2, of paired rows (m, k): their mean, their 95th percentile, and the mean of
    all other pairs.
    """
    a, b = unit_rows(source), unit_rows(target)
    cosines, m = np.vecdot(a, b).astype(np.float64), len(a)
    others = (a.sum(axis=0, dtype=np.float64) @ b.sum(axis=0, dtype=np.float64) - cosines.sum()) / (
        m * (m - 1)
    )
    return {
        "distance": float(1 - cosines.mean()),
        "bound": float(np.quantile(1 - cosines, 0.95)),
        "chance distance": float(1 - others),
    }


def _scores(source: np.ndarray, target: np.ndarray, random_state: int) -> dict[str, float]:
    rng = np.random.default_rng(random_state)
    jittered = [
        unit_rows(rows) + _JITTER * rng.standard_normal(rows.shape).astype(np.float32)
        for rows in (source, target)
    ]
    found = find_neighbours(*jittered, k=_K, convention="mutual")
    mrr, jaccard = found.mrr(5), found.jaccard(5)
    return {
        "mrr": float(mrr),
        "jaccard": float(jaccard),
        "chance of MRR": mrr.null.mean,
        "chance of Jaccard": jaccard.null.mean,
    }


def _accuracies(
    spaces: list[LatentSpace], projections: list[RelativeProjection], made: list[np.ndarray], split: Split
) -> dict[str, float]:
    """Mean share of right answers over the ordered pairs: a head of one encoder on the rows of another."""
    names, classes = np.unique(spaces[0].labels.astype(str), return_inverse=True)
    known, truth = split.known, classes[split.test]
    right = []
    for i, (space, projection) in enumerate(zip(spaces, projections, strict=True)):
        head = fit_head(projection.transform(space.vectors[known]), classes[known], len(names))
        others = [rows for j, rows in enumerate(made) if j != i]
        right += [float((head.probabilities(rows).argmax(axis=1) == truth).mean()) for rows in others]
    chance = float((truth == np.bincount(classes[known]).argmax()).mean())
    return {"accuracy": float(np.mean(right)), "chance of accuracy": chance}


def _told(part: pd.DataFrame) -> str:
    """Where the distance first falls below that of t = 0 for certain, and what is lost there; "" with too
    few states.
    """
    by_t = {t: rows.set_index("random_state") for t, rows in part.groupby("t")}
    if 0 not in by_t or len(by_t[0]) < 2 or len(by_t) < 2:
        return ""
    plain = by_t.pop(0)
    won = {
        t: {name: mean(plain[name] - rows[name]) for name in ("distance", "mrr")} for t, rows in by_t.items()
    }
    start = f"the distance between the spaces is {short(plain.distance.mean())} without quantising"
    tighter = [t for t, found in won.items() if found["distance"].low > 0]
    if not tighter:
        return f"{start}, and no t makes it smaller for certain"
    t = tighter[0]
    shares, heads = (
        [rows.get(name, rows.t * np.nan).astype(float).mean() for rows in (plain, by_t[t])]
        for name in ("ratio", "accuracy")
    )
    told = (
        f"{start} and first smaller for certain at t = {t:g}, by {won[t]['distance'].told()}, where MRR loses"
        f" {won[t]['mrr'].told()} of {short(plain.mrr.mean())}, the distance goes from {short(shares[0], 2)}"
        f" to {short(shares[1], 2)} of that of permuted rows"
    )
    return told if np.isnan(heads[0]) else f"{told} and accuracy from {short(heads[0])} to {short(heads[1])}"


# Does quantisation make spaces more similar? Points become the centroids of their clusters before they become
# relative.

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
_QUASI_ISOMETRY_ROWS, _QUASI_ISOMETRY_K = 2000, 10


class QuasiIsometry(Study):
    """Fig. 7: Ward clusters of the unit rows and anchors cut at distance t, as the paper's code does it,
    without centring.

    The paper's score is the mean cosine distance between paired rows, 1 − cosine (appendix A.3); its code
    prints the Euclidean distance, which stands beside it. Quantised rows are shorter (their anchors are
    centroids, no unit vectors), and shorter rows are nearer, so the Euclidean distance of unit rows is there,
    too. MRR says what quantising costs: words of one cluster become one row, and none of them is found any
    more. All on rows that are no anchors.
    """

    kind = "quasi-isometry"
    title = "Quasi-isometry"
    question = "Does quantisation make two spaces more similar?"
    paper = "Moschella et al. 2023, Fig. 7"
    version = 2
    options = (
        Option("n_anchors", "Anchors", (100, 300), 300),
        Option(
            "n_states",
            "Random states",
            (3, 5, 10),
            5,
            help=f"Each draws the anchors and the {_QUASI_ISOMETRY_ROWS:,} words compared.",
        ),
        SPACES,
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {"n_anchors": options["n_anchors"], "spaces": list(options["spaces"])}
        return grid(options, shared, form=FORMS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        rows = Split.held_out(pair.ids, pair.source.rows(anchors), state).queries(_QUASI_ISOMETRY_ROWS)
        made = [
            _form(space.vectors, space.rows(anchors), rows, settings["form"])
            for space in (pair.source, pair.target)
        ]
        chance = float(
            np.sum(1 / np.arange(1, _QUASI_ISOMETRY_K + 1)) / len(rows)
        )  # of 1/rank where the order is random and ends at k
        values: dict[str, Any] = {"rows": len(rows), "k": _QUASI_ISOMETRY_K, "mrr chance": chance}
        if made[0].shape != made[1].shape:  # absolute rows of two widths
            return RunResult(values | dict.fromkeys((*_DISTANCES, "mrr")))
        units = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in made]
        values["cosine distance"] = 1 - float(np.einsum("ij,ij->i", *units).mean(dtype=np.float64))
        values["distance"] = float(np.linalg.norm(made[0] - made[1], axis=1).mean())
        values["unit distance"] = float(np.linalg.norm(units[0] - units[1], axis=1).mean())
        values["mrr"] = float(
            find_neighbours(*made, k=_QUASI_ISOMETRY_K).reciprocal_rank.mean(dtype=np.float64)
        )
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 2.0 if settings["form"] in ("absolute", "relative") else 4.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        forms = [form for form in FORMS if form in set(table.form)]
        told = (
            f"{int(table['rows'].iloc[0]):,} words that are no anchors, {table.n_anchors.iloc[0]} anchors, k"
            f" = {_QUASI_ISOMETRY_K}"
        )
        note = circumstances(table, told, "bars")
        look = {"kind": "points", "x_names": tuple(FORMS[form] for form in forms), "note": note}
        found = {"mrr": "MRR", "mrr chance": "chance level"}
        return {
            "distance": Lines(
                tuple(points_over(table, "form", forms, _DISTANCES)),
                "representation",
                "mean distance (0 = equal)",
                **look,
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
        told = {
            (form, column): mean(parts[form][column].astype(float))
            for form in ends
            if form in parts
            for column in _TOLD
        }
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
