"""A study of pruned inverses: recovery over prunings and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import ROUTES
from relcore.base.numbers import band, general, short
from relcore.base.rows import mean_row, unit_rows
from relcore.engine.engine import Engine
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.invert.inversion import sides
from relcore.represent.heads import Head, fit_head
from relcore.represent.inverse import InverseRelativeProjection, pruned_decoders
from relcore.represent.strategies import select_anchors, shared_anchors
from relcore.represent.translation import Procrustes
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.estimate import Estimate
from relcore.scores.score import ChanceLevel
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split, row_keys
from relcore.stitch.shared_rows import SharedRows, share_rows
from relcore.studies.data import DATA, LABELLED, SPACES, labelled_spaces, test_ids_of, word_pair
from relcore.studies.estimates import average, count_of, finding, findings_table, mean, mean_score
from relcore.studies.study import Option, RunResult, Settings, Study, states

DELTAS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
OMEGAS = (1, 2, 4, 8, 16)
# number of rows: held out in a cell of the study; to train a classifier
MOST_ROWS = 2000
MOST_TRAIN = 4000
_ENDS = {"digits": (1, 3), "sentences": (0, 3)}  # source and target: CNN → ViT; TF-IDF + SVD → MiniLM
_RECOVERED = ("cosine", "within", "accuracy", "condition", "kept", "chance")
_LEVELS = ("procrustes", "not stitched", "most frequent class")


class Pruning(Study):
    """Rows of a source are translated into a target through pruned anchors. With a larger δ, fewer anchors
    are kept, and they differ more. ω is the number of prunings that are averaged. Each δ and ω is judged by
    the cosine of translated rows to the true rows of the target, and by the accuracy of the target's logistic
    classifier on translated rows. "Within" inverts the target's own relative rows."""

    options = (
        Option(
            "data", "Spaces", (*LABELLED, "words"), "digits", help=f"{DATA.help} Words: the two word spaces."
        ),
        Option("route", "Recovered", tuple(ROUTES), "forward", names=tuple(r.title for r in ROUTES.values())),
        Option("n_anchors", "Anchors", (100, 300, 768), 300),
        states("anchors, prunings and rows"),
        SPACES,
    )

    shared = "data route n_anchors spaces"
    reading = "A cell is one setting: δ grows to the right, ω downwards. Dark cells recover the rows best."
    cost: ClassVar = {"digits": 2.0, "sentences": 30.0, "words": 30.0}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        pair, test_ids = _pair_of(settings, store, report)
        state = settings["random_state"]
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state).tolist()
        return RunResult(inversion_sweep(pair, anchors, settings["route"], state, test_ids, report=report))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        cells = mean_cells(table)
        k = table.n_anchors.iloc[0]
        circumstances = f"{count_of(table, 'held-out rows', 'n_rows')}, {k:,} anchors"
        circumstances += f", mean of {len(table)} random states"
        levels = {name: short(average(table, name), 2) for name in _LEVELS}
        chance = band(average(table, "best by chance, low"), average(table, "best by chance, high"))
        described = {
            "cosine": (
                "Recovered rows",
                f"cosine; Procrustes {levels['procrustes']}, best by chance {chance}",
            ),
            "within": ("Within the target", "cosine, by the same prunings"),
            "accuracy": (
                "Classifier of the target",
                f"accuracy; not stitched {levels['not stitched']}, chance {levels['most frequent class']}",
            ),
        }
        drawn = [name for name in described if name == "cosine" or cells[name].notna().any()]
        panels = tuple(_panel(cells, name, *described[name]) for name in drawn)
        condition = _panel(cells, "condition", "Condition number", "of what is inverted", digits=1)
        top = max(10.0, float(np.nanmax(condition.values, initial=10.0)))
        kept = _panel(cells, "kept", "Anchors kept", circumstances, digits=0)
        alt = f"Heat maps over δ × ω, {circumstances}. {self.conclusion(options, table)}"
        axes = (alt, "ω", "δ")
        return {
            "recovered": Matrices(panels, (0.0, 1.0), "cosine and accuracy", *axes),
            "condition": Matrices((condition,), (1.0, top), "condition number", *axes, log=True),
            "kept": Matrices((kept,), (0.0, float(k)), "anchors kept", *axes),
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        cells = mean_cells(table)
        if not cells["cosine"].notna().any():
            return findings_table([])
        best = cells["cosine"].idxmax()
        no_pruning = (0.0, 1)
        most_pruning = (DELTAS[-1], OMEGAS[-1])
        rows = []
        for cell in dict.fromkeys((best, no_pruning, most_pruning)):
            delta, omega = cell
            for measure in ("cosine", "accuracy", "kept"):
                if not np.isnan(cells.loc[cell, measure]):
                    name = f"δ {general(delta)}, ω {omega}, {measure}"
                    rows.append(finding(name, _at(table, cell, measure)))
        levels = ("procrustes", "not stitched", "best by chance, high")
        rows += [finding(name, mean(table[name])) for name in levels if table[name].notna().any()]
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        cells = mean_cells(table)["cosine"]
        if not cells.notna().any():
            return ""
        delta, omega = cells.idxmax()
        return (
            f"The best of {int(cells.notna().sum())} settings on the same runs is δ = {general(delta)}, ω ="
            f" {omega}: the mean cosine to the true rows is {_at(table, (delta, omega), 'cosine')}; by chance"
            f" the best stays below {short(average(table, 'best by chance, high'))}."
        )


def mean_cells(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(cells_of(cells) for cells in table.cells).groupby(level=[0, 1]).mean()


def cells_of(cells: Sequence[dict[str, float | None]]) -> pd.DataFrame:
    return pd.DataFrame(list(cells)).astype({"omega": int}).set_index(["delta", "omega"]).astype(float)


def _at(table: pd.DataFrame, cell: tuple[float, int], measure: str) -> Estimate:
    return mean_score([cells_of(cells).loc[cell, measure] for cells in table.cells])


def _in_cell(value: float, digits: int) -> str:
    """The number with these decimals; without any from 100 on."""
    if np.isnan(value):
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.{digits}f}"


def _panel(cells: pd.DataFrame, column: str, title: str, note: str, digits: int | None = None) -> MatrixPanel:
    wide = cells[column].unstack("delta")
    texts = None
    if digits is not None:
        texts = tuple(map(tuple, wide.map(partial(_in_cell, digits=digits)).to_numpy()))
    hover = tuple(
        tuple(_note_of(cells.loc[(delta, omega)]) for delta in wide.columns) for omega in wide.index
    )
    rows = tuple(map(int, wide.index))
    columns = tuple(map(float, wide.columns))
    return MatrixPanel(title, rows, columns, wide.to_numpy(dtype=float), texts, hover, note)


def _note_of(cell: pd.Series) -> str:
    lines = [f"{name} {short(cell[name])}" for name in _RECOVERED if not np.isnan(cell[name])]
    if np.isnan(cell["cosine"]):
        lines.append("pruning keeps only one anchor; lower δ")
    return "\n".join(lines)


def _pair_of(settings: Settings, store: Store, report: Progress) -> tuple[Match, tuple[str, ...]]:
    if settings["spaces"] or settings["data"] == "words":
        return word_pair(settings["spaces"], store), ()
    spaces = labelled_spaces(settings["data"], store, report)
    source, target = _ENDS[settings["data"]]
    return match(spaces[source], spaces[target]), test_ids_of(settings["data"], spaces[0])


def inversion_sweep(
    pair: Match,
    anchors: Sequence[str],
    route: str = "forward",
    random_state: int = 0,
    test_ids: Sequence[str] = (),
    deltas: Sequence[float] = DELTAS,
    omegas: Sequence[int] = OMEGAS,
    n_rows: int = MOST_ROWS,
    report: Progress = silent,
) -> dict[str, Any]:
    """Evaluate the pruned inverse on the grid δ × ω. Cells with a larger ω reuse the prunings of cells with a
    smaller one.

    It is evaluated on a random sample of the rows that are not anchors. If both spaces have the same labels,
    a logistic head of the target classifies translated test rows.

    In the result, "cells" holds a dict for each cell: delta, omega, cosine (the mean over held-out rows),
    chance (the same mean over permuted rows), within, condition and kept (means over the prunings), and
    accuracy. Missing values are None. Invalid anchors raise a SpaceError.
    """
    source, target = sides(pair, route)
    chosen = pair.source.rows(shared_anchors(anchors, pair.source, pair.target))
    classifier = _TargetClassifier.fit((source, target), pair.ids[chosen], test_ids, n_rows, random_state)
    rows = Split.held_out(pair.ids, chosen, random_state).queries(n_rows)
    means = mean_row(source.vectors), mean_row(target.vectors)
    pairs = source.vectors[chosen], target.vectors[chosen]
    # Fit an inverse, which raises an error if the anchors are invalid.
    InverseRelativeProjection(omega=1, delta=0).fit(*pairs, source_mean=means[0], target_mean=means[1])
    units = [unit_rows(vectors, mean) for vectors, mean in zip(pairs, means, strict=True)]
    true = unit_rows(target.vectors[rows], means[1])
    inputs = {"cosine": Engine().map_rows(source.vectors[rows], units[0].T, mean=means[0], unit=True)}
    if route != "within":
        inputs["within"] = Engine().map_rows(target.vectors[rows], units[1].T, mean=means[1], unit=True)
    tests = Engine().map_rows(source.vectors[classifier.rows], units[0].T, mean=means[0], unit=True)
    cells = []
    by_chance = BestCellChance(true, random_state=random_state)
    for pruned in pruned_decoders(units[1], deltas, omegas, random_state):
        decoder = pruned.matrix.astype(np.float32)
        condition = float(np.mean(pruned.condition_numbers))
        sizes = [len(kept) for kept in pruned.kept]
        cell = {"delta": pruned.delta, "omega": pruned.omega} | dict.fromkeys(_RECOVERED)
        cell |= {"condition": condition if np.isfinite(condition) else None, "kept": float(np.mean(sizes))}
        if min(sizes) > 1:
            for name, relative in inputs.items():
                decoded = unit_rows(relative @ decoder)
                cell[name] = float(np.einsum("ij,ij->i", decoded, true).mean(dtype=np.float64))
                if name == "cosine":
                    # The mean over all permutations of the rows is the product of both mean rows.
                    cell["chance"] = float(mean_row(decoded) @ mean_row(true))
                    by_chance.add(decoded)
            cell["accuracy"] = classifier.accuracy(tests @ decoder + means[1])
        cells.append(cell)
        report(len(cells), len(deltas) * len(omegas), f"δ {general(pruned.delta)}, ω {pruned.omega}")
    rotation = Procrustes().fit(*pairs).transform(source.vectors[rows])
    rotated = np.einsum("ij,ij->i", unit_rows(rotation, means[1]), true).mean(dtype=np.float64)
    null = by_chance.null()
    return {
        "cells": cells,
        "n_rows": len(rows),
        "n_anchors": len(chosen),
        "procrustes": 1.0 if route == "within" else float(rotated),
        "not stitched": classifier.accuracy(target.vectors[classifier.rows]),
        "most frequent class": classifier.chance,
        "test rows": len(classifier.rows),
        "best by chance, low": null and null.low,
        "best by chance, high": null and null.high,
    }


class BestCellChance:
    """The chance level of the best mean cosine in a grid of settings. The recovered rows (m, d) are added one
    cell at a time.

    The cells of a grid are correlated, so each permutation of the true unit rows (m, d) is used for all
    cells. A permutation is a single cycle, so that no row keeps its partner.
    """

    def __init__(self, true: np.ndarray, n_permutations: int = 200, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(len(true)) for _ in range(n_permutations)]
        self._true = true
        self._best = np.full(n_permutations, -np.inf)
        self._partners = np.stack([order[np.argsort(np.roll(order, 1))] for order in orders], axis=1)

    def add(self, decoded: np.ndarray) -> None:
        cosines = np.take_along_axis(decoded @ self._true.T, self._partners, axis=1)
        self._best = np.maximum(self._best, cosines.mean(axis=0, dtype=np.float64))

    def null(self) -> ChanceLevel | None:
        if np.isfinite(self._best).all():
            return ChanceLevel.from_draws(self._best)
        return None


@dataclass(frozen=True, eq=False)
class _TargetClassifier:
    """A classifier of the target space. Without labels, or with too few rows of a class, there is no `head`.

    Attributes
    ----------
    head : Head or None
    rows : array (t,)
        Row numbers of the test rows, which are the same in both spaces.
    classes : array (t,)
        Their true classes.
    chance : float or None
        The share of test rows that have the most frequent class.
    """

    head: Head | None = None
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    classes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    chance: float | None = None

    @classmethod
    def fit(
        cls,
        spaces: tuple[LatentSpace, LatentSpace],
        anchors: np.ndarray,
        test_ids: Sequence[str],
        n_rows: int,
        random_state: int,
    ) -> _TargetClassifier:
        """Fit the head on labelled rows of the target, up to `MOST_TRAIN`, and choose up to `n_rows` test
        rows. `anchors` are ids; rows with `test_ids` are tested, if there are such."""
        if any(space.labels is None for space in spaces):
            return cls()
        try:
            shared = share_rows(spaces)
            split = _labelled_split(shared, anchors, test_ids, random_state)
        except SpaceError:
            return cls()
        train = split.known
        if len(train) > MOST_TRAIN:
            keys = row_keys(shared.ids[train], "head", random_state)
            train = np.sort(train[np.argsort(keys)[:MOST_TRAIN]])
        n_classes = len(shared.classes)
        if len(np.unique(shared.targets[train])) < n_classes:
            return cls()
        head = fit_head(shared.spaces[1].vectors[train], shared.targets[train], n_classes)
        test = split.queries(n_rows)
        classes = shared.targets[test]
        most_frequent = np.bincount(shared.targets).argmax()
        chance = float((classes == most_frequent).mean())
        return cls(head, spaces[1].rows(shared.ids[test]), classes, chance)

    def accuracy(self, vectors: np.ndarray) -> float | None:
        """The share of the test rows that the head classifies rightly by these vectors (t, d) of the target;
        None without a head."""
        if self.head is None:
            return None
        return float((self.head.probabilities(vectors).argmax(axis=1) == self.classes).mean())


def _labelled_split(
    shared: SharedRows, anchors: np.ndarray, test_ids: Sequence[str], random_state: int
) -> Split:
    places = shared.spaces[0].index.get_indexer(anchors)
    return Split.draw(
        shared.ids,
        anchors=places[places >= 0],
        test_ids=sorted(set(test_ids) & set(shared.ids) - set(anchors)),
        labels=shared.targets,
        random_state=random_state,
    )
