"""The options of a migration, scored with cheaper indexes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from relcore.base.names import ADAPTERS
from relcore.base.numbers import band, counted, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.migrate.cross_fitting import MOST_CURVE_ROWS, NO_WIDTH, QueryScores, Resampling
from relcore.migrate.migration import Migration
from relcore.migrate.result import TITLES
from relcore.migrate.thresholds import MOST_JUDGED
from relcore.migrate.trial import RetrievalTask, Sides, added_scores, covariance, rerank
from relcore.migrate.verdict import WORTH_A_CHANGE
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.relevance import K, search
from relcore.scores.score import Interval
from relcore.spaces.space import LatentSpace

RESCORED = 100  # number of rows of a binary search that are ranked again by full vectors


class Codes(NamedTuple):
    """The compressed rows of an index, a function `queries` that prepares queries to search them by inner
    product, and the number of bytes per compressed row."""

    rows: np.ndarray
    queries: Callable[[np.ndarray], np.ndarray]
    n_bytes: float


def _int8(corpus: np.ndarray) -> Codes:
    scale = np.maximum(np.abs(corpus).max(axis=0), 1e-30) / 127
    return Codes(np.round(corpus / scale) * scale, lambda Q: Q, corpus.shape[1])


def _binary(corpus: np.ndarray) -> Codes:
    """Replace rows by the signs of the centred rows. Queries stay unchanged."""
    signs = np.where(corpus >= corpus.mean(axis=0), np.float32(1), np.float32(-1))
    return Codes(signs, lambda Q: Q, corpus.shape[1] / 8)


def _first_dimensions(corpus: np.ndarray, part: int) -> Codes:
    d = max(1, corpus.shape[1] // part)
    return Codes(unit_rows(corpus[:, :d]), lambda Q: np.ascontiguousarray(Q[:, :d]), 4 * d)


def _principal(corpus: np.ndarray, part: int) -> Codes:
    d = max(1, corpus.shape[1] // part)
    axes = np.linalg.eigh(covariance(corpus))[1][:, ::-1][:, :d].astype(np.float32)
    return Codes((corpus - corpus.mean(axis=0)) @ axes, lambda Q: Q @ axes, 4 * d)


FORMS: dict[str, Callable[[np.ndarray], Codes]] = {
    "int8": _int8,
    "binary": _binary,
    "first-half": partial(_first_dimensions, part=2),
    "first-quarter": partial(_first_dimensions, part=4),
    "pca-half": partial(_principal, part=2),
    "pca-quarter": partial(_principal, part=4),
}
FORM_TITLES = {
    "int8": "int8",
    "binary": f"binary, {RESCORED} ranked again",
    "first-half": "first d/2",
    "first-quarter": "first d/4",
    "pca-half": "PCA d/2",
    "pca-quarter": "PCA d/4",
}


def compressed_lists(
    trial: RetrievalTask, sides: Sides, codes: Sequence[Codes | None], form: str, weight: float, k: int = K
) -> dict[str, np.ndarray]:
    """The rows (q, k) that each option finds if its index holds compressed vectors. `codes` has them for the
    three corpora of `sides`; None where a corpus is missing.
    """
    coded = []
    for side, made in zip(sides, codes, strict=True):
        if made is not None:
            side = (made.queries(side[0]), made.rows)
        coded.append(side)
    full = dict(zip(Sides._fields, sides, strict=True))
    queries, corpora = zip(sides.old, sides.bridged, strict=True)

    def ranked_again(side: str, Q: np.ndarray, corpus: np.ndarray, depth: int) -> np.ndarray:
        rows = search(Q, corpus, max(depth, RESCORED), trial.own)
        if side in full:
            full_queries, full_corpus = full[side]
        else:
            full_queries, full_corpus = added_scores(*queries, corpora, weight)
        return rerank(full_queries, full_corpus, rows, depth)

    return trial.lists(Sides(*coded), weight, k, find=ranked_again if form == "binary" else None)


@dataclass(frozen=True)
class Compressed:
    """The mean score of an option with a compressed index. `form` is the kind of compression, `change` the
    difference from the score with full vectors, and `row_bytes` the size of a row.
    """

    option: str
    form: str
    score: float
    change: Interval
    row_bytes: float


@dataclass(frozen=True, eq=False, repr=False)
class CheaperIndexes(Reported):
    """The scores of all options with each kind of compressed index, on `n_queries` queries and `n_rows`
    rows."""

    rows: tuple[Compressed, ...]
    metric: str
    n_queries: int
    n_rows: int

    def best(self, option: str = "keep") -> Compressed | None:
        """The smallest index with which an option loses less than `WORTH_A_CHANGE`, by the 95 % interval;
        None if the queries exclude this loss for no index."""
        kept = [one for one in self.rows if one.option == option and -one.change.low < WORTH_A_CHANGE]
        return min(kept, key=lambda one: one.row_bytes, default=None)

    @property
    def cautions(self) -> tuple[str, ...]:
        losses = [one for one in self.rows if one.form.startswith("first") and one.change.high < 0]
        return tuple(
            f"{FORM_TITLES[worst.form].capitalize()} loses {short(-worst.change.value)} with"
            f" “{TITLES[worst.option]}”: cut only vectors of models that were trained for it (Matryoshka)."
            for worst in sorted(losses, key=lambda one: one.change.value)[:1]
        )

    def describe(self) -> str:
        options = list(dict.fromkeys(one.option for one in self.rows))
        told = [f"“{TITLES[option]}” {self._finding(option)}" for option in options]
        n_queries = counted(self.n_queries, "query", "queries")
        smallest = f"The smallest index with a loss below {short(WORTH_A_CHANGE, 2)} (95 %, {n_queries})"
        best = [one for option in options if (one := self.best(option))]
        forms = {one.form for one in best}
        if len(best) == len(options) > 1 and len(forms) == 1:
            loss = max(0.0, *(-one.change.low for one in best))
            return (
                f"{smallest} is the same for all options: {FORM_TITLES[forms.pop()]}, at most {short(loss)}."
            )
        return f"{smallest}: {'; '.join(told)}."

    def _finding(self, option: str) -> str:
        best = self.best(option)
        if best:
            return f"{FORM_TITLES[best.form]}, at most {short(max(0.0, -best.change.low))}"
        least = max((one for one in self.rows if one.option == option), key=lambda one: one.change.low)
        return (
            f"none, because these queries exclude only a loss above {short(-least.change.low)}"
            f" ({FORM_TITLES[least.form]})"
        )

    def report(self) -> Report:
        rows = [
            (one.option, one.form, one.row_bytes, one.score, *vars(one.change).values()) for one in self.rows
        ]
        frame = pd.DataFrame(rows, columns=["option", "index", "bytes", "score", "change", "low", "high"])
        column = f"{self.metric} of the index"
        lines = [["option", "index", "bytes of a row", column, "vs full vectors"]]
        for option, form, size, score, change, *ends in rows:
            cells = TITLES[option], FORM_TITLES[form], f"{size:,.0f}", short(score)
            lines.append([*cells, f"{signed(change)} ({band(*ends)})"])
        caption = (
            f"{counted(self.n_queries, 'query', 'queries')}, {self.n_rows:,} rows. Binary: signs of centred"
            f" rows, searched by a query's full vector; the first {RESCORED} are ranked again by full"
            " vectors, which stay on disk. A cascade ranks by full vectors. Intervals: over queries, paired."
            " If no query changes, the interval assumes changes as large as those by the other indexes. All"
            " queries use one adapter and one weight, so these scores are not cross-validated as those of the"
            " options are."
        )
        tables = [Table("compressed", frame, lines, "A cheaper index", caption)]
        return Report(self.describe(), tables, {}, self.cautions)


def usual_change(changes: Sequence[np.ndarray]) -> float:
    """The root mean square of the changes of scores (q,) that are not 0; 0 if there are none."""
    flat = np.concatenate(changes)
    some = flat[np.abs(flat) > NO_WIDTH]
    if not len(some):
        return 0.0
    return float(np.sqrt(np.mean(np.square(some))))


@dataclass(frozen=True, kw_only=True)
class CheaperIndex(Task[CheaperIndexes], kind="cheaper-index", version=2, title="A cheaper index"):
    """The task that scores each option of a migration with each kind of compressed index.

    `adapter` and `weight` are those that the migration chose. At most 500 queries and 20,000 rows are used.
    """

    migration: Migration
    adapter: str = setting(choices=ADAPTERS)
    weight: float = 1.0

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = min(len(spaces[0]), MOST_CURVE_ROWS)
        d = max(space.dimension for space in spaces)
        return 1.0 + 4e-8 * n * d + 4e-9 * MOST_JUDGED * n * len(FORMS)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> CheaperIndexes:
        ground = self.migration.ground(spaces, checked=True)
        k = self.migration.k
        trial = ground.trial.with_fewer_queries(MOST_JUDGED)
        trial = trial.with_fewer_rows(MOST_CURVE_ROWS, self.migration.random_state)
        sides = trial.sides(ground.pairs.fit(self.adapter))
        full = {name: trial.score(rows, k) for name, rows in trial.lists(sides, self.weight, k).items()}
        if not trial.is_judged:
            full.pop("re-embed", None)  # without judgements, what it finds is relevant by definition
        scores: dict[tuple[str, str], np.ndarray] = {}
        sizes: dict[tuple[str, str], float] = {}
        for number, (form, encode) in enumerate(FORMS.items()):
            report(number, len(FORMS), FORM_TITLES[form])
            made = {id(corpus): encode(corpus) for _, corpus in sides if corpus is not None}
            codes = [made.get(id(corpus)) for _, corpus in sides]
            old, bridged, new = (0.0 if one is None else one.n_bytes for one in codes)
            both = old
            if sides.bridged[1] is not sides.old[1]:
                both = old + bridged
            n_bytes = {"keep": old, "bridge": bridged, "twice": both, "cascade": both, "re-embed": new}
            lists = compressed_lists(trial, sides, codes, form, self.weight, k)
            for option in full:
                scores[option, form] = trial.score(lists[option], k)
                sizes[option, form] = n_bytes[option]
        found = []
        resampling = Resampling(len(trial.old_queries))
        for option, before in full.items():
            usual = usual_change([scores[option, form] - before for form in FORMS])
            for form in FORMS:
                now = scores[option, form]
                change = resampling.difference(QueryScores(now), QueryScores(before), usual)
                found.append(Compressed(option, form, float(now.mean()), change, sizes[option, form]))
        if trial.is_judged:
            metric = f"nDCG@{k}"
        else:
            metric = f"new model's {k} neighbours"
        return CheaperIndexes(tuple(found), metric, len(trial.old_queries), len(trial.rows))
