"""Does a coarser quantisation buy a tighter bound, and at what price? Distance, neighbours and heads over the threshold t."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Lines
from relcore.evaluation import Split
from relcore.metrics.neighbours import find_neighbours
from relcore.numbers import short
from relcore.progress import Report
from relcore.projection import RelativeProjection
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace
from relcore.stitching.heads import fit_head
from relcore.store import Store
from relcore.studies.held_out import data_option, ordered_pairs, studied_spaces, studied_split
from relcore.studies.material import LABELLED
from relcore.studies.statistics import mean
from relcore.studies.study import Option, RunResult, Settings, Study, findings_table, grid
from relcore.studies.summary import average, circumstances, findings_over, lines_over

_THRESHOLDS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
_ROWS = 3000  # Ward clustering takes the square of the rows, in time and in memory
_K = 10
_JITTER = 2e-6  # above the rounding of float32, far below what tells rows apart: quantised rows that are equal tie, at random
DISTANCES = {"distance": "paired rows", "bound": "paired rows, 95th percentile", "chance distance": "permuted rows"}
SCORES = {"mrr": "MRR", "jaccard": "Jaccard", "accuracy": "accuracy, stitched", "ratio": "distance, paired over permuted"}


class Quantisation(Study):
    """Ward clusters of unit rows, cut at t; t = 0 is the relative space as it is.

    The clusters are those of the rows that are not tested on, and a test row joins the nearest one; or, as published, of all
    rows together, which needs the test rows in advance, though no pair of them.

    Distances are cosine distances (1 − cos) between the relative rows of the same held-out item in two spaces, not centred,
    as in A.3. A space that collapses brings every row near every other one, so the distance of permuted rows stands beside it:
    the share that is left of it, paired over permuted, says whether the spaces became more similar. MRR and Jaccard are mutual,
    among the held-out rows, k = 10, ties broken at random. Accuracy: a head on one encoder's rows reads another encoder's.
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
            help="The published code clusters all rows at once. A row that comes later joins the nearest cluster.",
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
        made = [one.transform(space.vectors[split.test]) for one, space in zip(projections, spaces, strict=True)]
        values: dict[str, Any] = {"distinct rows": float(np.mean([len(np.unique(rows, axis=0)) for rows in made]))}
        pairs = [(made[i], made[j]) for i, j in ordered_pairs(spaces)]
        distances, scores = [distances_of(*pair) for pair in pairs], [_scores(*pair, state) for pair in pairs]
        for found in (distances, scores):
            values |= {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        if data in LABELLED:
            values |= _accuracies(spaces, projections, made, split)
        values["ratio"] = values["distance"] / values["chance distance"] if values["chance distance"] > 1e-6 else None
        return RunResult(values | {"test rows": len(split.test)})

    def seconds(self, settings: Settings) -> float:
        return {"words": 2.0, "digits": 6.0, "sentences": 10.0}[settings["data"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        charts = {}
        for data, part in table.groupby("data", sort=False) if len(table) else ():
            note = circumstances(
                part, f"{data}: {part['test rows'].mean():,.0f} held-out rows, {part.n_anchors.iloc[0]} anchors"
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


def projection_at(space: LatentSpace, anchors: np.ndarray, clustered: np.ndarray, t: float) -> RelativeProjection:
    """The relative projection of a space to these rows, quantised at t by clusters of those; t = 0: plain cosines."""
    quantised = {"similarity": "quantised", "threshold": t} if t else {}
    return RelativeProjection(center=False, **quantised).fit(space.vectors[clustered], anchors=space.vectors[anchors])


def distances_of(source: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Cosine distances, 0 … 2, of paired rows (m, k): their mean, their 95th percentile, and the mean of all other pairs."""
    a, b = unit_rows(source), unit_rows(target)
    cosines, m = np.vecdot(a, b).astype(np.float64), len(a)
    others = (a.sum(axis=0, dtype=np.float64) @ b.sum(axis=0, dtype=np.float64) - cosines.sum()) / (m * (m - 1))
    return {
        "distance": float(1 - cosines.mean()),
        "bound": float(np.quantile(1 - cosines, 0.95)),
        "chance distance": float(1 - others),
    }


def _scores(source: np.ndarray, target: np.ndarray, random_state: int) -> dict[str, float]:
    rng = np.random.default_rng(random_state)
    jittered = [unit_rows(rows) + _JITTER * rng.standard_normal(rows.shape).astype(np.float32) for rows in (source, target)]
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
    """Where the distance first falls below that of t = 0 for certain, and what is lost there; "" with too few states."""
    by_t = {t: rows.set_index("random_state") for t, rows in part.groupby("t")}
    if 0 not in by_t or len(by_t[0]) < 2 or len(by_t) < 2:
        return ""
    plain = by_t.pop(0)
    won = {t: {name: mean(plain[name] - rows[name]) for name in ("distance", "mrr")} for t, rows in by_t.items()}
    start = f"the distance between the spaces is {short(plain.distance.mean())} without quantising"
    tighter = [t for t, found in won.items() if found["distance"].low > 0]
    if not tighter:
        return f"{start}, and no t makes it smaller for certain"
    t = tighter[0]
    shares, heads = (
        [rows.get(name, rows.t * np.nan).astype(float).mean() for rows in (plain, by_t[t])] for name in ("ratio", "accuracy")
    )
    told = (
        f"{start} and first smaller for certain at t = {t:g}, by {won[t]['distance'].told()}, where MRR loses "
        f"{won[t]['mrr'].told()} of {short(plain.mrr.mean())}, the distance goes from {short(shares[0], 2)} to "
        f"{short(shares[1], 2)} of that of permuted rows"
    )
    return told if np.isnan(heads[0]) else f"{told} and accuracy from {short(heads[0])} to {short(heads[1])}"
