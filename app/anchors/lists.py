"""Choose anchors by a search, from an uploaded list or from a named set."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from app import exports, session
from app.anchors.passport import download_of_anchors
from app.items import Items, items_of
from app.plain_text import plain_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import counted, short, signed
from relcore.base.text import lines_of
from relcore.scores.score import Interval, Score
from relcore.spaces.matching import Match


def pickers(workspace: Workspace, pair: Match) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="anchor-pickers"):
        if pair.source.counts is not None:
            example = "river, mountain, sea"
        else:
            example = ", ".join(pair.ids[:2])
        st.text_input(
            "Add anchors by name",
            placeholder=example,
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
            placeholder = "a label or an id"
            if items.has_texts:
                placeholder = "part of a text, or a label"
            st.text_input(
                "Find items",
                placeholder=placeholder,
                key="anchors.find",
                on_change=_find,
                args=(pair, items),
                help="Selects the items found. The inspector adds them to the anchors or removes them.",
                width=280,
            )


def _find(pair: Match, items: Items) -> None:
    query = st.session_state["anchors.find"]
    found = items.find(pair, query)
    session.select(found)
    if query.strip():
        if found:
            text = f"{len(found):,} found."
        else:
            text = f"Nothing found for “{query.strip()}”."
        session.announce(text)


def _add_typed(pair: Match) -> None:
    _add(pair, list(filter(None, map(str.strip, st.session_state["anchors.search"].split(",")))))
    st.session_state["anchors.search"] = ""


def _add(pair: Match, ids: list[str], replace: bool = False) -> None:
    """Add those `ids` to the anchors that occur in both spaces, and ignore the others. With `replace`, they
    become the only anchors."""
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
                    on_click=session.edit,
                    args=(f"forget set “{name}”",),
                    kwargs={"named_sets": tuple(one for one in workspace.named_sets if one[0] != name)},
                )
    with files:
        uploaded = st.file_uploader("List of ids, one per line", type=["txt", "csv"], key="anchors.upload")
        if uploaded is not None:
            with st.container(horizontal=True):
                st.button("Replace the anchors", on_click=_upload, args=(pair, uploaded.getvalue(), True))
                st.button("Add it", on_click=_upload, args=(pair, uploaded.getvalue(), False))
        text = "\n".join(workspace.anchors) + "\n"
        exports.download("Download the anchors", text, "anchors.txt", "text/plain", "anchors.download")
        download_of_anchors(workspace, workspace.source, "anchors.passport")


def _keep_set() -> None:
    name = st.session_state["anchors.set-name"].strip()
    if name:
        workspace = session.workspace()
        kept = dict(workspace.named_sets) | {name: workspace.anchors}
        session.edit(f"save set “{name}”", named_sets=tuple(kept.items()))
        st.session_state["anchors.set-name"] = ""


def _upload(pair: Match, content: bytes, replace: bool) -> None:
    try:
        _add(pair, read_ids(content), replace)
    except SpaceError as error:
        session.notify(str(error))


def read_ids(content: bytes) -> list[str]:
    """The ids in a text file with one id per line. Raises a SpaceError if there are none."""
    ids = [line.strip() for line in lines_of(content, "list", "one id per line") if line.strip()]
    if not ids:
        raise SpaceError("list: expected one id per line, got an empty file; choose another")
    return ids


def headline_metric(names: Iterable[str]) -> str:
    """The name of the metric that decides which of two sets of anchors is better."""
    names = list(names)
    return next((name for name in ("mrr", "class agreement") if name in names), names[0])


def step_between(before: Score, now: Score, change: Interval) -> str | None:
    """The difference of two scores as text, such as ``+.057 from .781``. `change` is the confidence interval
    of their paired differences. Returns None if the interval does not confirm the sign, or if the scores have
    different queries or numbers of neighbours."""
    if before.k != now.k or (before.interval is None) != (now.interval is None):
        return None
    step = round(round(float(now), 3) - round(float(before), 3), 3)
    if not change.is_clear or step * change.value <= 0:
        return None
    return f"{signed(step)} from {short(before)}"
