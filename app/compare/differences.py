"""Where do two spaces differ? Classes and clusters that moved more than chance, with examples and their
nearest anchors.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import compute, exports, messages, results, session
from app.items import with_items
from app.plain_text import plain, plain_html
from app.tables import brushing_table, chosen_rows
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.compare.columns import LEAST_ROWS
from relcore.compare.differences import (
    FORMS,
    NEIGHBOURS,
    Differences,
    FoundDifferences,
    GroupDifferences,
    MovedGroup,
    p_told,
    summary,
    with_anchors,
)
from relcore.spaces.space import Match, distinct_names

_KEEP = {"persist_state": "session"}
_JOB_SECONDS = 60.0  # jobs up to this cost start without a click


def differences(workspace: Workspace, pair: Match) -> None:
    """The content of the tab: choosers, the chart, the table of groups, and one group in detail."""
    recipe = _chosen(workspace, pair)
    task = recipe.task
    try:
        spaces = (pair.source, pair.target)
        found = results.computed(
            task, label="Compare the groups", spaces=spaces, unasked_seconds=_JOB_SECONDS
        )
    except SpaceError as error:
        messages.error(error)
        return
    if found is None:
        return
    found = _with_anchors(
        task.key(spaces), results.place_of((), workspace.anchors), found, pair, workspace.anchors
    )
    figure = recipe.draw(found)
    st.html(f'<p class="relscope-lead">{plain_html(_lead(found, task))}</p>')
    exports.chart(figure.interactive(exports.theme()), "differences.chart", tools=False)
    st.caption(_circumstances(found, task))
    exports.export_bar(figure, "differences")
    st.button(
        "Colour the panes by agreement",
        icon=":material/palette:",
        on_click=session.edit_spec,
        args=("colour by agreement", "view"),
        kwargs={"color_by": "agreement"},
        key="differences.colour",
        disabled=workspace.view.color_by == "agreement",
    )
    table = pd.DataFrame(
        {
            "group": [group.name for group in found.groups],
            "p": [p_told(group, found).removeprefix("p ").removeprefix("= ") for group in found.groups],
            "rows": [group.n for group in found.groups],
            "agreement": [group.agreement for group in found.groups],
            "expected": [group.expected for group in found.groups],
        }
    )
    picture, detail = st.columns([1.2, 1], gap="medium")
    with picture:
        look = {
            name: st.column_config.NumberColumn(format="%.3f", width="small")
            for name in ("agreement", "expected")
        }
        key = f"differences.table-{results.place_of((workspace.source, workspace.target), task)}"
        chosen = chosen_rows(table, key, height=min(420, 38 * (len(table) + 1)), column_config=look)
    with detail:
        place = chosen[0] if chosen else 0
        _detail(workspace, pair, found, place)


def _chosen(workspace: Workspace, pair: Match) -> GroupDifferences:
    """The figure that the choosers describe."""
    classes = pair.source.labels is not None and len(set(pair.source.labels) - {""}) > 1
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="differences-choosers"):
        forms = FORMS if workspace.anchors else FORMS[:1]
        look = {"required": True, **_KEEP}
        form = st.segmented_control(
            "Representation", forms, default="absolute", key=f"differences.form-{len(forms)}", **look
        )
        kinds = ["classes", "clusters"] if classes else ["clusters"]
        kind = st.segmented_control(
            "Groups",
            kinds,
            default=kinds[0],
            format_func=str.capitalize,
            key=f"differences.groups-{len(kinds)}",
            help="Classes are the labels of the rows. Clusters are found by k-means in the source space.",
            **look,
        )
        n_clusters = Differences.n_clusters
        if kind == "clusters":
            most = max(2, min(200, len(pair) // LEAST_ROWS))
            n_clusters = st.number_input(
                "Number of clusters",
                2,
                most,
                min(n_clusters, most),
                key=f"differences.clusters-{most}",
                width=160,
                **_KEEP,
            )
        usual = max(1, min(NEIGHBOURS, len(pair) // 10))
        k = st.number_input(
            "Neighbours of each row",
            1,
            max(1, min(200, len(pair) - 1)),
            usual,
            key=f"differences.k-{usual}",
            width=180,
            help="A larger number compares wider neighbourhoods.",
            **_KEEP,
        )
    specs = (workspace.source, workspace.target)
    settings = {"representation": form, "anchors": workspace.anchors, "projection": workspace.projection}
    return GroupDifferences(
        spaces=specs,
        digests=compute.digests(specs),
        groups=kind,
        n_clusters=int(n_clusters),
        k=int(k),
        **settings,
    )


@st.cache_resource(max_entries=8, show_spinner=False)
def _with_anchors(
    key: str, anchors_key: str, _found: FoundDifferences, _pair: Match, _anchors: tuple[str, ...]
) -> FoundDifferences:
    return with_anchors(_found, _pair, _anchors)


def _lead(found: FoundDifferences, task: Differences) -> str:
    first = found.groups[0]
    told = summary(found, task.groups)
    if not first.significant:
        return (
            f"{told}. The lowest is {first.name}: {short(first.agreement)} of its neighbours kept,"
            f" {p_told(first, found)}."
        )
    names = "; ".join(group.name for group in found.moved[:3])
    return f"{told}. First: {names}."


def _circumstances(found: FoundDifferences, task: Differences) -> str:
    where = (
        "absolute spaces, centred"
        if task.representation == "absolute"
        else f"{task.representation} spaces, without anchors"
    )
    compared = (
        f"all {counted(found.n, 'row')}"
        if len(found.rows) == found.n
        else f"{len(found.rows):,} of {counted(found.n, 'row')}"
    )
    small = (
        f" Groups with fewer than {LEAST_ROWS} compared rows are left out: {found.left_out}."
        if found.left_out
        else ""
    )
    return (
        f"Agreement: Jaccard overlap of each row's {found.k} nearest neighbours in the two {where}, for"
        f" {compared}. Bars: 95 % band of a random group of the same size, if the spaces differed by the same"
        " noise everywhere (noise costs dense groups more neighbours). Noise in the source and noise in the"
        f" target are tested separately; a group moved if neither explains it. p: {found.n_permutations:,}"
        f" permutations, corrected for the number of groups.{small}"
    )


def _detail(workspace: Workspace, pair: Match, found: FoundDifferences, place: int) -> None:
    """One group: its examples, the anchors nearest to it, and a button that selects its rows."""
    group = found.groups[place]
    st.html(f'<p class="relscope-word">{plain_html(group.name)}</p>')
    st.caption(
        f"{counted(group.n, 'row')}, {group.n_queries:,} of them compared. Agreement"
        f" {short(group.agreement)}, expected {short(group.expected)} ({short(group.low)} …"
        f" {short(group.high)}), {p_told(group, found)}."
    )
    ids = tuple(pair.ids[found.belongs == place].tolist())
    st.button(
        f"Select its {counted(len(ids), 'row')} in the panes",
        icon=":material/highlight_alt:",
        on_click=session.select,
        args=(ids,),
        key="differences.select",
        width="stretch",
    )
    agreement = dict(zip(pair.ids[found.rows].tolist(), found.agreement.tolist(), strict=True))
    examples = pd.DataFrame(
        {"id": list(group.examples), "agreement": [agreement[one] for one in group.examples]}
    )
    shown, look = with_items(workspace, examples)
    st.caption("Its rows that lost most neighbours, compared with what was expected:")
    brushing_table(shown, "differences.examples", **look)
    _anchors(pair, group)


def _anchors(pair: Match, group: MovedGroup) -> None:
    if not group.source_anchors:
        return
    sides = zip(
        distinct_names((pair.source, pair.target)), (group.source_anchors, group.target_anchors), strict=True
    )
    told = "; ".join(f"{plain(name)}: {', '.join(map(plain, anchors))}" for name, anchors in sides)
    st.caption(f"Nearest anchors, by cosine to the group's mean direction. {told}.")
    st.button(
        "Select these anchors",
        on_click=session.select,
        args=(tuple(dict.fromkeys((*group.source_anchors, *group.target_anchors))),),
        key="differences.anchors",
        type="tertiary",
        icon=":material/star:",
    )
