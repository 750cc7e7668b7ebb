"""Check: whether one model made the rows of each opened file; a line for each, a map and the ids."""

from __future__ import annotations

import math

import streamlit as st

from app import compute, exports, messages
from app.page_settings import remembered
from app.plain_text import plain, plain_name
from app.results import place_of, result_of
from app.tables import report_table
from app.widgets import space_labels
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import SpaceError
from relcore.base.report import delimited_text
from relcore.catalog.catalog import SpaceSpec
from relcore.passport.charts import CheckChart
from relcore.passport.check import FEWEST_ROWS, Checked, CheckRows

_NONE = "no reference"


def draw(workspace: Workspace) -> None:
    """Draw a line for each opened space of more than 500 rows; nothing if there is none."""
    labels, checked = space_labels(workspace.spaces), {}
    for spec in workspace.spaces:
        if spec in BUNDLED or spec.source != "file":
            continue
        try:
            if len(compute.load_space(spec)) <= FEWEST_ROWS:
                continue
            found = _check_result((spec,))
        except SpaceError as error:
            messages.error(f"{labels[spec]}: {error}")
            continue
        if found is not None:
            checked[spec] = found
            icon = ":material/check:" if found.verdict == "nothing found" else ":material/warning:"
            st.caption(f"{icon} {plain_name(labels[spec])}: {plain(found.headline)}")
    if checked and st.toggle("More about the check", key="check.more"):
        _details(workspace, checked, labels)


def _check_result(specs: tuple[SpaceSpec, ...]) -> Checked | None:
    """The result for a space, with trusted rows if there are two; None while a job computes it."""
    return result_of(CheckRows(), specs, label="Check", unasked_seconds=math.inf, alone=False)


def _details(workspace: Workspace, checked: dict[SpaceSpec, Checked], labels: dict[SpaceSpec, str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = {"format_func": labels.get, "key": f"check.space-{place_of(list(checked))}", "width": 260}
        spec = remembered(st.selectbox, "Space", list(checked), **look)
        width = compute.load_space(spec).dimension
        others = [
            one for one in workspace.spaces if one != spec and compute.load_space(one).dimension == width
        ]
        look = {
            "format_func": lambda one: labels.get(one, one),
            "key": f"check.trusted-{place_of(others, spec)}",
        }
        told = "Rows of the model that should have made all, 100 or more, of any texts."
        trusted = remembered(st.selectbox, "Trusted rows", [_NONE, *others], width=260, help=told, **look)
    specs = (spec,) if trusted == _NONE else (spec, trusted)
    found = _check_result(specs)
    if found is None:
        return
    for limit in found.limits:
        st.caption(f":material/visibility_off: {plain(limit)}")
    st.markdown(plain(found.sentence))
    space = compute.load_space(spec)
    recipe = CheckChart(
        space=spec, trusted=None if trusted == _NONE else trusted, digests=compute.digests(specs)
    )
    figure = recipe.draw((space, found))
    chart, listed = st.columns([1.35, 1], gap="large")
    with chart:
        exports.figure(figure, "check.chart")
    with listed:
        report = found.report(space.ids)
        for table in report.tables:
            report_table(table)
        content = delimited_text(found.rows(space.ids)).encode()
        exports.download(
            "Download all rows, ranked", content, f"{space.name}-check.csv", "text/csv", "check.csv"
        )
