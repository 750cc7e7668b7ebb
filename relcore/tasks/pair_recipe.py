"""ComparisonRecipe: the settings that figures of two spaces share, and the pair of spaces that they name."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from relcore.base.errors import need_one_of, need_strings
from relcore.catalog.catalog import SpaceSpec, load_again
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import ViewSpec
from relcore.scores.comparison import REPRESENTATIONS, ProjectionSpec
from relcore.spaces.space import Match, match
from relcore.tasks.recipe import need_same_content

PANES = ("absolute", "relative")  # the rows of the 2 × 2 grid


@dataclasses.dataclass(frozen=True)
class ComparisonRecipe:
    """Settings of the figures of two spaces: anchors by id, how to project, choose rows and reduce.

    The digests are of the matched spaces, the rows that are left once both are paired: they tell whether the
    data has changed.
    """

    source: SpaceSpec
    target: SpaceSpec
    anchors: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    view: ViewSpec = ViewSpec()
    reduction: ReductionSpec = ReductionSpec()
    panes: tuple[str, ...] = PANES
    source_digest: str = ""
    target_digest: str = ""

    def __post_init__(self) -> None:
        need_strings("recipe: anchors", self.anchors)
        for pane in self.panes:
            need_one_of("recipe: panes", pane, REPRESENTATIONS)

    @classmethod
    def of(cls, settings: ComparisonRecipe, **own: Any) -> Self:
        """Another figure of the same comparison, with settings of its own."""
        return cls(
            **{field.name: getattr(settings, field.name) for field in dataclasses.fields(ComparisonRecipe)},
            **own,
        )


def load_pair(recipe: ComparisonRecipe) -> Match:
    """Load and match the two spaces of a recipe.

    Raises
    ------
    SpaceError
        A space cannot be loaded, or is not the one that the recipe was made with.
    """
    matched = match(load_again(recipe.source), load_again(recipe.target))
    for space, digest in ((matched.source, recipe.source_digest), (matched.target, recipe.target_digest)):
        need_same_content(space, digest)
    return matched
