"""The engine as one session sees it: a job reads only what its session may read, and a shared app keeps sessions apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

from app.sharing import Member
from relcore.access import shared
from relcore.engine import Engine, Job
from relcore.job_status import JobStatus
from relcore.plain_json import parse
from relcore.sources.catalog import SpaceSpec, need_access
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.sources.places import dataset_place
from relcore.spaces import SpaceError
from relcore.store import Store


class OwnEngine:
    """An `Engine` for one session; attributes that it lacks are the engine's.

    A worker has no session, so what it may read is asked here, before a job is submitted. In a shared app the session sees
    only the jobs that it submitted.
    """

    def __init__(self, engine: Engine, member: Member) -> None:
        self._engine, self._member = engine, member

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, key: str, function: Callable[..., None], here: bool = False, **arguments: Any) -> Job:
        """As `Engine.submit`; raises a SpaceError where a spec leads to data that this session may not read."""
        need_access_to_all(arguments, self.store)
        known = self.store.has(key, own=here)
        job = self._engine.submit(key, function, here=here, **arguments)
        (self._member.found if known else self._member.made).add(key)
        self._member.stopped.discard(key)
        return self._own(job)

    def job(self, key: str) -> Job | None:
        """As `Engine.job`. Whoever can tell the key of a result has its data, so what is done is open to all."""
        job = self._engine.job(key)
        mine = job is not None and (not shared() or key in self._member.made or job.status().state == "done")
        return self._own(job) if mine else None

    def jobs(self) -> list[Job]:
        return [self._own(job) for job in self._engine.jobs() if not shared() or job.key in self._member.made]

    def _own(self, job: Job) -> Job:
        return OwnJob(job, self._member) if shared() else job


class OwnJob:
    """A `Job` that several sessions may wait for: the last one that stops it ends it."""

    def __init__(self, job: Job, member: Member) -> None:
        self._job, self._member = job, member

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)

    def status(self) -> JobStatus:
        status = self._job.status()
        if self.key in self._member.stopped and not status.ended:
            return replace(status, state="cancelled", error="cancelled")
        return status

    def cancel(self) -> None:
        if self._member.wanted_by_others(self.key):
            self._member.stopped.add(self.key)
        else:
            self._job.cancel()


def need_access_to_all(arguments: Any, store: Store) -> None:
    """Raise a SpaceError unless this session may read every space, dataset and model that a job's arguments name."""
    if isinstance(arguments, SpaceSpec):
        need_access(arguments, store)
        if shared() and arguments.source == "encoding":  # the worker makes it again where the store has lost it
            need_access_to_all((arguments.dataset, arguments.encoder), store)
    elif isinstance(arguments, DatasetSpec):
        dataset_place(arguments)
    elif isinstance(arguments, Encoder):
        arguments.content()
    elif isinstance(arguments, Mapping):
        need_access_to_all(list(arguments.values()), store)
    elif isinstance(arguments, list | tuple):
        for one in arguments:
            need_access_to_all(one, store)
    elif is_dataclass(arguments) and not isinstance(arguments, type):
        need_access_to_all([getattr(arguments, field.name) for field in fields(arguments)], store)
    elif isinstance(arguments, str) and arguments.startswith("{"):  # a study's settings are plain JSON
        with suppress(SpaceError):
            arguments = parse(arguments, "settings")
        if isinstance(arguments, Mapping) and "source" in arguments:
            need_access(SpaceSpec.from_json({name: value for name, value in arguments.items() if name != "digest"}), store)
