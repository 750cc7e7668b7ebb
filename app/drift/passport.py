"""Check new vectors against a passport, which is a file of anchor texts with the vectors that a model gave
them, and show the evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import streamlit as st

from app import compute, results, session
from app.anchors.passport import download, of_anchors
from app.asking import Panel, chart_beside, lead_sentence
from app.page_settings import remembered, save_value, saved_value
from app.plain_text import plain
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base import access
from relcore.catalog.catalog import SpaceSpec
from relcore.passport.change import PassportChange
from relcore.passport.passport import (
    SUFFIX,
    Passport,
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


@dataclass(frozen=True, eq=False)
class PassportInputs:
    """A passport, the spec of its file or of the space whose anchors it holds, and the spec of the new
    vectors. None for `new` means that MiniLM embeds the texts now."""

    passport: Passport
    spec: SpaceSpec
    new: SpaceSpec | None
    of_anchors: bool

    @property
    def task(self) -> EmbedAnchors:
        card = self.passport.card
        pooling = POOLINGS[0]
        if card.pooling in POOLINGS:
            pooling = card.pooling
        return EmbedAnchors(card.prompt, pooling)


def inputs(workspace: Workspace) -> PassportInputs:
    labels = space_labels(workspace.spaces)
    with st.popover("Open a passport", icon=":material/badge:", key="drift.passport-open"):
        path = _passport_path()
    old: dict[str | SpaceSpec, str] = {}
    if path:
        old[path] = Path(path).name
    old |= {spec: f"Anchors in {label}" for spec, label in labels.items()}
    place = results.place_of(workspace.spaces, workspace.source, path)
    index = 0
    if not path:
        index = list(old).index(workspace.source)
    look = {"format_func": old.get, "key": f"drift.passport-{place}", "width": 260}
    chosen = remembered(st.selectbox, "Passport", list(old), index=index, **look)
    spec = chosen
    if chosen == path:
        passport = _read(path)
        spec = SpaceSpec("file", path)
    else:
        passport = of_anchors(workspace, chosen)
    others = {one: label for one, label in labels.items() if one != chosen} | {_NOW: _NOW}
    usual = next(one for one in (workspace.target, *others) if one in others)
    look = {"format_func": others.get, "key": f"drift.passport-new-{place}", "width": 260}
    new = remembered(st.selectbox, "New vectors", list(others), index=list(others).index(usual), **look)
    if new == _NOW:
        new = None
    return PassportInputs(passport, spec, new, spec in workspace.spaces)


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


def change_of(setup: PassportInputs) -> tuple[LatentSpace, PassportChange] | None:
    """The new vectors, and how they differ from those of the passport. None while they are embedded."""
    passport = setup.passport
    if setup.new is not None:
        new = compute.load_space(setup.new)
        return new, _check(passport, new)
    look = {"label": "Embed the anchors with MiniLM", "unasked_seconds": results.UNASKED_SECONDS}
    made = results.result_of(setup.task, spaces=[passport.space], **look)
    if made is None:
        return None
    new = LatentSpace(made.vectors, passport.ids, name="MiniLM")
    return new, _check(passport, new)


def report(setup: PassportInputs, found: tuple[LatentSpace, PassportChange]) -> None:
    new, change = found
    passport = setup.passport
    change_report = change.report()
    lead_sentence(change_report)
    embed = EmbedAnchors()
    if setup.new is None:
        embed = setup.task
    anchors = ()
    if setup.of_anchors:
        anchors = passport.ids
    digests = compute.digests(tuple(filter(None, [setup.spec, setup.new])))
    recipe = PassportChart(passport=setup.spec, new=setup.new, digests=digests, anchors=anchors, embed=embed)
    with chart_beside(recipe.draw((passport, new)), "passport", change_report):
        if setup.of_anchors:
            download(passport, "passport.download")
        else:
            card = (f"{name}: {value}" for name, value in asdict(passport.card).items() if value)
            st.caption(plain("; ".join(card)))
        unknown_recipe = change.kind in ("changed recipe", "related model")
        if unknown_recipe and setup.new is not None and new.dimension == _WIDTH:
            _draw_recipe_of_texts(passport, new)


PASSPORT = Panel(inputs, change_of, report)


def _draw_recipe_of_texts(passport: Passport, new: LatentSpace) -> None:
    texts, _, rows = paired_anchors(passport, new)
    space = LatentSpace(rows, texts, name=new.name)
    tried = results.result_of(NameRecipe(), spaces=[space], label="Try recipes of MiniLM")
    if tried is not None:
        recipe = "No recipe of MiniLM fits"
        if tried.recipe:
            recipe = f"Made by MiniLM with {tried.recipe}"
        st.caption(plain(recipe))
