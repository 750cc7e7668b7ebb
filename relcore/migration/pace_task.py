"""EncoderPace: seconds in which an encoder takes a thousand items here, measured, as a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relcore.migration.costs import MEASURED_ROWS, seconds_per_thousand
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.sources.encoder import Encoder
from relcore.spaces import LatentSpace
from relcore.store import Store
from relcore.task import Report, Task, silent


@dataclass(frozen=True)
class Pace:
    """Seconds per thousand items."""

    seconds: float


@dataclass(frozen=True)
class EncoderPace(Task[Pace]):
    """On at most 64 items of a dataset, after one batch to warm up."""

    kind: ClassVar[str] = "encoder-pace"
    result: ClassVar[str] = "relcore.migration.pace_task:Pace"

    dataset: DatasetSpec
    encoder: Encoder

    @property
    def title(self) -> str:
        return f"Pace of {self.encoder.title}"

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        return 5.0 + (self.encoder.seconds(MEASURED_ROWS) or 0.0)

    def run(self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent) -> Pace:
        """
        Raises
        ------
        SpaceError
            Items or a model that are not here.
        """
        report(0, 2, "loading the encoder")
        dataset = load_dataset(self.dataset, store)
        encode = self.encoder.prepare(dataset, lambda done, total, text: report(0, 2, text))
        report(1, 2, f"encoding {MEASURED_ROWS} items")
        return Pace(seconds_per_thousand(encode, dataset.items(0, min(MEASURED_ROWS, len(dataset)))))
