"""`Task` is a computation that a page, a job and a command share. `Recipe` is a figure with all its settings,
and `ComparisonRecipe` the base of recipes of figures of two spaces."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, ForwardRef, Generic, TypeVar, get_args, get_origin

from relcore.base import earlier, records
from relcore.base.errors import SpaceError, quote
from relcore.base.kinds import need_kinds
from relcore.base.names import FIGURES
from relcore.base.settings import check
from relcore.base.version import __version__
from relcore.catalog.catalog import KEPT, UNSCORED, SpaceSpec, listed, load
from relcore.catalog.encodings import load_encoding, put_space
from relcore.runs.entries import Entry, StoreError, digest_of, plugins_in
from relcore.runs.store import Store
from relcore.runs.work import Context, Progress, silent
from relcore.spaces.space import LatentSpace

Result = TypeVar("Result")


class Task(ABC, Generic[Result]):
    """A computation that is determined by its settings and spaces: if these are equal, the results are equal.

    Subclasses are frozen dataclasses of the settings. Their class statement names the dataclass that `run`
    returns: ``class Migration(Task[MigrationResult], kind="migration", title=…)``.

    Attributes
    ----------
    kind : str
        The name of this kind of task in the store.
    version : int
        Increase this number whenever a change of the code changes results.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    title: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str = "", version: int = 0, title: str = "") -> None:
        super().__init_subclass__()
        for name, value in {"kind": kind, "version": version, "title": title}.items():
            if value:
                setattr(cls, name, value)

    __post_init__ = check

    @abstractmethod
    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Roughly how many seconds the task takes on two cores. The factors in a formula are rounded
        measurements: seconds for each row, number or pair."""

    @abstractmethod
    def run(self, spaces: Sequence[LatentSpace], store: Store, report: Progress = silent) -> Result:
        """Compute the result. `report` is called as ``report(done, total, message)``. Raises a SpaceError if
        the task cannot be computed for these spaces and settings.
        """

    def content(self, spaces: Sequence[LatentSpace]) -> Any:
        """What determines the result besides the settings: the rows and the names of the spaces."""
        return [(space.digest, space.name) for space in spaces]

    def key(self, spaces: Sequence[LatentSpace] = ()) -> str:
        return digest_of("task", self.kind, self.version, self.content(spaces), self, *plugins_in(self))

    def finish(self, context: Context, spaces: Sequence[LatentSpace] = ()) -> None:
        """Compute the result and store it under the context's key. Raises a SpaceError if the worker and the
        caller have different versions of a plugin.
        """
        if (used := plugins_in(self)) and context.key != self.key(spaces):
            raise SpaceError(
                f"{self.title}: expected the plugins of the computer that started it, got {', '.join(used)};"
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
        """Compute the result in this process and store it. If it cannot be stored, `unsaved` is called with
        the reason."""
        arrays, facts = records.pack(self.run(spaces, store, report))
        entry = Entry(arrays, {self.kind: facts})
        try:
            store.put(self.key(spaces), arrays, entry.metadata)
        except StoreError as error:
            unsaved(f"{self.title}: the result is shown but not saved. {error}")
        return self.read(entry)

    def read(self, entry: Entry) -> Result:
        # The class of the result is the argument of `Task[…]` in the bases of the subclass.
        bases = [base for one in type(self).__mro__ for base in vars(one).get("__orig_bases__", ())]
        (kept,) = next(get_args(base) for base in bases if get_origin(base) is Task)
        if isinstance(kept, ForwardRef):
            kept = vars(sys.modules[type(self).__module__])[kept.__forward_arg__]
        return records.unpack(kept, entry.arrays, entry.metadata[self.kind])


def task_job(context: Context, *, task: Task[Any], inputs: Sequence[str] = ()) -> None:
    """Run a task as a job of the queue. `inputs` are the store's keys of its spaces (see `put_space`)."""
    task.finish(context, [load_encoding(context.store, key) for key in inputs])


