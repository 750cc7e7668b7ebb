"""Plugins: names that installed packages add, by entry points in groups such as ``relscope.metrics``.

The names come from the packages' metadata; a package is imported when one of its names is used. A package
that fails causes a warning. No package can replace a name of Relscope or of another package.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import isclass
from typing import Any

from relcore.base.errors import SpaceError

TAB_PLACES = ("explore", "connect", "migrate", "research")
# Family → the base class of its entries. The entries of "methods", "tabs" and "features" are functions, and
# those of "commands" and "tools" are instances of the class.
_BASES = {
    "commands": "relcore.commands.command:Command",
    "tools": "relcore.commands.command:Tool",
    "tabs": "",
    "figures": "relcore.catalog.task:Recipe",
    "metrics": "relcore.scores.metrics:Metric",
    "similarities": "relcore.represent.similarity:Similarity",
    "encoders": "relcore.encoders.encoder:Encoder",
    "formats": "relcore.files.formats:Format",
    "methods": "",
    "studies": "relcore.studies.study:Study",
    "stores": "relcore.stores.index:VectorIndex",
    "features": "",
}
_INSTANCES = ("commands", "tools")
_WORDS = re.compile(r"[a-z0-9]+([ _-][a-z0-9]+)*")
_WORD = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TAB = re.compile(rf"({'|'.join(TAB_PLACES)}) [a-z0-9].*")
_SUFFIX = re.compile(r"(\.[a-z0-9_-]+)+")
# Family → the shape of its names, and the shape in words. Other names are words in small letters.
_SHAPES = {
    "formats": (_SUFFIX, "a suffix such as .ext"),
    "commands": (_WORD, "a word in small letters"),
    "tools": (_WORD, "a word in small letters"),
    "tabs": (_TAB, f"{', '.join(TAB_PLACES)} and a title in small letters"),
}
_REFUSED = (".pkl", ".pickle", ".joblib", ".kv", ".zip")  # suffixes that no plugin may read
_SCHEMES = {"http", "https", "file", "ftp", "s3", "gs", "az", "abfs", "hf", "memory"}


@cache
def _entry_points() -> Any:
    from importlib.metadata import entry_points  # this import takes a tenth of a second

    return entry_points()


def plugin_entries(family: str, own: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The names that plugins add to a family, each with the fields of its `Named` entry."""
    points = list(_entry_points().select(group=f"relscope.{family}"))
    several = Counter(point.name for point in points)
    for point in points:
        name = point.name
        plugin = f"{point.dist.name} {point.dist.version}"
        pattern, kind = _SHAPES.get(family, (_WORDS, "words in small letters"))
        expected = ""
        if not pattern.fullmatch(name) or len(name) > 40 or (family == "stores" and name in _SCHEMES):
            expected = f"{kind} as a name"
        elif name in own or (family == "formats" and name.endswith((*own, *_REFUSED))):
            expected = "another name than those of Relscope"
        elif several[name] > 1:
            expected = "a name that no other package has"
        if expected:
            warn(_broken(plugin, f"{expected} in relscope entry points", repr(name)))
            continue
        text = f"{point.dist.metadata.get('Summary') or ''}".partition("\n")[0].rstrip(".")
        if family == "stores":
            text = f"{name}:PLACE#TABLE"
        where = point.value.partition("[")[0].strip()  # without the extras in brackets
        yield name, {"title": name, "where": where, "help": f"{text} ({plugin})".lstrip(), "plugin": plugin}


def load(family: str, where: str, plugin: str) -> Any:
    """The code of a name. If it cannot be used, raises a SpaceError that names the package."""
    module, _, attribute = where.partition(":")
    try:
        code = import_module(module)
        for part in attribute.split("."):
            code = getattr(code, part)
    except (Exception, SystemExit) as error:  # importing a module may raise anything
        raise _broken(plugin, f"{where} to be imported", f"{type(error).__name__}: {error}") from error
    module, _, base = _BASES[family].partition(":")
    if not module:
        if not callable(code):
            raise _broken(plugin, f"a function as {where}", type(code).__name__)
        return code
    expected = getattr(import_module(module), base)
    if family in _INSTANCES:
        if not isinstance(code, expected):
            raise _broken(plugin, f"a {base} as {where}", type(code).__name__)
    elif not isclass(code) or not issubclass(code, expected):
        raise _broken(plugin, f"a subclass of {base} as {where}", repr(code))
    elif lacking := sorted(getattr(code, "__abstractmethods__", ())):
        raise _broken(plugin, f"{where} to have {', '.join(lacking)}", "none")
    return code


@contextmanager
def named_in_errors(plugin: str) -> Iterator[None]:
    """Turn an exception of a plugin's code into a SpaceError that names the plugin. If `plugin` is "", the
    exception passes unchanged."""
    try:
        yield
    except SpaceError:
        raise
    except Exception as error:
        if not plugin:
            raise
        raise _broken(plugin, "a result", f"{type(error).__name__}: {error}") from error


def warn(error: SpaceError) -> None:
    warnings.warn(f"{error}; Relscope continues without it", stacklevel=2)


def _broken(plugin: str, expected: str, got: str) -> SpaceError:
    remedy = f"update it, or run: pip uninstall {plugin.partition(' ')[0]}"
    return SpaceError(f"plugin {plugin}: expected {expected}, got {got:.200}; {remedy}")
