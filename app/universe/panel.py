"""The Universe tab: many models in one space, how well they agree, a map that they share, any into any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.lib.format import write_array

from app import compute, exports, jobs, messages, results, session
from app.components.small_maps import SmallMap, small_maps
from app.page_settings import kept, segments
from app.places import DATA, EXPLORE, go
from app.plain_text import plain, plain_html
from app.universe import methods, similarity
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.examples import EXAMPLES, example_spaces
from relcore.maps.views import default_view, make_view, sample_view
from relcore.represent.similarity import unit_rows
from relcore.scores.neighbours import nearest_directions
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import short_names
from relcore.universe.charts import CHARTS, UniverseChart, charts_of, on_one_map
from relcore.universe.universe import MOST_SPACES, SUFFIX, Universe, UniverseSpec

_OWN, _PICKED, _ALL = "own", "relscope.universe-picked", "Mean of all"
_STARTS_ITSELF = 20.0  # seconds
_PLAYS, _SECONDS = "universe.plays", 1.5
_FEWEST = 3
_MOST_DRAWN = 700
_SHOWN, _NEAR = 6, 3
_OTHERS = {"similarity": "Other scores", "methods": "Methods"}


def page(workspace: Workspace) -> None:
    if st.session_state.pop(similarity.OPENS, False):
        go(EXPLORE)
    own = [spec for spec in workspace.spaces if compute.digest_or_blank(spec)]
    titles = {_OWN: "Spaces of this session"} | EXAMPLES if len(own) >= _FEWEST else EXAMPLES
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        look = {"help": "With three spaces or more in the session, these come first."}
        name = segments("Models", titles, f"universe.of{'-own' * (_OWN in titles)}", **look)
        details = st.popover("Method details", icon=":material/tune:", key="universe.details")
        if _OWN not in titles:
            label = "Add your spaces"
            if st.button(label, icon=":material/add:", type="tertiary", key="universe.data"):
                go(DATA)
    st.caption(
        "Each model gets one map into a space that all share, instead of one map for every pair. Rows that no"
        " map was fitted on show how well the models agree."
    )
    specs = own if name == _OWN else example_spaces(name, jobs.engine().store.finished)[0]
    with details:
        specs, task = _settings(specs)
    if len(specs) < 2:
        messages.info("Choose two spaces or more.", icon=":material/hub:")
        return
    try:
        _result(workspace, tuple(specs), task)
    except SpaceError as error:
        messages.error(error)
        similarity.draw(workspace, specs)


def _settings(specs: Sequence[SpaceSpec]) -> tuple[list[SpaceSpec], UniverseSpec]:
    labels = space_labels(specs)
    chosen = kept(
        st.multiselect,
        "Spaces",
        list(labels),
        default=list(labels)[:MOST_SPACES],
        format_func=labels.get,
        key=f"universe.spaces-{results.place_of(specs)}",
        max_selections=MOST_SPACES,
    )
    lengths = kept(
        st.toggle,
        "Keep the lengths of rows",
        key="universe.lengths",
        help="Off, rows are brought to length 1 first, as search by cosine does.",
    )
    correct = kept(
        st.toggle,
        "Correct towards the consensus",
        key="universe.correct",
        help="A small further map of each space, kept only where it helps held-out rows.",
    )
    return chosen, UniverseSpec(unit=not lengths, correct=correct)


def _result(workspace: Workspace, specs: tuple[SpaceSpec, ...], task: UniverseSpec) -> None:
    spaces = [compute.load_space(spec) for spec in specs]
    label = f"Bring {len(specs)} spaces into one"
    universe = results.computed(task, specs, label=label, unasked_seconds=_STARTS_ITSELF, spaces=spaces)
    if universe is None:
        return
    messages.lead(f"<b>{plain_html(universe.headline())}</b>")
    left, right = st.columns([1.35, 1], gap="large")
    with left:
        _chart(workspace, specs, spaces, task, universe)
    with right:
        pace = _SECONDS if st.session_state.get(_PLAYS) else None
        st.fragment(_one_map, run_every=pace)(universe, spaces)
    st.caption(plain(universe.circumstances()))
    _translations(universe, spaces)


def _chart(
    workspace: Workspace,
    specs: tuple[SpaceSpec, ...],
    spaces: Sequence[LatentSpace],
    task: UniverseSpec,
    universe: Universe,
) -> None:
    titles = charts_of(universe) | _OTHERS
    chart = segments("Show", titles, f"universe.chart-{len(titles)}", label_visibility="collapsed")
    if chart == "similarity":
        similarity.draw(workspace, specs)
    elif chart == "methods":
        methods.draw(workspace)
    else:
        digests = tuple(space.digest for space in spaces)
        recipe = UniverseChart(spaces=specs, digests=digests, universe=task, chart=chart)
        drawn = recipe.draw(universe)
        by_name = dict(zip(universe.names, specs, strict=True))
        picked = st.session_state.get(_PICKED)
        key = f"universe.{chart}-{results.place_of(specs, picked, workspace.source, workspace.target)}"
        pick = partial(_pick, by_name, drawn.table(), chart) if chart != "performance" else None
        exports.chart(drawn.interactive(exports.theme()), key, picked=pick)
        told = f"{CHARTS[chart].help[0].upper()}{CHARTS[chart].help[1:]}."
        if picked in by_name:
            told += f" **{plain(picked)}** is chosen: click another one to compare the two in Explore."
        elif pick:
            told += " Click a cell" if chart == "accuracy" else " Click two models"
            told += " to compare the two in Explore."
        st.caption(told)
        exports.export_bar(drawn, f"universe-{chart}")


def _pick(
    by_name: Mapping[str, SpaceSpec],
    table: pd.DataFrame,
    chart: str,
    points: Sequence[Mapping[str, Any]],
) -> None:
    if not points:
        return
    if chart == "accuracy":
        names = list(by_name)
        _, i, j = points[0]["customdata"]
        first, second = names[i], names[j]
    else:
        shown = list(short_names(list(by_name))[0])
        at = shown.index(table["name"][int(points[0]["customdata"])])
        first, second = st.session_state.pop(_PICKED, None), list(by_name)[at]
    if first not in by_name:
        st.session_state[_PICKED] = second
    elif first != second:
        session.guarded(similarity.compare, by_name[first], by_name[second])


def _one_map(universe: Universe, spaces: Sequence[LatentSpace]) -> None:
    """The rows of one space after the other on a map that stays; the points move between them."""
    names = [_ALL, *universe.names]
    short = dict(zip(names, [_ALL, *short_names(universe.names)[0]], strict=True))
    key, plays = f"universe.shown-{results.place_of((), *names)}", st.session_state.get(_PLAYS, False)
    if plays:
        at = names.index(st.session_state.get(key, names[0]))
        st.session_state[key] = names[(at + 1) % len(names)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        shown = st.select_slider("One map for all", names, format_func=short.get, key=key)
        if st.toggle("Play", key=_PLAYS, help="Shows one after the other, such as checkpoints.") != plays:
            st.rerun()
    found = _drawn(universe, *spaces)
    if found is None:
        st.caption("No row is in all of these spaces.")
        return
    rows, colors, labelled, places = found
    palette = np.array([*exports.theme().category_colors(max(colors.max() + 1, 1)), exports.theme().neutral])
    every = np.concatenate(list(places.values()))
    low, high = np.percentile(every, 0.5, axis=0), np.percentile(every, 99.5, axis=0)
    reach = 0.56 * float((high - low).max())
    alt = f"Map of {len(rows)} rows of {short[shown]}, by the first two principal axes of all models' mean"
    one = SmallMap(short[shown], places[shown], (low + high) / 2, reach, alt)
    small_maps([one], "universe.map", names=rows, colors=palette[colors].tolist(), labelled=labelled)
    st.caption(
        f"{len(rows):,} rows. The axes belong to no model: what moves, the models see differently. A rotated"
        " copy of a model does not move."
    )


@compute.cached(8)
def _drawn(
    universe: Universe, *spaces: LatentSpace
) -> tuple[list[str], np.ndarray, list[int], dict[str, np.ndarray]] | None:
    """Names and colours of rows, those with a label on the map, and their places by name of a space."""
    ids = pd.Index(np.concatenate([universe.ids, universe.test_ids]))
    for space in spaces:
        ids = ids[ids.isin(space.index[space.norms > 0])]
    if not len(ids):
        return None
    first = next((space for space in spaces if space.labels is not None), spaces[0])
    first = first.take(first.rows(ids))
    view = sample_view(make_view(first, replace(default_view(first), n_nearest=60)), _MOST_DRAWN)
    maps = on_one_map(universe, spaces, first.ids[view.rows])
    places = {_ALL: np.mean(maps, axis=0)} | dict(zip(universe.names, maps, strict=True))
    names = first.ids[view.rows].tolist()
    labelled = []
    for number, title in enumerate(view.category_names):
        inside = np.flatnonzero(view.categories == number)
        if len(inside):
            middle = np.median(places[_ALL][inside], axis=0)
            row = int(inside[np.linalg.norm(places[_ALL][inside] - middle, axis=1).argmin()])
            names[row] = str(title)
            labelled.append(row)
    return names, view.categories, labelled, places


def _translations(universe: Universe, spaces: Sequence[LatentSpace]) -> None:
    """Any space into any other: some held-out rows with their nearest rows there, and files."""
    st.markdown("#### Any model into any other")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        look = {"width": 240}
        source = kept(st.selectbox, "Rows of", universe.names, key="universe.from", **look)
        others = [name for name in universe.names if name != source]
        target = kept(st.selectbox, "in the space of", others, key=f"universe.to-{source}", **look)
        rows = dict(zip(universe.names, spaces, strict=True))
        by_row = f"All {len(rows[source]):,} rows of {plain(source)}, in their order"
        name = f"{source}-as-{target}.npy"
        make = partial(_translated, universe, rows[source], source, target)
        exports.download(
            "Translated rows", make, name, "application/octet-stream", "universe.rows", help=by_row
        )
        told = "One map for each model, scores and digests: relscope universe add and map, relcore.Universe"
        make = universe.to_bytes
        look = {"help": told, "type": "tertiary"}
        exports.download(
            "Universe file", make, f"models{SUFFIX}", "application/octet-stream", "universe.file", **look
        )
    st.dataframe(
        _examples(universe, rows[source], rows[target], source, target),
        hide_index=True,
        key="universe.examples",
    )


@compute.cached(16)
def _examples(
    universe: Universe, source: LatentSpace, target: LatentSpace, first: str, second: str
) -> pd.DataFrame:
    """Held-out rows of a space, translated, and the nearest rows of the other one."""
    ids = pd.Index(universe.test_ids)
    ids = ids[ids.isin(source.index) & ids.isin(target.index)]
    if not len(ids):
        return pd.DataFrame(columns=["row", "nearest there"])
    some = ids[:: max(1, len(ids) // _SHOWN)][:_SHOWN]
    asked = universe.map(source.vectors[source.rows(some)], first)
    there = universe.map(target.vectors[target.rows(ids)], second)
    near = nearest_directions(unit_rows(asked), unit_rows(there), min(_NEAR, len(ids)))
    names = _texts(target, ids)
    own = dict(zip(ids, names, strict=True))
    return pd.DataFrame(
        {
            "row": [own[one] for one in some],
            **{f"nearest {k + 1}": [names[i] for i in column] for k, column in enumerate(near.T)},
        }
    )


def _texts(space: LatentSpace, ids: pd.Index) -> list[str]:
    rows = space.rows(ids)
    if space.labels is None:
        return list(map(str, ids))
    return [
        f"{one} ({space.labels[row]})" if space.labels[row] else str(one)
        for one, row in zip(ids, rows, strict=True)
    ]


def _translated(universe: Universe, space: LatentSpace, source: str, target: str) -> bytes:
    content = BytesIO()
    write_array(content, universe.translate(space.vectors, source, target))
    return content.getvalue()
