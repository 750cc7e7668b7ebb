"""One line for spaces that are samples of folders of shards: how many rows of how many, and the command for all of them."""

from __future__ import annotations

import shlex
from pathlib import Path

import streamlit as st

from app import compute
from app.plain_text import plain_name
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.numbers import counted
from relcore.sources.catalog import SpaceSpec
from relcore.sources.sampled import is_address
from relcore.sources.series import is_one_space


def draw(workspace: Workspace) -> None:
    """Nothing where neither space is a sample that leaves rows out."""
    pair = workspace.source, workspace.target
    samples = [spec for spec in pair if spec.source == "sample" and int(spec.option("rows")) < int(spec.option("of"))]
    if not samples:
        return
    with st.container(key="sample-line", horizontal=True, vertical_alignment="center"):
        both = len(samples) == len(pair)
        end = "; scores of every row:" if both else "."
        st.caption(f"{_rows(samples, both, workspace)}, drawn by a hash of their ids{end}", width="content")
        if both:
            st.code(command(*pair), language="bash", width="content")


def command(source: SpaceSpec, target: SpaceSpec) -> str:
    """The command that scores every row of the folders of two samples."""
    whole = any(not is_address(spec.name) and is_one_space(Path(spec.name)) for spec in (source, target))
    return shlex.join(["relscope", "compare", source.name, target.name, *["--shards"] * whole])


def _rows(samples: list[SpaceSpec], both: bool, workspace: Workspace) -> str:
    counts = [(len(compute.load_space(spec)), int(spec.option("of"))) for spec in samples]
    told = [f"{drawn:,} of {counted(of, 'row')}" for drawn, of in counts]
    if both and len(set(told)) == 1:
        return told[0]
    labels = space_labels(workspace.spaces)
    return ", ".join(f"{rows} of {plain_name(labels[spec])}" for rows, spec in zip(told, samples, strict=True))
