"""Task: a computation that a page, a job, a recipe and a command share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.names import Named
from relcore.base.settings import check
from relcore.catalog.catalog import SpaceSpec, load_encoding, put_space, unscored_ids
from relcore.runs.digest import StoreError, digest_of, plugins_in
from relcore.runs.entries import Entry
from relcore.runs.progress import Context, Progress, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace

Result = TypeVar("Result")


class Task(ABC, Generic[Result]):
    """Settings in, a result out; equal settings on equal spaces give an equal result.

    Subclasses are frozen dataclasses of the settings.

    Attributes
    ----------
    kind : str
        Names it in the store, and its pace.
    version : int
        Raise it when a result would come out differently.
    result : str
        ``"module:Class"`` of the dataclass that `run` returns, stored by `relcore.base.records`.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    result: ClassVar[str]

    __post_init__ = check

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the job for people."""

    @abstractmethod
    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Roughly how long it takes on two cores."""

    @abstractmethod
    def run(self, spaces: Sequence[LatentSpace], store: Store, report: Progress = silent) -> Result:
        """Compute it; `report` is called as ``report(done, total, message)``. Raises SpaceError for unfit
        spaces or settings.
        """

    def content(self, spaces: Sequence[LatentSpace]) -> Any:
        """What decides the result beside the settings: the rows and the names of the spaces."""
        return [(space.digest, space.name) for space in spaces]

    def key(self, spaces: Sequence[LatentSpace] = ()) -> str:
        return digest_of("task", self.kind, self.version, self.content(spaces), self, *plugins_in(self))

    def finish(self, context: Context, spaces: Sequence[LatentSpace] = ()) -> None:
        """Run, and put the result under the context's key. Raises a SpaceError where a worker has another
        version of a plugin than who asks.
        """
        if (used := plugins_in(self)) and context.key != self.key(spaces):
            raise SpaceError(
                f"{self.title}: expected the plugins of the computer that asks, got {', '.join(used)};"
                " install the same versions on all workers"
            )
        arrays, facts = records.pack(self.run(spaces, context.store, context.report))
        context.put(arrays, {self.kind: facts})

    def compute(
        self,
        store: Store,
        spaces: Sequence[LatentSpace],
        unsaved: Callable[[str], None],
        report: Progress = silent,
    ) -> Result:
        """Run in place, and save the result, or call `unsaved` with the reason why it cannot be."""
        arrays, facts = records.pack(self.run(spaces, store, report))
        entry = Entry(arrays, {self.kind: facts})
        try:
            store.put(self.key(spaces), arrays, entry.metadata)
        except StoreError as error:
            unsaved(f"{self.title}: the result is shown but not saved. {error}")
        return self.read(entry)

    def read(self, entry: Entry) -> Result:
        return records.unpack(Named("", self.result).load(), entry.arrays, entry.metadata[self.kind])


def task_job(context: Context, *, task: Task[Any], inputs: Sequence[str] = ()) -> None:
    """A task as a job of the queue; `inputs` are store keys of its spaces (`put_space`)."""
    task.finish(context, [load_encoding(context.store, key) for key in inputs])


def inputs_of(store: Store, specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace]) -> list[str]:
    """Keys under which workers find these spaces: of their encodings, or of copies that are put there."""
    keys = []
    for spec, space in zip(specs, spaces, strict=True):
        # a pairing has a key, too, but of its own
        as_stored = spec.source in ("encoding", "sample") and not unscored_ids(spec)
        stored = spec.option("key") if as_stored else ""
        keys.append(stored if stored and store.has(stored, own=True) else put_space(store, space))
    return keys
