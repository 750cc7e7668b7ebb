"""The story: five steps on real words, then stitching; each has an address, and keys lead on and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from app.glossary.terms import linked
from app.saving import STEP
from app.start import front, steps

STYLE = Path(__file__).parents[2] / "assets" / "start.css"
# With less air, so that each step fits a screen of 1440 × 900.
LARGE = """<style>
html { font-size: 1.2rem; }
.st-key-toolbar { display: none; }
[data-testid="stMainBlockContainer"] { padding-bottom: 1rem; }
.st-key-story .stVerticalBlock { gap: 0.5rem; }
.relscope-says { line-height: 1.4; margin-bottom: 0.4rem; }
.relscope-number > b { font-size: 2.6rem; }
.relscope-columns { height: 5rem; margin-bottom: 1.5rem; }
</style>"""
_PRESENTS = "story.presents"


def page() -> None:
    st.html(STYLE)
    number = step()
    if not number:
        front.draw(go_to)
        return
    if st.session_state.get(_PRESENTS):
        st.html(LARGE)
    one = steps.STEPS[number - 1]
    with st.container(key="story"):
        _bar(number)
        st.html(f'<h3 class="relscope-step">{number} · {one.title}</h3>')
        with st.container(
            key=f"story-{number}"
        ):  # by its key, a step that loads shows nothing of the one before
            one.draw()
        with st.expander(f"Exercise: {one.question}", icon=":material/quiz:"):
            st.markdown(linked(one.answer))


def step() -> int:
    """The step of the story that the address names, 0 where it names none."""
    text = st.query_params.get(STEP, "")
    return int(text) if text in map(str, range(1, len(steps.STEPS) + 1)) else 0


def go_to(number: int, presents: bool | None = None) -> None:
    if presents is not None:
        st.session_state[_PRESENTS] = presents
    if number:
        st.query_params[STEP] = str(number)
    else:
        st.query_params.pop(STEP, None)


def _bar(number: int) -> None:
    """Back and next, all steps, presenter mode, and reset."""
    last = len(steps.STEPS)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="story-bar"):
        st.button(
            "Back",
            key="story.back",
            shortcut="Left",
            **_to(number - 1),
        )
        st.button(
            "Next" if number < last else "To the start",
            key="story.next",
            type="primary",
            shortcut="Right",
            **_to((number + 1) % (last + 1)),
        )
        for other in range(1, last + 1):  # no group of choices, which would take the arrow keys
            look = "secondary" if other == number else "tertiary"
            st.button(
                f"{other}",
                key=f"story.step-{other}",
                type=look,
                help=steps.STEPS[other - 1].title,
                **_to(other),
            )
        st.space("stretch")
        presents = bool(st.session_state.get(_PRESENTS))
        # No toggle: the arrow keys do not reach the story while an input has the focus.
        st.button(
            "Small type" if presents else "Present it",
            key="story.present",
            icon=":material/co_present:",
            type="tertiary",
            help="Large type, for a screen in front of a class",
            **_to(number, not presents),
        )
        st.button("Reset", key="story.reset", icon=":material/restart_alt:", type="tertiary", on_click=reset)


def _to(number: int, presents: bool | None = None) -> dict[str, Any]:
    return {"on_click": go_to, "args": (number, presents)}


def reset() -> None:
    """The story as at first, but for presenter mode; at its first step."""
    for key in [key for key in st.session_state if key.startswith("story.") and key != _PRESENTS]:
        del st.session_state[key]
    go_to(1)
