"""Check whether one model made all rows of a space. The result is a sentence, a map and the ids of the
rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import streamlit as st

from app import compute, exports, messages
from app.asking import Panel
from app.page_settings import remembered
from app.plain_text import plain, plain_html
from app.results import place_of, result_of
from app.spaces.repair import draw_repair, repaired_space
from app.tables import report_table
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.numbers import counted
from relcore.base.report import delimited_text
from relcore.catalog.catalog import SpaceSpec
from relcore.check.chart import CheckChart
from relcore.check.collection import Checked, CheckRows
from relcore.check.parts import FEWEST_ROWS
from relcore.check.repair import rows_to_embed
from relcore.spaces.space import LatentSpace

_NONE = "no reference"


@dataclass(frozen=True, eq=False)
class CheckInputs:
    """The space to check and, if chosen, trusted rows, with their specs. `others` are all spaces of the
    session, which may hold rows that were embedded again."""

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]
    others: tuple[SpaceSpec, ...]

    @property
    def trusted(self) -> SpaceSpec | None:
        return next(iter(self.specs[1:]), None)

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(space.digest for space in self.spaces)


def draw(workspace: Workspace) -> None:
    """Draw a switch, and the check below it. The switch needs a space with more than 500 rows."""
    _PANEL.draw(workspace)


def inputs(workspace: Workspace) -> CheckInputs | None:
    labels = space_labels(workspace.spaces)
    spaces = compute.readable_spaces(workspace.spaces)  # the table above shows why others cannot be read
    large = [spec for spec in spaces if len(spaces[spec]) > FEWEST_ROWS]
    # A repaired file that is to be checked comes first, then other opened files, the last one first.
    large.reverse()
    large.sort(key=lambda spec: (spec != repaired_space(), spec.source != "file"))
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Check: did one model make all rows of a space?"
        wanted = st.toggle(label, key="check.more", disabled=not large, width="content")
        if not large:
            st.caption(
                f"No space here has more than {FEWEST_ROWS:,} rows. Load one above to check it.",
                width="content",
            )
    if not (large and wanted):
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = {"format_func": labels.get, "key": f"check.space-{place_of(large)}", "width": 260}
        spec = remembered(st.selectbox, "Space", large, **look)
        width = spaces[spec].dimension
        others = [one for one in spaces if one != spec and spaces[one].dimension == width]
        key = f"check.trusted-{place_of(others, spec)}"
        look = {"format_func": lambda one: labels.get(one, one), "key": key, "width": 260}
        text = "100 rows or more, of any texts, by the model that should have made all rows."
        trusted = remembered(st.selectbox, "Trusted rows", [_NONE, *others], help=text, **look)
    specs = (spec,)
    if trusted != _NONE:
        specs = (spec, trusted)
    return CheckInputs(specs, tuple(spaces[one] for one in specs), tuple(spaces))


def checked(setup: CheckInputs) -> Checked | None:
    look = {"label": "Check", "unasked_seconds": math.inf, "alone": False}
    return result_of(CheckRows(), setup.specs, spaces=setup.spaces, **look)


def report(setup: CheckInputs, found: Checked) -> None:
    space = setup.spaces[0]
    check_report = found.report(space.ids)
    messages.lead(f"<b>{plain_html(f'{space.name}: {found.headline}')}</b>")
    if setup.specs[0] == repaired_space() and found.verdict == "marks":
        st.caption(
            "This is expected after a repair: the mapped rows have other digits than the rest. No second"
            " model was found."
        )
    recipe = CheckChart(space=setup.specs[0], trusted=setup.trusted, digests=setup.digests)
    chart, beside = st.columns([1.7, 1], gap="large")
    with chart:
        exports.figure(recipe.draw((space, found)), "check.chart")
    with beside:
        if not found.agreement:
            st.markdown(plain(found.unfit))
        _next_steps(setup, found)
        for limit in reversed(found.limits):  # the smallest part that would have been found comes first
            st.caption(f":material/visibility_off: {plain(limit)}")
        with st.expander("All numbers", icon=":material/table_rows:"):
            st.markdown(plain(found.sentence))
            for table in check_report.tables:
                report_table(table)
            for note in check_report.notes:
                st.caption(plain(note))


def _next_steps(setup: CheckInputs, found: Checked) -> None:
    """Buttons for what can be done next."""
    space = setup.spaces[0]
    rows = found.rows(space.ids)
    if found.told:
        counts = rows.groupby("model", as_index=False).size().rename(columns={"size": "rows"})
        st.dataframe(counts, hide_index=True, key="check.counts")
        again = rows.id[rows.id.isin(space.ids[rows_to_embed(found)])]
        content = delimited_text(again.to_frame()).encode()
        name = f"{space.name}-again.csv"
        label = f"Download {counted(len(again), 'row')} to embed again"
        exports.download(label, content, name, "text/csv", "check.again", type="primary")
        if found.told.unknown:
            st.caption(f"The smaller part, and {counted(found.told.unknown, 'row')} of an unknown model.")
        if not found.told.by_trusted:
            st.caption("Choose trusted rows above to get a p-value for each row.")
    content = delimited_text(rows).encode()
    exports.download("Download all rows, ranked", content, f"{space.name}-check.csv", "text/csv", "check.csv")
    if found.verdict in ("two models", "suspicious"):
        draw_repair(setup.specs[0], found, setup.others)


_PANEL = Panel(inputs, checked, report)
