"""The forms of encoders: every encoder of `relcore.base.names` that fits the dataset, with a widget for
each of its settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from app import messages, sharing
from app.encode.datasets import Preview
from app.jobs import engine
from app.plain_text import plain
from relcore.base.errors import SpaceError
from relcore.base.names import ENCODERS
from relcore.base.settings import UNSET, Setting, settings_of
from relcore.encoders.encoder import Encoder
from relcore.runs import jobs
from relcore.runs.progress import Expected, expect

_KEEP = {"persist_state": "session"}
_ROW = 5  # width of a row of widgets; a number takes 1, others 2


def choose_encoders(preview: Preview) -> list[Encoder]:
    """The encoders that the forms describe, each once; a form with an invalid value shows the error and
    gives none.
    """
    classes = {name: entry.load() for name, entry in ENCODERS.items()}
    classes = {name: one for name, one in classes.items() if one.kind == preview.kind and one.offered()}
    shown = list(classes)
    if len(classes) > 1:
        shown = st.pills(
            "Encoders",
            list(classes),
            selection_mode="multi",
            default=shown[:1],
            format_func=lambda name: ENCODERS[name].title,
            key=f"encode.forms-{preview.kind}",
            label_visibility="collapsed",
            **_KEEP,
        )
    encoders: list[Encoder] = []
    for name in shown:
        with st.container(border=True):
            st.markdown(f"**{ENCODERS[name].title}**")
            if reason := classes[name].unfit(preview):
                messages.warning(reason, icon=":material/label_off:")
                continue
            try:
                encoders += _form(name, classes[name], preview)
            except SpaceError as error:
                messages.error(error)
    return list(dict.fromkeys(encoders))


def _form(name: str, kind: type[Encoder], preview: Preview) -> list[Encoder]:
    """One encoder for each choice of the setting that takes several; none while a setting without a
    default is empty.
    """
    settings = list(settings_of(kind).values())
    values = _rows(name, [one for one in settings if not one.more], preview)
    if more := [one for one in settings if one.more]:
        with st.popover("More settings", icon=":material/tune:"):
            for one in more:
                values[one.name] = _widget(one, name, preview)
    for one in settings:
        if one.note and (told := one.note(values[one.name])):
            st.caption(plain(told))
    if any(values[one.name] in ("", ()) for one in settings if one.default is UNSET or one.is_tuple):
        return []
    several = next((one.name for one in settings if one.several), None)
    if several is None:
        return [kind(**values)]
    return [kind(**values | {several: choice}) for choice in values[several]]


def _rows(name: str, settings: Sequence[Setting], preview: Preview) -> dict[str, Any]:
    """Widgets beside each other as far as a row goes; what takes several values has one to itself."""
    rows: list[list[Setting]] = []
    for one in settings:
        alone = _takes_several(one)
        if not rows or alone or _takes_several(rows[-1][0]) or sum(map(_width, [*rows[-1], one])) > _ROW:
            rows.append([])
        rows[-1].append(one)
    values = {}
    for row in rows:
        for one, column in zip(
            row, st.columns([_width(one) for one in row], vertical_alignment="bottom"), strict=True
        ):
            with column:
                values[one.name] = _widget(one, name, preview)
    return values


def _takes_several(one: Setting) -> bool:
    return one.several or (one.is_tuple and bool(one.choices or one.suggestions))


def _width(one: Setting) -> int:
    return 1 if one.number or one.is_tuple else 2


def _widget(one: Setting, encoder: str, preview: Preview) -> Any:
    """The value of a setting, by a widget that fits its type."""
    start = one.start(preview)
    key = f"encode.{encoder}.{one.name}" + (
        f"-{start}" if callable(one.usual) else ""
    )  # another dataset, another default
    names_files = one.kind is str and not one.choices
    common = {
        "key": key,
        "help": (sharing.help_with_paths(one.help) if names_files else one.help) or None,
        **_KEEP,
    }
    labels = one.choices or one.suggestions
    if _takes_several(one):
        start = start if isinstance(start, tuple) else (start,)
        if len(labels) > 3:
            chosen = st.multiselect(one.label, list(labels), default=start, format_func=labels.get, **common)
        else:
            chosen = st.pills(
                one.label,
                list(labels),
                selection_mode="multi",
                default=start,
                format_func=labels.get,
                **common,
            )
        return tuple(sorted(chosen)) if one.is_tuple else chosen
    if one.choices:
        return st.selectbox(
            one.label, list(labels), index=list(labels).index(start), format_func=labels.get, **common
        )
    if one.suggestions:
        return st.selectbox(
            one.label,
            list(labels),
            index=list(labels).index(start),
            format_func=lambda value: labels.get(value, value),
            accept_new_options=True,
            **common,
        )
    if one.kind is bool:
        return st.toggle(one.label, start, **common)
    if one.number:
        return _number(one, start, common)
    text = ", ".join(map(str, start)) if one.is_tuple else "" if start is UNSET else start
    return one.read(st.text_input(one.label, text, placeholder=one.placeholder or None, **common))


def _number(one: Setting, start: Any, common: dict[str, Any]) -> float | None:
    low, high = (None if bound is None else one.number(bound) for bound in (one.low, one.high))
    format_ = None if one.number is int else "%g"
    return st.number_input(
        one.label,
        low,
        high,
        None if start is None else one.number(start),
        placeholder=one.placeholder or None,
        format=format_,
        **common,
    )


# The expected time of an encoding, shown before it starts, and durations in words.


def expected(encoder: Encoder, preview: Preview) -> Expected | None:
    """What the encoder's author measured, at the pace of the last encodings of this kind here; None where
    nobody has.
    """
    known = encoder.seconds(preview.n, preview.pixels)
    kind = f"encode/{type(encoder).__name__}/{getattr(encoder, 'architecture', '')}".rstrip("/")
    return None if known is None else expect(engine().store, kind, known)


def in_words(duration: float | None) -> str:
    """``"about 7 s"``, ``"about 3 min"``."""
    if duration is None:
        return "time unknown, depends on the model"
    return f"about {jobs.in_words(duration)}"


def learned(found: Iterable[Expected | None]) -> str:
    """A sentence for the end of a caption if one of these times comes from earlier jobs here; else ""."""
    return " The estimate comes from the last jobs here." if any(one and one.n for one in found) else ""


def together(durations: Sequence[float], n_processes: int) -> float:
    """Seconds until the last of several has ended, `n_processes` at a time."""
    busy = [0.0] * n_processes
    for duration in durations:
        busy[busy.index(min(busy))] += duration
    return max(busy)
