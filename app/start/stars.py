"""The stars of the story's third step: the eight anchors, which the user may drag, with undo and redo."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from app.saving import STEP

RULERS = ("food", "water", "money", "child", "house", "war", "music", "winter")
NUMBER = 3  # of the step
CHOICE = "story.ruler"  # widget key: which picture the step shows
DRAG = "drag"  # the picture with stars
_STATE = "story.dragged"

Drag = tuple[str, tuple[str, ...]]  # the name of a step, and the anchors to which undo or redo leads


@dataclass
class Stars:
    now: tuple[str, ...] = RULERS
    past: list[Drag] = field(default_factory=list)
    future: list[Drag] = field(default_factory=list)

    def drag(self, before: str, to: str) -> None:
        """Replace the anchor `before` by the word `to`. If that word is an anchor already, do nothing."""
        if to in self.now or before not in self.now:
            return
        self.past.append((f"move “{before}” to “{to}”", self.now))
        self.future.clear()
        self.now = tuple(to if one == before else one for one in self.now)

    def undo(self) -> None:
        self._move(self.past, self.future)

    def redo(self) -> None:
        self._move(self.future, self.past)

    def _move(self, origin: list[Drag], to: list[Drag]) -> None:
        if origin:
            name, anchors = origin.pop()
            to.append((name, self.now))
            self.now = anchors

    @property
    def undo_step(self) -> str | None:
        """The name of the last drag, None if there is none or the page does not show the stars."""
        return self.past[-1][0] if self.past and _are_shown() else None

    @property
    def redo_step(self) -> str | None:
        return self.future[-1][0] if self.future and _are_shown() else None


def _are_shown() -> bool:
    return st.query_params.get(STEP) == str(NUMBER) and st.session_state.get(CHOICE, DRAG) == DRAG


def stars() -> Stars:
    """The stars of this session. *Reset* removes them, because their key begins as all keys of the story."""
    return st.session_state.setdefault(_STATE, Stars())
