"""The first screen: the idea in three pictures of real words, three examples, and your own data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.glossary.terms import term_html
from app.places import DATA, EXPLORE, MIGRATE, go
from app.start.words import N_ANCHORS, anchors, chance, draw_maps, score, words
from app.widgets import choose_pair
from app.workspace import BUNDLED
from relcore.base.numbers import percent
from relcore.maps.pane_maps import OWN

_IDEAS = {
    OWN: "Same shape,",
    "absolute": "but different coordinates.",
    "relative": "Similarities to anchors ★ agree.",
}
_STITCHING = 6  # step of the story


def _compare_words() -> None:
    choose_pair(*BUNDLED, step="compare the bundled words")


def draw(begin: Callable[..., None]) -> None:
    """`begin` opens a step of the story, as a callback."""
    of = words()
    by = anchors(of.pair)
    st.html(
        '<div class="relscope-hero"><p>Relscope compares the latent spaces of embedding models.</p><p>Train'
        f" two models on the same data: their {term_html('space', 'spaces')} have the <b>same shape</b>, but"
        f" <b>different coordinates</b>. <b>Similarities to {term_html('anchor', 'anchors')}</b> make them"
        " comparable.</p></div>"
    )
    with st.container(horizontal=True, gap="small", key="start-buttons"):
        if st.button("Open your data", key="start.data", icon=":material/folder_open:", type="primary"):
            go(DATA)
        for label, key, icon, presents in (
            ("The story in six steps", "start.story", ":material/auto_stories:", False),
            ("Present it", "start.present", ":material/co_present:", True),
        ):
            help_ = "The story in large type, for a screen in front of a class" if presents else None
            st.button(label, key=key, icon=icon, help=help_, on_click=begin, args=(1, presents))
    found = []
    with st.container(key="start-ideas"):
        for number, (column, (form, idea)) in enumerate(zip(st.columns(3), _IDEAS.items(), strict=True), 1):
            with column, st.container(border=True):
                st.html(f'<h3 class="relscope-idea"><i>{number}</i>{idea}</h3>')
                draw_maps(of, form, f"start.{form}", by=by if form == "relative" else ())
                found.append(st.empty())
    _tell(
        found[0],
        "Two models learned the same words from the same novels, separately. Each in its own axes, they draw"
        " nearly the same picture.",
    )
    _examples(begin)
    # Streamlit sends the maps before these scores, which take half a second the first time.
    shared, relative = score(of.pair, "absolute"), score(of.pair, "relative", by)
    _tell(
        found[1],
        f"of {len(of.pair):,} words are their own nearest neighbour in the other model. Its axes mean"
        " something else.",
        percent(shared.top1),
    )
    _tell(
        found[2],
        f"are, where each word is described by its similarities to {N_ANCHORS} of them, the anchors. By"
        f" chance: {chance(relative)}.",
        percent(relative.top1),
    )


def _tell(place: DeltaGenerator, text: str, number: str = "") -> None:
    figure = f"<b>{number}</b>" if number else ""
    place.html(f'<div class="relscope-told">{figure}<p>{text}</p></div>')


def _examples(begin: Callable[..., None]) -> None:
    with st.container(key="start-examples"):
        st.caption("Or begin with an example")
        words, digits, models = st.columns(3)
        with words, st.container(border=True):
            if _example("explore", "match_word", "Compare two models of words", on_click=_compare_words):
                go(EXPLORE)
            st.caption("Word2Vec and FastText, 20,000 words. Choose anchors, and the scores follow.")
        with digits, st.container(border=True):
            title = "Draw a digit, another model answers"
            _example("stitch", "draw", title, on_click=begin, args=(_STITCHING,))
            st.caption("The encoder of one network, the classifier of another, no training in between.")
        with models, st.container(border=True):
            if _example("migrate", "move_up", "Change an embedding model"):
                go(MIGRATE)
            st.caption("Keep the old vectors, translate queries, or embed all again? See what each costs.")


def _example(key: str, icon: str, title: str, **does: Any) -> bool:
    look = {"icon": f":material/{icon}:", "type": "tertiary"}
    return st.button(f"**{title}**", key=f"start.{key}", **look, **does)
