"""The errors of the core, and how their messages quote items; scripts import them from `relcore.spaces`."""

from __future__ import annotations

from collections.abc import Sequence


class SpaceError(ValueError):
    """A space, a file or a setting is wrong; the message says what and how to fix it."""


class NoCommonId(SpaceError):
    """Two spaces have no id in common, so that their rows cannot be paired by id."""


def quote(items: Sequence[str]) -> str:
    """``'a', 'b'``: the items of an error message, each cut to 40 characters."""
    return ", ".join(repr(item if len(item) <= 40 else item[:39] + "…") for item in map(str, items))
