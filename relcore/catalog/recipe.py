"""What the recipes of figures of two spaces share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from relcore.base.errors import need_one_of, need_strings
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.task import need_same_content
from relcore.maps.pane_maps import GRID, PANES
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import ViewSpec
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import Match, match


@dataclass(frozen=True)
class ComparisonRecipe:
    """Settings of the figures of two spaces; the digests are of the rows left by pairing."""

    source: SpaceSpec
    target: SpaceSpec
    anchors: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    view: ViewSpec = ViewSpec()
    reduction: ReductionSpec = ReductionSpec()
    panes: tuple[str, ...] = GRID
    source_digest: str = ""
    target_digest: str = ""

    def __post_init__(self) -> None:
        need_strings("recipe: anchors", self.anchors)
        for pane in self.panes:
            need_one_of("recipe: panes", pane, PANES)

    @classmethod
    def of(cls, settings: ComparisonRecipe, **own: Any) -> Self:
        shared = {field.name: getattr(settings, field.name) for field in fields(ComparisonRecipe)}
        return cls(**shared, **own)


def load_pair(recipe: ComparisonRecipe) -> Match:
    """Load and match the two spaces; SpaceError where one is gone or has changed."""
    matched = match(load(recipe.source, again=True), load(recipe.target, again=True))
    for space, digest in ((matched.source, recipe.source_digest), (matched.target, recipe.target_digest)):
        need_same_content(space, digest)
    return matched
