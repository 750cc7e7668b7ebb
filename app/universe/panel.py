"""The tab Universe: many models in one common space, how well they agree, a shared map, and files of
translated rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.lib.format import write_array
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, jobs, messages, results, session, sharing
from app.glossary.card import caption
from app.items import draw_rows, found_html, items_of, rows_html
from app.page_settings import remembered, segments
from app.places import CONNECT, EXPLORE, go
from app.plain_text import bold_numbers, plain, plain_html
from app.spaces.pairing import replace_spaces
from app.tables import report_table
from app.universe.choosing import (
    DROPPED,
    MODELS,
    choose_models,
    draw_apart,
    draw_left_out,
    share_rows,
    with_models_of_the_session,
)
from app.universe.scores import OPENS, compare, compare_scores
from app.widgets import space_name
from app.workspace import BUNDLED, Workspace
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.catalog.catalog import SpaceSpec, base_of, numbered_spec
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.engine.nearest import nearest
from relcore.figures.export import Exportable
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import short_names
from relcore.spaces.space import LatentSpace
from relcore.universe.charts import (
    FEWEST_DRAWN_SPACES,
    MOST_LINED,
    UniverseChart,
    charts_of,
    is_strained,
)
from relcore.universe.retrieval import FEWEST_ROWS
from relcore.universe.sentences import extremes, rows_in_words
from relcore.universe.universe import SUFFIX, Universe, UniverseSpec

_OWN = "own"
_FILE = "file"
_PICKED = "relscope.universe-picked"
_FEWEST_MODELS = 3
_SHOWN = 6
_NEAR = 3
_ALL = 0.995  # a share that reads 100 %


def page(workspace: Workspace) -> None:
    if st.session_state.pop(OPENS, False):
        go(EXPLORE)
    st.caption(
        "How similar are many models? One linear map takes each model into a common space: each has a place"
        " on the map, and rows of any model can be translated into any other."
    )
    own = [spec for spec in workspace.spaces if compute.digest_or_blank(spec)]
    chosen = len(own) >= _FEWEST_MODELS or len(set(own) - set(BUNDLED)) > 1
    titles = {}
    if chosen:
        titles = {_OWN: "Spaces of this session"}
    titles |= EXAMPLES | {_FILE: "A file"}
    choosers = st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="universe-choosers"
    )
    with choosers:
        key = "universe.of"
        if _OWN in titles:
            key = MODELS
        name = segments(
            "Compare",
            titles,
            key,
            help="If the session has two spaces of your own, they come first.",
        )
    specs = own
    task = None
    try:
        if name == _FILE:
            return _file(workspace)
        if name == _OWN:
            specs = own
        else:
            example = example_spaces(name, jobs.queue().store.finished)[0]
            specs = with_models_of_the_session(example, own)
        specs, task = _settings(specs, workspace.models[:2], choosers, name)
        if len(specs) < 2:
            return messages.info("Choose two spaces or more.", icon=":material/hub:")
        chosen = specs
        specs = _largest_sharing_group(chosen, workspace.models[:2])
        if len(specs) < 2:
            st.caption(
                ":material/link_off: No two of these models share rows, so no common space can be made. These"
                " scores need none:"
            )
            return compare_scores(workspace, chosen)
        if apart := [spec for spec in chosen if spec not in specs]:
            draw_left_out(apart, chosen, _without_shared_rows(apart))
        if name == _OWN:
            unconfirmed = _spaces_paired_by_order(specs)
            _ask_pairing(unconfirmed)
            if unconfirmed:
                return None
        if name == _OWN:
            _say_not_shown(own, chosen, specs)
        _result(workspace, tuple(specs), task, chosen)
    except SpaceError as error:
        messages.error(error)
        if task:
            compare_scores(workspace, specs)
    return None


def _without_shared_rows(apart: Sequence[SpaceSpec]) -> str:
    share = "shares" if len(apart) == 1 else "share"
    return f"{share} no rows with the models that are compared"


def _say_not_shown(own: Sequence[SpaceSpec], chosen: Sequence[SpaceSpec], shown: Sequence[SpaceSpec]) -> None:
    """Say which spaces of the session are not chosen, and which of them can be added."""
    others = [spec for spec in own if spec not in chosen]
    if not others:
        return
    told = f"**Shown:** {_listed(shown)}. **Not shown:** {_listed(others)}."
    sharing = [spec for spec in others if any(share_rows(spec, one, sure=True) for one in shown)]
    if sharing:
        st.caption(f"{told} Rows in common with those shown: {_listed(sharing)}. Click above to add.")
    else:
        st.caption(f"{told} No rows in common with those shown.")


def _listed(specs: Sequence[SpaceSpec]) -> str:
    return plain(", ".join(map(space_name, specs)))


def _spaces_paired_by_order(specs: Sequence[SpaceSpec]) -> list[SpaceSpec]:
    """Those of the spaces that are paired with another one only by the order of their rows, without a user's
    confirmation."""
    return [
        one for one in specs if any(compute.is_paired_by_order(one, other) for other in specs if other != one)
    ]


def _ask_pairing(specs: Sequence[SpaceSpec]) -> None:
    if not specs:
        return
    with st.container(border=True, key="universe.unpaired"):
        names = plain(" and ".join(map(space_name, specs)))
        st.markdown(f"**How are the rows of {names} paired?** They have no ids. A common space needs pairs.")
        with st.container(horizontal=True):
            if st.button("Link the rows", icon=":material/hub:", key="universe.link", type="primary"):
                go(CONNECT, "Link")
            if st.button(
                "Pair by row order",
                help="Right if all have the same items in the same order.",
                icon=":material/format_list_numbered:",
                key="universe.by-order",
            ):
                numbered = {spec: numbered_spec(spec) for spec in specs}
                session.guarded(replace_spaces, "pair by row order", numbered)
                st.rerun()


def _largest_sharing_group(
    specs: Sequence[SpaceSpec], pair: Sequence[SpaceSpec] = (), sure: bool = False
) -> list[SpaceSpec]:
    """The largest group in which each space shares rows with another space of the group. The spaces keep
    their order. Of equally large groups, the one with the present pair is returned. If `sure`, rows paired
    only by an unconfirmed order do not count as shared."""

    groups: list[list[SpaceSpec]] = []
    for spec in specs:
        joined = [group for group in groups if any(share_rows(spec, one, sure=sure) for one in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(one for group in joined for one in group), spec])
    largest = max(groups, key=lambda group: (len(group), set(pair) <= set(group)), default=[])
    return [spec for spec in specs if spec in largest]


def _settings(
    specs: Sequence[SpaceSpec], pair: Sequence[SpaceSpec], choosers: DeltaGenerator, shown: str
) -> tuple[list[SpaceSpec], UniverseSpec]:
    # Leave out spaces that have a copy with linked ids.
    linked = {base_of(spec) for spec in specs if spec.source == "renamed"}
    usual = _largest_sharing_group([spec for spec in specs if spec not in linked], pair, sure=True)
    if not (len(usual) > 1):
        usual = _largest_sharing_group(specs, pair)
    dropped = st.session_state.get(DROPPED)
    if dropped in specs and dropped not in usual:
        usual = [*usual, dropped]
    with choosers:
        chosen = choose_models(specs, usual, shown)
        details = st.popover("Method details", icon=":material/tune:", key="universe.details")
    draw_apart(specs)
    with details:
        lengths = remembered(
            st.toggle,
            "Keep the lengths of rows",
            key="universe.lengths",
            help="Off: rows are scaled to length 1 first, as in search by cosine. On: for classifiers, which"
            " need the lengths.",
        )
    return chosen, UniverseSpec(unit=not lengths)


def _result(
    workspace: Workspace, specs: tuple[SpaceSpec, ...], task: UniverseSpec, chosen: Sequence[SpaceSpec]
) -> None:
    """Draw the universe of `specs`. Scores that need no common space are drawn of all that are `chosen`."""
    spaces = [compute.load_space(spec) for spec in specs]
    universe = results.result_of(
        task,
        specs,
        label=f"Bring {len(specs)} spaces into one",
        unasked_seconds=results.UNASKED_SECONDS,
        spaces=spaces,
    )
    if universe is None:
        return
    _show(
        workspace,
        universe,
        dict(zip(universe.names, specs, strict=True)),
        UniverseChart(spaces=specs, digests=tuple(space.digest for space in spaces), universe=task),
        chosen,
    )


def _file(workspace: Workspace) -> None:
    """Draw a chooser of universe files. Draw the chosen universe with those of its spaces that are available
    here."""
    with st.container(horizontal=True, vertical_alignment="top", gap="medium"):
        file = st.file_uploader(f"A file that ends in {SUFFIX}", type=[SUFFIX[1:]], key="universe.upload")
        typed = remembered(
            st.text_input,
            "Or its path on the machine that runs Relscope",
            key="universe.path",
            placeholder=f"models{SUFFIX}",
            help=sharing.help_with_paths("Nothing is copied or changed.") or None,
        ).strip()
    if file is None and not typed:
        return st.caption(
            f"relscope universe a.npy b.npy c.npy -o models{SUFFIX} writes such a file; so does “Universe"
            " file” below the models."
        )
    if file is not None:
        path = session.keep_upload(file)
    else:
        path = access.readable_path(typed)
    universe = _read(path)
    by_name = _here(universe, workspace.spaces)
    missing = [plain(member.name) for member in universe.members if member.name not in by_name]
    if missing:
        st.caption(
            f"Not in this session: {', '.join(missing)}. Add their vectors to see, translate and compare"
            " their rows."
        )
    _show(workspace, universe, by_name, None, list(by_name.values()))
    return None


@compute.cached(4, key=lambda path: (path, compute.file_stamps([path])))
def _read(path: Path) -> Universe:
    return Universe.load(path)


def _here(universe: Universe, specs: Sequence[SpaceSpec]) -> dict[str, SpaceSpec]:
    """The members of a universe that are among the spaces of the session and of the examples. They are found
    by their content."""
    examples = [spec for name in EXAMPLES for spec in example_spaces(name, jobs.queue().store.finished)[0]]
    by_digest = {compute.digest_or_blank(spec): spec for spec in [*examples, *specs]}
    members = {member.name: by_digest.get(member.digest) for member in universe.members}
    return {name: spec for name, spec in members.items() if spec is not None}


_MEASURED = (
    "<small>Measured on {} rows that no map was fitted on. Neighbours are searched among these only."
    " Explore's numbers differ: it searches among all rows, through anchors.</small>"
)


def _show(
    workspace: Workspace,
    universe: Universe,
    by_name: dict[str, SpaceSpec],
    recipe: UniverseChart | None,
    chosen: Sequence[SpaceSpec],
) -> None:
    """Draw a universe. `by_name` has those of its spaces that are available here. `recipe` draws its
    figures. `chosen` are the spaces whose other scores are shown."""
    spaces = {name: compute.load_space(spec) for name, spec in by_name.items()}
    report = universe.report()
    if np.isnan(universe.accuracy).all():  # the chart needs scores on held-out rows
        messages.lead(bold_numbers(report.sentence))
        st.caption(
            "Open spaces that share more rows, or confirm more links. Scores that need no common space:"
        )
        compare_scores(workspace, chosen)
        return
    first = ""
    if told := extremes(universe.table(), universe.best_chance):
        first = f"<strong>{plain_html(told)}</strong><br>"
    measured = _MEASURED.format(rows_in_words(universe.table()))
    messages.lead(f"{first}{bold_numbers(report.sentence)}{measured}")
    _say_unscored(universe, by_name, spaces, chosen)
    left, right = st.columns([1.35, 1], gap="large")
    with left:
        _chart(workspace, universe, by_name, recipe, chosen)
        with st.expander("How this was tested", icon=":material/fact_check:"):
            if len(universe.members) > 2:  # with two members, the chart shows the same numbers
                for table in report.tables:
                    report_table(table)
            for note in report.notes:
                caption(note)
    with right:
        st.markdown("**The same rows by each model**")
        drawn = _rows(recipe, universe, *spaces.items())
        exports.figure(
            drawn, f"universe.rows-{results.place_of((), universe.names, tuple(spaces))}", "universe-rows"
        )
        if spaces:
            st.caption(
                "Move the slider, or press ▶. A row that moves has other neighbours in the next model; a"
                " rotation alone moves no row."
            )
    if spaces:
        _translations(universe, spaces, by_name)


def _exportable(
    recipe: UniverseChart | None,
    chart: str,
    universe: Universe,
    spaces: Mapping[str, LatentSpace] | None = None,
) -> Exportable:
    drawn = replace(recipe or UniverseChart(spaces=()), chart=chart).draw(universe, spaces)
    if recipe:
        return drawn
    return replace(drawn, recipe=None)


@compute.cached(8)
def _drawn(recipe: UniverseChart | None, chart: str, universe: Universe) -> Exportable:
    return _exportable(recipe, chart, universe)


_is_strained = compute.cached(8)(is_strained)


@compute.cached(8)
def _rows(recipe: UniverseChart | None, universe: Universe, *spaces: tuple[str, LatentSpace]) -> Exportable:
    return _exportable(recipe, "rows", universe, dict(spaces))


def _say_unscored(
    universe: Universe,
    by_name: Mapping[str, SpaceSpec],
    spaces: Mapping[str, LatentSpace],
    chosen: Sequence[SpaceSpec],
) -> None:
    """If a model has no score with any other, say why, and offer to leave it out. A model of links needs
    confirmed ones."""
    silent = np.isnan(universe.accuracy).all(axis=0)
    unscored = [name for name, of in zip(universe.names, silent, strict=True) if of and name in by_name]
    guessed = [name for name in unscored if isinstance(spaces[name].ids, GuessedIds)]
    for names, reason in (
        (guessed, "pairs that Link guessed are not scored. Confirm more of them in Link to score it"),
        (
            [name for name in unscored if name not in guessed],
            f"fewer than {FEWEST_ROWS} held-out rows in common with each of the others",
        ),
    ):
        if names:
            draw_left_out([by_name[name] for name in names], chosen, f"no scores: {reason}")


def _chart(
    workspace: Workspace,
    universe: Universe,
    by_name: dict[str, SpaceSpec],
    recipe: UniverseChart | None,
    chosen: Sequence[SpaceSpec],
) -> None:
    titles = charts_of(universe)
    if len(chosen) > 1:
        titles = titles | {"similarity": "Other scores"}
    key_of_charts = f"universe.chart-{len(titles)}"
    chart = segments("Show", titles, key_of_charts, label_visibility="collapsed")
    if chart == "similarity":
        compare_scores(workspace, chosen)
    else:
        if "map" not in titles and len(universe.names) >= FEWEST_DRAWN_SPACES:
            _say_no_map(key_of_charts)
        drawn = _drawn(recipe, chart, universe)
        picked = st.session_state.get(_PICKED)
        pair = (workspace.source, workspace.target)
        key = f"universe.{chart}-{results.place_of(tuple(by_name.values()), picked, *pair)}"
        pick = None
        if len(by_name) > 1:
            pick = partial(_pick, universe.names, by_name, drawn.table(), chart)
        figure = drawn.interactive(exports.theme())
        if chart == "map" and picked in by_name:
            _ring(figure, drawn.table(), short_names(universe.names)[0][universe.names.index(picked)])
        exports.chart(figure, key, picked=pick)
        st.caption(_how_to_read(universe, chart, picked if picked in by_name else "", pick is not None))
        exports.export_bar(drawn, f"universe-{chart}")


def _how_to_read(universe: Universe, chart: str, picked: str, can_be_picked: bool) -> str:
    """The caption of a chart. `picked` is the model that was clicked last, or ""."""
    if chart == "map":
        told = (
            "Each dot is a model. The nearer two dots, the larger the share of rows whose nearest row in the"
            " other model is the same row. The map takes the mean of both directions; Table gives each."
        )
        if len(universe.names) <= MOST_LINED:
            told += " A line gives this share; without room, hover over a dot, or see Table."
        if np.nanmax(universe.accuracy) > _ALL:
            told += " Models that share 100 % stand side by side."
        if _is_strained(universe):
            told += " A plane has no room for all distances, so some are only about right: Table is exact."
    else:
        told = (
            "The share of rows whose nearest row is the same row, from the model at the left into the one"
            " above. Dashed: a model and itself."
        )
    if picked:
        told += f" **{plain(picked)}** is chosen: click another one to compare the two in Explore."
    elif can_be_picked:
        click = "Click two models"
        if chart == "accuracy":
            click = "Click a cell"
        told += f" {click} to compare the two in Explore."
    return told


def _say_no_map(key_of_charts: str) -> None:
    """Say why there is no map, and lead to scores that may differ."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="universe.no-map"):
        st.markdown(
            f"**No map:** it needs {FEWEST_DRAWN_SPACES} models whose scores differ. Other scores, such as"
            " CKA, may tell these apart.",
            width="stretch",
        )
        st.button(
            "See other scores",
            key="universe.others",
            icon=":material/grid_on:",
            on_click=st.session_state.update,
            args=({key_of_charts: "similarity"},),
        )


