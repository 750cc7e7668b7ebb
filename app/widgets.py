"""Choosers: widgets that show a value of the workspace and change it. The workspace is the truth, the
widget its picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app import compute, session
from app.page_settings import kept
from app.plain_text import plain
from app.session import anchors_origin, behind
from app.workspace import MOST_ANCHORS, MOST_NEIGHBOURS, Workspace
from relcore.base.access import all_uploads
from relcore.base.names import SIMILARITIES, STRATEGIES
from relcore.base.numbers import counted
from relcore.base.settings import Setting
from relcore.catalog.catalog import SpaceSpec
from relcore.files.formats import suffix_of
from relcore.scores.neighbours import CONVENTIONS
from relcore.spaces.space import Match


def bound(
    widget: Callable, label: str, key: str, value: Any, apply: Callable[[Any], None], **settings: Any
) -> Any:
    """A widget that shows `value` and calls ``apply(new value)`` when the user changes it.

    The value is set where the widget shows another one (after undo) or begins again (Streamlit forgets the
    widgets of a page that is left, and begins again where options or limits change). Elsewhere it is not: a
    run that is still under way would overwrite what the user has chosen meanwhile. It is the default, too:
    the browser draws that first, and sets what is set later; and Streamlit sends what is set once, so that a
    popover that is opened in a later run begins with the default.
    """
    kept, drawn = st.session_state, f"{key}:drawn"
    as_drawn = {name: setting for name, setting in settings.items() if name not in ("help", "format_func")}
    if key not in kept or kept[key] != value or kept.get(drawn) != as_drawn:
        kept[key] = value
    kept[drawn] = as_drawn
    if widget.__name__ == "selectbox":
        settings["index"] = list(settings["options"]).index(value)
    else:
        name = "default" if widget.__name__ in ("segmented_control", "multiselect") else "value"
        settings[name] = value
    return widget(label, key=key, on_change=lambda: session.guarded(apply, kept[key]), **settings)


def space_name(spec: SpaceSpec) -> str:
    """The name of its space: of a file the last part of the path, without the suffix; of an index that of
    its collection.
    """
    if spec.source == "encoding":
        return spec.name
    if spec.source == "index":
        return spec.option("table") or Path(spec.name).stem
    name = spec.name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    suffix = suffix_of(Path(name)) if spec.source == "file" else None
    return name[: -len(suffix)] if suffix else name


def space_labels(spaces: Sequence[SpaceSpec]) -> dict[SpaceSpec, str]:
    """A distinct name for each space: a chooser finds its options by their names."""
    labels: dict[SpaceSpec, str] = {}
    for spec in spaces:
        name, number = space_name(spec), 2
        if (
            name in labels.values()
            and spec.source in ("file", "sample")
            and not Path(spec.name).is_relative_to(all_uploads())
        ):
            name = f"{Path(spec.name).parent.name}/{name}"  # of checkpoints, each in a folder of its own
        plain = name
        while name in labels.values():
            name, number = f"{plain} ({number})", number + 1
        labels[spec] = name
    return labels


def space_choosers(workspace: Workspace) -> None:
    """Source and target among the spaces of this session, and a button that swaps them."""
    labels = space_labels(workspace.spaces)
    for side in ("source", "target"):
        if side == "target":
            st.button(
                "Swap",
                key="choose.swap",
                icon=":material/swap_vert:",
                help="Makes the target the source and the source the target",
                on_click=choose_pair,
                args=(workspace.target, workspace.source, "swap source and target"),
                type="tertiary",
            )
        bound(
            st.selectbox,
            side.capitalize(),
            f"choose.{side}",
            getattr(workspace, side),
            lambda spec, side=side: choose_space(side, spec),
            options=workspace.spaces,
            format_func=labels.get,
            help=plain(getattr(workspace, side).name),  # in full; of a file its path
        )


def choose_space(side: str, spec: SpaceSpec) -> None:
    """Make a space the source or the target, as one step."""
    workspace = session.workspace()
    pair = {"source": workspace.source, "target": workspace.target} | {side: spec}
    choose_pair(**pair, step=f"choose {space_name(spec)} as {side}")


def choose_pair(source: SpaceSpec, target: SpaceSpec, step: str) -> None:
    """Make two spaces source and target, as one step; the next run of the page fits anchors and pivots to
    them.
    """
    session.edit(step, source=source, target=target)


def strategy_choosers(pair: Match, key: str) -> None:
    """Strategy, number and random state; each change chooses new anchors, pinned ones stay."""
    strategy, n_anchors, random_state = anchors_origin(session.workspace())
    usable = [name for name in STRATEGIES if name != "class-balanced" or pair.source.labels is not None]

    def choose(**changed: Any) -> None:
        settings = {"strategy": strategy, "n_anchors": n_anchors, "random_state": random_state} | changed
        choose_anchors(pair, **settings)

    bound(
        st.selectbox,
        "Strategy",
        f"{key}.strategy",
        strategy,
        lambda value: choose(strategy=value),
        options=usable,
        help=(
            "Random: uniform. Farthest-point: each anchor is the row farthest from those already chosen."
            " k-means: the row nearest to each centroid. Most frequent: by corpus count. Class-balanced: the"
            " same number from each label."
        ),
    )
    bound(
        st.number_input,
        "Number of anchors",
        f"{key}.number",
        n_anchors,
        lambda value: choose(n_anchors=value),
        min_value=1,
        max_value=max(min(len(pair), MOST_ANCHORS), n_anchors),
        step=10,
        help="More anchors distinguish more rows and take longer to compute. The papers use 300 for words.",
    )


def choose_anchors(pair: Match, strategy: str, n_anchors: int, random_state: int) -> None:
    """Choose anchors by strategy, after the pinned ones, as one step.

    Raises
    ------
    SpaceError
        More than there are rows to choose from, and the other reasons of `select_anchors`.
    """
    chosen = compute.select_anchors(pair, n_anchors, strategy, random_state)
    ids = behind(session.workspace().pinned, chosen, n_anchors)
    session.set_anchors(
        f"choose {counted(n_anchors, 'anchor')}, {strategy}", ids, f"{strategy} {n_anchors} {random_state}"
    )


def projection_choosers(workspace: Workspace) -> None:
    """Similarity, centring and the weight of the whitening."""
    bound(
        st.selectbox,
        "Similarity",
        "projection.similarity",
        workspace.projection.similarity,
        lambda value: session.edit_spec(f"similarity {value}", "projection", similarity=value),
        options=SIMILARITIES,
        help="The papers use cosine. Quantised is cosine after clustering (Moschella et al., Fig. 7).",
    )
    bound(
        st.toggle,
        "Centre first",
        "projection.center",
        workspace.projection.center,
        lambda value: session.edit_spec("centre" if value else "do not centre", "projection", center=value),
        help=(
            "Subtracts each space's mean, so that shifts have no effect (Maiorca et al. 2024). Turn it off to"
            " reproduce Moschella et al. 2023."
        ),
    )
    bound(
        st.number_input,
        "Whitening ridge λ",
        "projection.ridge",
        workspace.projection.ridge,
        lambda value: session.edit_spec(f"λ = {value:g}", "projection", ridge=value),
        min_value=0.001,
        max_value=100.0,
        step=0.1,
        help=(
            "λ of the whitened form, X Aᵀ (K + λI)^(−½). Larger values bring it nearer to the plain relative"
            " form. λ = 1 counts as much as one average anchor."
        ),
    )
    if workspace.projection.similarity == "quantised":
        bound(
            st.number_input,
            "Cut of the clustering",
            "projection.threshold",
            workspace.projection.threshold,
            lambda value: session.edit_spec(f"cut at {value:g}", "projection", threshold=value),
            min_value=0.1,
            max_value=10.0,
            step=0.5,
            help="Ward distance at which the clustering is cut. Moschella et al. show 1, 1.5 and 2.",
        )


def score_choosers(workspace: Workspace) -> None:
    """The number of neighbours, and the convention."""
    bound(
        st.number_input,
        "Neighbours k",
        "scores.k",
        workspace.k,
        lambda value: session.edit(f"k = {value}", k=value),
        min_value=1,
        max_value=MOST_NEIGHBOURS,
    )
    bound(
        st.segmented_control,
        "Convention",
        "scores.convention",
        workspace.convention,
        lambda value: session.edit(f"{value} convention", convention=value or workspace.convention),
        options=CONVENTIONS,
        help=(
            "Paper: both neighbourhoods are searched among the target's rows, including the row itself (code"
            " of Moschella et al.). Mutual: each space has its own neighbours, without the row itself."
        ),
    )


def setting_widget(one: Setting, key: str, usual: Any, *limits: Any, **look: Any) -> Any:
    """A chooser of one setting of a task, by its field; for a number `limits` are the least and the largest
    one, for a choice all that the data allow.
    """
    look = {"key": key, "help": one.help or None, **look}
    if one.number:
        return one.number(kept(st.number_input, one.label, *limits, usual, one.step or 1, **look))
    options = list(limits or one.choices)
    index = options.index(usual)
    return kept(st.selectbox, one.label, options, index=index, format_func=one.shown, **look)
