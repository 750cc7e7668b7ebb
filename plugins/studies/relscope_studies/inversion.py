"""How much of the cosine that an inverse projection reaches comes from the mean of the target rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.numbers import and_list, short
from relcore.base.rows import mean_row, unit_rows
from relcore.figures.charts import Lines
from relcore.represent.inverse import InverseRelativeProjection
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.studies.estimates import count_of, mean, points_chart
from relcore.studies.study import Option, RunResult, Settings, Study, states
from relscope_studies.data import data_option, ordered_pairs, studied_spaces, studied_split

COSINES = {
    "translated": "translated rows",
    "constant": "the target's mean for every row",
    "permuted": "translated rows, permuted",
    "unrelated": "true rows, each with another true row",
    "centred": "translated rows, centred",
    "centred permuted": "translated rows, centred and permuted",
}
_STUDIED = ("languages", "pooled", "words", "digits", "sentences")


class CommonMean(Study):
    """Pruned inverse projection (ω = 8, δ = .7) is scored on held-out rows. As in the paper, the mean of the
    target is added to the translated rows.

    All rows of the target share this mean, which increases the raw cosine. According to § 4.1 of the paper,
    two unrelated English sentences have a cosine of .93. The mean alone then has a cosine of about √.93 = .96
    with each row, and Table 1 prints .97. In this study, the mean is that of the rows that are not held out,
    and permuted rows are averaged over all pairs. A direction with cosine c to a row explains c² of its
    squared length. So the cosine comes mostly from the mean if the mean explains more than half of what the
    translated rows explain.
    """

    title = "The common mean"
    question = "Does the .97 in Table 1 of the inverse projection come mostly from the common mean?"
    paper = "Maiorca et al. 2024, Table 1 and § 4.1"

    options = (
        data_option(*_STUDIED),
        Option("n_anchors", "Anchors", (100, 300), 300),
        states("the anchors, the prunings and the held-out rows", 5),
    )
    by = "data"
    measures = COSINES
    names: ClassVar = dict(zip(_STUDIED, _STUDIED, strict=True))

    shared = "n_anchors"
    varied: ClassVar = {"data": "data"}
    cost: ClassVar = dict.fromkeys(_STUDIED, 3.0) | {"sentences": 8.0}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        spaces = studied_spaces(settings["data"], store, report)
        state = settings["random_state"]
        split = studied_split(settings["data"], spaces[0], settings["n_anchors"], state)
        means = [mean_row(space.vectors[split.known]) for space in spaces]
        pairs = ordered_pairs(spaces)
        measured = []
        for number, (i, j) in enumerate(pairs):
            report(number, len(pairs), f"{spaces[i].name} → {spaces[j].name}")
            inverse = InverseRelativeProjection(random_state=state)
            anchors = [space.vectors[split.anchors] for space in (spaces[i], spaces[j])]
            inverse.fit(*anchors, source_mean=means[i], target_mean=means[j])
            translated = inverse.transform(spaces[i].vectors[split.test])
            measured.append(cosines(translated, spaces[j].vectors[split.test], means[j]))
        averaged = {name: float(np.mean([one[name] for one in measured])) for name in COSINES}
        return RunResult(averaged | {"test rows": len(split.test), "pairs": len(pairs)})

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        parts = table.groupby("data", sort=False)
        sizes = ", ".join(count_of(part, f"of {data}") for data, part in parts)
        rows = f"held-out rows: {sizes}; {table.n_anchors.iloc[0]} anchors"
        titles = ("data", "mean cosine")
        return {"cosine": points_chart(table, "data", self.names, COSINES, titles, rows, width=0.1)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        parts = dict(list(table.groupby("data", sort=False)))
        excess = {data: mean(part.constant**2 - part.translated**2 / 2) for data, part in parts.items()}
        if not all(one.has_interval for one in excess.values()):
            return ""
        by_mean = [data for data, one in excess.items() if one.low > 0]
        others = [data for data in excess if data not in by_mean]
        verdicts = []
        if by_mean:
            verdicts = [f"mostly the common mean on {and_list(by_mean)}"]
        if others:
            verdicts += [f"not mostly the common mean on {and_list(others)}"]
        verdict = ", ".join(verdicts)
        shares = [
            f"{mean(part.constant):2} of the {short(part.translated.mean(), 2)} of translated rows on {data}"
            for data, part in parts.items()
        ]
        return (
            f"{verdict[0].upper()}{verdict[1:]}: the raw cosine of the target's mean, repeated for every row,"
            f" is {'; '.join(shares)}."
        )


def cosines(found: np.ndarray, true: np.ndarray, mean: np.ndarray) -> dict[str, float]:
    """The mean cosines by their names in `COSINES`, −1 … 1, of translated rows `found` and true rows, both
    (m, d), with the common mean (d,).
    """
    a = unit_rows(found)
    b = unit_rows(true)
    centred_a = unit_rows(found, mean)
    centred_b = unit_rows(true, mean)
    constant = unit_rows(mean[None])
    return {
        "translated": _paired(a, b),
        "constant": float((b @ constant[0]).mean(dtype=np.float64)),
        "permuted": _unpaired(a, b),
        "unrelated": _unpaired(b, b),
        "centred": _paired(centred_a, centred_b),
        "centred permuted": _unpaired(centred_a, centred_b),
    }


def _paired(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.vecdot(a, b).mean(dtype=np.float64))


def _unpaired(a: np.ndarray, b: np.ndarray) -> float:
    """The mean of aᵢ·bⱼ over all pairs i ≠ j, which is its expectation for a random derangement."""
    m = len(a)
    sums = a.sum(axis=0, dtype=np.float64) @ b.sum(axis=0, dtype=np.float64)
    return float((sums - np.vecdot(a, b).sum(dtype=np.float64)) / (m * (m - 1)))
