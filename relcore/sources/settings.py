"""Settings of encoders: what forms, the command line and checks need beside the name, type and default of a field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from relcore.spaces import SpaceError, quote

UNSET: Any = ...


class Facts(Protocol):
    """What is known of a dataset before it is encoded; `sizes` are (width, height) of pictures, () if they are unknown."""

    n: int
    classes: Sequence[str]
    sizes: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Setting:
    """One setting of an encoder. The first setting of an encoder is what names it on the command line: ``mlp``, ``timm:NAME``.

    Attributes
    ----------
    name, kind, default
        Of the dataclass's field; UNSET where it has no default.
    label, help, placeholder : str
        What a form shows; the default label is the name.
    choices : value → label, or a sequence of values
        The allowed values, or the allowed items of a tuple; by default those of a `Literal`.
    suggestions : value → label, or a sequence of values
        What a form offers; other values are allowed, too.
    several : bool
        A form asks for one choice or more, each of which makes an encoder of its own.
    low, high, above, below : number
        Bounds: the first two are allowed themselves, the others are not.
    usual : value, or function of `Facts`
        What forms and the command line use if nothing is chosen, instead of the default; with `several`, a tuple for the form.
    option : str
        Name on the command line; by default the field's.
    note : function of the value → str
        A caption beneath the widget.
    more : bool
        A form shows it under "More settings".
    """

    name: str = ""
    kind: Any = str
    default: Any = UNSET
    label: str = ""
    help: str = ""
    placeholder: str = ""
    choices: Mapping[Any, str] | Sequence[Any] = ()
    suggestions: Mapping[Any, str] | Sequence[Any] = ()
    several: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    usual: Any = UNSET
    option: str = ""
    note: Callable[[Any], str] | None = None
    more: bool = False

    @property
    def is_tuple(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def number(self) -> type | None:
        """int or float, also of ``int | None``; None for what is no number."""
        kinds = () if self.is_tuple else (self.kind, *get_args(self.kind))
        return next((kind for kind in kinds if kind in (int, float)), None)

    def start(self, data: Facts) -> Any:
        """The value that a form on this dataset shows first; UNSET if there is none."""
        if callable(self.usual):
            return self.usual(data)
        return self.default if self.usual is UNSET else self.usual

    def check(self, value: Any) -> None:
        """Raise a SpaceError that names the setting, what is allowed and what came."""
        if value is None and type(None) in get_args(self.kind):
            return
        values = value if self.is_tuple and isinstance(value, tuple) else (value,)
        if self.choices and (unknown := [one for one in values if one not in tuple(self.choices)]):
            raise SpaceError(f"{self.name}: expected one of {quote(self.choices)}, got {unknown[0]!r:.80}")
        if self.is_tuple and not (value and values is value and all(type(one) is int for one in value) and _distinct(value)):
            raise SpaceError(f"{self.name}: expected distinct whole numbers, such as (4, 8, 12), got {value!r:.80}")
        if self.kind in (str, bool) and type(value) is not self.kind:
            raise SpaceError(f"{self.name}: expected {'a string' if self.kind is str else 'true or false'}, got {value!r:.80}")
        if self.number and not self._allows(value):
            noun = "a whole number" if self.number is int else "a number"
            raise SpaceError(f"{self.name}: expected {noun}{self._bounds()}, got {value!r:.80}")

    def _allows(self, value: Any) -> bool:
        return (
            isinstance(value, int if self.number is int else (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _bounds(self) -> str:
        """``" from 2 to 4096"``, ``" above 0"``, ``" of 1 or more"``; "" where every number will do."""
        upper = f" to {self.high}" if self.high is not None else f" to below {self.below}" if self.below is not None else ""
        if self.above is not None:
            return f" above {self.above}{upper}"
        return "" if self.low is None else f" from {self.low}{upper}" if upper else f" of {self.low} or more"

    def read(self, text: str) -> Any:
        """The value of what a user typed: ``"4, 8, 12"``, ``"0.1"``; a SpaceError if it has none."""
        text = str(text).strip()
        if self.kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        try:
            if self.is_tuple:
                return tuple(int(part) for part in text.replace(",", " ").split())
            return self.number(text) if self.number else text
        except ValueError as error:
            wanted = "whole numbers such as 4, 8, 12" if self.is_tuple else "a number"
            raise SpaceError(f"{self.name}: expected {wanted}, got {text!r}") from error


def setting(default: Any = UNSET, **shown: Any) -> Any:
    """A field of an encoder with attributes of a `Setting`: ``width: int = setting(64, low=2, help="Of the space.")``."""
    return field(default=MISSING if default is UNSET else default, metadata={"setting": Setting(**shown)})


@cache
def settings_of(encoder: type) -> tuple[Setting, ...]:
    """All settings of an encoder's class, in order; a field without `setting` is described by its name, type and default."""
    kinds = get_type_hints(encoder)
    return tuple(
        _described(one.metadata.get("setting", Setting()), one.name, kinds[one.name], one.default) for one in fields(encoder)
    )


def _distinct(values: tuple[int, ...]) -> bool:
    return len(set(values)) == len(values)


def _described(given: Setting, name: str, kind: Any, default: Any) -> Setting:
    choices = given.choices or (get_args(kind) if get_origin(kind) is Literal else ())
    return replace(
        given,
        name=name,
        kind=kind,
        default=UNSET if default is MISSING else default,
        label=given.label or name.replace("_", " ").capitalize(),
        choices=_labelled(choices),
        suggestions=_labelled(given.suggestions),
        option=given.option or name,
    )


def _labelled(choices: Mapping[Any, str] | Sequence[Any]) -> Mapping[Any, str]:
    return choices if isinstance(choices, Mapping) else {choice: str(choice) for choice in choices}
