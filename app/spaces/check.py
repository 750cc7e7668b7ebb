"""Check whether one model made all rows of an opened file. The result is a sentence, a map and the ids of the
rows."""

from __future__ import annotations

import math
from contextlib import suppress

import streamlit as st

from app import compute, exports
from app.page_settings import remembered
from app.plain_text import plain
from app.results import place_of, result_of
from app.tables import report_table
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.report import delimited_text
from relcore.check.chart import CheckChart
from relcore.check.collection import FEWEST_ROWS, CheckRows

_NONE = "no reference"


def draw(workspace: Workspace) -> None:
    """Draw a switch, and the check below it. If no opened file has more than 500 rows, draw nothing."""
    labels = space_labels(workspace.spaces)
    opened = []
    for spec in workspace.spaces:
        with suppress(SpaceError):  # the table above shows this error
            if spec.source == "file" and len(compute.load_space(spec)) > FEWEST_ROWS:
                opened.append(spec)
    if not (opened and st.toggle("Check whether one model made all rows of a file", key="check.more")):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        spec = remembered(
            st.selectbox,
            "Space",
            opened,
            format_func=labels.get,
            key=f"check.space-{place_of(opened)}",
            width=260,
        )
        width = compute.load_space(spec).dimension
        others = [
            one for one in workspace.spaces if one != spec and compute.load_space(one).dimension == width
        ]
        look = {
            "format_func": lambda one: labels.get(one, one),
            "key": f"check.trusted-{place_of(others, spec)}",
        }
        told = "100 rows or more, of any texts, by the model that should have made all rows."
        trusted = remembered(st.selectbox, "Trusted rows", [_NONE, *others], width=260, help=told, **look)
    if trusted == _NONE:
        specs = (spec,)
    else:
        specs = (spec, trusted)
    found = result_of(CheckRows(), specs, label="Check", unasked_seconds=math.inf, alone=False)
    if found is None:
        return
    for limit in found.limits:
        st.caption(f":material/visibility_off: {plain(limit)}")
    st.markdown(plain(found.sentence))
    space = compute.load_space(spec)
    if trusted == _NONE:
        trusted = None
    figure = CheckChart(space=spec, trusted=trusted, digests=compute.digests(specs)).draw((space, found))
    chart, listed = st.columns([1.35, 1], gap="large")
    with chart:
        exports.figure(figure, "check.chart")
    with listed:
        for table in found.report(space.ids).tables:
            report_table(table)
        content = delimited_text(found.rows(space.ids)).encode()
        exports.download(
            "Download all rows, ranked", content, f"{space.name}-check.csv", "text/csv", "check.csv"
        )
