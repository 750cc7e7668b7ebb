"""The front of Start: the idea in three live pictures, and examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.glossary.terms import term_html
from app.places import DATA, EXPLORE, MIGRATE, go
from app.plain_text import plain_name
from app.start.words import N_ANCHORS, Words, anchors, chance, draw_maps, score, words
from app.widgets import space_name
from app.workspace import BUNDLED
from relcore.base.numbers import percent
from relcore.maps.pane_maps import OWN

_IDEAS = {
    OWN: "Same shape,",
    "absolute": "but different coordinates.",
    "relative": "Similarities to anchors ★ agree.",
}
_STITCHING = 6  # number of the step about stitching


def front(begin: Callable[..., None]) -> None:
    """Draw the front page. The callback `begin` opens a step of the story."""
    of = words()
    by = anchors(of.pair)
    st.html(
        '<div class="relscope-hero"><p>Relscope compares the latent spaces of embedding models.</p><p>Train'
        f" two models on the same data: their {term_html('space', 'spaces')} have the <b>same shape</b>, but"
        f" <b>different coordinates</b>. <b>Similarities to {term_html('anchor', 'anchors')}</b> make them"
        " comparable.</p></div>"
    )
    _begin_buttons(begin)
    (same_shape, other_coordinates, similarities) = _draw_ideas(of, by)
    _show_share(
        same_shape,
        "Two models learned the same words from the same novels, separately. Drawn in their own axes, they"
        " give nearly the same picture.",
    )
    _examples(begin)
    # Streamlit sends the maps before it computes these scores, which take half a second the first time.
    shared = score(of.pair, "absolute")
    relative = score(of.pair, "relative", by)
    _show_share(
        other_coordinates,
        f"of {len(of.pair):,} words lie nearest to the same word in the other model, by their"
        f" {of.pair.source.dimension} coordinates.",
        percent(shared.top1),
    )
    _show_share(
        similarities,
        f"of them lie nearest to the same word, by similarities to {N_ANCHORS} anchor words ★"
        f" ({np.isin(of.names, by).sum()} drawn). By chance: {chance(relative)}.",
        percent(relative.top1),
    )


def _begin_buttons(begin: Callable[..., None]) -> None:
    """Draw buttons that open the user's data, or the story on its first step."""
    with st.container(horizontal=True, gap="small", key="start-buttons"):
        if st.button("Open your data", key="start.data", icon=":material/folder_open:", type="primary"):
            go(DATA)
        for label, key, icon, presents in (
            ("The story in seven steps", "start.story", ":material/auto_stories:", False),
            ("Present it to a class", "start.present", ":material/co_present:", True),
        ):
            look = {}
            if presents:
                look = {"type": "tertiary", "help": "The same story in large type"}
            st.button(label, key=key, icon=icon, on_click=begin, args=(1, presents), **look)


def _draw_ideas(of: Words, by: tuple[str, ...]) -> list[DeltaGenerator]:
    """Draw the idea in three maps. Returns the places below them, which are still empty."""
    below = []
    with st.container(key="start-ideas"):
        for number, (column, (representation, idea)) in enumerate(
            zip(st.columns(3), _IDEAS.items(), strict=True), 1
        ):
            with column, st.container(border=True):
                st.html(f'<h3 class="relscope-idea"><i>{number}</i>{idea}</h3>')
                draw_maps(
                    of,
                    representation,
                    f"start.{representation}",
                    by=by if representation == "relative" else (),
                )
                below.append(st.empty())
    return below


def _show_share(place: DeltaGenerator, text: str, number: str = "") -> None:
    figure = f"<b>{number}</b>" if number else ""
    place.html(f'<div class="relscope-told">{figure}<p>{text}</p></div>')


def _examples(begin: Callable[..., None]) -> None:
    with st.container(key="start-examples"):
        st.caption("Or begin with an example")
        words, digits, models = st.columns(3)
        with words, st.container(border=True):
            if _example(
                "explore",
                "match_word",
                "Compare two models of words",
                on_click=session.compare,
                args=("compare the bundled words", *BUNDLED),
            ):
                go(EXPLORE)
            st.caption("Word2Vec and FastText, 20,000 words. Choose anchors, and the scores follow.")
        with digits, st.container(border=True):
            _example(
                "stitch", "draw", "Draw a digit, another model answers", on_click=begin, args=(_STITCHING,)
            )
            st.caption("The encoder of one network, the classifier of another, no training in between.")
        with models, st.container(border=True):
            workspace = session.workspace()
            if _example("migrate", "move_up", "Change an embedding model"):
                session.migrate_example(True)
                go(MIGRATE, "New model")
            st.caption("Keep the old vectors, translate queries, or embed all again? See what each costs.")
            own = workspace.models[:2]
            if own != BUNDLED and st.button(
                f"Use {' and '.join(plain_name(space_name(spec)) for spec in own)} instead",
                key="start.migrate-own",
                type="tertiary",
            ):
                session.migrate_example(False)
                go(MIGRATE, "New model")


def _example(key: str, icon: str, title: str, **does: Any) -> bool:
    return st.button(f"**{title}**", key=f"start.{key}", icon=f":material/{icon}:", type="tertiary", **does)
