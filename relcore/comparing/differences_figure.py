"""The figure "differences" from a recipe: each group's agreement beside that of random groups of its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from relcore.charts.lines import Line, Lines
from relcore.comparing.differences import NEIGHBOURS, SIGNIFICANT, Differences, FoundDifferences, MovedGroup, with_anchors
from relcore.comparison import ProjectionSpec
from relcore.figures.export import Exportable, lines_exportable
from relcore.numbers import short
from relcore.recipe import Recipe, load_all
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import match, need_strings

SHOWN = 30  # groups with a name beneath that can still be read
_LONGEST = 28  # characters of a group's name on the axis


@dataclass(frozen=True, kw_only=True)
class GroupDifferences(Recipe):
    """Classes or clusters by how much of their neighbourhoods the other space keeps.

    The result is that of `Differences`, `with_anchors`.
    """

    figure: ClassVar[str] = "differences"

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()
    representation: str = "absolute"
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    groups: str = "classes"
    n_clusters: int = 20
    k: int = NEIGHBOURS
    n_queries: int = 4000

    def __post_init__(self) -> None:
        need_strings("recipe: anchors", self.anchors)
        _ = self.task  # it checks the settings

    @property
    def task(self) -> Differences:
        """What computes it; the absolute spaces need no anchors."""
        settings = {name: getattr(self, name) for name in ("representation", "groups", "n_clusters", "k", "n_queries")}
        needed = {} if self.representation == "absolute" else {"anchors": self.anchors, "projection": self.projection}
        return Differences(**settings, **needed)

    def draw(self, result: FoundDifferences | None = None) -> Exportable:
        if result is None:
            pair = match(*load_all(self.spaces, self.digests, self.figure))
            result = with_anchors(self.task.run((pair.source, pair.target)), pair, self.anchors)
        described: dict[str, Any] = self.to_json()
        drawn = lines_exportable(differences_lines(result, self.groups), described, "relscope-differences")
        return Exportable(
            drawn.name,
            drawn.interactive,
            drawn.publication,
            lambda: differences_table(result),
            described,
            lambda: printed_table(result),
        )


def differences_lines(found: FoundDifferences, kind: str) -> Lines:
    """Groups side by side, the one that moved most first; bars are the 95 % bands of random groups of the same size."""
    shown = found.groups[:SHOWN]
    places = {True: [], False: []}
    for place, group in enumerate(shown):
        places[group.significant].append(place)
    chance = Line(
        "random group of that size, 95 %",
        range(len(shown)),
        [group.expected for group in shown],
        [group.low for group in shown],
        [group.high for group in shown],
    )
    lines = [chance]
    for significant, name in ((True, f"moved more than chance, p < {short(SIGNIFICANT, 2)}"), (False, "not more than chance")):
        if some := places[significant]:
            told = [f"{shown[place].name}: {p_told(shown[place], found)}" for place in some]
            lines.append(Line(name, some, [shown[place].agreement for place in some], labels=told, keys=[str(p) for p in some]))
    return Lines(
        tuple(lines),
        "",
        f"neighbours kept (Jaccard, k = {found.k})",
        kind="points",
        note=summary(found, kind),
        x_names=tuple(_short_name(group.name) for group in shown),
    )


def summary(found: FoundDifferences, kind: str) -> str:
    """``"2 of 10 classes moved more than chance (p < .05, corrected for 10 classes)"``."""
    n = len(found.groups)
    told = f"{len(found.moved)} of {n} {kind} moved more than chance (p < .05, corrected for {n} {kind})"
    return f"{told}; the {SHOWN} that moved most are shown" if n > SHOWN else told


def p_told(group: MovedGroup, found: FoundDifferences) -> str:
    """``"p = .012"``, or ``"p < .001"`` at the smallest p that the permutations can give."""
    least = 1 / (1 + found.n_permutations)
    return "p < .001" if group.p <= max(least, 0.0009) else f"p = {short(group.p)}"


def differences_table(found: FoundDifferences) -> pd.DataFrame:
    """A row per group.

    Columns: group, rows, compared (of these rows), agreement, expected, low, high (95 % band of a random group), z, p
    (corrected for the number of groups), k, n, examples, source_anchors, target_anchors (ids, separated by "; ").
    """
    return pd.DataFrame(
        [
            {
                "group": group.name,
                "rows": group.n,
                "compared": group.n_queries,
                "agreement": group.agreement,
                "expected": group.expected,
                "low": group.low,
                "high": group.high,
                "z": group.z,
                "p": group.p,
                "k": found.k,
                "n": found.n,
                "examples": "; ".join(group.examples),
                "source_anchors": "; ".join(group.source_anchors),
                "target_anchors": "; ".join(group.target_anchors),
            }
            for group in found.groups
        ]
    )


def printed_table(found: FoundDifferences) -> pd.DataFrame:
    """What a paper prints: group, rows, agreement, the band by chance, p."""
    return pd.DataFrame(
        {
            "group": [group.name for group in found.groups],
            "n": [group.n_queries for group in found.groups],
            f"agreement, k = {found.k}": [f"{group.agreement:.3f}" for group in found.groups],
            "chance (95 %)": [f"{group.low:.3f} to {group.high:.3f}" for group in found.groups],
            "p": ["< .001" if group.p < 0.001 else f"{group.p:.3f}" for group in found.groups],
        }
    )


def _short_name(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1].rstrip(" ,") + "…"
