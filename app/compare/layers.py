"""Layer by layer: all layers of one model compared with all layers of another, by similarity and stitched
accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, messages, results, session
from app.compare.all_pairs import settings_of
from app.plain_text import plain, plain_html
from app.stitch.panel import shared
from app.widgets import choose_pair, space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METHODS, METRICS
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.all_pairs import metrics_among_spaces
from relcore.compare.layers import LayerMaps, LayerPairs, LayerScores, best_stitched_told, best_told, models
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchResult, StitchSpec

N_ANCHORS = 300
_BY_HAND = "Spaces by hand"
_ANCHORS = {"session": "This session's", "random": f"{N_ANCHORS} random"}
_KEEP = {"persist_state": "session"}


def layers(workspace: Workspace) -> None:
    """The section at the end of a page; shows nothing without layers and with fewer than three spaces."""
    found = {model.title: model.layers for model in models(workspace.spaces)}
    if not found and len(workspace.spaces) < 3:
        return
    st.subheader("Layer by layer", anchor=False)
    if not found:
        st.caption(
            "To compare layers here, encode a dataset with several layers of one model on the Spaces page."
            " Checkpoints loaded from files can be chosen by hand."
        )
        if not st.toggle("Choose spaces by hand", key="layers.by-hand", **_KEEP):
            return
    sides = _sides(workspace, found)
    specs = tuple(dict.fromkeys((*sides[0], *sides[1])))
    if not sides[0] or not sides[1] or len(specs) < 2:
        st.info("Choose a space for the rows and another for the columns.", icon=":material/grid_on:")
        return
    try:
        _draw(workspace, specs, *([specs.index(spec) for spec in side] for side in sides))
    except SpaceError as error:
        messages.error(error)


def _sides(workspace: Workspace, found: dict[str, tuple[SpaceSpec, ...]]) -> list[tuple[SpaceSpec, ...]]:
    """The spaces of the rows and of the columns: layers of a model, or chosen by hand."""
    labels, options, sides = space_labels(workspace.spaces), [*found, _BY_HAND], []
    place = results.place_of(workspace.spaces)
    for number, (name, column) in enumerate(
        zip(("Rows", "Columns"), st.columns(2, gap="medium"), strict=True)
    ):
        with column:
            usual = min(number, max(len(found) - 1, 0))
            chosen = (
                st.selectbox(name, options, usual, key=f"layers.{name.lower()}-{place}", **_KEEP)
                if found
                else _BY_HAND
            )
            if chosen == _BY_HAND:
                key = f"layers.{name.lower()}-by-hand-{place}"
                sides.append(
                    tuple(st.multiselect(f"{name}, spaces", labels, format_func=labels.get, key=key, **_KEEP))
                )
            else:
                sides.append(found[chosen])
    return sides


def _draw(workspace: Workspace, specs: tuple[SpaceSpec, ...], rows: list[int], columns: list[int]) -> None:
    spaces, titles = [compute.load_space(spec) for spec in specs], metrics_among_spaces()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        look = {"required": True, **_KEEP}
        metric = st.segmented_control(
            "Similarity", titles, default="cka", format_func=titles.get, key="layers.metric", **look
        )
        method = st.segmented_control(
            "Stitching",
            ["relative", "whitened"],
            default="relative",
            format_func=lambda one: METHODS[one].title,
            key="layers.method",
            help="The representation that heads read. Both layers are relative to the same anchors.",
            **look,
        )
        usual = "session" if workspace.anchors else "random"
        anchors_from = st.segmented_control(
            "Anchors of the stitching",
            list(_ANCHORS) if workspace.anchors else ["random"],
            default=usual,
            format_func=_ANCHORS.get,
            key=f"layers.anchors-{usual}",
            help="Random anchors are drawn from the training rows.",
            **look,
        )
    if "anchors" in METRICS[metric].needs and not workspace.anchors:
        st.info(
            "No anchors yet: choose some in the sidebar, or pick them on the Anchors page.",
            icon=":material/star:",
        )
        return
    settings = {"metric": metric, "rows": tuple(rows), "columns": tuple(columns), **settings_of(workspace)}
    label = f"Compare {len(rows)} × {len(columns)} layers"
    scores = results.computed(LayerPairs.of(**settings), specs, label=label, spaces=spaces, slower=2.0)
    result, stitching = None, _stitching(workspace, specs, method, anchors_from)
    if isinstance(stitching, str):
        st.caption(f"Not stitched: {plain(stitching)}")
    else:
        try:
            result = _stitched(specs, spaces, stitching)
        except SpaceError as error:
            st.caption(f"Not stitched: {plain(error)}")
    if scores is None:
        return
    digests = tuple(space.digest for space in spaces)
    recipe = LayerMaps(spaces=specs, digests=digests, stitching=stitching if result else None, **settings)
    figure = recipe.draw((scores, result))
    st.html(f'<p class="relscope-lead">{_lead(scores, result)}</p>')
    key = f"layers.map-{results.place_of((workspace.source, workspace.target))}"
    picked = [[specs[number] for number in side] for side in (rows, columns)]
    exports.chart(
        figure.interactive(exports.theme()), key, picked=lambda points: _pick(points, *picked), tools=False
    )
    st.caption(_circumstances(scores, result))
    exports.export_bar(figure, "layers")


def _stitching(
    workspace: Workspace, specs: tuple[SpaceSpec, ...], method: str, anchors_from: str
) -> StitchSpec | str:
    """How to stitch these spaces, or why they cannot be."""
    if any(spec.source == "bundled" for spec in specs):
        return "too few of the bundled words have a label."
    try:
        rows = shared(specs)
    except SpaceError as error:
        return str(error)
    apart = set(results.held_out_ids(specs))
    test_ids = tuple(identifier for identifier in rows.ids if identifier in apart)
    anchors = {"anchors": workspace.anchors}
    if anchors_from == "random":
        n_train = len(rows.ids) - len(test_ids) if test_ids else int(0.8 * len(rows.ids))
        anchors = {"n_anchors": max(1, min(N_ANCHORS, n_train // 2))}
    return StitchSpec((method,), test_ids=test_ids, **anchors)


def _stitched(
    specs: tuple[SpaceSpec, ...], spaces: Sequence[LatentSpace], spec: StitchSpec
) -> StitchResult | None:
    """Every layer with every head, from the store, at once or by a job; None meanwhile."""
    return results.computed(spec, specs, spaces=spaces, label=f"Stitch {len(spaces)} layers", slower=1.5)


def _lead(scores: LayerScores, result: StitchResult | None) -> str:
    told = [
        (
            f"Best: {one}."
            if (one := best_told(scores))
            else "None of these spaces can be compared with another."
        )
    ]
    if result is not None and (stitched := best_stitched_told(scores, result)):
        told.append(f"Best stitched: {stitched}.")
    return " ".join(map(plain_html, told))


def _circumstances(scores: LayerScores, result: StitchResult | None) -> str:
    told = [
        "The frame marks the best cell. Chance level: the rows of one side are permuted, with the same"
        " permutation for all cells."
    ]
    if scores.itself:
        told.append("Dotted cells compare a space with itself; they are not candidates for the best.")
    if result is not None:
        run, spec = result.runs[0], result.spec
        n_anchors = (
            f"{len(spec.anchors) or spec.n_anchors:,}"
            f" {'anchors of the session' if spec.anchors else 'random anchors'}"
        )
        told.append(
            "Right: accuracy of each column's head, trained on its own layer, on the rows of each row's"
            f" layer, with {n_anchors} and {counted(len(run.truth), 'held-out row')}. Small numbers: the head"
            " on its own layer, not stitched."
        )
    return " ".join(
        [
            *told,
            (
                "Hover over a cell for its chance level. Click a cell to compare its pair: the row becomes"
                " the source."
            ),
        ]
    )


def _pick(
    points: Sequence[Mapping[str, Any]], rows: Sequence[SpaceSpec], columns: Sequence[SpaceSpec]
) -> None:
    if pair := pair_of(points, rows, columns):
        session.guarded(choose_pair, *pair, f"compare {space_name(pair[0])} and {space_name(pair[1])}")


def pair_of(
    points: Sequence[Mapping[str, Any]], rows: Sequence[SpaceSpec], columns: Sequence[SpaceSpec]
) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The two spaces of the cell that was clicked, its row first; None for a space with itself, and where
    nothing is picked.
    """
    if not points:
        return None
    _, i, j = points[0]["customdata"]
    return (rows[i], columns[j]) if rows[i] != columns[j] else None
