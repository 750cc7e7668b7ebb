"""Why the models differ: the reasons in sentences, then each as a row that opens, and the rows that changed
most."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app import compute, exports, messages, results
from app.explain import changed_rows, own_features
from app.explain.reason_rows import draw_reasons
from app.glossary.card import caption
from app.page_settings import remembered
from app.plain_text import bold_numbers, plain, unbroken
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.explain.chart import ReasonsChart
from relcore.explain.explanation import FEWEST_ROWS, Explain
from relcore.explain.result import (
    Explanation,
    circumstances,
    explained_in_words,
    kinds_in_words,
    notes,
    sentences,
    smallest_in_words,
)
from relcore.maps.pane_maps import View
from relcore.spaces.matching import Match

_JOB_SECONDS = 60.0  # seconds; a longer job waits for a click
_STYLE = Path(__file__).parents[2] / "assets" / "explain.css"


def draw(workspace: Workspace, models: Match, drawn: View) -> None:
    st.html(_STYLE)
    n = len(models.pair())
    if n < FEWEST_ROWS:
        text = f"Reasons need {FEWEST_ROWS} common rows or more, and there are {n}."
        messages.info(text, ":material/info:")
    else:
        _reasons(workspace, models)
    changed_rows.draw(workspace, models.pair(), drawn)


def _reasons(workspace: Workspace, models: Match) -> None:
    answer = st.container(key="explain-answer")  # above the settings of the question
    task = _task(workspace, len(models.pair()))
    with answer:
        try:
            found = results.result_of(
                task, workspace.models, label="Explain why they differ", unasked_seconds=_JOB_SECONDS
            )
        except SpaceError as error:
            messages.error(error)
            return
        if found is None:
            return
        _sentences(found)
        _untested(found, task)
        if found.reasons or found.own:
            draw_reasons(workspace, models, found)
        if found.reasons:
            specs = workspace.models
            recipe = ReasonsChart(spaces=specs, digests=compute.digests(specs), explain=task)
            exports.export_bar(recipe.draw(found), "explain")
        caption(f"{circumstances(found)} {notes(found)[-1]}")


def _task(workspace: Workspace, n: int) -> Explain:
    most = max(1, min(200, n // 10))
    usual = min(Explain.k, most)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="explain-choosers"):
        own = own_features.chosen()
        k = remembered(
            st.number_input,
            "Neighbours of each row",
            1,
            most,
            usual,
            key=f"explain.k-{most}",
            width=180,
        )
    return Explain(k=int(k), own=own, items=workspace.models)


def _untested(found: Explanation, task: Explain) -> None:
    """Name the user's features that too few or nearly all rows have."""
    tested = {own.family for own in found.own}
    for feature in task.own:
        if feature not in tested:
            st.caption(f"{plain(feature)} was not tested: too few rows have it, or all.")


def _sentences(found: Explanation) -> None:
    """The answer in short lines, the strongest reason first."""
    first, *others = sentences(found)
    lines = [f'<p class="relscope-lead relscope-why">{unbroken(bold_numbers(first))}</p>']
    more = [*others, explained_in_words(found), kinds_in_words(found)]
    if not found.reasons:
        more.append(smallest_in_words(found))
    lines += [f'<p class="relscope-why">{unbroken(bold_numbers(line))}</p>' for line in more if line]
    st.html("".join(lines))
