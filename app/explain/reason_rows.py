"""The reasons as rows with a bar for each model. A row opens to typical rows with their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from app import compute, session
from app.compare.inspector import names_of, new_anchor_ids
from app.compare.selected_rows import keep_rows
from app.explain.edges import show_edges
from app.items import Items, cut, items_of
from app.plain_text import plain, plain_html, unbroken
from app.workspace import Workspace
from relcore.base.numbers import and_list, band, counted, percent, short, signed
from relcore.catalog.catalog import MOST_KEPT
from relcore.explain.explanation import Explain
from relcore.explain.reason import ExampleRow, Reason, ReasonPart
from relcore.explain.result import Explanation, p_in_words
from relcore.spaces.matching import Match
from relcore.spaces.split import row_keys

_OPEN = "explain.open"
_ANCHORS = 8  # number of rows that become anchors
_LISTED = 10  # number of neighbours listed of each example


@dataclass(frozen=True, eq=False)
class ReasonRow:
    """A row of the page: a reason, or a part of one.

    Attributes
    ----------
    rows : array
        The numbers of the rows to select, in the compared spaces.
    of : str
        What these rows are called, such as ``"words that end in -ing"``.
    """

    key: str
    title: str
    shares: tuple[float, ...]
    note: str
    rows: np.ndarray
    of: str
    examples: tuple[ExampleRow, ...]
    is_part: bool = False


@compute.cached(8)
def _compared_ids(models: Match) -> np.ndarray:
    """The ids of the rows among which neighbours were searched."""
    _, pair = Explain.matched(models.spaces)
    return pair.ids


def draw_reasons(workspace: Workspace, models: Match, found: Explanation) -> None:
    """Draw a row for each reason, below it a row for each of its parts, and a row for each feature of the
    user's own. There is one row or more."""
    rows = []
    for number, reason in enumerate(found.reasons):
        rows.append(_row(f"{number}", found, reason))
        rows += [_part_row(f"{number}-{place}", part) for place, part in enumerate(reason.parts)]
    for number, own in enumerate(found.own):
        row = _row(f"own-{number}", found, own)
        rows.append(replace(row, title=f"your feature: {row.title}"))
    limit = max(0.01, *(max(row.shares) for row in rows))
    legend = "".join(f"<span><i></i>{plain_html(name)}</span>" for name in found.names)
    st.html(
        f'<div class="relscope-reason relscope-legend"><p>{legend}</p>'
        f"<small>Of the {found.k} nearest neighbours of a row with the feature, the share that has it</small>"
        "</div>"
    )
    ids = _compared_ids(models)
    with st.container(key="explain-rows", gap=None):
        for row in rows:
            _draw(workspace, models, found.names, row, ids, limit)


def _row(key: str, found: Explanation, reason: Reason) -> ReasonRow:
    difference = abs(reason.difference)
    reach = (reason.high - reason.low) / 2
    note = (
        f"{found.names[reason.more]} {signed(difference)} ({band(difference - reach, difference + reach)}),"
        f" n = {reason.n:,}, {p_in_words(reason.p)}"
    )
    if reason.predicted:
        by = ", ".join(map(short, reason.predicted))
        note = f"{note}. Correlation of a row's number with its neighbours' mean: {by}"
    rows = reason.rows
    of = reason.title
    # Nearly all rows belong to a family as a whole, so its clearest parts are shown in the panes.
    if reason.whole and reason.parts:
        rows = np.unique(np.concatenate([part.rows for part in reason.parts]))
        of = f"rows with {and_list(part.short for part in reason.parts)}"
    return ReasonRow(key, reason.title, reason.shares, note, rows, of, reason.examples)


def _part_row(key: str, part: ReasonPart) -> ReasonRow:
    note = f"n = {part.n:,}"
    return ReasonRow(key, part.title, part.shares, note, part.rows, part.title, part.examples, is_part=True)


def _draw(
    workspace: Workspace,
    models: Match,
    names: Sequence[str],
    row: ReasonRow,
    compared_ids: np.ndarray,
    limit: float,
) -> None:
    is_open = st.session_state.get(_OPEN) == row.key
    ids = tuple(map(str, compared_ids[row.rows]))
    kind = "reason"
    if row.is_part:
        kind = "reason-part"
    icon = ":material/chevron_right:"
    if is_open:
        icon = ":material/expand_more:"
    with st.container(
        key=f"explain-{kind}-{row.key}", horizontal=True, vertical_alignment="center", gap="small"
    ):
        st.button(
            unbroken(plain(f"{row.title[:1].upper()}{row.title[1:]}")),
            key=f"explain.open-{row.key}",
            icon=icon,
            type="tertiary",
            on_click=_toggle,
            args=(row, ids),
        )
        st.html(_bars_html(names, row, limit))
    if is_open:
        with st.container(key=f"explain-opened-{row.key}", border=True):
            _opened(workspace, models.pair(), names, row, ids)


