"""Studies of relative spaces: the number of anchors, and quantisation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.numbers import short
from relcore.base.rows import unit_rows
from relcore.figures.charts import Lines
from relcore.represent.heads import fit_head
from relcore.represent.similarity import RelativeProjection
from relcore.runs.progress import Progress
from relcore.runs.store import Store
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.stitching import StitchSpec
from relcore.studies.study import (
    BASELINES,
    DATA,
    LABELLED,
    MEASURES,
    OWN,
    Estimate,
    Option,
    RunResult,
    Settings,
    Study,
    average,
    chart,
    count_of,
    data_option,
    findings_over,
    findings_table,
    grid,
    labelled_spaces,
    lines_over,
    mean,
    mean_at,
    ordered_pairs,
    sentence,
    states,
    stitched_values,
    studied_spaces,
    studied_split,
    test_ids_of,
)

_COARSE = (2, 5, 10, 20, 50, 100, 200, 400, 800)
_PAPER = (*range(1, 50, 2), *range(50, 100, 5), *range(100, 1001, 20))


_ENOUGH = 0.95  # share of the accuracy with the most anchors


class AnchorCount(Study):
    """Fig. 6: logistic heads on relative and whitened rows of frozen encoders, with random training rows as
    anchors.
    """

    version = 2
    options = (
        DATA,
        Option(
            "grid",
            "Numbers of anchors",
            ("coarse", "paper"),
            "coarse",
            help="Coarse: nine, 2 to 800. Paper: its 80 numbers.",
        ),
        states("the anchors and, of sentences, the test rows", 5),
    )
    by, measures = "n_anchors", MEASURES

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "data", n_anchors=_COARSE if options["grid"] == "coarse" else _PAPER)

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        spaces = labelled_spaces(settings["data"], store, report)
        report(0, 1, f"{settings['n_anchors']} anchors")
        spec = StitchSpec(
            ("absolute", "relative", "whitened"),
            n_anchors=settings["n_anchors"],
            random_states=(settings["random_state"],),
            test_ids=test_ids_of(settings["data"], spaces[0]),
        )
        return RunResult(stitched_values(spaces, spec))

    def seconds(self, settings: Settings) -> float:
        return (6.5 if settings["data"] == "digits" else 13.0) + settings["n_anchors"] / 90

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines, rows = lines_over(table, "n_anchors", MEASURES), f"{count_of(table)}, 4 encoders, 12 pairs"
        return {
            "accuracy": chart(table, lines, ("number of anchors", "accuracy"), rows, BASELINES, log_x=True)
        }

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_anchors.max()

        def reached(n: int, form: str = "relative") -> Estimate:
            return mean_at(table, "n_anchors", n, f"{form}, stitched")

        wanted = _ENOUGH * reached(most).value
        enough = next((n for n in sorted(set(table.n_anchors)) if reached(n).low >= wanted), most)
        return sentence(
            f"{enough} anchors are enough for {100 * _ENOUGH:.0f} % of the accuracy that {most} give stitched"
            f" heads: {{}} and {{}} on relative rows. With {most}, whitened rows reach {{}}, and heads on"
            f" their own encoder {short(average(table, OWN))}.",
            *(reached(enough), reached(most), reached(most, "whitened")),
        )


_THRESHOLDS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
_ROWS = 3000  # time and memory of Ward clustering grow with the square of the rows
_K = 10
# above the rounding of float32, far below differences of rows: equal quantised rows tie, in random order
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
    """Rows are quantised by Ward clustering of unit rows, cut at t; t = 0 is the unchanged relative space.
    Clusters are fitted without the test rows, which join the nearest one, or, as published, on all rows.

    Distances are cosine distances (1 − cos) between relative rows of the same held-out item in two spaces,
    not centred, as in A.3. If a space collapses, all distances shrink, so compare them with those of permuted
    rows: paired over permuted shows whether the spaces became more similar. MRR and Jaccard are mutual, k =
    10, with ties broken at random. Accuracy is that of a head on rows of another encoder.
    """

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

    shared, varied = "n_anchors clusters", {"data": "data", "t": _THRESHOLDS}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        data, state = settings["data"], settings["random_state"]
        spaces = studied_spaces(data, store, report)
        split = studied_split(data, spaces[0], settings["n_anchors"], state, _ROWS)
        report(0, 1, f"clusters at t = {settings['t']:g}")
        clustered = split.train if settings["clusters"] == "held-out" else np.union1d(split.train, split.test)
        quantised = {"similarity": "quantised", "threshold": settings["t"]} if settings["t"] else {}
        projections = [
            RelativeProjection(center=False, **quantised).fit(
                space.vectors[clustered], anchors=space.vectors[split.anchors]
            )
            for space in spaces
        ]
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
            rows = f"{data}: {count_of(part, 'held-out rows')}, {part.n_anchors.iloc[0]} anchors"
            names, x = (
                ("chance of MRR", "chance of accuracy")[: 1 + (data in LABELLED)],
                "t (0: not quantised)",
            )
            look = (x, "score"), rows, {name: name for name in names}
            charts[f"{data}: price"] = chart(part, lines_over(part, "t", SCORES), *look)
            lines = lines_over(part, "t", DISTANCES)
            charts[f"{data}: distance"] = chart(part, lines, (x, "cosine distance (0 = equal)"), rows)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for data, part in table.groupby("data", sort=False):
            names = {t: f"{data}, t = {t:g}" for t in _THRESHOLDS}
            rows += findings_over(part.sort_values("t"), "t", SCORES | DISTANCES, names)
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        parts = [(data, _tightest(part)) for data, part in table.groupby("data", sort=False)]
        if not all(text for _, text in parts):
            return ""
        return f"O{'; o'.join(f'n {data} {text}' for data, text in parts)}."


def distances_of(source: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """The cosine distances, 0 … 2, of paired rows (m, k): mean, 95th percentile, and mean over other
    pairs."""
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
    by_t = {t: rows.set_index("random_state") for t, rows in part.groupby("t")}
    if 0 not in by_t or len(by_t[0]) < 2 or len(by_t) < 2:
        return ""
    plain = by_t.pop(0)
    start = f"the distance between the spaces is {short(plain.distance.mean())} without quantising"
    nearer = {t: mean(plain.distance - rows.distance, among=len(by_t)) for t, rows in by_t.items()}
    tighter = [t for t, gain in nearer.items() if gain.low > 0]
    if not tighter:
        return f"{start}, and no t of {len(by_t)} is seen to make it smaller"
    t = tighter[0]
    changes = [f"MRR changes by {mean(by_t[t].mrr - plain.mrr)} from {short(plain.mrr.mean())}"]
    for name, title in {"ratio": "paired over permuted distance", "accuracy": "stitched accuracy"}.items():
        if name in part and part[name].notna().any():
            before, after = (rows[name].astype(float) for rows in (plain, by_t[t]))
            changes.append(f"{title} by {mean(after - before)} from {short(before.mean())}")
    first = f"first smaller, of {len(by_t)} t at once, at t = {t:g}, by {nearer[t]}"
    return f"{start} and {first}, where {', '.join(changes)}"
