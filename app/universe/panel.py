"""The Universe tab: many models in one space, how well they agree, a map that they share, any into any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from numpy.lib.format import write_array

from app import compute, exports, jobs, messages, results, session, sharing
from app.page_settings import kept, segments
from app.places import DATA, EXPLORE, go
from app.plain_text import plain, plain_html
from app.sharing import keep_upload
from app.universe import methods, similarity
from app.widgets import several_spaces
from app.workspace import Workspace
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.examples import EXAMPLES, example_spaces
from relcore.figures.export import Exportable
from relcore.represent.similarity import unit_rows
from relcore.scores.neighbours import nearest_directions
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import short_names
from relcore.universe.charts import CHARTS, UniverseChart, charts_of
from relcore.universe.universe import MOST_SPACES, SUFFIX, Universe, UniverseSpec

_OWN, _FILE, _PICKED = "own", "file", "relscope.universe-picked"
_STARTS_ITSELF = 20.0  # seconds
_FEWEST = 3
_SHOWN, _NEAR = 6, 3
_OTHERS = {"similarity": "Other scores", "methods": "Methods"}


def page(workspace: Workspace) -> None:
    if st.session_state.pop(similarity.OPENS, False):
        go(EXPLORE)
    own = [spec for spec in workspace.spaces if compute.digest_or_blank(spec)]
    titles = {_OWN: "Spaces of this session"} if len(own) >= _FEWEST else {}
    titles |= EXAMPLES | {_FILE: "A file"}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        look = {"help": "With three spaces or more in the session, these come first."}
        name = segments("Models", titles, f"universe.of{'-own' * (_OWN in titles)}", **look)
        details = (
            st.empty()
            if name == _FILE
            else st.popover("Method details", icon=":material/tune:", key="universe.details")
        )
        if _OWN not in titles:
            label = "Add your spaces"
            if st.button(label, icon=":material/add:", type="tertiary", key="universe.data"):
                go(DATA)
    st.caption(
        "Each model gets one map into a space that all share, instead of one map for every pair. Rows that no"
        " map was fitted on show how well the models agree."
    )
    specs, task = own, None
    try:
        if name == _FILE:
            return _file(workspace)
        specs = own if name == _OWN else example_spaces(name, jobs.engine().store.finished)[0]
        with details:
            specs, task = _settings(specs)
        if len(specs) < 2:
            return messages.info("Choose two spaces or more.", icon=":material/hub:")
        _result(workspace, tuple(specs), task)
    except SpaceError as error:
        messages.error(error)
        if task:
            similarity.draw(workspace, specs)
    return None


def _settings(specs: Sequence[SpaceSpec]) -> tuple[list[SpaceSpec], UniverseSpec]:
    chosen = several_spaces("Spaces", specs, "universe.spaces", MOST_SPACES)
    lengths = kept(
        st.toggle,
        "Keep the lengths of rows",
        key="universe.lengths",
        help="Off, rows are brought to length 1 first, as search by cosine does. Heads need the lengths.",
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
    digests = tuple(space.digest for space in spaces)
    _show(
        workspace,
        universe,
        dict(zip(universe.names, specs, strict=True)),
        UniverseChart(spaces=specs, digests=digests, universe=task),
    )


def _file(workspace: Workspace) -> None:
    """A universe from a file, with those of its spaces that are here."""
    with st.container(horizontal=True, vertical_alignment="top", gap="medium"):
        file = st.file_uploader(f"A file that ends in {SUFFIX}", type=[SUFFIX[1:]], key="universe.upload")
        typed = kept(
            st.text_input,
            "Or its path on the machine that runs Relscope",
            key="universe.path",
            placeholder=f"models{SUFFIX}",
            help=sharing.help_with_paths("Nothing is copied or changed.") or None,
        ).strip()
    if file is None and not typed:
        return st.caption(
            f"relscope universe a.npy b.npy c.npy -o models{SUFFIX} writes one, and so does “Universe file”"
            " below the models."
        )
    path = keep_upload(file, session.uploads_folder()) if file is not None else access.allowed(typed)
    universe = _read(path)
    by_name = _here(universe, workspace.spaces)
    missing = [plain(member.name) for member in universe.members if member.name not in by_name]
    if missing:
        st.caption(
            f"Not in this session: {', '.join(missing)}. Add their vectors to see, translate and compare"
            " their rows."
        )
    _show(workspace, universe, by_name, None)
    return None


@compute.cached(4, key=lambda path: (path, compute.file_stamps([path])))
def _read(path: Path) -> Universe:
    return Universe.load(path)


def _here(universe: Universe, specs: Sequence[SpaceSpec]) -> dict[str, SpaceSpec]:
    """Spaces of the session and of the examples that are members: by their content."""
    examples = [spec for name in EXAMPLES for spec in example_spaces(name, jobs.engine().store.finished)[0]]
    by_digest = {compute.digest_or_blank(spec): spec for spec in [*examples, *specs]}
    members = {member.name: by_digest.get(member.digest) for member in universe.members}
    return {name: spec for name, spec in members.items() if spec is not None}


def _show(
    workspace: Workspace, universe: Universe, by_name: dict[str, SpaceSpec], recipe: UniverseChart | None
) -> None:
    """All of a universe: `by_name` are those of its spaces that are here, `recipe` draws its figures."""
    spaces = {name: compute.load_space(spec) for name, spec in by_name.items()}
    messages.lead(f"<b>{plain_html(universe.headline())}</b>")
    left, right = st.columns([1.35, 1], gap="large")
    with left:
        _chart(workspace, universe, by_name, recipe)
    with right:
        st.markdown("**The same rows by each model**")
        drawn = _rows(recipe, universe, *spaces.items())
        exports.figure(
            drawn, f"universe.rows-{results.place_of((), universe.names, tuple(spaces))}", "universe-rows"
        )
        st.caption(
            "The axes belong to no model: what moves, the models see differently. A rotated copy of a model"
            " does not move."
        )
    st.caption(plain(universe.circumstances()))
    if spaces:
        _translations(universe, spaces)


def _drawn(
    recipe: UniverseChart | None,
    chart: str,
    universe: Universe,
    spaces: Mapping[str, LatentSpace] | None = None,
) -> Exportable:
    drawn = replace(recipe or UniverseChart(spaces=()), chart=chart).draw(universe, spaces)
    return drawn if recipe else replace(drawn, recipe=None)


@compute.cached(8)
def _rows(recipe: UniverseChart | None, universe: Universe, *spaces: tuple[str, LatentSpace]) -> Exportable:
    return _drawn(recipe, "rows", universe, dict(spaces))


def _chart(
    workspace: Workspace, universe: Universe, by_name: dict[str, SpaceSpec], recipe: UniverseChart | None
) -> None:
    titles = charts_of(universe) | {name: title for name, title in _OTHERS.items() if len(by_name) > 1}
    chart = segments("Show", titles, f"universe.chart-{len(titles)}", label_visibility="collapsed")
    if chart == "similarity":
        similarity.draw(workspace, list(by_name.values()))
    elif chart == "methods":
        methods.draw(workspace)
    else:
        drawn = _drawn(recipe, chart, universe)
        picked, pair = st.session_state.get(_PICKED), (workspace.source, workspace.target)
        key = f"universe.{chart}-{results.place_of(tuple(by_name.values()), picked, *pair)}"
        pick = None
        if chart != "performance" and len(by_name) > 1:
            pick = partial(_pick, universe.names, by_name, drawn.table(), chart)
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
        first, second = names[i], names[j]
    else:
        at = short_names(names)[0].index(table["name"][int(points[0]["customdata"])])
        first, second = st.session_state.pop(_PICKED, None), names[at]
    if second not in by_name:
        return
    if first not in by_name:
        st.session_state[_PICKED] = second
    elif first != second:
        session.guarded(similarity.compare, by_name[first], by_name[second])


def _translations(universe: Universe, spaces: Mapping[str, LatentSpace]) -> None:
    """Any space into any other: some held-out rows with their nearest rows there, and files."""
    st.markdown("### Any model into any other")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        look = {"width": 240}
        source = kept(st.selectbox, "Rows of", list(spaces), key=f"universe.from-{len(spaces)}", **look)
        others = [name for name in universe.names if name != source]
        target = kept(st.selectbox, "in the space of", others, key=f"universe.to-{source}", **look)
        by_row = f"All {len(spaces[source]):,} rows of {plain(source)}, in their order"
        name = f"{source}-as-{target}.npy"
        make = partial(_translated, universe, spaces[source], source, target)
        exports.download(
            "Translated rows", make, name, "application/octet-stream", "universe.rows", help=by_row
        )
        told = "One map for each model, scores and digests: relscope universe add and map, relcore.Universe"
        make = universe.to_bytes
        look = {"help": told, "type": "tertiary"}
        exports.download(
            "Universe file", make, f"models{SUFFIX}", "application/octet-stream", "universe.file", **look
        )
    if universe.unit:
        st.caption(
            ":material/warning: These maps are of rows of length 1. Translated rows are right for search by"
            " cosine, not for a head that was trained on rows as they are; for those, turn on *Keep the"
            " lengths of rows* in Method details."
        )
    if target in spaces:
        st.dataframe(
            _examples(universe, spaces[source], spaces[target], source, target),
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
