"""Two anchor sets side by side on the same held-out rows."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from app import compute, messages, session
from app.page_settings import kept
from app.plain_text import plain_name
from app.workspace import MOST_ANCHORS, Workspace
from relcore.base.names import METRICS, STRATEGIES
from relcore.base.numbers import counted, short
from relcore.scores.score import Difference
from relcore.spaces.space import Match

_CURRENT = "current anchors"


def compare_sets(workspace: Workspace, pair: Match) -> None:
    form = workspace.panes[1]
    sides = []
    for name, column in zip("AB", st.columns(2, gap="large"), strict=True):
        with column:
            sides.append(_choose(name, workspace, pair))
    if all(ids for _, ids in sides):
        _difference(workspace, pair, form, sides)


def _choose(side: str, workspace: Workspace, pair: Match) -> tuple[str, tuple[str, ...]]:
    named = {f"set “{name}”": ids for name, ids in workspace.named_sets}
    strategies = [name for name in STRATEGIES if name != "class-balanced" or pair.source.labels is not None]
    options = [*([_CURRENT] if workspace.anchors else []), *named, *strategies]
    usual = 0 if side == "A" or len(options) == 1 else options.index("farthest-point")
    chosen = kept(st.selectbox, f"Set {side}", options, usual, key=f"sets.{side}-{len(named)}")
    if chosen == _CURRENT:
        return chosen, workspace.anchors
    if chosen in named:
        return chosen, tuple(one for one in named[chosen] if one in pair.source.index)
    most = min(len(pair) // 3, MOST_ANCHORS)
    usual = min(max(len(workspace.anchors), 1), most) if workspace.anchors else min(300, most)
    key, state_key = f"sets.number-{side}-{most}", f"sets.state-{side}"
    number = int(kept(st.number_input, f"Anchors of {side}", 1, max(most, 1), usual, 10, key=key))
    state = int(kept(st.number_input, f"Random state of {side}", 0, 10_000, 0, key=state_key))
    return f"{number} {chosen}, state {state}", compute.select_anchors(pair, number, chosen, state)


def _difference(
    workspace: Workspace, pair: Match, form: str, sides: list[tuple[str, tuple[str, ...]]]
) -> None:
    (name_a, a), (name_b, b) = sides
    if set(a) == set(b):
        st.info("Both sets are the same anchors. Choose another set for A or B.", icon=":material/info:")
        return
    if not compute.can_be_scored(pair, a, b):
        messages.info(compute.too_few_held_out(pair, a, b), icon=":material/info:")
        return
    settings = workspace.projection, workspace.k, workspace.convention
    changes = compute.score_differences(pair, form, b, a, *settings)
    metric = "mrr" if "mrr" in changes else next(iter(changes))
    first, form = changes[metric], f"({METRICS[metric].title}, {form})"
    size = f"{short(abs(first.value))} ± {short((first.high - first.low) / 2)}"
    if first.is_clear:
        better, worse = ("A", "B") if first.value > 0 else ("B", "A")
        text = f"**{better} is better than {worse} by {size} {form}.**"
        st.markdown(text + contradiction(first, changes, worse))
    else:
        sign = "−" if first.value < 0 else ""
        st.markdown(f"**No clear difference between A and B**: {sign}{size} {form}.")
    table = pd.DataFrame(
        [
            {"score": METRICS[one].title, "A less B, 95 %": change.describe(), "clear": change.is_clear}
            for one, change in changes.items()
        ]
    )
    st.dataframe(table, hide_index=True, width="content")
    n = min(len(pair) - len({*a, *b}), compute.DIFFERENCE_ROWS)
    st.caption(
        f"A: {plain_name(name_a)}, {counted(len(a), 'anchor')}. B: {plain_name(name_b)},"
        f" {counted(len(b), 'anchor')}; {len({*a} & {*b}):,} in both. Both are scored on the same {n:,}"
        " held-out rows, which are anchors of neither, with the same queries. The intervals are those of the"
        " paired difference."
    )
    with st.container(horizontal=True):
        for side, (name, ids) in zip("AB", sides, strict=True):
            if ids != workspace.anchors:
                st.button(
                    f"Use {side}",
                    key=f"sets.use-{side}",
                    on_click=session.set_anchors,
                    args=(f"use {name}", ids),
                )


def contradiction(first: Difference, changes: Mapping[str, Difference], worse: str) -> str:
    """Names the scores that clearly prefer the other set, "" where none does."""
    other = [
        METRICS[name].title
        for name, one in changes.items()
        if one.is_clear and (one.value > 0) != (first.value > 0)
    ]
    return f" But {worse} has the higher {' and '.join(other)}." if other else ""
