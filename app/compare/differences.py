"""Where two spaces differ: the classes and clusters that moved more than noise explains, with examples."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import compute, exports, messages, results, session
from app.glossary.card import caption
from app.items import items_of, with_items
from app.page_settings import remembered, segments
from app.plain_text import plain, plain_html
from app.tables import brushing_table, chosen_rows
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.compare.clusters import LEAST_ROWS
from relcore.compare.differences import COMPARED, NEIGHBOURS, Differences, FoundDifferences, with_anchors
from relcore.compare.differences_report import GroupDifferences, p_in_words, summary
from relcore.maps.pane_maps import View
from relcore.spaces.matching import Match, distinct_names

_LISTED = 200  # maximum number of rows at each end of the table, which is sorted by change
_JOB_SECONDS = 60.0  # seconds; a longer job waits for a click


def where_they_differ(workspace: Workspace, models: Match, drawn: View) -> None:
    pair = models.pair()
    table = compute.agreement(pair, drawn).rename(columns={"overlap": "neighbours kept"}).drop(columns="row")
    if len(table) == len(drawn.rows):
        part = "all"
    else:
        part = f"{len(table):,} of the"
    if len(table) > 2 * _LISTED:  # the table would be too long for the page
        table = pd.concat([table.head(_LISTED), table.tail(_LISTED)], ignore_index=True)
    shown, look = with_items(items_of(workspace), table)
    look["column_config"]["neighbours kept"] = st.column_config.ProgressColumn(
        min_value=0, max_value=1, format="%.3f"
    )
    brushing_table(shown, "differences.rows", height=300, **look)
    caption(
        "The rows that changed most stand first, then the rows that changed least. Click a column's head to"
        f" sort. Neighbours kept: Jaccard overlap of a row's {min(50, len(pair) - 1)} nearest neighbours in"
        f" the two absolute spaces (mutual kNN, centred), for {part} {counted(len(drawn.rows), 'row')} shown."
        " Select rows to mark them in the panes."
    )
    # Match only the two spaces, without further models, as the exported recipe does.
    _differences(workspace, compute.matched_models(workspace.source, workspace.target))


def _differences(workspace: Workspace, pair: Match) -> None:
    recipe = _recipe(workspace, pair)
    spaces = (pair.source, pair.target)
    task = recipe.task
    try:
        result = results.result_of(
            task, spaces=spaces, label="Compare the groups", unasked_seconds=_JOB_SECONDS
        )
    except SpaceError as error:
        messages.error(error)
        return
    if result is None:
        return
    result = _with_anchors(task.key(spaces), workspace.anchors, result, pair)
    messages.lead(plain_html(_lead(result, task)))
    exports.figure(recipe.draw(result), "differences.chart")
    caption(_circumstances(result, task))
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
            "group": [group.name for group in result.groups],
            "p": [p_in_words(group).removeprefix("p ").removeprefix("= ") for group in result.groups],
            "rows": [group.n for group in result.groups],
            "agreement": [group.agreement for group in result.groups],
            "expected": [group.expected for group in result.groups],
        }
    )
    picture, detail = st.columns([1.2, 1], gap="medium")
    with picture:
        number = st.column_config.NumberColumn(format="%.3f", width="small")
        chosen = chosen_rows(
            table,
            f"differences.table-{results.place_of((workspace.source, workspace.target), task)}",
            height=min(420, 38 * (len(table) + 1)),
            column_config=dict.fromkeys(("agreement", "expected"), number),
        )
    with detail:
        _detail(workspace, pair, result, chosen[0] if chosen else 0)


def _recipe(workspace: Workspace, pair: Match) -> GroupDifferences:
    classes = pair.source.labels is not None and len(set(pair.source.labels) - {""}) > 1
    if workspace.anchors:
        representations = COMPARED
    else:
        representations = COMPARED[:1]
    kinds = {}
    if classes:
        kinds = {"classes": "Classes"}
    kinds["clusters"] = "Clusters"
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="differences-choosers"):
        representation = segments(
            "Representation", representations, f"differences.representation-{len(representations)}"
        )
        kind = segments(
            "Groups",
            kinds,
            f"differences.groups-{len(kinds)}",
            help="Classes are the labels of the rows. Clusters are found by k-means in the source space.",
        )
        n_clusters = Differences.n_clusters
        most = max(2, min(200, len(pair) // LEAST_ROWS))
        if kind == "clusters":
            n_clusters = remembered(
                st.number_input,
                "Number of clusters",
                2,
                most,
                min(n_clusters, most),
                key=f"differences.clusters-{most}",
                width=160,
            )
        usual = max(1, min(NEIGHBOURS, len(pair) // 10))
        most = max(1, min(200, len(pair) - 1))
        k = remembered(
            st.number_input,
            "Neighbours of each row",
            1,
            most,
            usual,
            key=f"differences.k-{usual}",
            width=180,
        )
    specs = (workspace.source, workspace.target)
    settings = {"anchors": workspace.anchors, "projection": workspace.projection, "groups": kind}
    settings |= {"representation": representation, "n_clusters": int(n_clusters), "k": int(k)}
    return GroupDifferences(spaces=specs, digests=compute.digests(specs), **settings)


@st.cache_resource(max_entries=8, show_spinner=False)
def _with_anchors(
    key: str, anchors: tuple[str, ...], _result: FoundDifferences, _pair: Match
) -> FoundDifferences:
    return with_anchors(_result, _pair, anchors)


def _lead(result: FoundDifferences, task: Differences) -> str:
    judged = [group for group in result.groups if group not in result.too_small]
    first = (judged or result.groups)[0]
    text = summary(result, task.groups)
    if first.significant:
        return f"{text}. First: {'; '.join(group.name for group in result.moved[:3])}."
    return f"{text}. Lowest agreement: {first.name}, {short(first.agreement)}, {p_in_words(first)}."


def _circumstances(result: FoundDifferences, task: Differences) -> str:
    absolute = task.representation == "absolute"
    if absolute:
        where = "absolute spaces, centred"
    else:
        where = f"{task.representation} spaces, without anchors"
    rows = counted(result.n, "row")
    if len(result.rows) == result.n:
        compared = f"all {rows}"
    else:
        compared = f"{len(result.rows):,} of {rows}"
    small = f" Groups with fewer than {LEAST_ROWS} compared rows are left out: {result.left_out}."
    return (
        f"Agreement: Jaccard overlap of each row's {result.k} nearest neighbours in the two {where}, for"
        f" {compared}. Bars: 95 % band of a group if every row got the same noise (dense groups lose more"
        " neighbours by noise). A group moved, in one space or in both, if no such noise explains its"
        " agreement. The cause is not tested: more noise, wrong pairs, or a change that affects some groups"
        f" more than others. p is corrected for the number of groups.{small if result.left_out else ''}"
    )


def _detail(workspace: Workspace, pair: Match, result: FoundDifferences, place: int) -> None:
    group = result.groups[place]
    st.html(f'<p class="relscope-word">{plain_html(group.name)}</p>')
    st.caption(
        f"{counted(group.n, 'row')}, {group.n_queries:,} of them compared. Agreement"
        f" {short(group.agreement)}, expected {short(group.expected)} ({short(group.low)} …"
        f" {short(group.high)}), {p_in_words(group)}."
    )
    ids = tuple(pair.ids[result.belongs == place].tolist())
    st.button(
        f"Select its {counted(len(ids), 'row')} in the panes",
        icon=":material/highlight_alt:",
        on_click=session.select,
        args=(ids,),
        key="differences.select",
        width="stretch",
    )
    agreement = dict(zip(pair.ids[result.rows].tolist(), result.agreement.tolist(), strict=True))
    examples = pd.DataFrame(
        {"id": list(group.examples), "agreement": list(map(agreement.get, group.examples))}
    )
    shown, look = with_items(items_of(workspace), examples)
    st.caption("Rows of this group that lost most neighbours, compared with the expected loss:")
    brushing_table(shown, "differences.examples", **look)
    if not group.source_anchors:
        return
    sides = (group.source_anchors, group.target_anchors)
    names = distinct_names((pair.source, pair.target))
    listed = [
        f"{plain(name)}: {', '.join(map(plain, side))}" for name, side in zip(names, sides, strict=True)
    ]
    st.caption(f"Nearest anchors, by cosine to the group's mean direction. {'; '.join(listed)}.")
    st.button(
        "Select these anchors",
        on_click=session.select,
        args=(tuple(dict.fromkeys((*sides[0], *sides[1]))),),
        key="differences.anchors",
        type="tertiary",
        icon=":material/star:",
    )
