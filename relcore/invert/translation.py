"""Translation of every space into every other, by each method, with chance levels.

Tables 1 and 2 of Maiorca et al. 2024: every ordered pair of spaces over the same ids, anchors that are paired
by id, scored on the rows that are not anchors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import HEADS
from relcore.base.names import METHODS as ALL_METHODS
from relcore.base.numbers import counted, in_cell, short
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.figures.charts import Matrices, MatrixPanel
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.anchors import shared_anchors
from relcore.represent.heads import fit_head
from relcore.represent.methods import MethodSettings, Side, carrier
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.cka import mean_cosine
from relcore.scores.neighbours import Neighbours, nearest
from relcore.spaces.space import LatentSpace, agreed_labels, distinct_names, shared_ids
from relcore.spaces.split import Split
from relcore.tasks.recipe import Recipe, load_all
from relcore.tasks.task import Task

METHODS = {name: method.title for name, method in ALL_METHODS.items() if method.heads == "absolute"}
METRICS = {
    "cosine": "cosine",
    "raw cosine": "cosine, not centred",
    "jaccard": "Jaccard",
    "mrr": "MRR",
    "accuracy": "accuracy",
}


_USUAL = ("absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes", "least-squares")


@dataclass(frozen=True)
class TranslationSpec:
    """How rows are translated and scored: the number of neighbours and of queries among the rows that are not
    anchors (None takes all), and the head that is trained on the target's rows where there are labels.

    `test_ids` are its test rows instead of what is drawn; anchors among them are left out.
    """

    methods: tuple[str, ...] = setting(_USUAL, choices=METHODS, distinct=True)
    k: int = setting(10, low=1)
    n_queries: int | None = setting(300, low=1)
    head: str = setting("logistic", choices=HEADS)
    test_fraction: float = setting(0.2, above=0, below=1)
    test_ids: tuple[str, ...] = ()
    settings: MethodSettings = MethodSettings()
    random_state: int = setting(0, low=0)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, eq=False)
class TranslationResult:
    """Scores of every ordered pair, each space with itself among them.

    Attributes
    ----------
    names : s distinct names
    n, n_anchors, n_test : int
        Rows that are not anchors, anchors, and test rows of the heads (0 without labels).
    scores : method → metric → array (s, s, 2)
        Score and chance level by source and target; NaN if the widths differ and the method needs them equal.
    own : s accuracies
        Of each head on its own space, not stitched; empty without labels.
    """

    spec: TranslationSpec
    names: tuple[str, ...]
    n: int
    n_anchors: int
    n_test: int
    scores: Mapping[str, Mapping[str, np.ndarray]]
    own: tuple[float, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(metric for metric in METRICS if metric != "accuracy" or self.n_test)

    def title(self, metric: str) -> str:
        """The metric's title: ``"MRR, k = 10"``."""
        return METRICS[metric] + (f", k = {self.spec.k}" if metric in ("jaccard", "mrr") else "")

    def matrix(self, method: str, metric: str) -> np.ndarray:
        """Scores (s, s), rows sources, columns targets; NaN where there is none."""
        return self.scores[method][metric][..., 0]

    def chance(self, method: str, metric: str) -> float:
        """The mean chance level over the pairs of two spaces: of permuted rows; for accuracy, of the most
        frequent class.
        """
        return self._mean(method, metric, 1)

    def table(self) -> pd.DataFrame:
        """One row per pair, method and metric: source, target, method, metric, score, chance, n, anchors."""
        rows = []
        for (i, source), (j, target) in product(enumerate(self.names), repeat=2):
            for method, metric in product(self.spec.methods, self.metrics):
                n = self.n_test if metric == "accuracy" else self.n
                scores = self.scores[method][metric][i, j]
                rows.append((source, target, METHODS[method], self.title(metric), *scores, n, self.n_anchors))
        columns = ["source", "target", "method", "metric", "score", "chance", "n", "anchors"]
        return pd.DataFrame(rows, columns=columns).dropna(subset="score", ignore_index=True)

    def wide(self, metric: str) -> pd.DataFrame:
        """As Table 1 of the paper: a row per pair, a column per method, and the mean chance level of the
        methods.
        """
        scores = {METHODS[method]: self.scores[method][metric].reshape(-1, 2) for method in self.spec.methods}
        pairs = pd.DataFrame(list(product(self.names, repeat=2)), columns=["source", "target"])
        chance = pd.DataFrame({method: values[:, 1] for method, values in scores.items()}).mean(axis=1)
        columns = {method: values[:, 0] for method, values in scores.items()}
        return pairs.assign(**columns, chance=chance)

    def summary(self) -> pd.DataFrame:
        """A row per method (Table 2): the mean of each metric over the pairs of two spaces, and how many it
        can translate.

        Columns: method, the metrics' titles, pairs, of; with accuracy also not stitched (heads on their own
        spaces) and chance.
        """
        others, rows = ~np.eye(len(self.names), dtype=bool), []
        for method in self.spec.methods:
            row: dict[str, Any] = {"method": METHODS[method]}
            row |= {self.title(metric): self._mean(method, metric, 0) for metric in self.metrics}
            if self.n_test:
                row |= {"not stitched": float(np.mean(self.own)), "chance": self.chance(method, "accuracy")}
            able = ~np.isnan(self.matrix(method, "cosine")[others])
            rows.append(row | {"pairs": int(able.sum()), "of": able.size})
        return pd.DataFrame(rows)

    def _mean(self, method: str, metric: str, part: int) -> float:
        values = self.scores[method][metric][..., part][~np.eye(len(self.names), dtype=bool)]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else float("nan")


