"""The figure of an explanation: the shares of each reason in all spaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relcore.base.kinds import need_kinds
from relcore.base.text import shortened
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.explain.explanation import Explain
from relcore.explain.result import Explanation, headline, reasons_table
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable

_LONGEST = 34  # letters of a feature on the axis
_BESIDE = 0.16  # distance of the points of two spaces


@dataclass(frozen=True, kw_only=True)
class ReasonsChart(Recipe, figure="reasons"):
    """A figure that shows, for each reason why spaces differ, the share of neighbours with the feature.

    Examples
    --------
    >>> from relcore import ReasonsChart, SpaceSpec
    >>> spaces = tuple(SpaceSpec("file", name) for name in ("a.npy", "b.npy"))
    >>> ReasonsChart(spaces=spaces).figure
    'reasons'
    """

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    explain: Explain = Explain()

    def __post_init__(self) -> None:
        need_kinds(self)

    def draw(self, result: Explanation | None = None) -> Exportable:
        if result is None:
            result = self.explain.run(self.loaded())
        found = result
        drawn = chart_exportable(reasons_chart(found), self.to_json(), "relscope-reasons")
        return replace(drawn, table=lambda: reasons_table(found), latex=lambda: reasons_table(found))


def reasons_chart(found: Explanation) -> Lines:
    """Points of the shares of each reason and of its parts, in the order of the reasons."""
    titles = []
    shares = []
    for reason in found.reasons:
        titles.append(reason.title)
        shares.append(reason.shares)
        titles += [part.title for part in reason.parts]
        shares += [part.shares for part in reason.parts]
    values = np.array(shares).reshape(len(titles), len(found.names))
    middle = (len(found.names) - 1) / 2
    lines = tuple(
        Line(
            name,
            (np.arange(len(titles)) + _BESIDE * (place - middle)).tolist(),
            values[:, place].tolist(),
            labels=titles,
        )
        for place, name in enumerate(found.names)
        if titles
    )
    note = f"{found.n_queries:,} of {found.n_rows:,} rows, k = {found.k}, {found.n_features:,} features tried"
    return Lines(
        lines,
        "",
        f"share of the {found.k} nearest that have it, too",
        kind="points",
        note=note,
        alt=headline(found),
        y_range=(-0.03, 1.05),
        x_names=tuple(shortened(title, _LONGEST) for title in titles),
    )
