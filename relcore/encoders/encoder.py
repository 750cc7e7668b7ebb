"""Encoder: the interface of everything that turns images, texts or nodes into vectors.

To add one, write a frozen dataclass that inherits from `Encoder`, and name it in
`relcore.base.names.ENCODERS` or in a package of your own, see docs/plugin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS
from relcore.base.records import need_plain
from relcore.base.settings import UNSET, Facts, check, settings_of
from relcore.encoders.dataset import Dataset, Kind
from relcore.runs.progress import Progress
from relcore.spaces.space import LatentSpace

EncodeBatch = Callable[[list[Any]], dict[str, np.ndarray]]  # m items → {output: (m, d) float32}


class Encoder(ABC):
    """An encoder: a frozen dataclass of plain settings, which become keys, JSON and messages.

    Equal settings must give equal vectors: random steps use a `random_state`, and `content` identifies
    external files. The fields define forms, options of ``relscope encode`` and checks (see
    `relcore.base.settings.setting`).
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = 1  # increase it when a change of code changes the vectors
    short: ClassVar[str] = ""  # a second name on the command line
    by_length: ClassVar[bool] = False  # sort texts by length, because a batch is padded

    __post_init__ = check

    @classmethod
    def offered(cls) -> bool:
        """Whether Data offers the encoder: not if it is for studies or an optional library is missing."""
        return True

    @classmethod
    def unfit(cls, data: Facts) -> str:
        """The reason why the encoder cannot encode this dataset, with a remedy; "" if it can."""
        return ""

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        """Approximate processor seconds for n items (of `pixels` each if pictures); None if unknown."""
        return None

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        """The rows, ascending, whose labels were used for training."""
        return np.empty(0, dtype=np.int64)

    @property
    @abstractmethod
    def title(self) -> str:
        """A short name, ``"MiniLM"``, ``"CNN 64, state 0"``; its spaces are called "title, output ·
        dataset"."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the spaces of one pass, ``("layer 2", "layer 4")``; ``("",)`` if there is only one."""
        return ("",)

    def only(self, output: str) -> Encoder:
        """The encoder with this output only; its encoding has a separate key in the store."""
        return self

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        """The encoder with the outputs of both in one pass; None if that is impossible."""
        return self if other == self else None

    def content(self) -> str:
        """Digest of external files, such as a model's folder; "" for none."""
        return ""

    def to_record(self) -> dict[str, Any]:
        """``{"encoder": "small-vision", "architecture": "cnn", …}``: the name and every setting."""
        name = ENCODERS.name_of(type(self)) or f"{type(self).__module__}:{type(self).__qualname__}"
        values = {key: getattr(self, key) for key in settings_of(type(self))}
        lists = {key: list(value) for key, value in values.items() if isinstance(value, tuple)}
        return {"encoder": name, **values, **lists}

    @staticmethod
    def from_record(described: Mapping[str, Any]) -> Encoder:
        return encoder_from_json(described)

    @abstractmethod
    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        """Load or fit, and return a deterministic function that encodes a list of items.

        The lists are blocks of items; for the kind "graph" one list of all nodes. If the function has an
        attribute `ahead`, a thread applies it to the next list, and the function gets the result.

        Raises
        ------
        SpaceError
            The data, the settings or a model's files do not fit, with the fix.
        """


@dataclass(frozen=True)
class Trained:
    """The stored result of a training: weights, and JSON metadata (loss curve, accuracy)."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any] = field(default_factory=dict)


class TrainedEncoder(Encoder):
    """An encoder that is trained on the dataset; its weights are stored.

    The metadata of `Trained` goes into the encoding's metadata under "training".
    """

    @abstractmethod
    def train(self, dataset: Dataset, report: Progress) -> Trained:
        """Train on the dataset; deterministic for the settings."""

    @abstractmethod
    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        """The encoding function of these weights."""

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        return self.restore(self.train(dataset, report), dataset)


def encoder_class(name: str) -> type[Encoder]:
    """The class of this name, or of the import path that `Encoder.to_record` writes for a class without a
    name. Worker processes need the path, because they lack names registered at run time.
    """
    entry = ENCODERS.get(name) or next(
        (known for known in ENCODERS.values() if known.where in (name, name.removeprefix("relcore"))), None
    )
    if entry is None:
        raise SpaceError(f"encoder: expected one of {quote(ENCODERS)}, got {name!r:.80}")
    return entry.load()


def encoder_from_json(record: Mapping[str, Any]) -> Encoder:
    """The encoder from the dict of `to_record`; missing settings get defaults, unknown ones are an error."""
    need_plain(record, "encoder")
    name = record.get("encoder") if isinstance(record, Mapping) else None
    if not isinstance(name, str):
        raise SpaceError(
            f'encoder: expected a JSON object with "encoder": one of {quote(ENCODERS)}, got {record!r:.80}'
        )
    kind, values = encoder_class(name), {**record}
    del values["encoder"]
    known = settings_of(kind)
    if unknown := set(values) - set(known):
        raise SpaceError(f"{name}: expected settings among {quote(known)}, got {quote(sorted(unknown))}")
    if missing := [key for key in known if known[key].default is UNSET and key not in values]:
        raise SpaceError(f"{name}: expected the setting {missing[0]!r}, got none")
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    )