_PERMUTATIONS = 20


@dataclass(frozen=True)
class Translation(Task[TranslationResult]):
    """`translate_all` of the spaces."""

    kind: ClassVar[str] = "translate"
    result: ClassVar[str] = "relcore.invert.translation:TranslationResult"
    title: ClassVar[str] = "Translate every pair"

    anchors: tuple[str, ...]
    spec: TranslationSpec = TranslationSpec()

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Within a factor of three."""
        n, rows, width = len(spaces), max(map(len, spaces)), max(space.dimension for space in spaces)
        queries = self.spec.n_queries or rows
        each = 4e-11 * rows * width * (width + queries) + 3e-9 * len(self.anchors) * width**2 + 0.02
        heads = 2e-6 * rows * width**0.5 * n if any(space.labels is not None for space in spaces) else 0
        return n * n * len(self.spec.methods) * each + heads

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> TranslationResult:
        return translate_all(spaces, self.anchors, self.spec, report)


def translate_all(
    spaces: Sequence[LatentSpace],
    anchors: Sequence[str],
    spec: TranslationSpec | None = None,
    report: Report = silent,
) -> TranslationResult:
    """Translate every space into every other through the same anchors, and score the rows that are not
    anchors.

    Rows are compared after centring at the target's mean: their cosine, and their neighbours among the
    target's rows (convention "paper"); "raw cosine" is not centred, as in the paper's Table 1. A space's mean
    is that of all shared rows.

    Raises
    ------
    SpaceError
        Fewer than two spaces, no shared rows, anchors that a space lacks, too few other rows for k, labels
        that differ, or anchors that a method cannot use.
    """
    spec = spec or TranslationSpec()
    study = _Translator(spaces, anchors, spec)
    n, n_test = len(spaces), len(study.test) if study.heads else 0
    metrics = [metric for metric in METRICS if metric != "accuracy" or n_test]
    scores = {method: {metric: np.full((n, n, 2), np.nan) for metric in metrics} for method in spec.methods}
    for done, (i, j) in enumerate(product(range(n), repeat=2)):
        report(done, n * n, f"{study.names[i]} to {study.names[j]}")
        for method in spec.methods:
            for metric, values in study.score(i, j, method).items():
                scores[method][metric][i, j] = values
    report(n * n, n * n, "")
    own = tuple(
        study.accuracy(j, space.vectors[study.test]) for j, space in enumerate(study.spaces) if n_test
    )
    return TranslationResult(
        spec, tuple(study.names), len(study.rest), len(study.anchors), n_test, scores, own
    )


class _Translator:
    """What all pairs share: rows, anchors, heads, and the neighbours of each space's own rows."""

    def __init__(self, spaces: Sequence[LatentSpace], anchors: Sequence[str], spec: TranslationSpec) -> None:
        self.spec, self.names = spec, distinct_names(spaces)
        self.spaces = _shared(spaces)
        ids = self.spaces[0].ids
        self.anchors = self.spaces[0].rows(shared_anchors(anchors, *self.spaces))
        split = Split.held_out(ids, self.anchors, spec.random_state)
        self.rest = split.test
        if len(self.rest) <= spec.k:
            raise SpaceError(
                f"expected more than k = {spec.k} shared rows that are not anchors, got {len(self.rest)} of "
                f"{len(ids)}; choose fewer anchors"
            )
        self.queries = np.searchsorted(self.rest, split.queries(spec.n_queries))
        self.sides = [
            Side(space.vectors, space.vectors[self.anchors], mean_row(space.vectors)) for space in self.spaces
        ]
        self.true = [unit_rows(side.train[self.rest], side.mean) for side in self.sides]
        self.near = [nearest(rows[self.queries], rows, spec.k) for rows in self.true]
        self.test = self.rest[:0]
        self.heads = self._fit_heads()

    def score(self, i: int, j: int, method: str) -> dict[str, tuple[float, float]]:
        spec, source, target = self.spec, self.sides[i], self.sides[j]
        carry = carrier(method, source, target, spec.settings, spec.random_state)
        if carry is None:
            return {}
        rows = carry(source.train[self.rest])
        units, true = unit_rows(rows, target.mean), self.true[j]
        near = nearest(units[self.queries], true, spec.k)
        neighbours = Neighbours(units, true, self.queries, self.near[j], near, "paper", "cpu")
        scores = {
            "cosine": mean_cosine(units, true, of_unit_length=True),
            "raw cosine": mean_cosine(rows, target.train[self.rest]),
            "jaccard": neighbours.jaccard(_PERMUTATIONS, spec.random_state),
            "mrr": neighbours.mrr(_PERMUTATIONS, spec.random_state),
        }
        numbers = {metric: (float(score), score.null.mean) for metric, score in scores.items()}
        if self.heads:
            numbers["accuracy"] = self.accuracy(j, carry(source.train[self.test])), self.majority
        return numbers

    def accuracy(self, j: int, rows: np.ndarray) -> float:
        return float(np.mean(self.heads[j].probabilities(rows).argmax(axis=1) == self.targets[self.test]))

    def _fit_heads(self) -> list:
        if any(space.labels is not None and "" in space.labels for space in self.spaces):
            return []
        labels = agreed_labels(self.spaces)
        if labels is None or len(classes := np.unique(labels.astype(str))) < 2:
            return []
        ids, spec = self.spaces[0].ids, self.spec
        self.targets = np.searchsorted(classes, labels.astype(str))
        split = Split.draw(
            ids,
            anchors=self.anchors,
            test_fraction=spec.test_fraction,
            test_ids=sorted(set(spec.test_ids) & set(ids[self.rest])),
            labels=self.targets,
            random_state=spec.random_state,
        )
        self.test, known = split.test, self.targets[split.known]
        if len(np.setdiff1d(self.targets[self.test], known)):
            return []  # a class without training rows
        self.majority = float(np.mean(self.targets[self.test] == np.bincount(self.targets).argmax()))
        settings = known, len(classes), spec.head, spec.random_state
        return [fit_head(space.vectors[split.known], *settings) for space in self.spaces]


