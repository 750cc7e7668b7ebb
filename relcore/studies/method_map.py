"""Where each method wins: relative rows, whitened rows, rotation and least squares, from the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.figures.charts import Matrices, MatrixPanel
from relcore.represent.anchors import mixtures
from relcore.represent.similarity import RelativeProjection, mean_row, unit_rows
from relcore.represent.translation import Affine, Procrustes
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import Split
from relcore.studies.study import (
    Estimate,
    RunResult,
    Settings,
    Study,
    anchored_split,
    data_option,
    finding,
    findings_table,
    grid,
    listed,
    mean,
    states,
    studied_spaces,
)

_FORMS = {
    "relative": {},
    "whitened": {"whiten": True},
    "product": {"similarity": "whitened-product"},
}
METHODS = {
    "relative": "relative rows",
    "whitened": "whitened rows, ours",
    "product": "whitened product, Svendsen et al.",
    "rotation": "Procrustes",
    "linear": "least squares",
}
LEARNED = {
    "learned": "relative rows, learned anchors",
    "learned product": "whitened product, learned anchors",
}
CONDITIONS, NOISES, RATIOS = (1, 3, 10), (0.0, 0.3, 1.0), (0.5, 1.0, 2.5, 10.0)
_N, _D, _GROUPS, _ROWS, _K = 1500, 40, 20, 3000, 10


class MethodMap(Study):
    """The share of rows found, as MRR (k = 10) among held-out rows, from the same random pairs of anchors.

    Mixture: 1,500 rows of 20 Gaussians in 40 dimensions, through a linear map and noise. The map's
    non-orthogonality is its condition number; the noise is in standard deviations of the mapped rows. Words:
    the bundled spaces. Sentences: TF-IDF + SVD and MiniLM's layer 6. Each has numbers of anchors in
    proportion to its dimensions. Least squares has an offset. On words and sentences stand also anchors that
    are learned as mixtures: they take all training pairs, so they are left out of the comparison.
    """

    cost: ClassVar = {"mixture": 0.3, "words": 12.0, "sentences": 12.0}
    options = (data_option("mixture", "words", "sentences"), states("the rows, the anchors and the map", 5))

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        runs = []
        for data in options["data"]:
            varied = {"condition": CONDITIONS, "noise": NOISES} if data == "mixture" else {}
            ratios = RATIOS if varied else RATIOS[:3]  # the sentences are fewer than 10 for each dimension
            runs += grid({**options, "data": data}, "data", **varied, ratio=ratios)
        return runs

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data, state = settings["data"], settings["random_state"]
        if data == "mixture":
            pair = mixture_pair(settings["condition"], settings["noise"], state)
            ids = [f"r{row}" for row in range(_N)]
        else:
            spaces = studied_spaces(data, store, report)
            pair, ids = (spaces[0].vectors, spaces[-1].vectors), spaces[0].ids
        n_anchors = round(settings["ratio"] * pair[0].shape[1])
        split = anchored_split(ids, n_anchors, most_rows=_ROWS, random_state=state)
        values = scores_of(pair, split)
        if data != "mixture":
            report(0, 1, f"learning {n_anchors} anchors")
            values |= learned_scores(pair, split)
        chance = float(np.sum(1 / np.arange(1, _K + 1)) / len(split.test))
        return RunResult(values | {"anchors": n_anchors, "test rows": len(split.test), "chance": chance})

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        cells = _cells(table)
        rows, ratios = list(dict.fromkeys(row for row, _ in cells)), sorted({ratio for _, ratio in cells})
        panels = []
        for name, title in METHODS.items():
            values = np.full((len(rows), len(ratios)), np.nan)
            for (row, ratio), part in cells.items():
                values[rows.index(row), ratios.index(ratio)] = part[name].mean()
            panels.append(MatrixPanel(title, tuple(rows), tuple(f"{ratio:g}" for ratio in ratios), values))
        note = f"Heat maps, a panel per method. {self.conclusion(options, table)}"
        titles = ("MRR", note, "data", "anchors per dimension")
        return {"map": Matrices(tuple(panels), (0.0, 1.0), *titles, across=3)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for (row, ratio), part in _cells(table).items():
            where, names = f"{row}, {ratio:g} anchors per dimension", METHODS | LEARNED
            best, lead = _best(part)
            rows += [
                finding(f"{where}: {names[name]}", mean(part[name]))
                for name in names
                if name in part and part[name].notna().any()
            ]
            rows.append(finding(f"{where}: lead of {METHODS[best]}", lead))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        cells = {cell: part for cell, part in _cells(table).items() if len(part) > 1}
        won = [best for best, lead in map(_best, cells.values()) if lead.low > 0]
        if not won:
            return ""
        counts = listed(f"{METHODS[name]} {won.count(name)}" for name in METHODS if name in won)
        leads = []
        for first, second in (("whitened", "rotation"), ("rotation", "whitened")):
            gains = {cell: mean(part[first] - part[second]) for cell, part in cells.items()}
            row, ratio = cell = max(gains, key=lambda cell: gains[cell].value)
            where = f"{row}, {ratio:g} anchors per dimension"
            leads.append(f"{METHODS[first]} over {METHODS[second]} {gains[cell]:2} ({where})")
        return (
            f"In {len(won)} of {len(cells)} cells one method has the highest MRR for certain: {counts}."
            f" The largest leads: {listed(leads)}."
        )


def mixture_pair(condition: float, noise: float, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Two spaces (1500, 40): a mixture of 20 Gaussians, and its image under a linear map, with noise.

    The map's singular values fall evenly in logarithm from the largest to the `condition`-th part of it: 1 is
    a rotation. Noise is normal, in standard deviations of the mapped rows.
    """
    rng = np.random.default_rng(random_state)
    centres = rng.normal(size=(_GROUPS, _D))
    X = centres[rng.integers(_GROUPS, size=_N)] + 0.5 * rng.normal(size=(_N, _D))
    left, right = (np.linalg.qr(rng.normal(size=(_D, _D)))[0] for _ in range(2))
    Y = X @ (left * np.logspace(0, -np.log10(condition), _D)) @ right
    return X.astype(np.float32), (Y + noise * Y.std() * rng.normal(size=Y.shape)).astype(np.float32)


