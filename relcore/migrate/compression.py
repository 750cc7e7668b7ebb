"""A cheaper index: each option of a migration with int8, binary or shorter vectors, scored by the same
judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from relcore.base.names import ADAPTERS
from relcore.base.numbers import and_list, band, counted, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.migrate.evaluate import (
    MOST_CURVE_ROWS,
    Bootstrap,
    K,
    QueryScores,
    RetrievalTask,
    Sides,
    added_scores,
    covariance,
    rerank,
    search,
)
from relcore.migrate.migration import TITLES, Migration
from relcore.runs.store import Progress, Store, silent
from relcore.scores.score import Interval
from relcore.spaces.space import LatentSpace

RESCORED = 100  # rows of a binary search that are ranked again by their full vectors
MOST_COMPRESSED_QUERIES = 500


class Codes(NamedTuple):
    """The rows of an index, and a function `queries` such that their inner products replace those of full
    vectors; and the bytes of a row."""

    rows: np.ndarray
    queries: Callable[[np.ndarray], np.ndarray]
    n_bytes: float


def _int8(corpus: np.ndarray) -> Codes:
    """Whole numbers from −127 to 127, with one scale for each dimension."""
    scale = np.maximum(np.abs(corpus).max(axis=0), 1e-30) / 127
    return Codes(np.round(corpus / scale) * scale, lambda Q: Q, corpus.shape[1])


def _binary(corpus: np.ndarray) -> Codes:
    """The signs of centred rows; queries keep their numbers."""
    signs = np.where(corpus >= corpus.mean(axis=0), np.float32(1), np.float32(-1))
    return Codes(signs, lambda Q: Q, corpus.shape[1] / 8)


def _first_dimensions(corpus: np.ndarray, part: int) -> Codes:
    """The first d / `part` dimensions, scaled to length 1."""
    d = max(1, corpus.shape[1] // part)
    return Codes(unit_rows(corpus[:, :d]), lambda Q: np.ascontiguousarray(Q[:, :d]), 4 * d)


def _principal(corpus: np.ndarray, part: int) -> Codes:
    """The first d / `part` principal components of the corpus."""
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
    """The rows (q, k) that each option finds if its index holds codes instead of the sides' full corpora; a
    cascade still ranks by full vectors.
    """
    coded = [
        side if made is None else (made.queries(side[0]), made.rows)
        for side, made in zip(sides, codes, strict=True)
    ]
    full = dict(zip(Sides._fields, sides, strict=True))
    queries, corpora = zip(sides.old, sides.bridged, strict=True)

    def ranked_again(side: str, Q: np.ndarray, corpus: np.ndarray, depth: int) -> np.ndarray:
        rows = search(Q, corpus, max(depth, RESCORED), trial.own)
        return rerank(*(full.get(side) or added_scores(*queries, corpora, weight)), rows, depth)

    return trial.lists(Sides(*coded), weight, k, find=ranked_again if form == "binary" else None)


@dataclass(frozen=True)
class Compressed:
    """An option with one form of its index: its score, the change from full vectors, and bytes of a row."""

    option: str
    form: str
    score: float
    change: Interval
    row_bytes: float


@dataclass(frozen=True, eq=False)
class CheaperIndexes(Reported):
    """Each option with each form of its index, on `n_queries` queries and `n_rows` rows."""

    rows: tuple[Compressed, ...]
    metric: str
    n_queries: int
    n_rows: int

    def best(self, option: str = "keep") -> Compressed | None:
        """The smallest index that is not clearly worse; None if all are."""
        kept = [one for one in self.rows if one.option == option and one.change.high >= 0]
        return min(kept, key=lambda one: one.row_bytes, default=None)

    @property
    def cautions(self) -> tuple[str, ...]:
        losses = [one for one in self.rows if one.form.startswith("first") and one.change.high < 0]
        if not losses:
            return ()
        worst = min(losses, key=lambda one: one.change.value)
        return (
            f"{FORM_TITLES[worst.form].capitalize()} loses {short(-worst.change.value)} with"
            f" “{TITLES[worst.option]}”: cut only vectors of models that were trained for it (Matryoshka).",
        )

    def describe(self) -> str:
        forms: dict[str, list[str]] = {}
        for best in filter(None, map(self.best, dict.fromkeys(one.option for one in self.rows))):
            forms.setdefault(FORM_TITLES[best.form], []).append(TITLES[best.option])
        told = "; ".join(f"{form}, for {and_list(options)}" for form, options in forms.items())
        return f"Smallest index that is not clearly worse than full vectors: {told or 'none'}."

    def report(self) -> Report:
        """A report of each option with each form: bytes of a row, score, and the change from full vectors."""
        rows = [
            (one.option, one.form, one.row_bytes, one.score, *vars(one.change).values()) for one in self.rows
        ]
        frame = pd.DataFrame(rows, columns=["option", "index", "bytes", "score", "change", "low", "high"])
        shown = [["option", "index", "bytes of a row", self.metric, "vs full vectors"]]
        for option, form, size, score, change, *ends in rows:
            cells = TITLES[option], FORM_TITLES[form], f"{size:,.0f}", short(score)
            shown.append([*cells, f"{signed(change)} ({band(*ends)})"])
        caption = (
            f"{counted(self.n_queries, 'query', 'queries')}, {self.n_rows:,} rows. Binary: signs of centred"
            f" rows, searched by a query's own numbers; the first {RESCORED} are ranked again by full"
            " vectors, which stay on disk. A cascade ranks by full vectors. Intervals: over queries, paired."
        )
        table = Table("compressed", frame, shown, "A cheaper index", caption)
        return Report(self.describe(), [table], {}, self.cautions)


@dataclass(frozen=True, kw_only=True)
class CheaperIndex(Task[CheaperIndexes], kind="cheaper-index", version=1, title="A cheaper index"):
    """Score each option of a migration on a cheaper index, by the migration's judgements.

    `adapter` and `weight` are those of the migration's result. Uses at most 500 queries and 20,000 rows.
    """

    migration: Migration
    adapter: str = setting(choices=ADAPTERS)
    weight: float = 1.0

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, d = min(len(spaces[0]), MOST_CURVE_ROWS), max(space.dimension for space in spaces)
        return 1.0 + 4e-8 * n * d + 4e-9 * MOST_COMPRESSED_QUERIES * n * len(FORMS)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> CheaperIndexes:
        """Search all forms of all indexes. Raises a SpaceError as `Migration.run`."""
        ground, k = self.migration.ground(spaces, checked=True), self.migration.k
        trial = ground.trial.with_fewer_queries(MOST_COMPRESSED_QUERIES)
        trial = trial.with_fewer_rows(MOST_CURVE_ROWS, self.migration.random_state)
        sides = trial.sides(ground.pairs.fit(self.adapter))
        full = {name: trial.score(rows, k) for name, rows in trial.lists(sides, self.weight, k).items()}
        if not trial.is_judged:
            full.pop("re-embed", None)  # the rows that it finds are the relevant ones
        bootstrap, found = Bootstrap(len(trial.old_queries)), []
        for number, (form, encode) in enumerate(FORMS.items()):
            report(number, len(FORMS), FORM_TITLES[form])
            made = {id(corpus): encode(corpus) for _, corpus in sides if corpus is not None}
            codes = [made.get(id(corpus)) for _, corpus in sides]
            old, bridged, new = (0.0 if one is None else one.n_bytes for one in codes)
            both = old + (bridged if sides.bridged[1] is not sides.old[1] else 0.0)
            sizes = {"keep": old, "bridge": bridged, "twice": both, "cascade": both, "re-embed": new}
            lists = compressed_lists(trial, sides, codes, form, self.weight, k)
            for option, before in full.items():
                scores = trial.score(lists[option], k)
                change = bootstrap.difference(QueryScores(scores), QueryScores(before))
                found.append(Compressed(option, form, float(scores.mean()), change, sizes[option]))
        found.sort(key=lambda one: list(full).index(one.option))
        metric = f"nDCG@{k}" if trial.is_judged else f"new model's {k} neighbours"
        return CheaperIndexes(tuple(found), metric, len(trial.old_queries), len(trial.rows))