def _shared(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """The rows that are in all spaces and zero in none, in the first one's order."""
    if len(spaces) < 2:
        raise SpaceError(f"expected two spaces or more to translate between, got {len(spaces)}")
    ids = shared_ids(spaces)
    if not len(ids):
        raise SpaceError(
            f"expected rows that all spaces share, {quote([space.name for space in spaces])} have none;"
            " encode the same items, or their translations, with each"
        )
    alive = np.all([space.norms[space.rows(ids)] > 0 for space in spaces], axis=0)
    return [space.take(space.rows(ids[alive])) for space in spaces]


@dataclass(frozen=True, kw_only=True)
class TranslationTable(Recipe):
    """A heat map per method, every space with every other (Table 1 of Maiorca et al. 2024); as LaTeX a row
    per pair.
    """

    figure: ClassVar[str] = "translation-table"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    anchors: tuple[str, ...]
    metric: str = "cosine"
    spec: TranslationSpec = TranslationSpec()

    def draw(self, result: TranslationResult | None = None) -> Exportable:
        need_one_of("metric", self.metric, METRICS)
        if result is None:
            spaces = load_all(self.spaces, self.digests, self.figure)
            result = translate_all(spaces, self.anchors, self.spec)
        need_one_of("metric", self.metric, result.metrics)

        def table() -> pd.DataFrame:
            every = result.table()
            return every[every["metric"] == result.title(self.metric)].reset_index(drop=True)

        name, latex = f"relscope-translation-{self.metric}", lambda: result.wide(self.metric)
        return chart_exportable(_translations(result, self.metric), self.to_json(), name, latex, table)


def _translations(result: TranslationResult, metric: str) -> Matrices:
    n, title, panels = len(result.names), result.title(metric), []
    own = np.eye(n, dtype=bool)

    def hover(method: str, i: int, j: int) -> str:
        score, chance = result.scores[method][metric][i, j]
        if np.isnan(score):
            return "the widths differ"
        text = f"{title} {short(score)}\nchance {short(chance)}"
        return text + (f"\nnot stitched {short(result.own[j])}" if metric == "accuracy" else "")

    for method in result.spec.methods:
        values = result.matrix(method, metric)
        others = values[~own & ~np.isnan(values)]
        chance = in_cell(result.chance(method, metric))
        look = {
            "hover": tuple(tuple(hover(method, i, j) for j in range(n)) for i in range(n)),
            "note": f"mean {in_cell(others.mean())}, chance {chance}" if len(others) else "",
            "marked": tuple((i, i) for i in range(n)),
        }
        panels.append(MatrixPanel(METHODS[method], result.names, result.names, values, **look))
    rows = counted(result.n, "row") + " that are not anchors"
    count = counted(result.n_test, "test row") if metric == "accuracy" else rows
    notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    alt = (
        f"Heat maps of {title}, {n} by {counted(n, 'space')}, one per method, {count},"
        f" {counted(result.n_anchors, 'anchor')}. {notes}."
    )
    return Matrices(tuple(panels), (0.0, 1.0), title, alt, "from", "to")
