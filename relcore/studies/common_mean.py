"""Is the raw cosine of translated rows mostly the common mean? Beside it: a constant, permuted rows, and
centred rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.base.numbers import short
from relcore.charts.lines import Lines
from relcore.represent.inversion import InverseRelativeProjection
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.studies.material import data_option, ordered_pairs, studied_spaces, studied_split
from relcore.studies.runs import circumstances, findings_over, listed, points_over
from relcore.studies.statistics import mean
from relcore.studies.study import Option, RunResult, Settings, Study, findings_table, grid

MEASURES = {
    "translated": "translated rows",
    "constant": "the target's mean for every row",
    "permuted": "translated rows, permuted",
    "unrelated": "true rows, each with another true row",
    "centred": "translated rows, centred",
    "centred permuted": "translated rows, centred and permuted",
}


class CommonMean(Study):
    """Pruned inverse projection (ω = 8, δ = .7), the target's mean given back as in the paper, scored on
    held-out rows.

    The raw cosine counts the mean that all rows of the target share. The paper's § 4.1 says that two
    unrelated English sentences have .93: the mean alone then scores about √.93 = .96 where Table 1 prints
    .97. Here the mean is taken over the rows that are not tested on, and permuted rows are averaged over all
    pairs of different rows. A direction at cosine c explains c² of a row's squared length: the mean is most
    of it where it has more than half of that of the translated rows.
    """

    kind = "common-mean"
    title = "The common mean"
    question = "Does the .97 in Table 1 of the inverse projection come mostly from the common mean?"
    paper = "Maiorca et al. 2024, Table 1 and § 4.1"
    options = (
        data_option("languages", "pooled", "words", "digits", "sentences"),
        Option("n_anchors", "Anchors", (100, 300), 300),
        Option(
            "n_states",
            "Random states",
            (3, 5, 10),
            5,
            help="Each draws the anchors, the prunings and the held-out rows.",
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, {"n_anchors": options["n_anchors"]}, data=options["data"])

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        spaces, state = studied_spaces(settings["data"], store, report), settings["random_state"]
        split = studied_split(settings["data"], spaces[0], settings["n_anchors"], state)
        means = [mean_row(space.vectors[split.known]) for space in spaces]
        pairs = ordered_pairs(spaces)
        found = []
        for number, (i, j) in enumerate(pairs):
            report(number, len(pairs), f"{spaces[i].name} → {spaces[j].name}")
            inverse = InverseRelativeProjection(random_state=state)
            anchors = [space.vectors[split.anchors] for space in (spaces[i], spaces[j])]
            inverse.fit(*anchors, source_mean=means[i], target_mean=means[j])
            translated = inverse.transform(spaces[i].vectors[split.test])
            found.append(cosines(translated, spaces[j].vectors[split.test], means[j]))
        averaged = {name: float(np.mean([one[name] for one in found])) for name in MEASURES}
        return RunResult(averaged | {"test rows": len(split.test), "pairs": len(pairs)})

    def seconds(self, settings: Settings) -> float:
        return {"languages": 3.0, "pooled": 3.0, "words": 3.0, "digits": 3.0, "sentences": 8.0}[
            settings["data"]
        ]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        data = [one for one in options["data"] if one in set(table.data)]
        sizes = ", ".join(f"{table[table.data == one]['test rows'].mean():,.0f} of {one}" for one in data)
        note = circumstances(table, f"held-out rows: {sizes}; {table.n_anchors.iloc[0]} anchors", "bars")
        lines = points_over(table, "data", data, MEASURES, width=0.1)
        return {
            "cosine": Lines(
                tuple(lines), "data", "mean cosine", kind="points", x_names=tuple(data), note=note
            )
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            findings_over(table, "data", MEASURES, {one: one for one in options["data"]})
            if len(table)
            else []
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        parts = dict(list(table.groupby("data", sort=False))) if len(table) else {}
        excess = {data: mean(part.constant**2 - part.translated**2 / 2) for data, part in parts.items()}
        if not excess or not all(one.has_interval for one in excess.values()):
            return ""
        by_mean = [data for data, one in excess.items() if one.low > 0]
        others = [data for data in excess if data not in by_mean]
        verdict = (
            f"Mostly the common mean on {listed(by_mean)}"
            if by_mean
            else f"Not mostly the common mean on {listed(others)}"
        )
        verdict += f", not on {listed(others)}" if by_mean and others else ""
        told = [
            f"{mean(part.constant).told(2)} of the {short(part.translated.mean(), 2)} of translated rows on"
            f" {data}"
            for data, part in parts.items()
        ]
        return (
            f"{verdict}: the raw cosine of the target's mean, repeated for every row, is {'; '.join(told)}."
        )


def cosines(found: np.ndarray, true: np.ndarray, mean: np.ndarray) -> dict[str, float]:
    """Mean cosines under the names of `MEASURES`, −1 … 1: found and true rows (m, d), the mean (d,) that
    both contain.
    """
    a, b = unit_rows(found), unit_rows(true)
    centred_a, centred_b = unit_rows(found, mean), unit_rows(true, mean)
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
    """Σ over i ≠ j of aᵢ·bⱼ, over m (m − 1): what permuting gives on average, without the rows that stay
    in place.
    """
    m = len(a)
    sums = a.sum(axis=0, dtype=np.float64) @ b.sum(axis=0, dtype=np.float64)
    return float((sums - np.vecdot(a, b).sum(dtype=np.float64)) / (m * (m - 1)))
