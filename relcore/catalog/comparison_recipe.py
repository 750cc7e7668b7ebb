"""The settings that figures of two spaces share, and the loading of their spaces. They are apart from the
module `task`, because they import the maps, which would slow the start of commands without a figure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from relcore.base.errors import need_one_of, need_strings
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.task import need_same_content
from relcore.maps.pane_maps import GRID, PANES, ViewSpec
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import Match, match


@dataclass(frozen=True)
class ComparisonRecipe:
    """The settings of a figure of two spaces. `others` are further spaces; a row is drawn and scored only if
    these have it, too. The digests are those of the paired rows."""

    newer: ClassVar[tuple[str, ...]] = ("others", "other_digests")

    source: SpaceSpec
    target: SpaceSpec
    anchors: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    view: ViewSpec = ViewSpec()
    reduction: ReductionSpec = ReductionSpec()
    panes: tuple[str, ...] = GRID
    source_digest: str = ""
    target_digest: str = ""
    others: tuple[SpaceSpec, ...] = ()
    other_digests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_strings("recipe: anchors", self.anchors)
        for pane in self.panes:
            need_one_of("recipe: panes", pane, PANES)

    @classmethod
    def of(cls, settings: ComparisonRecipe, **own: Any) -> Self:
        shared = {field.name: getattr(settings, field.name) for field in fields(ComparisonRecipe)}
        return cls(**shared, **own)


def load_models(recipe: ComparisonRecipe) -> Match:
    """Load and match the two spaces and the others. Raises a SpaceError if one is missing or has changed."""
    matched = match(*(load(spec, again=True) for spec in (recipe.source, recipe.target, *recipe.others)))
    known = recipe.source_digest, recipe.target_digest, *recipe.other_digests
    for space, digest in zip(matched.spaces, known, strict=False):
        need_same_content(space, digest)
    return matched


def load_pair(recipe: ComparisonRecipe) -> Match:
    """Load and match the two spaces without the others."""
    return load_models(recipe).pair()
