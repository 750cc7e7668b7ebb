"""Check new vectors against a passport, which is a file of anchor texts with the vectors that a model gave
them, and show the evidence. A passport of the session's anchors can be downloaded."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, results, session
from app.page_settings import remembered, save_value, saved_value
from app.plain_text import plain, plain_html
from app.tables import report_table
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.passport.change import PassportChange
from relcore.passport.passport import (
    FEWEST_ANCHORS,
    SUFFIX,
    Passport,
    PassportCard,
    check,
    paired_anchors,
)
from relcore.passport.pictures import EmbedAnchors, NameRecipe, PassportChart
from relcore.passport.recipes import POOLINGS
from relcore.spaces.space import LatentSpace

_OPENED = "drift.passport-file"
_NOW = "MiniLM, embedded now"
_WIDTH = 384  # dimensions of MiniLM's vectors


@compute.cached(8, key=lambda path: (path, compute.file_stamps([path])))
def _read(path: str) -> Passport:
    return Passport.load(access.readable_path(path))


@compute.cached(16, "Comparing the anchors …", key=lambda old, new: (old.space.digest, new.digest))
def _check(passport: Passport, new: LatentSpace) -> PassportChange:
    return check(passport, new)


def of_anchors(workspace: Workspace, spec: SpaceSpec) -> Passport:
    """The passport of the session's anchors in a space. Raises a SpaceError if there are too few anchors."""
    space = compute.load_space(spec)
    rows = space.index.get_indexer(pd.Index(workspace.anchors, dtype=object))
    return Passport.of(space.take(rows[rows >= 0]), PassportCard(space.name))


def download(workspace: Workspace, spec: SpaceSpec, key: str) -> None:
    """Draw a button that downloads a passport of the session's anchors. If there are too few anchors, draw
    nothing."""
    if len(workspace.anchors) < FEWEST_ANCHORS:
        return
    told = "One file of the anchors and their vectors, to check a model by later. See docs/passport.md."
    try:
        content = of_anchors(workspace, spec).to_bytes
    except SpaceError:  # a passport cannot hold zero vectors or ids with line breaks
        return
    exports.download(
        "Download the anchors as passport",
        content,
        f"{compute.load_space(spec).name}{SUFFIX}",
        "application/octet-stream",
        key,
        help=told,
    )


def draw(workspace: Workspace, choosers: DeltaGenerator) -> None:
    labels = space_labels(workspace.spaces)
    with choosers, st.popover("Open a passport", icon=":material/badge:", key="drift.passport-open"):
        path = _passport_path()
    old = {
        **({path: Path(path).name} if path else {}),
        **{spec: f"Anchors in {label}" for spec, label in labels.items()},
    }
    with choosers:
        place = results.place_of(workspace.spaces, workspace.source, path)
        look = {"format_func": old.get, "key": f"drift.passport-{place}", "width": 260}
        if path:
            index = 0
        else:
            index = list(old).index(workspace.source)
        chosen = remembered(st.selectbox, "Passport", list(old), index=index, **look)
    if chosen == path:
        passport = _read(path)
    else:
        passport = of_anchors(workspace, chosen)
    spec = chosen
    if chosen == path:
        spec = SpaceSpec("file", path)
    others = {one: label for one, label in labels.items() if one != chosen} | {_NOW: _NOW}
    with choosers:
        usual = next((one for one in (workspace.target, *others) if one in others), None)
        look = {"format_func": others.get, "key": f"drift.passport-new-{place}", "width": 260}
        look["index"] = list(others).index(usual)
        new_spec = remembered(st.selectbox, "New vectors", list(others), **look)
    _result(workspace, passport, spec, None if new_spec == _NOW else new_spec)


def _passport_path() -> str:
    dropped = st.file_uploader("A passport", type=[SUFFIX[1:]], key="drift.passport-upload")
    typed = remembered(
        st.text_input,
        "Or a path on the machine that runs Relscope",
        key="drift.passport-path",
        placeholder="model.safetensors",
    ).strip()
    if dropped is not None:
        save_value(_OPENED, str(session.keep_upload(dropped)))
    elif typed:
        save_value(_OPENED, str(access.readable_path(typed)))
    path = saved_value(_OPENED)
    return path if isinstance(path, str) else ""


def _result(workspace: Workspace, passport: Passport, spec: SpaceSpec, new_spec: SpaceSpec | None) -> None:
    card = passport.card
    if card.pooling in POOLINGS:
        pooling = card.pooling
    else:
        pooling = POOLINGS[0]
    task = EmbedAnchors(card.prompt, pooling)
    if new_spec is None:
        made = results.result_of(
            task,
            spaces=[passport.space],
            label="Embed the anchors with MiniLM",
            unasked_seconds=results.UNASKED_SECONDS,
        )
        if made is None:
            return
        new = LatentSpace(made.vectors, passport.ids, name="MiniLM")
    else:
        new = compute.load_space(new_spec)
    change = _check(passport, new)
    report = change.report()
    messages.lead(f"<b>{plain_html(report.sentence)}</b>")
    specs = (spec, *filter(None, [new_spec]))
    anchors = ()
    if spec in workspace.spaces:
        anchors = passport.ids
    figure = PassportChart(
        passport=spec,
        new=new_spec,
        digests=compute.digests(specs),
        anchors=anchors,
        embed=task if new_spec is None else EmbedAnchors(),
    ).draw((passport, new))
    chart, listed = st.columns([1.35, 1], gap="large")
    with chart:
        exports.chart(figure.interactive(exports.theme()), "passport.chart")
        exports.export_bar(figure, "passport")
    with listed:
        report_table(report.tables[0])
        for note in report.notes:
            st.caption(plain(note))
        if spec in workspace.spaces:
            download(workspace, spec, "passport.download")
        else:
            told = (f"{name}: {value}" for name, value in asdict(card).items() if value)
            st.caption(plain("; ".join(told)))
        if (
            change.kind in ("changed recipe", "related model")
            and new_spec is not None
            and new.dimension == _WIDTH
        ):
            _draw_recipe_of_texts(passport, new)


def _draw_recipe_of_texts(passport: Passport, new: LatentSpace) -> None:
    texts, _, rows = paired_anchors(passport, new)
    space = LatentSpace(rows, texts, name=new.name)
    tried = results.result_of(NameRecipe(), spaces=[space], label="Try recipes of MiniLM")
    if tried is not None:
        recipe = "No recipe of MiniLM fits"
        if tried.recipe:
            recipe = f"Made by MiniLM with {tried.recipe}"
        st.caption(plain(recipe))
