"""A `Family` holds the choices of one kind by name: Relscope's own, then those of plugins. An entry holds a
title, and the place of the code, which is imported at first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, Literal, TypeVar

from relcore.base.errors import SpaceError
from relcore.base.plugins import load, plugin_entries, warn


@dataclass(frozen=True)
class Named:
    """An entry of the registry: the title of a choice, and the place of its code, ``"module:attribute"``. A
    leading dot stands for `relcore`. `plugin` is the name and version of the package that added the choice;
    "" for Relscope's own choices."""

    title: str
    where: str = ""
    help: str = ""
    plugin: str = field(default="", kw_only=True)
    family: str = field(default="", kw_only=True)

    def load(self) -> Any:
        if self.plugin:
            return load(self.family, self.where, self.plugin)
        module, _, attribute = self.where.partition(":")
        return getattr(import_module(module, "relcore"), attribute)


@dataclass(frozen=True)
class Method(Named):
    """The registry's entry of a stitching method, by which a classifier trained on one space (a *head*) reads
    another.

    Attributes
    ----------
    representation : "absolute" or the method's own name
        The rows on which heads are trained. "absolute": the rows of the head's own space. Then
        ``where(source, target, settings, random_state)`` gets two `FittedSpace`, and returns a function that
        translates source rows (m, d) to rows of the target, or None. The method's own name: a representation
        that ``where(space, settings)`` computes from one space alone, so that each head can read every space.
    knows : "one" or "both"
        "one": the method prepares each space alone. "both": it needs both spaces at once.
    """

    representation: str = "absolute"
    knows: Literal["one", "both"] = "one"


@dataclass(frozen=True)
class MetricName(Named):
    """The registry's entry of a metric. Its code is a `scores.comparison.Metric`.

    Attributes
    ----------
    of : some of "pair", "spaces", "more"
        What the metric compares. "pair": representations of one pair of spaces, as in Explore's table.
        "spaces": many spaces with each other. "more": both, but only if the metric is chosen by name.
    needs : some of "anchors", "projection", "k", "n_queries", "labels"
        What the metric depends on, besides the spaces. "labels" means that the pair must have labels.
    """

    of: tuple[str, ...] = ("pair", "spaces")
    needs: tuple[str, ...] = ()


Entry = TypeVar("Entry", bound=Named)


class Family(MutableMapping[str, Entry], Generic[Entry]):
    """The choices of one kind, by name: Relscope's own choices, then those of plugins. Plugins are searched
    only for a name that Relscope itself lacks.

    In a shared app, a `private` family ignores plugins, because their settings may be paths that visitors
    must not open. If the environment variable `unless` is 1, it does not ignore them.
    """

    def __init__(
        self,
        family: str,
        kind: type[Entry],
        own: dict[str, Entry],
        private: bool = False,
        unless: str = "",
        **usual: Any,
    ) -> None:
        self._family = family
        self._kind = kind
        self._private = private
        self._unless = unless
        self._usual = usual
        self.own = own  # Relscope's choices, without those of plugins

    @cached_property
    def _found(self) -> dict[str, Entry]:
        facts = {"family": self._family, **self._usual}
        return {name: self._kind(**told, **facts) for name, told in plugin_entries(self._family, [*self.own])}

    @property
    def added(self) -> dict[str, Entry]:
        if self._private and os.environ.get(self._unless) != "1":
            from relcore.base import access

            if access.is_shared():
                return {}
        return self._found

    def __getitem__(self, name: str) -> Entry:
        if name in self.own:
            return self.own[name]
        return self.added[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self.own[name] = entry

    def __delitem__(self, name: str) -> None:
        del self.own[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.own, **self.added})

    def __len__(self) -> int:
        return len({**self.own, **self.added})

    def name_of(self, code: type) -> str:
        """The registered name of a class, also of a plugin's class; "" if it has none."""
        place = f"{code.__module__}:{code.__qualname__}"
        for name, entry in self.items():
            if entry.where in (place, place.removeprefix("relcore")):
                return name
            if entry.plugin and entry.where.split(":")[0].split(".")[0] == place.split(":")[0].split(".")[0]:
                with suppress(SpaceError):
                    if entry.load() is code:
                        return name
        return ""

    def working(self) -> list[str]:
        """The names whose code can be loaded. Warns once about each plugin that fails."""
        for name, entry in list(self.added.items()):
            try:
                entry.load()
            except SpaceError as error:
                warn(error)
                del self._found[name]
        return [*self]

    def loaded(self) -> Iterator[tuple[str, Any]]:
        """Each name of `working` with its code."""
        return ((name, self[name].load()) for name in self.working())


# Suffix → the format of files of vectors. Each is a `files.formats.Format`.
@dataclass(frozen=True)
class FormatName(Named):
    """The registry's entry of a file format, under the suffix of its files. Its code is a
    `files.formats.Format`.

    Attributes
    ----------
    store : str
        The name in `INDEXES` of the store that reads and writes such a file in blocks, if there is one.
    shard : "", "array" or "table"
        How each file is read if a folder of such files is one space; "" if it cannot be one.
    """

    store: str = ""
    shard: Literal["", "array", "table"] = ""


@dataclass(frozen=True)
class StudyName(Named):
    """The registry's entry of a study. `help` is its question, `paper` the source of the question, and
    `topic` its group on the page Studies."""

    paper: str = ""
    topic: str = "More questions"
