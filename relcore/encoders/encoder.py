"""Encoder: the one protocol of everything that turns images, texts or nodes into vectors, by name and as
JSON.

Adding an encoder is a file with a frozen dataclass that inherits from `Encoder`, and a line in
`relcore.base.names.ENCODERS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS
from relcore.base.records import need_plain
from relcore.encoders.dataset import Dataset, Kind
from relcore.runs.progress import Report
from relcore.spaces.space import LatentSpace

# Settings of encoders: what forms, the command line and checks need beside the name, type and default of a
# field.

UNSET: Any = ...


class Facts(Protocol):
    """What is known of a dataset before it is encoded; `sizes` are (width, height) of pictures, () if they
    are unknown.
    """

    n: int
    classes: Sequence[str]
    sizes: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Setting:
    """One setting of an encoder. The first setting of an encoder is what names it on the command line:
    ``mlp``, ``timm:NAME``.

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
        What forms and the command line use if nothing is chosen, instead of the default; with `several`, a
        tuple for the form.
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
        if self.is_tuple and not (
            value and values is value and all(type(one) is int for one in value) and _distinct(value)
        ):
            raise SpaceError(
                f"{self.name}: expected distinct whole numbers, such as (4, 8, 12), got {value!r:.80}"
            )
        if self.kind in (str, bool) and type(value) is not self.kind:
            raise SpaceError(
                f"{self.name}: expected {'a string' if self.kind is str else 'true or false'}, got"
                f" {value!r:.80}"
            )
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
        upper = (
            f" to {self.high}"
            if self.high is not None
            else f" to below {self.below}"
            if self.below is not None
            else ""
        )
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
    """A field of an encoder with attributes of a `Setting`: ``width: int = setting(64, low=2, help="Of the
    space.")``.
    """
    return field(default=MISSING if default is UNSET else default, metadata={"setting": Setting(**shown)})


@cache
def settings_of(encoder: type) -> tuple[Setting, ...]:
    """All settings of an encoder's class, in order; a field without `setting` is described by its name,
    type and default.
    """
    kinds = get_type_hints(encoder)
    return tuple(
        _described(one.metadata.get("setting", Setting()), one.name, kinds[one.name], one.default)
        for one in fields(encoder)
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


EncodeBatch = Callable[[list[Any]], dict[str, np.ndarray]]  # m items → {output: (m, d) float32}


class Encoder(ABC):
    """What a user chooses: a frozen dataclass of plain settings, which go into keys, JSON and messages as
    they are.

    Equal settings must give equal vectors: whatever is random takes a `random_state`, and `content`
    identifies external files (a model's folder).

    The form on the Spaces page, the options of ``relscope encode`` and the check of values come from the
    fields: their names, types, defaults and what `relcore.encoders.encoder.setting` adds.
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = (
        1  # to be raised when a change of code changes the vectors: older ones are not found any more
    )
    short: ClassVar[str] = ""  # a second name on the command line

    def __post_init__(self) -> None:
        for one in settings_of(type(self)):
            one.check(getattr(self, one.name))

    @classmethod
    def offered(cls) -> bool:
        """Whether the Spaces page shows it. False for encoders of studies, and while an optional library
        is missing.
        """
        return True

    @classmethod
    def unfit(cls, data: Facts) -> str:
        """Why it cannot encode this dataset, with the remedy; "" if it can."""
        return ""

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        """Approximate processor seconds for n items, of `pixels` each if they are pictures; None if nobody
        has measured it.
        """
        return None

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        """Numbers of the rows whose labels training used, ascending, given the dataset or the space
        encoded from it.
        """
        return np.empty(0, dtype=np.int64)

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call it: ``"MiniLM"``, ``"CNN 64, state 0"``; a space's name is title, output ·
        dataset's name.
        """

    @property
    def outputs(self) -> tuple[str, ...]:
        """One name for each space that a single pass gives: ``("layer 2", "layer 4")``; ``("",)`` where
        there is one.
        """
        return ("",)

    def only(self, output: str) -> Encoder:
        """The settings that give this output alone, so that a layer found in a pass over three is found
        again by itself.
        """
        return self

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        """The settings that give this one's outputs and the other's in a single pass; None where no pass
        gives both.
        """
        return self if other == self else None

    def content(self) -> str:
        """Digest of what the settings point to outside of themselves, such as the files of a model's
        folder; "" for nothing.
        """
        return ""

    def to_record(self) -> dict[str, Any]:
        """``{"encoder": "small-vision", "architecture": "cnn", …}``: the name and every setting."""
        return encoder_to_json(self)

    @classmethod
    def from_record(cls, described: Mapping[str, Any]) -> Encoder:
        return encoder_from_json(described)

    @abstractmethod
    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        """Load or fit what it takes, and return the function that encodes a list of items.

        The function must give the same rows for the same list. The lists are blocks of consecutive items; an
        encoder of kind "graph" gets all node numbers in one.

        Raises
        ------
        SpaceError
            The data, the settings or a model's files do not fit, with the fix.
        """


@dataclass(frozen=True)
class Trained:
    """What training found: weights that the store keeps, and what JSON can say about them (loss curve,
    accuracy).
    """

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any] = field(default_factory=dict)