def inputs_of(store: Store, specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace]) -> list[str]:
    """The keys under which workers find these spaces in the store. Spaces that are no stored encodings are
    copied into the store now."""
    keys = []
    for spec, space in zip(specs, spaces, strict=True):
        # The option "key" of a renamed space is the key of its pairing, not of its rows.
        changed = listed(spec, UNSCORED) or listed(spec, KEPT)
        key = ""
        if spec.source in ("encoding", "sample") and not changed:
            key = spec.option("key")
        if not key or not store.has(key, own=True):
            key = put_space(store, space)
        keys.append(key)
    return keys


# A recipe is a figure with all its settings, as JSON that people can read and edit.

_NAMED = 5  # maximum number of figures that an error lists


class Recipe(ABC):
    """All settings of a figure, from which it can be drawn again. Subclasses are frozen dataclasses."""

    figure: ClassVar[str]
    # Settings that version 0.1.0 lacked; a recipe leaves them out while they are empty.
    newer: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, figure: str = "") -> None:
        super().__init_subclass__()
        cls.figure = figure or getattr(cls, "figure", "")

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON, ``{"relscope": version, "figure": name, …}``, with the settings in the order of
        the fields."""
        settings = records.to_json(self).items()
        newer = {name for kind in type(self).__mro__ for name in vars(kind).get("newer", ())}
        kept = {name: value for name, value in settings if value or name not in newer}
        return {"relscope": __version__, "figure": self.figure, **kept}

    def loaded(self) -> list[LatentSpace]:
        """The recipe's spaces, in the order of the fields. A space that the store lacks is encoded again.
        Each is checked against the recipe's `digests`.
        """
        values = [value if type(value) is tuple else (value,) for value in self._values()]
        specs = [one for several in values for one in several if isinstance(one, SpaceSpec)]
        digests = self.digests or [""] * len(specs)
        if len(digests) != len(specs):
            raise SpaceError(
                f"recipe of {self.figure}: expected {len(specs)} digests, one per space, got {len(digests)}"
            )
        spaces = [load(spec, again=True) for spec in specs]
        for space, digest in zip(spaces, digests, strict=True):
            need_same_content(space, digest)
        return spaces

    def computed(self, result: Any = None) -> Any:
        """The given result or, if it is None, the result of running the recipe's task on its spaces."""
        task = next(one for one in self._values() if isinstance(one, Task))
        if result is None:
            return task.run(self.loaded())
        return result

    def _values(self) -> list[Any]:
        return [getattr(self, one.name) for one in fields(self)]

    @abstractmethod
    def draw(self, result: Any = None) -> Any:
        """The figure, an `Exportable`. Anything that `result` lacks is loaded or computed."""


@dataclass(frozen=True)
class SpacesRecipe(Recipe):
    """The recipe of a figure of several spaces. `digests` is empty, or has the digest of each space's
    content."""

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_kinds(self)


def recipe_of(described: Any) -> Recipe:
    """The recipe that a JSON object describes. Raises a SpaceError for an unknown figure or invalid
    settings."""
    records.need_plain(described, "recipe")
    kind = None
    if isinstance(described, Mapping):
        kind = described.get("figure")
    earlier.refuse_figure(kind)
    if not isinstance(kind, str) or kind not in FIGURES:
        near = get_close_matches(str(kind), FIGURES, n=_NAMED, cutoff=0)
        raise SpaceError(
            f'recipe: expected a JSON object whose "figure" is one of {len(FIGURES)} names, such as'
            f" {quote(near)}, got {kind!r:.80}"
        )
    settings = earlier.known_settings(kind, described)
    return records.from_json(FIGURES[kind].load(), settings, f"recipe of {kind}")


def need_same_content(space: LatentSpace, digest: str) -> None:
    """Raise a SpaceError unless the space has this digest. "" matches every space."""
    if digest and space.digest != digest:
        raise SpaceError(
            f"{space.name!r} has changed: expected content {digest[:8]}…, got {space.digest[:8]}…; load the"
            " original, or delete the digests from the recipe to draw it with what is here"
        )
