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

# Family → base class of its entries. The entries of "methods" are functions.
_BASES = {
    "metrics": "relcore.scores.comparison:Metric",
    "similarities": "relcore.represent.similarity:Similarity",
    "encoders": "relcore.encoders.encoder:Encoder",
    "formats": "relcore.files.formats:Format",
    "methods": "",
    "studies": "relcore.studies.study:Study",
    "stores": "relcore.stores.index:VectorIndex",
}
_WORDS = re.compile(r"[a-z0-9]+([ _-][a-z0-9]+)*")
_SUFFIX = re.compile(r"(\.[a-z0-9_-]+)+")
_REFUSED = (".pkl", ".pickle", ".joblib", ".kv", ".zip")  # suffixes that Relscope refuses or unpacks itself
_SCHEMES = {"http", "https", "file", "ftp", "s3", "gs", "az", "abfs", "hf", "memory"}


@cache
def _entry_points() -> Any:
    from importlib.metadata import entry_points  # takes a tenth of a second, so only when it is needed

    return entry_points()


def plugin_entries(family: str, own: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The names that packages add, each with the fields of its `names.Named` entry."""
    points = list(_entry_points().select(group=f"relscope.{family}"))
    several = Counter(point.name for point in points)
    for point in points:
        name = point.name
        known = _SUFFIX if family == "formats" else _WORDS
        if not known.fullmatch(name) or len(name) > 40 or (family == "stores" and name in _SCHEMES):
            kind = "a suffix such as .ext" if family == "formats" else "words in small letters"
            _warn(point, f"{kind} as a name", name)
        elif name in own or (family == "formats" and name.endswith((*own, *_REFUSED))):
            _warn(point, "another name than those of Relscope", name)
        elif several[name] > 1:
            _warn(point, "a name that no other package has", name)
        else:
            of = _of(point)
            text = f"{point.dist.metadata.get('Summary') or ''}".partition("\n")[0].rstrip(".")
            text = f"{name}:PLACE#TABLE" if family == "stores" else text
            where = point.value.partition("[")[0].strip()  # without extras
            yield name, {"title": name, "where": where, "help": f"{text} ({of})".lstrip(), "plugin": of}


def load(family: str, where: str, plugin: str) -> Any:
    """The code of a name. If it cannot be used, raises a SpaceError that names the package."""
    module, _, attribute = where.partition(":")
    try:
        code = import_module(module)
        for part in attribute.split("."):
            code = getattr(code, part)
    except (Exception, SystemExit) as error:  # importing a module may raise anything
        raise _broken(plugin, f"{where} to be imported", f"{type(error).__name__}: {error}") from error
    base = _BASES[family].partition(":")
    if not base[0]:
        if not callable(code):
            raise _broken(plugin, f"a function as {where}", type(code).__name__)
    elif not isclass(code) or not issubclass(code, getattr(import_module(base[0]), base[2])):
        raise _broken(plugin, f"a subclass of {base[2]} as {where}", repr(code))
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


def _of(point: Any) -> str:
    return f"{point.dist.name} {point.dist.version}"


def _warn(point: Any, expected: str, got: str) -> None:
    warn(_broken(_of(point), f"{expected} in relscope entry points", repr(got)))