class TrainedEncoder(Encoder):
    """An encoder that is trained on the dataset first: `relcore.catalog.encoding` keeps the weights and never
    trains twice.

    The metadata of `Trained` goes into the encoding's metadata under "training".
    """

    @abstractmethod
    def train(self, dataset: Dataset, report: Report) -> Trained:
        """Train on the dataset; deterministic for the settings."""

    @abstractmethod
    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        """The encoding function of these weights."""

    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        return self.restore(self.train(dataset, report), dataset)


def encoder_class(name: str) -> type[Encoder]:
    """The class of this name; its module is imported now, and what the module needs only when it encodes.

    A worker process may not know what was registered at run time, and then writes the class's place instead
    of its name.
    """
    entry = ENCODERS.get(name) or next((one for one in ENCODERS.values() if one.where == name), None)
    if entry is None:
        raise SpaceError(f"encoder: expected one of {quote(ENCODERS)}, got {name!r:.80}")
    return entry.load()


def encoder_to_json(encoder: Encoder) -> dict[str, Any]:
    """``{"encoder": "small-vision", "architecture": "cnn", …}``: the name and every setting."""
    place = f"{type(encoder).__module__}:{type(encoder).__qualname__}"
    name = next((name for name, known in ENCODERS.items() if known.where == place), place)
    settings = {one.name: getattr(encoder, one.name) for one in settings_of(type(encoder))}
    return {
        "encoder": name,
        **{one: list(value) if isinstance(value, tuple) else value for one, value in settings.items()},
    }


def encoder_from_json(record: Mapping[str, Any]) -> Encoder:
    """The encoder of such a dict; settings that it does not know are an error, those that are missing take
    their default.
    """
    need_plain(record, "encoder")
    if not isinstance(record, Mapping) or not isinstance(record.get("encoder"), str):
        raise SpaceError(
            f'encoder: expected a JSON object with "encoder": one of {quote(ENCODERS)}, got {record!r:.80}'
        )
    kind = encoder_class(record["encoder"])
    settings = {
        one: tuple(value) if isinstance(value, list) else value
        for one, value in record.items()
        if one != "encoder"
    }
    known = {one.name: one for one in settings_of(kind)}
    if unknown := set(settings) - set(known):
        raise SpaceError(
            f"{record['encoder']}: expected settings among {quote(known)}, got {quote(sorted(unknown))}"
        )
    if missing := [name for name, one in known.items() if one.default is UNSET and name not in settings]:
        raise SpaceError(f"{record['encoder']}: expected the setting {missing[0]!r}, got none")
    return kind(**settings)
