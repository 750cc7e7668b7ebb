"""The texts of rows of a space that need not be the session's source or target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.items import items_of
from app.workspace import Workspace
from relcore.sources.catalog import SpaceSpec


def texts_of(spec: SpaceSpec, ids: Sequence[str]) -> list[str]:
    """The text of each id, "" where there is none."""
    items = items_of(replace(Workspace(), source=spec, target=spec))
    return items.texts(list(ids)) if items is not None and items.has_texts else [""] * len(ids)
