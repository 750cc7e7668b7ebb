"""The inspector: one row and its neighbours in both spaces, or the brushed rows, and what can be done with them."""

from __future__ import annotations

from html import escape

import pandas as pd
import streamlit as st

from app import compute, session
from app.score_table import digits
from relcore.spaces import Match
from relcore.views import MOST_PIVOTS

IN_BOTH = '<span class="relscope-unseen">, in both</span>'  # for ears: eyes see the shading


def inspector(pair: Match) -> None:
    """The right-hand column: follows clicks and brushes, whichever page they were made on."""
    chosen = tuple(identifier for identifier in session.selection() if identifier in pair.source.index)
    if len(chosen) > 1:
        _many(pair, chosen)
        return
    pivots = [pivot for pivot in session.workspace().view.pivots if pivot in pair.source.index]
    identifier = chosen[0] if chosen else (pivots[0] if pivots else str(pair.ids[0]))
    _one(pair, identifier)
    if not chosen:
        st.caption("Click a point to look at it. Draw with the lasso to choose many.")


def _one(pair: Match, identifier: str) -> None:
    row = int(pair.source.rows([identifier])[0])
    label = pair.source.labels[row] if pair.source.labels is not None else ""
    count = f"{pair.source.counts[row]:,} times in the corpus" if pair.source.counts is not None else ""
    st.html(f'<p class="relscope-word">{escape(identifier)}</p>')
    if label or count:
        st.caption(" · ".join(filter(None, (label, count))))
    k = min(session.workspace().k, len(pair) - 1)
    st.html(neighbours_html(pair, compute.neighbours_of(pair, identifier, k)))
    st.caption(f"{k} nearest by cosine, centred, in each absolute space. Shaded: in both.")
    is_anchor = identifier in session.workspace().anchors
    verb, icon = ("Remove anchor", ":material/star_border:") if is_anchor else ("Make anchor", ":material/star:")
    change = session.remove_anchors if is_anchor else session.add_anchors
    pinned = identifier in session.workspace().pinned
    st.button(
        verb,
        icon=icon,
        on_click=change,
        args=((identifier,),),
        width="stretch",
        key="inspector.anchor",
        disabled=pinned,
        help="Pinned: unpin it on the Anchors page first" if pinned else None,
    )
    view = session.workspace().view
    if identifier not in view.pivots and len(view.pivots) < MOST_PIVOTS:
        st.button(
            "Show its neighbourhood",
            icon=":material/palette:",
            on_click=session.edit_spec,
            args=(f"pivot “{identifier}”", "view"),
            kwargs={"pivots": (*view.pivots, identifier)},
            width="stretch",
            key="inspector.pivot",
        )


def neighbours_html(pair: Match, table: pd.DataFrame) -> str:
    """Two lists side by side; ids that stand in both are shaded."""

    def side(name: str, title: str) -> str:
        items = "".join(
            f'<li class="{"shared" if shared else ""}" title="{escape(identifier)}"><b>{escape(identifier)}</b>'
            f"<span>{digits(cosine, 2)}{IN_BOTH if shared else ''}</span></li>"
            for identifier, cosine, shared in zip(table[name], table[f"{name} cosine"], table[f"{name} shared"], strict=True)
        )
        return f"<div><h4>{escape(title)}</h4><ol>{items}</ol></div>"

    sides = side("source", pair.source.name) + side("target", pair.target.name)
    return f'<div class="relscope-neighbours">{sides}</div>'


def _many(pair: Match, chosen: tuple[str, ...]) -> None:
    st.html(f'<p class="relscope-word">{len(chosen):,} selected</p>')
    anchors, pinned = set(session.workspace().anchors), set(session.workspace().pinned)
    n_anchors = sum(identifier in anchors for identifier in chosen)
    n_removable = sum(identifier in anchors and identifier not in pinned for identifier in chosen)
    st.caption(f"{n_anchors:,} of them are anchors.")
    st.button(
        f"Make {len(chosen) - n_anchors:,} anchors",
        icon=":material/star:",
        on_click=session.add_anchors,
        args=(chosen,),
        disabled=n_anchors == len(chosen),
        width="stretch",
        key="inspector.add",
    )
    st.button(
        "Only these as anchors",
        on_click=session.set_anchors,
        args=(f"take {len(chosen)} selected as anchors", chosen),
        width="stretch",
        key="inspector.only",
    )
    st.button(
        f"Remove {n_removable:,} anchors",
        on_click=session.remove_anchors,
        args=(chosen,),
        disabled=not n_removable,
        width="stretch",
        key="inspector.remove",
    )
    st.button("Clear", icon=":material/close:", on_click=session.select, args=((),), width="stretch", key="inspector.clear")
    rows = pair.source.rows(chosen)
    table = pd.DataFrame({"id": chosen})
    if pair.source.counts is not None:
        table["count"] = pair.source.counts[rows]
        table = table.sort_values("count", ascending=False)
    st.dataframe(table.head(1000), hide_index=True, height=320)
