"""The figures of both checks (of a passport, of a collection), and two tasks of their page: embed the
anchors, and name a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.base.rows import unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.maps.reduction import ReductionSpec, principal_map
from relcore.passport.check import Checked, CheckRows
from relcore.passport.passport import (
    Passport,
    check,
    common_dimensions,
    correlation,
    encode_texts,
    latest,
    model_at_hand,
    name_recipe,
    paired_anchors,
)
from relcore.runs.store import Progress, Store, silent
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import derangement

MINILM = "minilm"


@dataclass(frozen=True, eq=False)
class Embedded:
    vectors: np.ndarray


@dataclass(frozen=True)
class EmbedAnchors(Task[Embedded], kind="passport-texts", title="Embed the anchors"):
    """The task that embeds the texts of a passport, which are the ids of a space, with the bundled MiniLM."""

    prompt: str = ""
    pooling: str = "mean"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 5 + 0.02 * len(spaces[0])

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Embedded:
        encoder = replace(latest(MINILM), pooling=self.pooling)
        [rows] = encode_texts(encoder, list(spaces[0].ids), self.prompt).values()
        return Embedded(rows)


@dataclass(frozen=True)
class Tried:
    recipe: str


@dataclass(frozen=True)
class NameRecipe(Task[Tried], kind="passport-recipe", title="Try recipes of MiniLM"):
    """The task that finds the prompt, pooling and layer of the bundled MiniLM that give the rows of a
    space."""

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 8 + 0.25 * len(spaces[0])

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Tried:
        return Tried(name_recipe(model_at_hand(MINILM), list(spaces[0].ids), spaces[0].vectors))


@dataclass(frozen=True, kw_only=True)
class PassportChart(Recipe, figure="passport"):
    """The figure of a passport's check. `passport` is a space, such as the file of a passport. `new` is a
    space with the same ids; if it is None, MiniLM embeds the texts. `anchors` are some of the ids."""

    passport: SpaceSpec
    new: SpaceSpec | None = None
    digests: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    embed: EmbedAnchors = EmbedAnchors()

    def draw(self, result: tuple[Passport, LatentSpace] | None = None) -> Exportable:
        return chart_exportable(chart_of(*(result or self._load())), self.to_json(), "relscope-passport")

    def _load(self) -> tuple[Passport, LatentSpace]:
        old, *others = self.loaded()
        passport = Passport.of(old.take(old.rows(self.anchors)) if self.anchors else old)
        if others:
            return passport, others[0]
        return passport, LatentSpace(self.embed.run([passport.space]).vectors, passport.ids, name="MiniLM")


def chart_of(passport: Passport, new: LatentSpace) -> Lines:
    """A chart with two values for each anchor: the cosine of its two vectors, and the correlation of its old
    and new cosines with the other anchors. Chance levels come from mismatched anchors. If the widths differ,
    the first value is the largest change of a cosine with another anchor."""
    ids, X, Y = paired_anchors(passport, new)
    change = check(passport, new)
    X, Y = (X, Y) if change.cosine is None else common_dimensions(X, Y)
    n, other = len(ids), derangement(len(ids), np.random.default_rng(0))
    U, V = unit_rows(X).astype(np.float64), unit_rows(Y).astype(np.float64)
    old, now, lines = U @ U.T, V @ V.T, []
    for name, rows in (("the same anchor", np.arange(n)), ("another anchor: chance", other)):
        moved = now[np.ix_(rows, rows)]
        x = np.vecdot(U, V[rows]) if X.shape[1] == Y.shape[1] else np.abs(old - moved).max(axis=1)
        y = [correlation(np.delete(old[row], row), np.delete(moved[row], row)) for row in range(n)]
        labels = [
            f"{item:.80}" if rows[row] == row else f"{item:.40} / {ids[rows[row]]:.40}"
            for row, item in enumerate(ids)
        ]
        lines.append(Line(name, x, y, labels=labels))
    titles = "cosine of the old and the new vector", "correlation of its cosines with the others"
    if change.cosine is None:
        titles = "largest change of a cosine with another anchor", titles[1]
    note = f"{change.kind.capitalize()}, {n:,} anchors"
    return Lines(
        tuple(lines),
        *titles,
        kind="points",
        note=note,
        alt=f"Scatter plot of {n:,} anchors. {change.sentence}",
    )


_DRAWN = 3000  # rows of a map


@dataclass(frozen=True, kw_only=True)
class CheckChart(Recipe, figure="check"):
    """The map of a checked space on its two longest axes, with the first-ranked rows in colour. `trusted` has
    rows of the right model."""

    space: SpaceSpec
    trusted: SpaceSpec | None = None
    digests: tuple[str, ...] = ()
    check: CheckRows = CheckRows()

    def draw(self, result: tuple[LatentSpace, Checked] | None = None) -> Exportable:
        if result is None:
            spaces = self.loaded()
            result = spaces[0], self.check.run(spaces)
        return chart_exportable(map_of(*result), self.to_json(), "relscope-check")


def map_of(space: LatentSpace, checked: Checked) -> Lines:
    """A map of unit rows, in which the rows that `check` ranks first are coloured. It shows a random sample
    of at most 3,000 rows."""
    drawn = np.sort(np.random.default_rng(0).permutation(len(space))[:_DRAWN])
    places, _ = principal_map(unit_rows(np.asarray(space.vectors[drawn])), ReductionSpec())
    first = checked.suspected_rows
    groups = {"the other rows": ~first[drawn], checked.first_in_words: first[drawn]}
    ids = space.ids[drawn]
    lines = tuple(
        Line(name, *places[some].T, labels=[f"{one:.80}" for one in ids[some]])
        for name, some in groups.items()
        if some.any()
    )
    note = f"{len(drawn):,} of {len(space):,} rows"
    alt = f"Scatter plot of {len(drawn):,} rows on their two longest axes. {checked.sentence}"
    return Lines(lines, "longest axis", "second axis", kind="points", note=note, alt=alt)
