"""Exposure: what a stranger with another model and a few leaked pairs learns about stored vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.rows import mean_row, unit_rows
from relcore.figures.charts import Lines
from relcore.linking.clusters import link_clusters, map_from_pairs
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.scores.estimate import Estimate
from relcore.studies.data import word_pair
from relcore.studies.estimates import chart, finding, findings_table, mean, points_chart, sentence
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states
from relscope_studies.data import lines_by

# vectors of each side, of different texts; number of unseen rows among which the stranger guesses
ROWS = 1500
TESTED = 500
PAIRS = (0, 5, 15, 30, 100)
Defence = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _rotated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0].astype(np.float32)


def _rounded(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    step = np.abs(X).max(axis=1, keepdims=True) / 127
    return np.round(X / step) * step


def _dropped(share: float) -> Defence:
    return lambda X, rng: X[:, np.sort(rng.permutation(X.shape[1])[round(share * X.shape[1]) :])]


def _noise(size: float) -> Defence:
    """Add noise whose length is `size` times that of the row."""

    def added(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(size=X.shape).astype(np.float32) / np.sqrt(X.shape[1])
        return X + size * np.linalg.norm(X, axis=1, keepdims=True) * noise

    return added


DEFENCES: dict[str, Defence] = {
    "none": lambda X, rng: X,
    "secret rotation": _rotated,
    "secret permutation": lambda X, rng: X[:, rng.permutation(X.shape[1])],
    "rounded to int8": _rounded,
    "signs only": lambda X, rng: np.sign(X),
    "half of the dimensions": _dropped(0.5),
    "a fifth of the dimensions": _dropped(0.8),
    "noise of half the length": _noise(0.5),
    "noise of the length": _noise(1.0),
    "noise of twice the length": _noise(2.0),
}


def exposed(
    mine: np.ndarray, theirs: np.ndarray, defence: str, n_pairs: int, random_state: int
) -> dict[str, float]:
    """How well a stranger names unseen rows, and what the defence costs.

    `mine` (n, d) and `theirs` (n, e) are vectors of the same texts by two models. The stranger has 1,500
    defended vectors of mine, their own vectors of 1,500 other texts, and `n_pairs` texts with both.

    Returns
    -------
    top1 : share of 500 unseen rows whose text the stranger picks among these 500 (chance 1/500)
    recall : recall@10 of my search of the defended rows, by that of the rows as they were
    """
    rng = np.random.default_rng((random_state, 41))
    order = rng.permutation(len(mine))
    own, other, tested, leaked = np.split(
        order[: 2 * ROWS + TESTED + n_pairs], [ROWS, 2 * ROWS, 2 * ROWS + TESTED]
    )
    stored = unit_rows(DEFENCES[defence](unit_rows(mine), rng))
    known = np.r_[own, leaked], np.r_[other, leaked]
    means = mean_row(stored[known[0]]), mean_row(theirs[known[1]])
    first = unit_rows(stored[known[0]], means[0])
    second = unit_rows(theirs[known[1]], means[1])
    pairs = np.stack([np.arange(ROWS, ROWS + n_pairs)] * 2)
    if n_pairs:
        mapping = map_from_pairs(first, second, pairs, random_state)
    else:
        *_, fit = link_clusters(first, second, random_state)
        mapping = fit.mapping
    guessed = unit_rows(unit_rows(stored[tested], means[0]) @ mapping) @ unit_rows(theirs[tested], means[1]).T
    top1 = float(np.mean(guessed.argmax(axis=1) == np.arange(TESTED)))
    return {"top1": top1, "recall": _kept(unit_rows(mine)[order[:4000]], stored[order[:4000]])}


def _kept(before: np.ndarray, after: np.ndarray, k: int = 10) -> float:
    """Recall@10 of 500 rows as queries, which get the defence, too."""
    lists = []
    for rows in (before, after):
        near = rows[:TESTED] @ rows.T
        near[np.arange(TESTED), np.arange(TESTED)] = -np.inf
        lists.append(np.argpartition(-near, k, axis=1)[:, :k])
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(*lists, strict=True)]))


NAMES = {name: name for name in DEFENCES}
ROTATED = "secret rotation"
LEAKED = 30


class Exposure(Study):
    """Word2Vec is mine, FastText the stranger's. The stranger has 1,500 of my vectors under a defence, their
    own vectors of 1,500 other words, and some words with both, and names 500 unseen vectors among 500 words.

    The attack is the map of Link: by the pairs and the other rows, or without any pair.
    """

    title = "Exposure"
    question = "What does a stranger with another model learn about my vectors?"
    paper = "mini-vec2vec (Dar 2025), left open: vectors that are defended"

    options = (
        Option("pairs", "Leaked pairs", PAIRS, PAIRS, many=True, help="Under a secret rotation."),
        Option(
            "defences",
            "Defences",
            tuple(DEFENCES),
            tuple(DEFENCES),
            many=True,
            help="With 30 leaked pairs. Each but the rotation costs my own search something.",
        ),
        states("the words of both sides", 10, (3, 5, 10)),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        pairs = options["pairs"]
        defences = [one for one in options["defences"] if one != ROTATED]
        rotated = grid(options, "", defence=(ROTATED,), pairs=pairs)
        return rotated + grid(options, "", defence=defences, pairs=(LEAKED,))

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        pair = word_pair((), store)
        rows = (np.asarray(space.vectors[:8000]) for space in (pair.source, pair.target))
        values = exposed(*rows, settings["defence"], settings["pairs"], settings["random_state"])
        return RunResult({**values, "chance": 1 / TESTED})

    def seconds(self, settings: Settings) -> float:
        return 5.0 if settings["pairs"] else 15.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        note = f"500 unseen words, {ROWS:,} rows of each side"
        rotated = table[table.defence == ROTATED]
        others = table[table.pairs == LEAKED]
        found = {}
        if len(rotated):
            lines = lines_by(rotated.sort_values("pairs"), "pairs", "top1", "defence", NAMES)
            titles = ("leaked pairs", "words named (top-1)")
            found["pairs"] = chart(rotated, lines, titles, note, {"chance": "chance"}, y_range=(0, 1.02))
        if len(others):
            measures = {"top1": "words named (top-1)", "recall": "my own recall@10"}
            titles = ("defence", "share")
            found["defences"] = points_chart(others, "defence", NAMES, measures, titles, f"{note}, 30 pairs")
        return found

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for (defence, pairs), part in table.groupby(["defence", "pairs"], sort=False):
            for column, name in (("top1", "words named"), ("recall", "own recall@10")):
                rows.append(finding(f"{defence}, {pairs} pairs, {name}", mean(part[column], bounded=True)))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        def of(defence: str, pairs: int, column: str = "top1") -> Estimate:
            some = table[(table.defence == defence) & (table.pairs == pairs)]
            return mean(some[column], bounded=True)

        noise = "noise of the length"
        return sentence(
            "Under a secret rotation a stranger names {} of 500 unseen words with 15 leaked pairs, and {}"
            " with 5; noise as long as the rows leaves {} with 30 pairs, and {} of my own recall@10. Not"
            " linked means that this attack failed, not that the vectors are safe.",
            of(ROTATED, 15),
            of(ROTATED, 5),
            of(noise, LEAKED),
            of(noise, LEAKED, "recall"),
        )
