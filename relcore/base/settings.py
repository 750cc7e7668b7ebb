"""Settings: which values a dataclass field may have, and how the field is shown. Forms, command options,
recipes and checks derive from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from relcore.base.errors import SpaceError, brief, did_you_mean, is_among

UNSET: Any = ...
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")  # 18 digits fit into 64 bits
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TRUTHS = {"true": True, "false": False}


class Facts(Protocol):
    """Properties of a dataset that are known before encoding. `sizes` are the (width, height) of its
    pictures."""

    n: int
    classes: Sequence[str]
    sizes: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Setting:
    """One setting of a task or an encoder. On the command line, the value of an encoder's first setting
    follows its name: ``small-vision:cnn``.

    Attributes
    ----------
    name, kind, default
        The name, type and default of the dataclass's field. The default is UNSET if the field has none.
    label, help, placeholder : str
        Texts of a form and of ``--help``. The default label is the name.
    choices : value → label, or a sequence of values
        The allowed values; for a tuple, the allowed items. The default is the values of a `Literal`. A label
        may be a `names.Named`. Values that are added to the mapping later are allowed, too.
    suggestions : value → label, or a sequence of values
        Values that a form offers. Other values are allowed, too.
    several : bool
        Whether a form lets people choose more than one value. Each value becomes a separate encoder.
    distinct : bool
        Whether a tuple must have at least one item, and no item twice.
    low, high, above, below : number
        Bounds of the number; for a tuple, of each item. `low` and `high` are allowed values, `above` and
        `below` are not.
    step : number
        The step of the widget.
    usual : value, or function of `Facts`
        The value with which forms and commands start instead of the default. With `several`, it is a tuple.
    option, metavar : str
        The name on the command line, by default the field's name, and the placeholder of its value in
        ``--help``.
    nargs : str
        How many values a command takes, as in argparse: "?", "*" or "+" for an argument, "append" for an
        option that may be repeated.
    note : function of the value → str
        Returns the caption beneath the widget.
    more : bool
        Whether a form shows the setting under "More settings".
    written : bool
        Whether the setting is a path to which a command writes.
    searched : bool
        Whether the setting is a folder in which a command looks for files, of which it reads only some.
    is_tuple, number : bool, type or None
        Properties of `kind`. `is_tuple` says whether it is a tuple. `number` is int for ``int`` and ``int |
        None``, float for ``float``, and None for other kinds.
    """

    name: str = ""
    kind: Any = str
    default: Any = UNSET
    label: str = ""
    help: str = ""
    placeholder: str = ""
    choices: Mapping[Any, Any] | Sequence[Any] = ()
    suggestions: Mapping[Any, str] | Sequence[Any] = ()
    several: bool = False
    distinct: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    step: float | None = None
    usual: Any = UNSET
    option: str = ""
    metavar: str = ""
    nargs: str = ""
    verbatim: bool = False  # whether spaces at both ends of a text are kept
    note: Callable[[Any], str] | None = None
    more: bool = False
    written: bool = False
    searched: bool = False
    is_tuple: bool = False
    number: type | None = None

    def shown(self, choice: Any) -> str:
        """The label of a choice."""
        label = (self.choices or self.suggestions).get(choice, choice)
        if not isinstance(label, str):
            return getattr(label, "title", label)
        return label

    def start(self, data: Facts | None = None) -> Any:
        """The initial value in a form for this dataset; UNSET if there is none."""
        if callable(self.usual):
            return self.usual(data)
        if self.usual is UNSET:
            return self.default
        return self.usual

    def check(self, value: Any) -> None:
        """Raise a SpaceError with the setting's name and the allowed values, unless the value is allowed."""
        if value is None and type(None) in get_args(self.kind):
            return
        if self.is_tuple and isinstance(value, tuple):
            inner = get_args(self.kind)[0]
            number = None
            if inner is int:
                number = int
            item = replace(self, kind=inner, is_tuple=False, number=number)
            for part in value:
                item.check(part)
        if self._allows(value):
            return
        near = ""
        if self.choices and not self.is_tuple:
            near = did_you_mean(str(value), map(str, self.choices))
        raise SpaceError(f"{self.name}: expected {self._expected}, got {brief(value, 80)}{near}")

    def _allows(self, value: Any) -> bool:
        """Whether a value is allowed. The items of a list are checked one by one, and not here."""
        if self.is_tuple:
            if not isinstance(value, tuple):
                return False
            return not self.distinct or 0 < len(value) == len(set(value))
        if self.choices:
            choices = tuple(self.choices)
            return is_among(value, choices) and isinstance(value, bool) == isinstance(choices[0], bool)
        if self.number:
            return self._allows_number(value)
        if self.kind in (str, bool):
            return type(value) is self.kind
        if isinstance(self.kind, type) and is_dataclass(self.kind):
            return isinstance(value, self.kind)
        return True

    def _allows_number(self, value: Any) -> bool:
        return (
            isinstance(value, (int, self.number))
            and not isinstance(value, bool)
            and _is_finite(value)
            and (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    @property
    def _expected(self) -> str:
        """What `_allows` allows, in words."""
        if self.is_tuple:
            items = "names"
            if get_args(self.kind)[0] is int:
                items = "whole numbers, such as (4, 8, 12)"
            if self.distinct:
                return f"distinct {items}"
            return f"a list of {items}"
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        if self.number:
            return self.wanted
        if self.kind is str:
            return "a string"
        if self.kind is bool:
            return "true or false"
        return f"a {self.kind.__name__}"

    @property
    def wanted(self) -> str:
        """The allowed values in words: ``"a whole number from 2 to 4096"``, ``"a number above 0, below
        1"``."""
        noun = "a number"
        if self.number is int:
            noun = "a whole number"
        if self.above is not None:
            upper = ""
            if self.high is not None:
                upper = f", at most {self.high}"
            if self.below:
                upper = f"{upper}, below {self.below}"
            return f"{noun} above {self.above}{upper}"
        upper = ""
        if self.below is not None:
            upper = f" to below {self.below}"
        if self.high is not None:
            upper = f" to {self.high}"
        if self.low is None:
            return noun
        return f"{noun} from {self.low}{upper}"

    def read(self, text: str) -> Any:
        """The value of a typed text such as ``"4, 8, 12"`` or ``"0.1"``. Raises a SpaceError for an invalid
        text. Only ASCII digits are accepted, although Python would also read "１２" and "1_000"."""
        typed = text
        text = str(text).strip()
        if self.is_tuple and (inner := get_args(self.kind)[0]) in (str, Path):
            return tuple(inner(part.strip()) for part in text.split(",") if part.strip())
        if self.is_tuple:
            parts = text.replace(",", " ").split()
            if all(map(_WHOLE.fullmatch, parts)):
                return tuple(map(int, parts))
        elif self.kind is bool:
            return _TRUTHS.get(text.lower(), text)
        elif not self.number:
            return typed if self.verbatim else text
        elif _is_number(text, self.number):
            return self.number(text)
        if self.is_tuple:
            wanted = "whole numbers such as 4, 8, 12"
        else:
            wanted = self.wanted
        raise SpaceError(f"{self.name}: expected {wanted}, got {text!r:.60}")


def _is_number(text: str, kind: type) -> bool:
    """Whether a text is a finite number of the type int or float."""
    if kind is int:
        return bool(_WHOLE.fullmatch(text)) and math.isfinite(float(text))
    return bool(_FLOAT.fullmatch(text)) and math.isfinite(float(text))


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def setting(default: Any = UNSET, **attributes: Any) -> Any:
    """A dataclass field with the attributes of a `Setting`: ``width: int = setting(64, low=2)``."""
    metadata = {"setting": Setting(**attributes)}
    return field(default=MISSING if default is UNSET else default, metadata=metadata)


@cache
def settings_of(kind: type) -> dict[str, Setting]:
    """The settings of a dataclass by name, in order. A field without `setting` is described by its name, type
    and default.
    """
    kinds = get_type_hints(kind)
    settings = {}
    for one in fields(kind):
        declared = one.metadata.get("setting", Setting())
        settings[one.name] = complete(declared, one.name, kinds[one.name], one.default)
    return settings


def check(settings: Any) -> None:
    """Raise a SpaceError for the first of the settings whose value is not allowed."""
    for name, one in settings_of(type(settings)).items():
        one.check(getattr(settings, name))


def complete(declared: Setting, name: str, kind: Any, default: Any) -> Setting:
    """The setting `declared`, with the name, type and default of its dataclass field filled in."""
    choices = declared.choices
    if not choices and get_origin(kind) is Literal:
        choices = get_args(kind)
    return replace(
        declared,
        name=name,
        kind=kind,
        default=UNSET if default is MISSING else default,
        label=declared.label or name.replace("_", " ").capitalize(),
        choices=_labelled(choices),
        suggestions=_labelled(declared.suggestions),
        option=declared.option or name,
        is_tuple=get_origin(kind) is tuple,
        number=_number_type(kind),
    )


def _labelled(values: Any) -> Mapping[Any, Any]:
    """Values with their labels. Values without labels are their own."""
    if isinstance(values, Mapping):
        return values
    return {value: str(value) for value in values}


def _number_type(kind: Any) -> type | None:
    """The type int or float of a setting that is one number, or one number or None."""
    if get_origin(kind) is tuple:
        return None
    for number in (int, float):
        if kind is number or number in get_args(kind):
            return number
    return None
