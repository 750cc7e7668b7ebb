"""The figure of an axis: the place of each row in one space against its place in the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relcore.axis.places import N_EXTREME, AxisPlaces
from relcore.axis.task import PoleAxis
from relcore.base.kinds import need_kinds
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.figures.charts import GREY, Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.spaces.split import smallest_keys

_MOST_DRAWN = 2000
_MOST_PRINTED = 40


@dataclass(frozen=True, kw_only=True)
class AxisChart(Recipe, figure="axis"):
    """A figure of the places of rows between two poles, in one space against the other.

    Examples
    --------
    >>> from relcore import AxisChart, PoleAxis, SpaceSpec
    >>> first, second = (SpaceSpec("file", name) for name in ("a.npy", "b.npy"))
    >>> AxisChart(source=first, target=second, axis=PoleAxis(("he",), ("she",))).figure
    'axis'
    """

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    axis: PoleAxis

    def __post_init__(self) -> None:
        need_kinds(self)

    def draw(self, result: AxisPlaces | None = None) -> Exportable:
        found = self.computed(result)
        drawn = chart_exportable(axis_chart(found), self.to_json(), "relscope-axis")
        return replace(drawn, table=found.table, latex=lambda: found.table().head(_MOST_PRINTED))


def axis_chart(found: AxisPlaces) -> Lines:
    """A scatter plot of the places, with the rows that differ most in colour. Of many rows, a sample is
    drawn."""
    first, second = found.names
    start, end = found.pole_names
    table = found.table()
    extreme = table.head(N_EXTREME)
    others = table.iloc[N_EXTREME:]
    drawn = smallest_keys(len(others), _MOST_DRAWN, "axis chart")
    lines = []
    groups = (("other rows", others.iloc[drawn], GREY), ("rows that differ most", extreme, 0))
    for name, rows, color in groups:
        if len(rows):
            places = (rows["source place"], rows["target place"])
            labels = rows["id"].tolist()
            lines.append(Line(name, *places, labels=labels, color=color, hollow=color != GREY))
    ends = [-0.5, 0.5]
    lines.append(Line("poles", ends, ends, labels=[start, end], color=1))
    note = (
        f"ρ {found.agreement:2}, more than on {found.n_below} of {len(found.random_agreement)} axes between"
        f" random rows (median {short(found.median_random, 2)})"
    )
    if len(drawn) < len(others):
        note += f"; {len(drawn) + len(extreme):,} of {len(table):,} rows drawn"
    return Lines(
        tuple(lines),
        f"place in {first}, from {start} (−.5) to {end} (.5)",
        f"place in {second}",
        kind="points",
        note=note,
    )