def _pick(
    names: Sequence[str],
    by_name: Mapping[str, SpaceSpec],
    table: pd.DataFrame,
    chart: str,
    points: Sequence[Mapping[str, Any]],
) -> None:
    if not points:
        return
    if chart == "accuracy":
        _, i, j = points[0]["customdata"]
        first = names[i]
        second = names[j]
    else:
        at = short_names(names)[0].index(table["name"][int(points[0]["customdata"])])
        first = st.session_state.get(_PICKED)
        second = names[at]
    if second not in by_name:
        return
    if first not in by_name:
        st.session_state[_PICKED] = second
        return
    st.session_state.pop(_PICKED, None)
    if first != second:
        session.guarded(compare, by_name[first], by_name[second])


def _ring(figure: Any, table: pd.DataFrame, name: str) -> None:
    """Ring the dot of the chosen model."""
    dot = table[table["name"] == name]
    ring = {"size": 18, "symbol": "circle-open", "color": exports.theme().accent, "line": {"width": 2.5}}
    look = {"mode": "markers", "marker": ring, "hoverinfo": "skip", "cliponaxis": False}
    figure.add_scatter(x=list(dot["x"]), y=list(dot["y"]), **look)


def _translations(
    universe: Universe, spaces: Mapping[str, LatentSpace], specs: Mapping[str, SpaceSpec]
) -> None:
    """Draw the translation of any space into any other: held-out rows with their nearest rows, and files to
    download."""
    st.markdown("### Any model into any other")
    short = dict(zip(universe.names, short_names(universe.names)[0], strict=True)).get
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        source = remembered(
            st.selectbox,
            "Rows of",
            list(spaces),
            format_func=short,
            key=f"universe.from-{len(spaces)}",
            width=240,
        )
        others = [name for name in universe.names if name != source]
        key = f"universe.to-{source}"
        target = remembered(st.selectbox, "in the space of", others, format_func=short, key=key, width=240)
        by_row = f"All {len(spaces[source]):,} rows of {plain(source)}, in their order"
        if universe.unit:
            by_row += ", scaled to length 1, as for search by cosine. A classifier may need the lengths:"
            by_row += " turn on Keep the lengths of rows in Method details."
        name = f"{source}-as-{target}.npy"
        make = partial(_translated_npy, universe, spaces[source], source, target)
        exports.download(
            "Translated rows", make, name, "application/octet-stream", "universe.rows", help=by_row
        )
        told = "One map for each model, scores and digests, for relscope universe and relcore.Universe"
        make = universe.to_bytes
        exports.download(
            "Universe file",
            make,
            f"models{SUFFIX}",
            "application/octet-stream",
            "universe.file",
            help=told,
            type="tertiary",
        )
    if target in spaces:
        caption(
            "Some held-out rows, translated, and the held-out rows of the other model nearest to them. If the"
            " right row is first, those after it have no colour."
        )
        draw_rows(_examples(universe, spaces[source], spaces[target], source, target, specs[target]))


