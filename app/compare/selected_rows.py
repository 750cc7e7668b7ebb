"""The selected rows: a table of them, their classes, downloads, and buttons that filter, crop or embed these
rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, session
from app.compare.search import found_by
from app.compare.tags import tag_menu, tags_list
from app.glossary.card import caption
from app.items import Items, items_of
from app.places import DATA, go
from app.selection import select, selected_rows
from app.tables import short_numbers
from app.workspace import Workspace
from relcore.base.numbers import counted, short
from relcore.base.report import delimited_text
from relcore.catalog.catalog import MOST_KEPT, with_kept
from relcore.figures.colorings import SELECTED_ROWS, Condition
from relcore.maps.pane_maps import View
from relcore.spaces.matching import Match, distinct_names
from relcore.studies.estimates import share

_SHOWN = 1000


def draw(workspace: Workspace, models: Match, _: View) -> None:
    pair = models.pair()
    chosen, rows = selected_rows(pair)
    if not chosen:
        st.caption("Select rows with the lasso, in the legend (Shift and click) or by the search box.")
        _filter_to_selection(workspace, pair)
        tags_list(workspace, pair)
        return
    items = items_of(workspace)
    texts = None
    if items is not None and items.has_texts:
        texts = items
    st.markdown(f"**{counted(len(rows), 'row')} selected** of {len(pair):,}.")
    with st.container(horizontal=True, key="selection-actions"):
        _downloads(workspace, pair, rows, texts)
        _uses(workspace, pair, chosen, rows, texts)
    tags_list(workspace, pair)
    if pair.source.labels is not None and len(set(pair.source.labels) - {""}) > 1:
        _classes(pair, rows)
    table = _table(workspace, pair, rows[:_SHOWN], texts)
    if "label" in table and not any(table["label"]):
        table = table.drop(columns="label")
    st.dataframe(short_numbers(table), hide_index=True, height=320)
    if len(rows) > _SHOWN:
        st.caption(f"Shown: the first {_SHOWN:,}. The downloads have all {len(rows):,}.")


def _table(workspace: Workspace, pair: Match, rows: np.ndarray, items: Items | None) -> pd.DataFrame:
    table = compute.rows_table(pair, workspace, rows, items)
    found = found_by(pair)
    if found is not None:
        places = pd.Index(found.ranking.rows).get_indexer(rows)
        for side, name in enumerate(distinct_names((pair.source, pair.target))):
            table[f"similarity in {name}"] = np.where(
                places < 0, np.nan, found.ranking.similarities[places, side]
            )
    return table


def _downloads(workspace: Workspace, pair: Match, rows: np.ndarray, items: Items | None) -> None:
    for title, suffix, write, mime in (
        ("Download CSV", "csv", delimited_text, "text/csv"),
        ("Download Parquet", "parquet", pd.DataFrame.to_parquet, "application/vnd.apache.parquet"),
    ):
        exports.download(
            title,
            lambda write=write: write(_table(workspace, pair, rows, items)),
            f"relscope-selection.{suffix}",
            mime,
            f"selection.{suffix}",
            help="All columns of the selected rows. In a script, `relcore.read_selection` reads it.",
        )


def _uses(
    workspace: Workspace, pair: Match, chosen: tuple[str, ...], rows: np.ndarray, items: Items | None
) -> None:
    """Offer buttons that tag, keep, crop or encode the selected rows."""
    tag_menu(chosen, "selection.tag")
    help_keep = "All other rows turn grey"
    help_crop = "Adds both spaces again, with the selected rows only"
    too_many = len(rows) > MOST_KEPT
    if too_many:
        help_keep = f"Takes at most {MOST_KEPT:,} rows"
        help_crop = help_keep
    st.button(
        "Keep these",
        icon=":material/filter_alt:",
        help=help_keep,
        disabled=too_many,
        on_click=keep_rows,
        args=(chosen,),
        key="selection.keep",
    )
    st.button(
        "Make a space of these rows",
        icon=":material/crop:",
        help=help_crop,
        disabled=too_many or len(rows) < 2,
        on_click=session.guarded,
        args=(_make_spaces, chosen),
        key="selection.space",
    )
    if not items:
        return
    if st.button(
        "Embed these texts",
        icon=":material/text_fields:",
        help="Opens Data, to encode the selected texts with another model",
        key="selection.embed",
    ):
        content = delimited_text(_table(workspace, pair, rows, items)).encode()
        st.session_state["data.kind"] = "Texts"
        st.session_state["data.path"] = str(session.keep_upload(_File("selected-texts.csv", content)))
        go(DATA)


def _filter_to_selection(workspace: Workspace, pair: Match) -> None:
    """If a filter is set, offer to select the rows that it keeps."""
    if not workspace.look.filter:
        return
    rows = np.flatnonzero(compute.passing_rows(pair, workspace))
    st.button(
        f"Select the {counted(len(rows), 'row')} of the filter",
        icon=":material/select_all:",
        disabled=not len(rows),
        on_click=select,
        args=(pair, rows),
        key="selection.of-filter",
    )


def keep_rows(ids: tuple[str, ...]) -> None:
    """Add these rows to the filter, in place of rows that were added before."""
    others = [one for one in session.workspace().look.filter if one.column != SELECTED_ROWS]
    conditions = (*others, Condition(SELECTED_ROWS, ids))
    session.edit_spec(f"keep {counted(len(ids), 'row')}", "look", filter=conditions)


def _make_spaces(chosen: tuple[str, ...]) -> None:
    present = session.workspace()
    source = with_kept(present.source, chosen)
    target = with_kept(present.target, chosen)
    spaces = tuple(dict.fromkeys((*present.spaces, source, target)))
    session.set_workspace(
        f"make a space of {counted(len(chosen), 'row')}",
        replace(present, spaces=spaces, source=source, target=target),
    )


@dataclass(frozen=True)
class _File:
    """A file in memory, with the attributes of an uploaded file that `keep_upload` reads."""

    name: str
    content: bytes

    def getbuffer(self) -> bytes:
        return self.content


_MOST_CLASSES = 20


def _classes(pair: Match, rows: np.ndarray) -> None:
    """For each class, draw its share of the selected rows beside its share of all rows. Classes without
    selected rows come last."""
    labels = pair.source.labels
    selected = labels[rows]
    n_selected = Counter(selected.tolist())
    classes = sorted(set(labels.tolist()), key=lambda name: (-n_selected[name], name))
    lines = []
    for name in classes[:_MOST_CLASSES]:
        part = share(selected == name)
        everywhere = float(np.mean(labels == name))
        mark = "●"
        if part.low <= everywhere <= part.high:
            mark = ""
        lines.append(
            {
                "class": name or "none",
                "rows": n_selected[name],
                "share": short(part.value, 2),
                "95 % interval": f"{short(part.low, 2)} to {short(part.high, 2)}",
                "share of all rows": short(everywhere, 2),
                "differs": mark,
            }
        )
    st.dataframe(pd.DataFrame(lines), hide_index=True, height="content")
    left_out = ""
    if len(classes) > _MOST_CLASSES:
        left_out = f" Shown: {_MOST_CLASSES} of {len(classes):,} classes."
    caption(
        "Shares of the classes in the selection, with Wilson's interval. ●: the class's share in all rows"
        f" lies outside this interval.{left_out}"
    )
