"""The figure of an explanation: the shares of each reason in all spaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from relcore.base.kinds import need_kinds
from relcore.base.text import shortened
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.explain.explanation import Explain
from relcore.explain.result import Explanation, headline, reasons_table
from relcore.figures.export import Exportable, chart_exportable
from relcore.figures.matrices import Matrices, MatrixPanel

_LONGEST = 48  # letters of the name of a feature


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
        return replace(drawn, table=lambda: reasons_table(found), latex=lambda: printed_reasons(found))


def reasons_chart(found: Explanation) -> Matrices:
    """A row for each reason, in their order, each followed by its parts, and a column for each space. A cell
    has the share of neighbours with the feature."""
    shares: dict[str, tuple[float, ...]] = {}
    for reason in found.reasons:
        shares.setdefault(reason.title, reason.shares)
        for part in reason.parts:
            shares.setdefault(part.title, part.shares)
    if not shares:
        shares = {"no reason found": (np.nan,) * len(found.names)}
    values = np.array(list(shares.values()))
    names = tuple(shortened(title, _LONGEST) for title in shares)
    note = f"Of a row's {found.k} nearest neighbours, the share with its feature; {found.n_queries:,} rows"
    panel = MatrixPanel("", names, found.names, values, note=note)
    return Matrices((panel,), (0.0, 1.0), "share of neighbours", headline(found))


def printed_reasons(found: Explanation) -> pd.DataFrame:
    """The columns of the reasons that fit a page."""
    columns = ["feature", "rows", *found.names, "difference", "low", "high"]
    return reasons_table(found)[columns]
