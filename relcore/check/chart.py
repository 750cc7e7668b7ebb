"""The map of a collection with its two parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.rows import unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.check.collection import Checked, CheckRows
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.maps.principal_axes import ReductionSpec, principal_map
from relcore.spaces.space import LatentSpace

_DRAWN = 3000  # maximum number of rows of a map


@dataclass(frozen=True, kw_only=True)
class CheckChart(Recipe, figure="check"):
    """A figure of a check of one space: a map of its rows on their two longest axes, with suspected rows in
    another colour. `trusted` has rows of the right model, `other` of the other one.
    """

    space: SpaceSpec
    trusted: SpaceSpec | None = None
    other: SpaceSpec | None = None
    digests: tuple[str, ...] = ()
    check: CheckRows = CheckRows()

    def draw(self, result: tuple[LatentSpace, Checked] | None = None) -> Exportable:
        if result is None:
            spaces = self.loaded()
            result = spaces[0], self.check.run(spaces)
        return chart_exportable(map_of(*result), self.to_json(), "relscope-check")


def map_of(space: LatentSpace, checked: Checked) -> Lines:
    """A map of at most 3,000 random rows, scaled to length 1, with the `suspected_rows` in another colour."""
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
