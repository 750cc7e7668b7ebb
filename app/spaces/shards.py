"""Folders of shards that are too large for the panes. A job draws a sample of their rows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from app import compute, messages, sharing
from app.jobs import follow, queue, retry_requested
from app.plain_text import plain_name
from app.spaces.loading import load
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec, is_address
from relcore.files.parts import is_one_space
from relcore.runs.jobs import Job
from relcore.sharded.places import filesystem
from relcore.sharded.space import ShardedSpace
from relcore.sharded.survey import sample_job, sample_spec
from relcore.sharded.writing import SAMPLE

_ASKED = "relscope.samples-asked"  # folders to sample, and number of rows per sample
_KEEP = {"persist_state": "session"}


def draw() -> None:
    st.markdown("**Folder of shards**")
    st.caption(
        "Two or more .npy, .parquet, .arrow or .feather files of one width are one space of any size. The app"
        " opens a sample of its rows, drawn by a hash of their ids, so folders with the same ids give the"
        " same rows."
    )
    look = {"help": sharing.help_with_paths("A folder, or an fsspec address."), **_KEEP}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = st.text_input(
            "Folder or address",
            placeholder="/data/vectors-a, s3://bucket/vectors-a",
            key="shards.first",
            **look,
        )
        second = st.text_input(
            "Folder to compare with (optional)", placeholder="/data/vectors-b", key="shards.second", **look
        )
        n_rows = st.number_input(
            "Rows in the sample", 1000, 1_000_000, SAMPLE, 10_000, key="shards.rows", width=220, **_KEEP
        )
    places = [place.strip() for place in (first, second) if place.strip()]
    spaces = [space for place in places if (space := _open_space(place))]
    for space in spaces:
        size = f"{counted(space.n, 'row')} × {space.width:,} in {counted(len(space.shards), 'shard')}"
        st.caption(f"{plain_name(space.name)}: {size}")
    label = "Draw a sample and load it"
    if len(places) > 1:
        label = "Draw samples and compare"
    if st.button(
        label,
        key="shards.draw",
        icon=":material/shuffle:",
        type="primary",
        disabled=not places or len(spaces) < len(places),
        help="Reads all shards in blocks. A sample is kept until a shard changes.",
    ):
        st.session_state[_ASKED] = [space.place for space in spaces], int(n_rows)
    if _ASKED in st.session_state:
        _load_when_drawn(*st.session_state[_ASKED])


def _open_space(place: str) -> ShardedSpace | None:
    try:
        filesystem(place)  # check access here, because all sessions share the cache below
        return _headers(place)
    except SpaceError as error:
        messages.warning(error, icon=":material/folder_off:")
        return None


@st.cache_data(ttl=10, max_entries=8, show_spinner="Reading the headers of the shards …")
def _headers(place: str) -> ShardedSpace:
    return ShardedSpace.open(place)


def _load_when_drawn(places: list[str], n_rows: int) -> None:
    try:
        specs = list(dict.fromkeys(sample_spec(ShardedSpace.open(place), n_rows) for place in places))
    except SpaceError as error:
        del st.session_state[_ASKED]
        messages.warning(error)
        return
    jobs = [_job(spec, n_rows) for spec in specs]
    if all(job.status().state == "done" for job in jobs):
        del st.session_state[_ASKED]
        load(specs, compare=len(specs) > 1)
    else:
        follow(jobs, dismiss=lambda job: st.session_state.pop(_ASKED, None))


def _job(spec: SpaceSpec, n_rows: int) -> Job:
    key = spec.option("key")
    job = queue().job(key)
    if job is None or retry_requested(job):
        job = queue().submit(
            key, sample_job, title=f"Sample of {space_name(spec)}", place=spec.name, n_rows=n_rows
        )
    return job


def draw_sample_line(workspace: Workspace) -> None:
    """Show how many of the rows were sampled, and the command that scores all rows."""
    pair = workspace.source, workspace.target
    samples = [spec for spec in pair if spec.source == "sample"]
    samples = [spec for spec in samples if int(spec.option("rows")) < int(spec.option("of"))]
    if not samples:
        return
    shares = _shares_of_rows(samples, space_labels(workspace.spaces))
    with st.container(key="sample-line", horizontal=True, vertical_alignment="center"):
        if len(samples) < len(pair):
            st.caption(f"{shares}, drawn by a hash of their ids.", width="content")
        else:
            text = f"{shares}, drawn by a hash of their ids; a command scores all rows:"
            st.caption(text, width="content")
            st.code(command(*pair), language="bash", width="content")


def _shares_of_rows(samples: Sequence[SpaceSpec], labels: Mapping[SpaceSpec, str]) -> str:
    """How many of its rows each sample has. Equal shares of two samples are named once."""
    shares = [
        f"{len(compute.load_space(spec)):,} of {counted(int(spec.option('of')), 'row')}" for spec in samples
    ]
    if len(shares) == 2 and shares[0] == shares[1]:
        return shares[0]
    named = zip(shares, samples, strict=True)
    return ", ".join(f"{share} of {plain_name(labels[spec])}" for share, spec in named)


def command(source: SpaceSpec, target: SpaceSpec) -> str:
    """The command that scores every row of the folders from which two samples were drawn."""
    whole = any(not is_address(spec.name) and is_one_space(Path(spec.name)) for spec in (source, target))
    words = ["relscope", "compare", source.name, target.name]
    if whole:
        words.append("--shards")
    return shlex.join(words)
