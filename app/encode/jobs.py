"""Encoding jobs. This module submits them, finds them again after a reload, and adds their spaces to the
session."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from app import jobs, session
from app.widgets import space_name
from relcore.catalog.catalog import SpaceSpec, encoding_specs
from relcore.catalog.encodings import encode_job, encoding_job_key, stored_encodings
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder
from relcore.runs.jobs import Job

_JOINED = "relscope.encodings-joined"


def submit(
    dataset: DatasetSpec,
    digest: str,
    name: str,
    encoders: Iterable[Encoder],
    expected: Mapping[Encoder, float] | None = None,
    send_to: Sequence[str] = (),
    here: bool = False,
) -> None:
    """Submit one job for each encoder. If the store has an encoding, its space is added at once. With `here`,
    bundled encodings are computed again on this machine. `send_to` are the hosts to which the user allowed to
    send texts by this click."""
    there: list[SpaceSpec] = []
    waiting = list(session.awaited_jobs())
    for encoder in encoders:
        keys = stored_encodings(jobs.queue().store, digest, encoder, own=here)
        if keys is not None:
            there += own_specs(dataset, encoder, keys)
            continue
        key = encoding_job_key(digest, encoder)
        title = f"{encoder.title} · {name}"
        cost = (expected or {}).get(encoder)
        arguments = {"dataset": dataset, "encoder": encoder, "send_to": tuple(send_to)}
        job = jobs.queue().submit(key, encode_job, title=title, expected=cost, here=here, **arguments)
        waiting.append(job.key)
    session.await_jobs(tuple(dict.fromkeys(waiting)))
    join(there)


def forget(job: Job) -> None:
    session.await_jobs(tuple(key for key in session.awaited_jobs() if key != job.key))


def pending_jobs() -> list[Job]:
    """The encoding jobs of this session whose spaces have not been added yet."""
    known = {job.key: job for job in jobs.queue().jobs()}
    return [known[key] for key in session.awaited_jobs() if key in known]


def collect() -> bool:
    """Submit the encodings that the user has requested, and add the spaces of all finished jobs to the
    session in one step. Returns True if there were such spaces."""
    specs: list[SpaceSpec] = []
    if asked := st.session_state.get(session.ENCODE):
        session.guarded(submit, *asked)
        del st.session_state[session.ENCODE]
    pending = pending_jobs()
    if st.session_state.get(session.COMPARE_ENCODED) and not all(job.status().ended for job in pending):
        return False  # wait for all jobs of a click, so that one undo takes back the whole click
    for job in pending:
        if jobs.retry_requested(job):
            jobs.queue().submit(job.key, encode_job, title=job.title, here=job.here, **job.arguments)
        elif job.status().state == "done":
            specs += _specs_of(job)
            forget(job)
    return join(specs)


def join(specs: Sequence[SpaceSpec]) -> bool:
    """Add spaces to the session in one step. Returns True if there were any."""
    if not specs:
        return False
    spaces = session.workspace().spaces
    new = [spec for spec in dict.fromkeys(specs) if spec not in spaces]
    st.session_state[_JOINED] = tuple(dict.fromkeys(specs))
    if len(new) == 1:
        what = space_name(new[0])
    else:
        what = f"{len(new)} spaces"
    session.edit(f"encode {what}", spaces=(*spaces, *new))
    # Explore opens if the encoded spaces are to be compared.
    if not st.session_state.get(session.COMPARE_ENCODED):
        text = "These spaces were in the session already."
        if new:
            text = f"{what} joined the session."
        session.announce(text)
    return True


def new_spaces() -> list[SpaceSpec]:
    spaces = session.workspace().spaces
    return [spec for spec in st.session_state.get(_JOINED, ()) if spec in spaces]


def pair_to_compare() -> tuple[SpaceSpec, SpaceSpec] | None:
    """The two spaces to compare: the last layers of the two newest encoders of the same items. If there is
    only one encoder, these are its last two layers. Returns None if the two are compared already."""
    new = new_spaces()
    workspace = session.workspace()
    alike = [spec for spec in workspace.spaces if new and _items(spec) == _items(new[-1])]
    last: dict[tuple, SpaceSpec] = {}
    for spec in sorted(alike, key=_layer):  # a stable sort: equal layers keep their order
        last[_encoder(spec)] = spec
    pair = sorted(last.values(), key=alike.index)[-2:]
    if len(pair) != 2:
        pair = sorted(alike, key=_layer)[-2:]
    if len(pair) == 2 and {workspace.source, workspace.target} != set(pair):
        return tuple(pair)
    return None


def _layer(spec: SpaceSpec) -> float:
    layer = max(getattr(spec.encoder, "layers", (0,)))
    return layer if layer >= 0 else math.inf


def _encoder(spec: SpaceSpec) -> tuple:
    """The settings that identify an encoder, without the layers that it returns."""
    settings = {**vars(spec.encoder), "layers": ()}
    return type(spec.encoder), *settings.items()


def _items(spec: SpaceSpec) -> DatasetSpec | None:
    if spec.dataset is None:
        return None
    return replace(spec.dataset, column="", label_column="")


def _specs_of(job: Job) -> list[SpaceSpec]:
    dataset = job.arguments["dataset"]
    encoder = job.arguments["encoder"]
    if len(encoder.outputs) == 1:
        keys = {encoder.outputs[0]: job.key}
    else:
        keys = job.result().metadata["encodings"]
    # One job can make several spaces; if its key is in `made`, this session made all of them.
    if job.key in session.member().made:
        session.member().made.update(keys.values())
    return own_specs(dataset, encoder, keys)


def own_specs(dataset: DatasetSpec, encoder: Encoder, keys: Mapping[str, str]) -> list[SpaceSpec]:
    """The specs of encodings of the session's own data, which have these `keys` in the store. From now on,
    the session may open them."""
    session.member().found.update(keys.values())
    return encoding_specs(jobs.queue().store, dataset, encoder, keys)