def scores_of(pair: Sequence[np.ndarray], split: Split) -> dict[str, Any]:
    """MRR of the test rows by each of `METHODS`, fitted on the training rows and the pairs of anchors."""
    known = split.known
    sides = [(X[known], X[split.anchors], X[split.test]) for X in pair]
    values = {name: mrr_of(*_relative(form, sides)) for name, form in _FORMS.items()}
    for name, kind in (("rotation", Procrustes), ("linear", Affine)):
        (_, source, test), (rows, target, truth) = sides
        moved, middle = kind().fit(source, target).transform(test), mean_row(rows)
        values[name] = mrr_of(moved - middle, truth - middle)
    return values


def learned_scores(pair: Sequence[np.ndarray], split: Split) -> dict[str, Any]:
    """MRR through as many anchors, mixtures of all training pairs that are learned on the source."""
    known, rng = split.known, np.random.default_rng(split.random_state)
    rows = unit_rows(pair[0][known], mean_row(pair[0][known]))
    weights = mixtures(rows, len(split.anchors), rng)
    sides = [(X[known], weights @ X[known], X[split.test]) for X in pair]
    forms = zip(LEARNED, ("relative", "product"), strict=True)
    return {name: mrr_of(*_relative(_FORMS[form], sides)) for name, form in forms}


def _relative(form: Mapping[str, Any], sides: Sequence[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    return [RelativeProjection(**form).fit(X, anchors=A).transform(test) for X, A, test in sides]


def mrr_of(source: np.ndarray, target: np.ndarray) -> float:
    ranks = find_neighbours(source, target, k=_K).reciprocal_rank
    return float(ranks.mean(dtype=np.float64))


def _cells(table: pd.DataFrame) -> dict[tuple[str, float], pd.DataFrame]:
    """Runs by what they stand on and the anchors per dimension, a row per random state."""
    cells = {}
    for row in table.to_dict("records"):
        where = row["data"]
        if where == "mixture":
            where = f"condition {row['condition']:g}, noise {row['noise']:g}"
        cells.setdefault((where, row["ratio"]), []).append(row)
    return {cell: pd.DataFrame(rows) for cell, rows in cells.items()}


def _best(part: pd.DataFrame) -> tuple[str, Estimate]:
    """The method with the highest MRR in a cell, and its lead over the next in the same random states."""
    best, second = sorted(METHODS, key=lambda name: -part[name].mean())[:2]
    return best, mean(part[best] - part[second])
