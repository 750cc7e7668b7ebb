"""A panel asks once: it draws its choosers and gathers its inputs, asks one function for the result, and
draws the result's report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import exports, messages
from app.plain_text import plain, plain_html
from app.tables import report_table
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.figures.export import Exportable

Inputs = TypeVar("Inputs")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Panel(Generic[Inputs, Result]):
    """A panel of three functions, which know of each other only what they hand on.

    Attributes
    ----------
    inputs : function
        Draws the choosers, and returns what they choose. None if there is nothing to ask yet.
    ask : function
        The result for these inputs, from a cache or a job. None while a job computes it.
    report : function
        Draws the result.
    remedy : str
        What to do after an error.
    """

    inputs: Callable[[Workspace], Inputs | None]
    ask: Callable[[Inputs], Result | None]
    report: Callable[[Inputs, Result], None]
    remedy: str = ""

    def draw(self, workspace: Workspace, choosers: DeltaGenerator | None = None) -> Inputs | None:
        """Draw the panel. `choosers` is the place of the choosers, by default above the result. Returns the
        inputs of the result that is drawn, or None if none is drawn."""
        try:
            with choosers or nullcontext():
                inputs = self.inputs(workspace)
            if inputs is None:
                return None
            result = self.ask(inputs)
            if result is None:
                return None
            self.report(inputs, result)
            return inputs
        except SpaceError as error:
            messages.error(error)
            if self.remedy:
                st.caption(self.remedy)
            return None


def lead_sentence(report: Report) -> None:
    messages.lead(f"<b>{plain_html(report.sentence)}</b>")


def chart_beside(figure: Exportable, key: str, report: Report, how_to_read: str = "") -> DeltaGenerator:
    """Draw a figure with its caption and its export menu, and beside it the tables and the notes of a report.
    Returns the place below these."""
    chart, listed = st.columns([1.35, 1], gap="large")
    with chart:
        exports.figure(figure, f"{key}.chart", bar=key)
        if how_to_read:
            st.caption(plain(how_to_read))
    with listed:
        for table in report.tables:
            report_table(table)
        for note in report.notes:
            st.caption(plain(note))
    return listed
