"""`Encoder`, the interface of everything that turns images or texts into vectors.

To add an encoder, write a class, and add a line to `ENCODERS` in `relcore.base.names`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from relcore.base import records
from relcore.base.earlier import refuse_encoder
from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS
from relcore.base.records import need_plain
from relcore.base.settings import Facts, check, settings_of
from relcore.encoders.dataset import Dataset, Kind
from relcore.runs.work import Progress
from relcore.spaces.space import LatentSpace

EncodeBatch = Callable[[list[Any]], dict[str, np.ndarray]]  # m items → {output: (m, d) float32}


class Encoder(ABC):
    """An encoder: a frozen dataclass of plain settings. Its fields determine its keys in the store, its JSON,
    its form, its options in ``relscope encode`` and their checks (see `relcore.base.settings.setting`).

    Equal settings must give equal vectors. Therefore random steps use a `random_state`, and `content`
    identifies external files.
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = 1  # increased whenever a change of the code changes vectors
    short: ClassVar[str] = ""  # a second name on the command line
    by_length: ClassVar[bool] = False  # whether texts are sorted by length, because batches are padded
    by_item: ClassVar[bool] = False  # whether an item has the same vectors among any other items
    is_offered: ClassVar[bool] = True  # whether the page Data offers the encoder

    __post_init__ = check

    @classmethod
    def unfit(cls, data: Facts) -> str:
        """Why the encoder cannot encode this dataset, with a remedy; "" if it can."""
        return ""

    @property
    def block_rows(self) -> int | None:
        """The number of items of a block in the store; None for the usual number. After a killed run, at
        most one block is computed again."""
        return None

    @property
    def sends_to(self) -> str:
        """The host to which items are sent, as a user writes it after --send-to; "" if they stay on this
        machine."""
        return ""

    def need_consent(self, n_items: int, n_bytes: int) -> str:
        """A sentence on what is sent where, and its cost; "" if nothing is sent. `n_bytes` is the size of all
        texts in UTF-8.

        Raises
        ------
        SpaceError
            The items may not be sent now (see `sending.sending_to`), or the key is missing.
        """
        return ""

    def dollars(self, n_items: int, n_bytes: int) -> float | None:
        """About what a provider charges for these items; None if that is unknown, or if nothing is sent."""
        return None

    def for_key(self) -> Encoder:
        """The encoder from which keys in the store are made: settings that do not change vectors have their
        defaults."""
        return self

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        """The approximate processor seconds for n items; None if unknown. `pixels` is the number of pixels of
        each picture."""
        return None

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        """The numbers of the rows whose labels were used for training, in ascending order."""
        return np.empty(0, dtype=np.int64)

    @property
    @abstractmethod
    def title(self) -> str:
        """A short name such as ``"MiniLM"`` or ``"CNN 64, state 0"``. The encoder's spaces are named "title,
        output · dataset"."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the spaces that one pass gives, such as ``("layer 2", "layer 4")``; ``("",)`` if there
        is only one."""
        return ("",)

    def only(self, output: str) -> Encoder:
        """The encoder with only this output. The store key of an encoding is made from it, so that the key
        does not depend on which other outputs were computed in the same pass."""
        return self

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        """An encoder that gives the outputs of both encoders in one pass; None if there is none."""
        return self if other == self else None

    def content(self) -> str:
        """The digest of external files, such as the files of a model; "" if there are none."""
        return ""

    def to_record(self) -> dict[str, Any]:
        """The encoder as JSON: its name and all settings, ``{"encoder": "small-vision", "architecture":
        "cnn", …}``."""
        name = ENCODERS.name_of(type(self)) or f"{type(self).__module__}:{type(self).__qualname__}"
        values = {key: getattr(self, key) for key in settings_of(type(self))}
        lists = {key: list(value) for key, value in values.items() if isinstance(value, tuple)}
        return {"encoder": name, **values, **lists}

    @staticmethod
    def from_record(described: Mapping[str, Any]) -> Encoder:
        return encoder_from_json(described)

    @abstractmethod
    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        """Load or fit the encoder, and return a deterministic function that encodes a list of items.

        The lists are blocks of items. A list from a dataset has an attribute `first`, the number of its first
        row, unless texts are sorted by length. If the function has a method `ahead`, a second thread calls
        `ahead` with the next list while the function encodes the present one. The function then gets the
        result in place of that list.

        Raises
        ------
        SpaceError
            The encoder cannot encode the data with these settings, or the files of its model are unsuitable.
            The message tells the remedy.
        """


@dataclass(frozen=True)
class Trained:
    """The stored result of training: the weights, and metadata as JSON (loss curve, accuracy)."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any] = field(default_factory=dict)


class TrainedEncoder(Encoder):
    """An encoder that is trained on the dataset that it encodes. Its weights are stored.

    The encoding's metadata hold those of `Trained` under "training".
    """

    @abstractmethod
    def train(self, dataset: Dataset, report: Progress) -> Trained:
        """Train on the dataset. Equal settings give equal weights."""

    @abstractmethod
    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        """The encoding function that uses these weights."""

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        return self.restore(self.train(dataset, report), dataset)


def encoder_class(name: str) -> type[Encoder]:
    """The encoder class with this registered name, or with this import path. `Encoder.to_record` writes
    import paths for classes without a registered name; worker processes lack names that were registered at
    run time."""
    entry = ENCODERS.get(name) or next(
        (known for known in ENCODERS.values() if known.where in (name, name.removeprefix("relcore"))), None
    )
    refuse_encoder(name)
    if entry is None:
        raise SpaceError(f"encoder: expected one of {quote(ENCODERS)}, got {name!r:.80}")
    return entry.load()


def encoder_from_json(record: Mapping[str, Any]) -> Encoder:
    """The encoder from the dict that `to_record` returns. Missing settings get their defaults. Unknown
    settings are an error."""
    need_plain(record, "encoder")
    name = None
    if isinstance(record, Mapping):
        name = record.get("encoder")
    if not isinstance(name, str):
        raise SpaceError(
            f'encoder: expected a JSON object with "encoder": one of {quote(ENCODERS)}, got {record!r:.80}'
        )
    return records.from_json(encoder_class(name), record, name)
