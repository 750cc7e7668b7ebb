"""Choose anchors by search, from an uploaded list or a named set; compare two sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
import streamlit as st

from app import compute, exports, messages, session
from app.drift import passport
from app.glossary.card import caption
from app.items import Items, items_of
from app.page_settings import kept
from app.plain_text import plain_name
from app.workspace import MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError, quote
from relcore.base.names import METRICS, STRATEGIES
from relcore.base.numbers import counted, short, signed
from relcore.base.text import lines_of
from relcore.scores.score import Interval, Score
from relcore.spaces.matching import Match


def pickers(workspace: Workspace, pair: Match) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="anchor-pickers"):
        st.text_input(
            "Add anchors by name",
            placeholder="river, mountain, sea" if pair.source.counts is not None else ", ".join(pair.ids[:2]),
            key="anchors.search",
            on_change=_add_typed,
            args=(pair,),
            help=(
                "Separate names with commas. You can also draw with the lasso, click a point, or choose a"
                " strategy above (★)."
            ),
            width=420,
        )
        if (items := items_of(workspace)) is not None:
            st.text_input(
                "Find items",
                placeholder="part of a sentence, or a label" if items.has_texts else "a label or an id",
                key="anchors.find",
                on_change=_find,
                args=(pair, items),
                help=("Selects the items found, like the lasso; the inspector adds or removes them."),
                width=280,
            )


def _find(pair: Match, items: Items) -> None:
    query = st.session_state["anchors.find"]
    found = items.find(pair, query)
    session.select(found)
    if query.strip():
        session.announce(f"{len(found):,} found." if found else f"Nothing found for “{query.strip()}”.")


def _add_typed(pair: Match) -> None:
    words = map(str.strip, st.session_state["anchors.search"].split(","))
    _add(pair, list(filter(None, words)))
    st.session_state["anchors.search"] = ""


def _add(pair: Match, ids: list[str], replace: bool = False) -> None:
    """Add the ids that both spaces have, or make them the only anchors; other ids are ignored."""
    ids = pair.source.as_written(ids)
    known = tuple(identifier for identifier in ids if identifier in pair.source.index)
    unknown = [identifier for identifier in ids if identifier not in pair.source.index]
    listed = f"{quote(unknown[:5])}{', …' if len(unknown) > 5 else ''}"
    if unknown and not known:
        session.notify(
            f"anchors: expected ids of rows that both spaces have, got {len(unknown):,} unknown: {listed};"
            " check the spelling"
        )
        return
    if unknown:
        missing = counted(len(unknown), "id is", "ids are")
        session.announce(
            f"{counted(len(known), 'anchor')} used. {missing} not in both spaces and left out: {listed}."
        )
    if replace:
        session.set_anchors(f"use a list of {len(known)}", known)
    else:
        session.add_anchors(known)


def named_sets(workspace: Workspace, pair: Match) -> None:
    keep, files = st.columns(2, gap="large")
    with keep:
        st.text_input(
            "Save these anchors as",
            placeholder="frequent verbs",
            key="anchors.set-name",
            on_change=_keep_set,
            max_chars=80,
        )
        for name, ids in workspace.named_sets:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.button(
                    f"{plain_name(name)} · {len(ids):,}",
                    key=f"anchors.use-{name}",
                    icon=":material/star:",
                    on_click=session.set_anchors,
                    args=(f"use set “{name}”", ids),
                )
                st.button(
                    "",
                    key=f"anchors.forget-{name}",
                    icon=":material/delete:",
                    help="Forget",
                    on_click=_forget,
                    args=(name,),
                )
    with files:
        uploaded = st.file_uploader("List of ids, one per line", type=["txt", "csv"], key="anchors.upload")
        if uploaded is not None:
            with st.container(horizontal=True):
                st.button("Replace the anchors", on_click=_upload, args=(pair, uploaded.getvalue(), True))
                st.button("Add it", on_click=_upload, args=(pair, uploaded.getvalue(), False))
        text = "\n".join(workspace.anchors) + "\n"
        exports.download("Download the anchors", text, "anchors.txt", "text/plain", "anchors.download")
        passport.download(workspace, workspace.source, "anchors.passport")


def _keep_set() -> None:
    name = st.session_state["anchors.set-name"].strip()
    if name:
        workspace = session.workspace()
        kept = dict(workspace.named_sets) | {name: workspace.anchors}
        session.edit(f"save set “{name}”", named_sets=tuple(kept.items()))
        st.session_state["anchors.set-name"] = ""


def _forget(name: str) -> None:
    kept = tuple(named for named in session.workspace().named_sets if named[0] != name)
    session.edit(f"forget set “{name}”", named_sets=kept)


def _upload(pair: Match, content: bytes, replace: bool) -> None:
    try:
        _add(pair, read_ids(content), replace)
    except SpaceError as error:
        session.notify(str(error))


def read_ids(content: bytes) -> list[str]:
    """The ids in a text file, one per line; raises a SpaceError if there are none."""
    lines = lines_of(content, "list", "one id per line")
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise SpaceError("list: expected one id per line, got an empty file; choose another")
    return ids


_CURRENT = "current anchors"


def compare_sets(workspace: Workspace, pair: Match) -> None:
    form = workspace.form
    sides = []
    for name, column in zip("AB", st.columns(2, gap="large"), strict=True):
        with column:
            sides.append(_choose(name, workspace, pair))
    if all(ids for _, ids in sides):
        _difference(workspace, pair.pair(), form, sides)


def _choose(side: str, workspace: Workspace, pair: Match) -> tuple[str, tuple[str, ...]]:
    named = {f"set “{name}”": ids for name, ids in workspace.named_sets}
    strategies = [name for name in STRATEGIES if name != "class-balanced" or pair.source.labels is not None]
    options = [*([_CURRENT] if workspace.anchors else []), *named, *strategies]
    usual = 0 if side == "A" or len(options) == 1 else options.index("farthest-point")
    chosen = kept(st.selectbox, f"Set {side}", options, usual, key=f"sets.{side}-{len(named)}")
    if chosen == _CURRENT:
        return chosen, workspace.anchors
    if chosen in named:
        return chosen, tuple(anchor for anchor in named[chosen] if anchor in pair.source.index)
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
    metric = headline_metric(changes)
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
            {"score": METRICS[name].title, "A less B, 95 %": change.describe(), "clear": change.is_clear}
            for name, change in changes.items()
        ]
    )
    st.dataframe(table, hide_index=True, width="content")
    n = min(compute.n_held_out(pair, a, b), compute.DIFFERENCE_ROWS)
    caption(
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


def headline_metric(names: Iterable[str]) -> str:
    """The metric that decides which of two sets of anchors is better."""
    names = list(names)
    return next((name for name in ("mrr", "class agreement") if name in names), names[0])


def step_between(before: Score, now: Score, change: Interval) -> str | None:
    """``+.057 from .781``: the difference of two scores as they are printed. None if they have different
    queries or neighbours, or if the paired `change` does not confirm which is larger."""
    step = round(round(float(now), 3) - round(float(before), 3), 3)
    measured = ((score.k, score.interval is None) for score in (before, now))
    if len({*measured}) > 1 or not change.is_clear or step * change.value <= 0:
        return None
    return f"{signed(step)} from {short(before)}"


def contradiction(first: Interval, changes: Mapping[str, Interval], worse: str) -> str:
    other = [
        METRICS[name].title
        for name, change in changes.items()
        if change.is_clear and (change.value > 0) != (first.value > 0)
    ]
    return f" But {worse} has the higher {' and '.join(other)}." if other else ""
