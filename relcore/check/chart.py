"""The map of a collection with its two parts, and how far these agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.rows import unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.check.collection import PARTS, Checked, CheckRows
from relcore.check.origins import TRUSTED, UNKNOWN
from relcore.figures.charts import GREY, Gauge, Line, Lines, MapWithEvidence
from relcore.figures.export import Exportable, chart_exportable
from relcore.maps.principal_axes import ReductionSpec, principal_map
from relcore.spaces.space import LatentSpace

_DRAWN = 3000  # maximum number of rows of a map
_BINS = 20  # of a histogram


@dataclass(frozen=True, kw_only=True)
class CheckChart(Recipe, figure="check"):
    """A figure of a check of one space: a map of its rows on their two longest axes, with suspected rows as
    rings of another colour, and rows of an unknown model as grey rings. Below it are the agreement of the two
    parts beside the range of one model and, with trusted rows, a histogram of the p-values. `trusted` has
    rows of the right model, `other` of the other one.
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
        return chart_exportable(evidence_of(*result), self.to_json(), "relscope-check")


def evidence_of(space: LatentSpace, checked: Checked) -> MapWithEvidence:
    """The map of the rows, the agreement of their parts, and the p-values, if these are known."""
    gauge = None
    if checked.agreement:
        (value, high, limit) = checked.agreement
        names = "two models", "one model"
        gauge = Gauge("agreement of the two parts' axes", max(0.0, value), max(0.0, high), limit, *names)
    histogram = None
    if checked.told and len(checked.told.p):
        histogram = _p_values(checked.told.p)
    return MapWithEvidence(map_of(space, checked), gauge, histogram)


def _p_values(p: np.ndarray) -> Lines:
    """The histogram of p-values (n,)."""
    counts, edges = np.histogram(p, _BINS, (0, 1))
    percent = np.repeat(100 * counts / len(p), 2)
    line = Line("p-values", np.repeat(edges, 2).tolist(), [0, *percent.tolist(), 0], color=GREY)
    first = percent[0]
    alt = f"Histogram of the p-values of {len(p):,} rows: {first:.0f} % are below {1 / _BINS:g}."
    level = 100 / _BINS
    title = "p-value of a row, from trusted rows"
    baselines = (("one model", level),)
    return Lines((line,), title, "rows (%)", filled=True, alt=alt, baselines=baselines)


def map_of(space: LatentSpace, checked: Checked) -> Lines:
    """A map of at most 3,000 random rows, scaled to length 1. The groups of `_groups` have colours of their
    own."""
    drawn = np.sort(np.random.default_rng(0).permutation(len(space))[:_DRAWN])
    places, _ = principal_map(unit_rows(np.asarray(space.vectors[drawn])), ReductionSpec())
    ids = space.ids[drawn]
    lines = []
    for color, (name, members) in enumerate(_groups(checked)):
        some = members[drawn]
        if not some.any():
            continue
        if name == PARTS[UNKNOWN]:
            color = GREY
        labels = [f"{one:.80}" for one in ids[some]]
        x, y = places[some].T
        lines.append(Line(name, x, y, labels=labels, color=color, hollow=color != 0))
    note = f"{len(drawn):,} of {len(space):,} rows"
    alt = f"Scatter plot of {len(drawn):,} rows on their two longest axes. {checked.sentence}"
    return Lines(tuple(lines), "longest axis", "second axis", kind="points", note=note, alt=alt)


def _groups(checked: Checked) -> list[tuple[str, np.ndarray]]:
    """The names and masks (n,) of the groups of rows, the larger one first. Their names are those of the
    table."""
    if checked.told:
        return [(name, checked.told.model == model) for model, name in checked.model_names.items()]
    first = checked.suspected_rows
    rest = "the other rows"
    if not first.any():
        rest = "rows"
    elif checked.verdict in ("two models", "suspicious"):
        rest = PARTS[TRUSTED]
    return [(rest, ~first), (checked.first_in_words, first)]
