"""The kinds of arguments that a public function or class takes, read from its annotations.

`takes_kinds` is the front door of public functions for everything but rows, which
`relcore.spaces.space.matrix` converts. What it lets in has the annotated kind; the function checks bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from os import PathLike
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from relcore.base.arguments import is_list, is_number
from relcore.base.errors import SpaceError, brief, did_you_mean, is_among

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Kind:
    """What an annotation allows: `noun` for the message, and `fits`, which tells whether a value has it."""

    noun: str
    fits: Callable[[Any], bool]

    def need(self, name: str, value: Any) -> None:
        """Raise a SpaceError that names the argument, unless the value has this kind."""
        if not self.fits(value):
            near = ""
            if isinstance(value, str):
                near = did_you_mean(value, self.noun.removeprefix("one of ").split(", "))
            elif self.noun.endswith("a path") and hasattr(value, "shape"):
                near = "; rows in memory become a space by relcore.LatentSpace(rows)"
            raise SpaceError(f"{name}: expected {self.noun}, got {brief(value)}{near}")


def takes_kinds(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A decorator: the function first refuses each argument that has not the annotated kind, with a
    SpaceError that names it. Rows, arrays and `Any` are left to the function.

    Examples
    --------
    >>> @takes_kinds
    ... def twice(n: int) -> int:
    ...     return 2 * n
    >>> twice([1])
    Traceback (most recent call last):
    relcore.base.errors.SpaceError: n: expected a whole number, got [1]
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def checked(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        kinds = _kinds_of(function)
        for name, value in (*zip(names, arguments, strict=False), *options.items()):
            if name in kinds:
                kinds[name].need(name, value)
        return function(*arguments, **options)

    return checked


def need_kinds(record: Any) -> None:
    """Raise a SpaceError for the first attribute of a dataclass or estimator that has not the kind that is
    annotated where it is made."""
    for name, kind in _kinds_of_class(type(record)).items():
        kind.need(name, getattr(record, name))


@cache
def _kinds_of(function: Any) -> dict[str, Kind]:
    return _checkable(function.__annotations__, function.__globals__)


@cache
def _kinds_of_class(made: type) -> dict[str, Kind]:
    kinds = {}
    fields = signature(made).parameters
    for base in reversed(made.__mro__):
        annotations = vars(base).get("__annotations__", {})
        own = {name: kind for name, kind in annotations.items() if name in fields}
        kinds.update(_checkable(own, vars(sys.modules[base.__module__])))
    return kinds


def _checkable(annotations: Mapping[str, Any], names: dict[str, Any]) -> dict[str, Kind]:
    """The kinds of those annotations that say one. Those with a name that is imported only for type checkers
    say none."""
    kinds = {}
    for name, annotation in annotations.items():
        try:
            resolved = get_type_hints(SimpleNamespace(__annotations__={name: annotation}), names)[name]
        except NameError:
            continue
        kind = kind_of(resolved)
        if kind and name != "return":
            kinds[name] = kind
    return kinds


_PLAIN = {
    bool: Kind("True or False", lambda value: isinstance(value, bool | np.bool_)),
    int: Kind("a whole number", lambda value: is_number(value, whole=True)),
    float: Kind("a number", is_number),
    str: Kind("a text", lambda value: isinstance(value, str)),
    Path: Kind("a path", lambda value: isinstance(value, PathLike)),
    NoneType: Kind("None", lambda value: value is None),
}


def kind_of(annotation: Any) -> Kind | None:
    """The kind that a resolved annotation allows. None if it is not checked here: arrays and rows, which the
    function converts, protocols, and `Any`."""
    parts = get_args(annotation)
    origin = get_origin(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin in (Union, UnionType):
        return _either([kind_of(part) for part in parts])
    if origin is Literal:
        return Kind(f"one of {', '.join(map(str, parts))}", lambda value: is_among(value, parts))
    if origin is Callable or annotation is Callable:
        return Kind("a function", callable)
    kind = origin or annotation
    if (
        not isinstance(kind, type)
        or kind in (Any, object, np.ndarray)
        or getattr(kind, "_is_protocol", False)
    ):
        return None
    if issubclass(kind, Mapping):
        return Kind("a dictionary", lambda value: isinstance(value, kind))
    if issubclass(kind, Collection) and parts and not issubclass(kind, str | bytes):
        return _list_of(parts)
    return Kind(f"a {kind.__name__}", lambda value: isinstance(value, kind))


def _either(kinds: list[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind]
    if len(known) < len(kinds):
        return None
    noun = " or ".join(dict.fromkeys(kind.noun for kind in known))
    return Kind(noun, lambda value: any(kind.fits(value) for kind in known))


def _list_of(parts: tuple[Any, ...]) -> Kind:
    """The kind of a list or tuple. `parts` are the kinds of its items; of any number of them if there is one,
    or an ellipsis."""
    items = [kind_of(part) for part in parts if part is not ...]
    any_number = len(parts) == 1 or ... in parts

    def fits(value: Any) -> bool:
        if not is_list(value) or not (any_number or len(value) == len(items)):
            return False
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            return all(kind is None or kind.fits(1) for kind in items)
        kinds = items
        if any_number:
            kinds = items * len(value)
        return all(kind is None or kind.fits(item) for kind, item in zip(kinds, value, strict=True))

    nouns = dict.fromkeys(kind.noun.removeprefix("a ") + "s" for kind in items if kind)
    noun = "a list"
    if len(nouns) == 1:
        noun += f" of {min(nouns)}".replace("True or Falses", "True and False")
    if not any_number:
        noun += f", {len(items)} in all"
    return Kind(noun, fits)