def _toggle(row: ReasonRow, ids: tuple[str, ...]) -> None:
    """Open a row, select its rows in the panes and join its examples to their neighbours, or close it and end
    the selection."""
    if st.session_state.get(_OPEN) == row.key:
        del st.session_state[_OPEN]
        session.select(())
    else:
        st.session_state[_OPEN] = row.key
        session.select(ids)
        show_edges(ids, row.examples)


def _bars_html(names: Sequence[str], row: ReasonRow, limit: float) -> str:
    bars = ""
    for name, share in zip(names, row.shares, strict=True):
        width = 100 * share / limit
        bars += (
            f'<span class="relscope-unseen">{plain_html(name)}: </span>'
            f'<em><i style="width:{width:.1f}%"></i></em><b>{percent(share)}</b>'
        )
    return f'<div class="relscope-reason">{bars}<small>{unbroken(plain_html(row.note))}</small></div>'


def _opened(
    workspace: Workspace, pair: Match, names: Sequence[str], row: ReasonRow, ids: tuple[str, ...]
) -> None:
    with st.container(horizontal=True, key=f"explain-actions-{row.key}"):
        st.button(
            f"Select its {counted(len(ids), 'row')} in the panes",
            icon=":material/highlight_alt:",
            key="explain.select",
            on_click=session.select,
            args=(ids,),
            help=plain(f"{row.of[:1].upper()}{row.of[1:]}."),
        )
        new = _anchors_among(ids, workspace.anchors)
        st.button(
            f"Add {len(new)} as anchors",
            icon=":material/star:",
            key="explain.anchors",
            on_click=session.add_anchors,
            args=(new,),
            disabled=not new,
            help="Some of its rows, drawn at random, always the same. All scores follow the new anchors.",
        )
        help_filter = "All other rows turn grey."
        if len(ids) > MOST_KEPT:
            help_filter = f"Takes at most {MOST_KEPT:,} rows."
        st.button(
            "Filter to these rows",
            icon=":material/filter_alt:",
            key="explain.filter",
            on_click=keep_rows,
            args=(ids,),
            disabled=len(ids) > MOST_KEPT,
            help=help_filter,
        )
    st.caption(
        "Rows whose neighbours differ most in this feature. Shaded: neighbours that have the feature, too. In"
        " the panes, lines join these rows to their neighbours; bold lines lead to shaded ones."
    )
    st.html(_examples_html(pair, names, row.examples, items_of(workspace)))


def _anchors_among(ids: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    """A handful of these ids that are no anchors yet, drawn by a hash."""
    new = new_anchor_ids(ids, present)
    if len(new) <= _ANCHORS:
        return new
    drawn = np.argsort(row_keys(new, "anchors of a reason"), kind="stable")[:_ANCHORS]
    return tuple(new[place] for place in np.sort(drawn))


def _examples_html(
    pair: Match, names: Sequence[str], examples: Sequence[ExampleRow], items: Items | None
) -> str:
    """Each example with its neighbours in each space, nearest first. Neighbours that have the feature are
    shaded."""
    ids = {example.id for example in examples}
    for example in examples:
        for near in example.neighbours:
            ids.update(near[:_LISTED])
    listed = sorted(ids)
    shown = {identifier: ("", identifier, identifier) for identifier in listed}
    if items is not None:
        shown = names_of(pair, listed, items)
    numbers = dict(zip(listed, pair.source.rows(listed).tolist(), strict=True))

    def entry(identifier: str, shares: bool) -> str:
        image, name, title = shown[identifier]
        kind = ""
        mark = ""
        if shares:
            kind = "shared"
            mark = '<span class="relscope-unseen">, has the feature</span>'
        return (
            f'<li class="{kind}" title="{plain_html(title)}"><button type="button"'
            f' data-row="{numbers[identifier]}">{image}<b>{plain_html(name)}</b>{mark}</button></li>'
        )

    sections = ""
    for example in examples:
        image, name, title = shown[example.id]
        lists = ""
        for model, near, sharing in zip(names, example.neighbours, example.sharing, strict=True):
            entries = "".join(map(entry, near[:_LISTED], sharing[:_LISTED]))
            lists += f"<div><h3>{plain_html(model)}</h3><ol>{entries}</ol></div>"
        sections += (
            f'<section><h4 title="{plain_html(title)}">{image}{plain_html(cut(name))}</h4>'
            f'<div class="relscope-neighbours" data-pair="{compute.pair_key(pair)}">{lists}</div></section>'
        )
    kind = ""
    if items is not None and items.has_texts:
        kind = " relscope-texts"
    return f'<div class="relscope-examples{kind}">{sections}</div>'
