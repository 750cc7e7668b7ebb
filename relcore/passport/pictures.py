"""The chart of a passport's check, and tasks that embed its anchors and name its recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.rows import unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.passport.change import common_dimensions, correlation
from relcore.passport.passport import Passport, paired_anchors
from relcore.passport.recipes import encode_texts, model_at_hand, name_recipe, with_pooling
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import derangement

# Figures of both checks, those of a passport and of a collection, and two tasks of the page.

MINILM = "minilm"


@dataclass(frozen=True, eq=False)
class Embedded:
    vectors: np.ndarray


@dataclass(frozen=True)
class EmbedAnchors(Task[Embedded], kind="passport-texts", title="Embed the anchors"):
    """The task that embeds texts, the ids of the first space, with the bundled model MiniLM."""

    prompt: str = ""
    pooling: str = "mean"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 5 + 0.02 * len(spaces[0])

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Embedded:
        encoder = with_pooling(model_at_hand(MINILM, last=True), self.pooling)
        [rows] = encode_texts(encoder, list(spaces[0].ids), self.prompt).values()
        return Embedded(rows)


@dataclass(frozen=True)
class Tried:
    recipe: str


@dataclass(frozen=True)
class NameRecipe(Task[Tried], kind="passport-recipe", title="Try recipes of MiniLM"):
    """The task that finds the prompt, pooling and layer by which the bundled model MiniLM made the rows of a
    space. The texts are the ids of the space.
    """

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 8 + 0.25 * len(spaces[0])

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Tried:
        return Tried(name_recipe(model_at_hand(MINILM), list(spaces[0].ids), spaces[0].vectors))


@dataclass(frozen=True, kw_only=True)
class PassportChart(Recipe, figure="passport"):
    """A figure that compares the anchors of a passport with new vectors of them. `passport` is a space, such
    as the file of a passport; if `anchors` are given, only its rows with these ids are compared. `new` is a
    space with the same ids; if it is None, MiniLM embeds the texts.
    """

    passport: SpaceSpec
    new: SpaceSpec | None = None
    digests: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    embed: EmbedAnchors = EmbedAnchors()

    def draw(self, result: tuple[Passport, LatentSpace] | None = None) -> Exportable:
        passport, new = result or self._load()
        return chart_exportable(chart_of(passport, new), self.to_json(), "relscope-passport")

    def _load(self) -> tuple[Passport, LatentSpace]:
        old, *others = self.loaded()
        if self.anchors:
            old = old.take(old.rows(self.anchors))
        passport = Passport.of(old)
        if others:
            return passport, others[0]
        return passport, LatentSpace(self.embed.run([passport.space]).vectors, passport.ids, name="MiniLM")


def chart_of(passport: Passport, new: LatentSpace) -> Lines:
    """A chart with two values for each anchor: the cosine of its old and its new vector, and the correlation
    of its old and new cosines with the other anchors. Further points show these values for randomly matched
    anchors. If the widths differ, the first value is the largest change of a cosine with another anchor.
    """
    ids, X, Y = paired_anchors(passport, new)
    change = passport.check(new)
    if change.cosine is not None:
        X, Y = common_dimensions(X, Y)
    n = len(ids)
    other = derangement(len(ids), np.random.default_rng(0))
    U = unit_rows(X).astype(np.float64)
    V = unit_rows(Y).astype(np.float64)
    old = U @ U.T
    now = V @ V.T
    lines = []
    for name, rows in (("the same anchor", np.arange(n)), ("another anchor: chance", other)):
        moved = now[np.ix_(rows, rows)]
        if X.shape[1] == Y.shape[1]:
            x = np.vecdot(U, V[rows])
        else:
            x = np.abs(old - moved).max(axis=1)
        y = [correlation(np.delete(old[row], row), np.delete(moved[row], row)) for row in range(n)]
        labels = []
        for row, partner in enumerate(rows):
            if partner == row:
                labels.append(f"{ids[row]:.80}")
            else:
                labels.append(f"{ids[row]:.40} / {ids[partner]:.40}")
        lines.append(Line(name, x, y, labels=labels))
    titles = "cosine of the old and the new vector", "correlation of old and new cosines to the other anchors"
    if change.cosine is None:
        titles = "largest change of a cosine with another anchor", titles[1]
    return Lines(
        tuple(lines),
        *titles,
        kind="points",
        note=f"{change.kind.capitalize()}, {n:,} anchors",
        alt=f"Scatter plot of {n:,} anchors. {change.sentence}",
    )
