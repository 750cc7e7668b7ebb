"""Widgets that show a setting of the workspace and change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from app import compute, session
from app.page_settings import remembered
from app.workspace import MOST_ANCHORS, MOST_NEIGHBOURS, Workspace
from relcore.base.access import all_uploads
from relcore.base.names import STRATEGIES
from relcore.base.numbers import counted
from relcore.base.settings import UNSET, Setting, settings_of
from relcore.catalog.catalog import KEPT, UNSCORED, SpaceSpec, listed, space_name
from relcore.compare.reports import ExactScores
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import Match


def bound(
    widget: Callable, label: str, key: str, value: Any, apply: Callable[[Any], None], **settings: Any
) -> Any:
    """The result of a widget that shows `value`. When the user changes it, ``apply(new value)`` is called.

    If something else changed the setting, such as Undo, the widget gets another key. Until the browser draws
    the new value, its messages still have the old one, which under the same key would look like a choice of
    the user. Otherwise the widget's value is not set again: a run under way would overwrite a newer choice.
    `value` is also the default, which the browser draws first.
    """
    kept = st.session_state
    drawn = f"{key}:drawn"
    setting = key
    key = _key_for(setting, value)
    as_drawn = {name: setting for name, setting in settings.items() if name not in ("help", "format_func")}
    if key not in kept or kept.get(drawn) != as_drawn:
        kept[key] = value
    kept[drawn] = as_drawn
    settings |= _begins(widget, value, settings)

    def choose() -> None:
        if key == _numbered(setting, kept.get(_counter(setting), 0)):  # else an old message
            session.guarded(apply, kept[key])

    return widget(label, key=key, on_change=choose, **settings)


def _key_for(key: str, value: Any) -> str:
    """The key of a widget that shows `value`: another one after each change that did not come from it."""
    kept = st.session_state
    n_changes = kept.get(_counter(key), 0)
    if kept.get(_numbered(key, n_changes), value) != value:
        n_changes += 1
        kept[_counter(key)] = n_changes
    return _numbered(key, n_changes)


def _counter(key: str) -> str:
    return f"{key}:changes"


def _numbered(key: str, number: int) -> str:
    if number:
        return f"{key}-{number}"
    return key


def _begins(widget: Callable, value: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The argument that gives the widget this initial value."""
    if widget.__name__ in ("selectbox", "radio"):
        return {"index": list(settings["options"]).index(value)}
    if widget.__name__ in ("segmented_control", "multiselect", "pills"):
        return {"default": value}
    return {"value": value}


def space_labels(spaces: Sequence[SpaceSpec]) -> dict[SpaceSpec, str]:
    """A distinct name for each space, because a chooser finds its options by name."""
    labels: dict[SpaceSpec, str] = {}
    for spec in spaces:
        name = space_name(spec)
        number = 2
        if (
            name in labels.values()
            and spec.source in ("file", "sample")
            and not Path(spec.name).is_relative_to(all_uploads())
        ):
            # Add the folder, because checkpoints in different folders often have the same name.
            name = f"{Path(spec.name).parent.name}/{name}"
        if rows := listed(spec, KEPT):
            name = f"{name} · {counted(len(rows), 'row')}"
        if removed := listed(spec, UNSCORED):
            name = f"{name} · {counted(len(removed), 'row')} not scored"
        plain = name
        while name in labels.values():
            name = f"{plain} ({number})"
            number += 1
        labels[spec] = name
    return labels


def _short_labels(spaces: Sequence[SpaceSpec]) -> dict[SpaceSpec, str]:
    """The names of `space_labels`. If the name of an encoder is unique without its dataset, the dataset is
    left out."""
    labels = space_labels(spaces)
    short = dict(labels)
    for spec, label in labels.items():
        if spec.source == "encoding" and label == spec.name:
            short[spec] = label.rpartition(" · ")[0]
    counts = Counter(short.values())
    for spec, label in labels.items():
        if not short[spec] or counts[short[spec]] > 1:
            short[spec] = label
    return short


def space_choosers(workspace: Workspace) -> None:
    labels = _short_labels(workspace.spaces)
    for side, chosen in (("source", workspace.source), ("target", workspace.target)):
        if side == "target":
            st.button(
                "Swap",
                key="choose.swap",
                icon=":material/swap_horiz:",
                type="tertiary",
                help="Makes the target the source and the source the target",
                on_click=session.compare,
                args=("swap source and target", workspace.target, workspace.source),
            )
        bound(
            st.selectbox,
            side.capitalize(),
            f"choose.{side}",
            chosen,
            partial(choose_space, side),
            options=workspace.spaces,
            format_func=labels.get,
            label_visibility="collapsed",
            width=205,
        )


def choose_space(side: str, spec: SpaceSpec) -> None:
    workspace = session.workspace()
    pair = {"source": workspace.source, "target": workspace.target} | {side: spec}
    session.compare(f"choose {space_name(spec)} as {side}", **pair)