@compute.cached(16)
def _examples(
    universe: Universe, source: LatentSpace, target: LatentSpace, first: str, second: str, spec: SpaceSpec
) -> str:
    """An HTML table of held-out rows of one space, with the nearest rows in the other space. `spec` is the
    spec of that other space."""
    ids = pd.Index(universe.test_ids)
    ids = ids[ids.isin(source.index) & ids.isin(target.index)]
    if not len(ids):
        return ""
    some = ids[:: max(1, len(ids) // _SHOWN)][:_SHOWN]
    asked = universe.map(source.vectors[source.rows(some)], first)
    there = universe.map(target.vectors[target.rows(ids)], second)
    near = ids.to_numpy()[nearest(unit_rows(asked), unit_rows(there), min(_NEAR, len(ids))).rows]
    every = list(dict.fromkeys([*some, *near.ravel()]))
    items = items_of(replace(Workspace(), source=spec, target=spec))
    if target.labels is None:
        labels = [""] * len(every)
    else:
        labels = target.labels[target.rows(every)]
    shown = dict(zip(every, rows_html(items, every), strict=True))
    label = dict(zip(every, labels, strict=True))
    head = (
        f"<th>row of {plain_html(first)}</th><th colspan={near.shape[1]}>nearest in {plain_html(second)}</th>"
    )
    lines = ""
    for one, found in zip(some, near, strict=True):
        alike = (found_html(shown[f], f == one, label[f] != "" and label[f] == label[one]) for f in found)
        cells = "".join(alike)
        if one == found[0]:  # the row was found, so those after it are no mistakes
            cells = found_html(shown[one], True, False) + "".join(f"<td>{shown[f]}</td>" for f in found[1:])
        lines += f"<tr><td>{shown[one]}</td>{cells}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _translated_npy(universe: Universe, space: LatentSpace, source: str, target: str) -> bytes:
    content = BytesIO()
    write_array(content, universe.translate(space.vectors, source, target))
    return content.getvalue()
