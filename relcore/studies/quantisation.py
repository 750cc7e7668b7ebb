"""Does a coarser quantisation buy a tighter bound, and at what price? Distance, neighbours and heads over
the threshold t.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.magnitude import brought
from relcore.base.numbers import short
from relcore.figures.charts import Lines
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
    OnWords,
    data_option,
    ordered_pairs,
    studied_spaces,
    studied_split,
    word_pair,
)
from relcore.studies.statistics import (
    chart,
    count_of,
    findings_over,
    findings_table,
    lines_over,
    mean,
    mean_at,
    points_chart,
    sentence,
)
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states

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
    cost: ClassVar = {"words": 2.0, "digits": 6.0, "sentences": 10.0}
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
        states("the anchors and the rows", 5),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "n_anchors clusters", data=options["data"], t=_THRESHOLDS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data, state = settings["data"], settings["random_state"]
        spaces = studied_spaces(data, store, report)
        split = studied_split(data, spaces[0], settings["n_anchors"], state, _ROWS)
        report(0, 1, f"clusters at t = {settings['t']:g}")
        clustered = split.train if settings["clusters"] == "held-out" else np.union1d(split.train, split.test)
        projections = [projection_at(space, split.anchors, clustered, settings["t"]) for space in spaces]
        relative = [
            one.transform(space.vectors[split.test]) for one, space in zip(projections, spaces, strict=True)
        ]
        distinct = np.mean([len(np.unique(rows, axis=0)) for rows in relative])
        values: dict[str, Any] = {"distinct rows": float(distinct)}
        pairs = [(relative[i], relative[j]) for i, j in ordered_pairs(spaces)]
        measured = [distances_of(*pair) | _scores(*pair, state) for pair in pairs]
        values |= {name: float(np.mean([one[name] for one in measured])) for name in measured[0]}
        if data in LABELLED:
            values |= _accuracies(spaces, projections, relative, split)
        chance = values["chance distance"]
        values["ratio"] = values["distance"] / chance if chance > 1e-6 else None
        return RunResult(values | {"test rows": len(split.test)})

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        charts = {}
        for data, part in table.groupby("data", sort=False):
            held_out = count_of(part, "held-out rows")
            rows = f"{data}: {held_out}, {part.n_anchors.iloc[0]} anchors"
            names = ("chance of MRR", "chance of accuracy")[: 1 + (data in LABELLED)]
            look = ("t (0: not quantised)", "score"), rows, {name: name for name in names}
            charts[f"{data}: price"] = chart(part, lines_over(part, "t", SCORES), *look)
            look = ("t (0: not quantised)", "cosine distance (0 = equal)"), rows
            charts[f"{data}: distance"] = chart(part, lines_over(part, "t", DISTANCES), *look)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for data, part in table.groupby("data", sort=False):
            names = {t: f"{data}, t = {t:g}" for t in _THRESHOLDS}
            rows += findings_over(part.sort_values("t"), "t", {**SCORES, **DISTANCES}, names)
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        parts = [(data, _tightest(part)) for data, part in table.groupby("data", sort=False)]
        if not all(text for _, text in parts):
            return ""
        return f"O{'; o'.join(f'n {data} {text}' for data, text in parts)}."


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
    neighbours = find_neighbours(*jittered, k=_K, convention="mutual")
    mrr, jaccard = neighbours.mrr(5), neighbours.jaccard(5)
    chance = {"chance of MRR": mrr.null.mean, "chance of Jaccard": jaccard.null.mean}
    return {"mrr": float(mrr), "jaccard": float(jaccard), **chance}


def _accuracies(
    spaces: list[LatentSpace], projections: list[RelativeProjection], relative: list[np.ndarray], split: Split
) -> dict[str, float]:
    """Mean share of right answers over the ordered pairs: a head of one encoder on the rows of another."""
    names, classes = np.unique(spaces[0].labels.astype(str), return_inverse=True)
    known, truth = split.known, classes[split.test]
    right = []
    for i, (space, projection) in enumerate(zip(spaces, projections, strict=True)):
        head = fit_head(projection.transform(space.vectors[known]), classes[known], len(names))
        others = [rows for j, rows in enumerate(relative) if j != i]
        right += [float((head.probabilities(rows).argmax(axis=1) == truth).mean()) for rows in others]
    chance = float((truth == np.bincount(classes[known]).argmax()).mean())
    return {"accuracy": float(np.mean(right)), "chance of accuracy": chance}


def _tightest(part: pd.DataFrame) -> str:
    """Where the distance first falls below that of t = 0 for certain, and what is lost there; "" with too
    few states.
    """
    by_t = {t: rows.set_index("random_state") for t, rows in part.groupby("t")}
    if 0 not in by_t or len(by_t[0]) < 2 or len(by_t) < 2:
        return ""
    plain = by_t.pop(0)
    start = f"the distance between the spaces is {short(plain.distance.mean())} without quantising"
    nearer = {t: mean(plain.distance - rows.distance) for t, rows in by_t.items()}
    tighter = [t for t, gain in nearer.items() if gain.low > 0]
    if not tighter:
        return f"{start}, and no t makes it smaller for certain"
    t = tighter[0]
    ratios, heads = (
        [rows[name].astype(float).mean() for rows in (plain, by_t[t])] if name in part else [np.nan] * 2
        for name in ("ratio", "accuracy")
    )
    text = (
        f"{start} and first smaller for certain at t = {t:g}, by {nearer[t]}, where MRR loses"
        f" {mean(plain.mrr - by_t[t].mrr)} of {short(plain.mrr.mean())}, the distance goes from"
        f" {short(ratios[0], 2)} to {short(ratios[1], 2)} of that of permuted rows"
    )
    return text if np.isnan(heads[0]) else f"{text} and accuracy from {short(heads[0])} to {short(heads[1])}"


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
_WORDS_COMPARED = 2000


class QuasiIsometry(OnWords):
    """Fig. 7: Ward clusters of the unit rows and anchors cut at distance t, as the paper's code does it,
    without centring.

    The paper's score is the mean cosine distance between paired rows, 1 − cosine (appendix A.3); its code
    prints the Euclidean distance, which stands beside it. Quantised rows are shorter (their anchors are
    centroids, no unit vectors), and shorter rows are nearer, so the Euclidean distance of unit rows is there,
    too. MRR says what quantising costs: words of one cluster become one row, and none of them is found any
    more. All on rows that are no anchors.
    """

    kind = "quasi-isometry"
    version = 2
    options = (
        Option("n_anchors", "Anchors", (100, 300), 300),
        states(f"the anchors and the {_WORDS_COMPARED:,} words compared", 5),
        SPACES,
    )
    by, measures, names = "form", _DISTANCES | {"mrr": "MRR"}, FORMS

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "n_anchors spaces", form=FORMS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        anchors = self.anchors(settings, pair)
        rows = Split.held_out(pair.ids, pair.source.rows(anchors), state).queries(_WORDS_COMPARED)
        sides = [
            _form(space.vectors, space.rows(anchors), rows, settings["form"])
            for space in (pair.source, pair.target)
        ]
        # of 1/rank where the order is random and ends at k
        chance = float(np.sum(1 / np.arange(1, _K + 1)) / len(rows))
        values: dict[str, Any] = {"rows": len(rows), "k": _K, "mrr chance": chance}
        if sides[0].shape != sides[1].shape:  # absolute rows of two widths
            return RunResult(values | dict.fromkeys((*_DISTANCES, "mrr")))
        units = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in sides]
        ranks = find_neighbours(*sides, k=_K).reciprocal_rank
        values["cosine distance"] = 1 - float(np.einsum("ij,ij->i", *units).mean(dtype=np.float64))
        values["distance"] = float(np.linalg.norm(sides[0] - sides[1], axis=1).mean())
        values["unit distance"] = float(np.linalg.norm(units[0] - units[1], axis=1).mean())
        return RunResult(values | {"mrr": float(ranks.mean(dtype=np.float64))})

    def seconds(self, settings: Settings) -> float:
        return 2.0 if settings["form"] in ("absolute", "relative") else 4.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        words = count_of(table, "words that are no anchors", "rows")
        rows = f"{words}, {table.n_anchors.iloc[0]} anchors, k = {_K}"
        ranks = {"mrr": "MRR", "mrr chance": "chance level"}
        titles = {
            "distance": (_DISTANCES, "mean distance (0 = equal)"),
            "MRR": (ranks, "MRR (1 = each word is its own nearest neighbour)"),
        }
        return {
            name: points_chart(table, "form", FORMS, measures, ("representation", title), rows)
            for name, (measures, title) in titles.items()
        }

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        return sentence(
            "Quantising relative rows with t = 2 takes the cosine distance from {} to {} and the MRR from {}"
            " to {}.",
            *(
                mean_at(table, "form", form, column)
                for column in ("cosine distance", "mrr")
                for form in ("relative", "t = 2")
            ),
        )


def _form(vectors: np.ndarray, anchors: np.ndarray, rows: np.ndarray, form: str) -> np.ndarray:
    """The rows of one space in this form, each of unit length before it becomes relative."""
    if form == "absolute":
        X, _ = brought(vectors[rows])
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    if form == "relative":
        return RelativeProjection(center=False).fit(vectors, anchors=anchors).transform(vectors[rows])
    projection = RelativeProjection("quantised", center=False, threshold=float(form.removeprefix("t = ")))
    return projection.fit(vectors[rows], anchors=vectors[anchors]).transform(vectors[rows])
