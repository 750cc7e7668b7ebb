"""Check whether one model made all rows of an opened file. The result is a sentence, a map and the ids of the
rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import streamlit as st

from app import compute, exports
from app.asking import Panel, chart_beside
from app.page_settings import remembered
from app.plain_text import plain
from app.results import place_of, result_of
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.report import delimited_text
from relcore.catalog.catalog import SpaceSpec
from relcore.check.chart import CheckChart
from relcore.check.collection import FEWEST_ROWS, Checked, CheckRows
from relcore.spaces.space import LatentSpace

_NONE = "no reference"


@dataclass(frozen=True, eq=False)
class CheckInputs:
    """The space to check and, if chosen, trusted rows, with their specs."""

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]

    @property
    def trusted(self) -> SpaceSpec | None:
        return next(iter(self.specs[1:]), None)

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(space.digest for space in self.spaces)


def draw(workspace: Workspace) -> None:
    """Draw a switch, and the check below it. If no opened file has more than 500 rows, draw nothing."""
    _PANEL.draw(workspace)


def inputs(workspace: Workspace) -> CheckInputs | None:
    labels = space_labels(workspace.spaces)
    spaces = compute.readable_spaces(workspace.spaces)  # the table above shows why others cannot be read
    opened = [spec for spec in spaces if spec.source == "file" and len(spaces[spec]) > FEWEST_ROWS]
    if not (opened and st.toggle("Check whether one model made all rows of a file", key="check.more")):
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = {"format_func": labels.get, "key": f"check.space-{place_of(opened)}", "width": 260}
        spec = remembered(st.selectbox, "Space", opened, **look)
        width = spaces[spec].dimension
        others = [one for one in spaces if one != spec and spaces[one].dimension == width]
        key = f"check.trusted-{place_of(others, spec)}"
        look = {"format_func": lambda one: labels.get(one, one), "key": key, "width": 260}
        told = "100 rows or more, of any texts, by the model that should have made all rows."
        trusted = remembered(st.selectbox, "Trusted rows", [_NONE, *others], help=told, **look)
    specs = (spec,)
    if trusted != _NONE:
        specs = (spec, trusted)
    return CheckInputs(specs, tuple(spaces[one] for one in specs))


def checked(asked: CheckInputs) -> Checked | None:
    look = {"label": "Check", "unasked_seconds": math.inf, "alone": False}
    return result_of(CheckRows(), asked.specs, spaces=asked.spaces, **look)


def report(asked: CheckInputs, found: Checked) -> None:
    space = asked.spaces[0]
    for limit in found.limits:
        st.caption(f":material/visibility_off: {plain(limit)}")
    st.markdown(plain(found.sentence))
    recipe = CheckChart(space=asked.specs[0], trusted=asked.trusted, digests=asked.digests)
    told = replace(found.report(space.ids), notes=())
    rows = found.rows(space.ids)
    content = delimited_text(rows).encode()
    with chart_beside(recipe.draw((space, found)), "check", told):
        exports.download(
            "Download all rows, ranked", content, f"{space.name}-check.csv", "text/csv", "check.csv"
        )
        if found.told:
            counts = rows.groupby("model", as_index=False).size().rename(columns={"size": "rows"})
            st.dataframe(counts, hide_index=True, key="check.counts")
            again = rows.id[: found.count].to_frame()
            content = delimited_text(again).encode()
            name = f"{space.name}-again.csv"
            exports.download("Download rows to embed again", content, name, "text/csv", "check.again")


_PANEL = Panel(inputs, checked, report)
