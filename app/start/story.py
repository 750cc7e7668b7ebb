"""The story has seven steps: five on real words, one on stitching, and one on networks that learn. Each step
has an address, and the arrow keys move between steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from app.glossary.terms import with_links
from app.saving import STEP
from app.start.front import front
from app.start.steps import (
    PRESENTS,
    StoryStep,
    how_many,
    learning,
    ruler,
    same_shape,
    stitching,
    two_trainings,
    when_it_fails,
)

STEPS = (
    StoryStep(
        "Two trainings, one shape",
        two_trainings,
        "The maps were turned and mirrored so that they face each other. Is that cheating?",
        "No. A map of principal axes has no up, down, left or right of its own: each axis may point either"
        " way. Turning and mirroring changes no distance between words, so it changes no shape. Nothing was"
        " stretched, and no word was moved by itself.",
    ),
    StoryStep(
        "Same shape, different axes",
        same_shape,
        "FastText shrinks to a spot in Word2Vec's axes. Where did its shape go?",
        "Into other directions of the 100 than the two drawn. The axes along which Word2Vec's words differ"
        " most are, in FastText, directions in which these words hardly differ. Linear CKA, a score that"
        " ignores rotations, still finds the two spaces alike; see *Scores* in Explore.",
    ),
    StoryStep(
        "An anchor is a ruler",
        ruler,
        "Which changes of a space leave the cosines to the anchors as they are, and which do not?",
        "Turning, mirroring and scaling leave them. Stretching a single axis or moving the origin does not."
        " That is why Relscope subtracts the mean of each space first, which undoes a moved origin.",
    ),
    StoryStep(
        "How many anchors?",
        how_many,
        "Why are two anchors not enough, although each map has two dimensions?",
        "Two anchors give two numbers for each word: 20,000 words lie on a plane, so close together that the"
        " small difference between the models is larger than the distance to the next word. Each further"
        " anchor moves words apart.",
    ),
    StoryStep(
        "When it fails",
        when_it_fails,
        "Which of these failures would more anchors mend, and which would they hide?",
        "More anchors, from everywhere, mend the first two. Wrong pairs must be corrected; the audit under"
        " *Anchors* in Explore finds them. Unrelated data stay at the chance level with any number of"
        " anchors, so a score far above it rules them out.",
    ),
    StoryStep(
        "A use: stitching",
        stitching,
        "Why can a classifier read the rows of an encoder that it has never seen?",
        "Because it was trained on similarities to anchors, not on coordinates. The other encoder describes"
        " a digit by its similarities to the same anchors, so the classifier reads nearly the same numbers.",
    ),
    StoryStep(
        "Two networks learn",
        learning,
        "Choose “random labels”, train again, and compare. Why do these networks not come to agree?",
        "Each learned other labels, so each has its own notion of which digits are alike. Similarities to"
        " anchors agree where two networks learn the same about the data; they do not make networks agree.",
    ),
)
STYLE = Path(__file__).parents[2] / "assets" / "start.css"
# Hide bars and reduce spacing, so that each step fits a screen of 1366 × 768. On a larger screen, text and
# maps grow.
LARGE = """<style>
html { font-size: clamp(16px, min(2.4vh, 1.5vw), 42px); }
.st-key-toolbar, .st-key-autosave, [data-testid="stHeader"] { display: none; }
.st-key-story :is(.ls-toolbar, .ls-caption) { display: none; }
.st-key-story :is(.ls-root, .ls-hint, .ls-title, .ls-tip) { font-size: 0.9rem; }
[data-testid="stMainBlockContainer"] { padding: 0.6rem 1rem 0; }
.st-key-story { min-height: calc(100vh - 3rem); --relscope-large: 1.25; } /* names and dots of the maps */
/* The exercise at the lower edge, and the step in the middle of what is left. */
.st-key-story > :is(:has(> [data-testid="stPopover"]), :has([data-testid="stColumn"])) { margin-top: auto; }
.st-key-story > :has(.st-key-story-digits) { margin-top: 0; } /* the pad stays under the pen */
.st-key-story .stVerticalBlock { gap: 0.5rem; }
.st-key-story-bar { flex-wrap: nowrap; gap: 0.2rem; }
.st-key-story-bar :is(button, p) { padding: 0.15rem 0.35rem; min-height: 0; font-size: 0.75rem; }
.st-key-story-bar, .relscope-step { white-space: nowrap; }
.stButtonGroup button { padding-inline: 0.4rem; font-size: 0.75rem; }
.relscope-step { font-size: 1.4rem; margin: 0 0 0 0.6rem; }
.relscope-number { display: block; }
.relscope-says { line-height: 1.4; margin-bottom: 0.4rem; }
.relscope-number > b { font-size: 2.6rem; }
.relscope-columns { height: 5rem; margin-bottom: 1.5rem; }
.relscope-columns.many > :is(:nth-child(odd), .now + div, :has(+ .now)):not(.now, :last-child) span,
.relscope-columns.many > .now + div span { visibility: hidden; }
</style>"""


def page() -> None:
    st.html(STYLE)
    number = step()
    # Each step has its own container, because otherwise the old step would stay until the new one is drawn.
    if not number:
        with st.container(key="front"):
            front(go_to)
        st.empty()
        return
    st.empty()
    if st.session_state.get(PRESENTS):
        st.html(LARGE)
    one = STEPS[number - 1]
    with st.container(key="story"):
        title = f'<h3 class="relscope-step">{number} · {one.title}</h3>'
        _navigation(number, title)
        if not st.session_state.get(PRESENTS):
            st.html(title)
        places = [st.container() if one is other else st.empty() for other in STEPS]
        # The browser opens a popover upwards if there is no room below it.
        with st.popover(f"Exercise: {one.question}", icon=":material/quiz:", width="stretch"):
            st.markdown(with_links(one.answer))
        with places[number - 1]:
            one.draw()


def step() -> int:
    """The step of the story in the address. Returns 0 if the address has none."""
    text = st.query_params.get(STEP, "")
    if text in map(str, range(1, len(STEPS) + 1)):
        return int(text)
    return 0


def go_to(number: int, presents: bool | None = None) -> None:
    if presents is not None:
        st.session_state[PRESENTS] = presents
    if number:
        st.query_params[STEP] = str(number)
    else:
        st.query_params.pop(STEP, None)


def _navigation(number: int, title: str) -> None:
    last = len(STEPS)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="story-bar"):
        # No key leaves the story: in front of a class, one easily presses a key too often.
        st.button("Back", key="story.back", shortcut="Left" if number > 1 else None, **_to(number - 1))
        label = "To the start"
        if number < last:
            label = "Next"
        st.button(
            label,
            key="story.next",
            type="primary",
            shortcut="Right" if number < last else None,
            **_to((number + 1) % (last + 1)),
        )
        presents = bool(st.session_state.get(PRESENTS))
        for other in range(1, last + 1):  # no radio group, which would catch the arrow keys
            look = "tertiary"
            if other == number:
                look = "secondary"
            st.button(
                f"{other}",
                key=f"story.step-{other}",
                type=look,
                help=None if presents else STEPS[other - 1].title,
                **_to(other),
            )
        if presents:
            st.html(title, width="content")
        st.space("stretch")
        # Not a toggle: while a toggle has the focus, the arrow keys do not move between steps.
        label = "Present the story"
        help_text = "Large type, for a screen in front of a class"
        if presents:
            label = "End the presentation"
            help_text = None
        st.button(
            label,
            key="story.present",
            icon=":material/co_present:",
            type="tertiary",
            help=help_text,
            shortcut="Escape" if presents else None,
            **_to(number, not presents),
        )
        st.button("Reset", key="story.reset", icon=":material/restart_alt:", type="tertiary", on_click=reset)


def _to(number: int, presents: bool | None = None) -> dict[str, Any]:
    return {"on_click": go_to, "args": (number, presents)}


def reset() -> None:
    """Start the story again at its first step. Presenter mode stays as it is."""
    for key in [key for key in st.session_state if key.startswith("story.") and key != PRESENTS]:
        del st.session_state[key]
    go_to(1)