def strategy_choosers(pair: Match, key: str) -> None:
    """Draw the choosers of the strategy and of the number of anchors. Each change chooses new anchors and
    keeps pinned ones."""
    workspace = session.workspace()
    strategy, n_anchors, random_state = session.anchors_origin(workspace)
    usable = [name for name in STRATEGIES if name != "class-balanced" or pair.source.labels is not None]

    def choose(**changed: Any) -> None:
        usual = {"strategy": strategy, "n_anchors": n_anchors, "random_state": random_state}
        choose_anchors(pair, **(usual | changed))

    by_hand = "chosen by hand"
    if workspace.anchors_from:
        by_hand = "found by Link"
    chosen = by_hand
    options = [by_hand, *usable]
    if workspace.by_strategy:
        chosen = strategy
        options = usable
    bound(
        st.selectbox,
        "Strategy",
        f"{key}.strategy",
        chosen,
        lambda value: value == by_hand or choose(strategy=value),
        options=options,
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
        help=(
            "More anchors distinguish more rows, and leave fewer rows to be scored. The papers use 300 for"
            " words; of few rows, a fifth is usual. If you change the number, random and k-means choose all"
            " anchors again. To add a few, search or draw with the lasso."
        ),
    )


def choose_anchors(pair: Match, strategy: str, n_anchors: int, random_state: int) -> None:
    """Keep the pinned anchors and choose the others by strategy, as one step."""
    chosen = compute.select_anchors(pair, n_anchors, strategy, random_state)
    ids = session.fill_up(session.workspace().pinned, chosen, n_anchors)
    session.set_anchors(
        f"choose {counted(n_anchors, 'anchor')}, {strategy}", ids, f"{strategy} {n_anchors} {random_state}"
    )


def projection_choosers(workspace: Workspace) -> None:
    for name, declared in settings_of(ProjectionSpec).items():
        if name != "threshold" or workspace.projection.similarity == "quantised":
            edit_setting("projection", declared)


def score_choosers(workspace: Workspace) -> None:
    for name, own in (("k", {"max_value": MOST_NEIGHBOURS}), ("convention", {})):
        declared = settings_of(ExactScores)[name]

        def change(value: Any, name: str = name) -> None:
            session.edit(f"{name} {value}", **{name: value})

        widget, given = fitting(declared, **own)
        bound(widget, declared.label, f"scores.{name}", getattr(workspace, name), change, **given)


def fitting(setting: Setting, **own: Any) -> tuple[Callable, dict[str, Any]]:
    """The widget for a setting, and its arguments except the value. Arguments in `own` replace those derived
    from the setting."""
    given: dict[str, Any] = {"help": setting.help or None}
    if setting.kind is bool:
        return st.toggle, given | own
    if labels := setting.choices or setting.suggestions:
        options = own.pop("options", list(labels))
        given |= {"options": options, "format_func": lambda choice: _sentence(setting.shown(choice))}
        few = len(options) < 4
        several = setting.several or setting.is_tuple
        if several:
            widget = st.pills if few else st.multiselect
            if few:
                given |= {"selection_mode": "multi"}
        else:
            if few and setting.choices:
                usual = st.segmented_control
            else:
                usual = st.selectbox
            widget = own.pop("widget", usual)
            if widget is st.segmented_control:
                given |= {"required": True}
            if not setting.choices:
                given |= {"accept_new_options": True}
        return widget, given | own
    if setting.number is None:
        return st.text_input, given | {"placeholder": setting.placeholder or None} | own
    low = setting.low
    high = setting.high
    if setting.above is not None:  # a number box cannot exclude its lower bound
        low = setting.above + 0.001
        high = 1000 if high is None else high
    step = setting.step
    if not step:
        step = 1 if setting.number is int else 0.05
    limits = {"min_value": low, "max_value": high, "step": step}
    limits = {name: value if value is None else setting.number(value) for name, value in limits.items()}
    widget = own.pop("widget", st.number_input)
    if widget is st.select_slider:
        return widget, given | own
    if widget is st.number_input:
        given |= {"placeholder": setting.placeholder or None}
    return widget, given | limits | own


def setting_widget(setting: Setting, key: str, usual: Any = UNSET, *limits: Any, **own: Any) -> Any:
    """The value of the widget for a setting. The page remembers it. It begins with `usual`, or with the
    setting's default.

    `limits` are the smallest and the largest number, or all choices that the data allow.
    """
    if limits:
        bounds = zip(("min_value", "max_value"), limits, strict=True)
        if setting.number:
            own |= dict(bounds)
        else:
            own |= {"options": limits}
    widget, given = fitting(setting, **own)
    start = usual
    if usual is UNSET:
        start = setting.start()
    if "selection_mode" in given or widget is st.multiselect:
        if isinstance(start, tuple):
            start = list(start)
        else:
            start = [start]
    elif widget is st.text_input:
        if setting.is_tuple:
            start = ", ".join(map(str, start))
        elif start is UNSET:
            start = ""
    elif setting.number and start is not None:
        start = setting.number(start)
    value = remembered(widget, setting.label, key=key, **given, **_begins(widget, start, given))
    if widget is st.text_input:
        return setting.read(value)
    if setting.is_tuple:
        return tuple(sorted(value))
    return value


def edit_setting(field: str, setting: Setting, key: str = "", **own: Any) -> None:
    """Draw the widget of a setting that belongs to the workspace's `field`. Each change is a step."""
    value = getattr(getattr(session.workspace(), field), setting.name)
    if setting.number:
        value = setting.number(value)
    widget, given = fitting(setting, **own)

    def change(value: Any) -> None:
        text = value
        if setting.choices:
            text = setting.shown(value)
        if value is True:
            text = "on"
        elif value is False:
            text = "off"
        label = f"{setting.label[0].lower()}{setting.label[1:]}"
        changed = {setting.name: value}
        if widget in (st.slider, st.select_slider):
            session.slide_spec(label, field, **changed)
        else:
            session.edit_spec(f"{label} {text}", field, **changed)

    bound(widget, setting.label, key or f"{field}.{setting.name}", value, change, **given)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
