"""The places of the app: their files, titles, tabs and former addresses, and the function that opens one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.page_settings import ask_for_tab, kept_tabs

_PAGES = Path(__file__).parents[1] / "pages"


@dataclass(frozen=True)
class Place:
    """A page of the app. `tabs` are the titles of its tabs. The session state has the open tab under
    ``NAME.tab``."""

    name: str
    icon: str
    tabs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.name.capitalize()

    @property
    def key(self) -> str:
        return f"{self.name}.tab"

    @cached_property
    def file(self) -> Path:
        return _PAGES / f"{self.name}.py"

    def draw_tabs(self, *draws: Callable[[], None]) -> None:
        """Draw the tabs. Only the open tab is computed."""
        for tab, draw in zip(kept_tabs(self.tabs, self.key), draws, strict=True):
            with tab:
                if tab.open:
                    draw()

    def page(self) -> StreamlitPage:
        look = {"title": self.title, "icon": f":material/{self.icon}:"}
        shown = "hidden" if self is DATA else "visible"
        return st.Page(self.file, default=self is START, visibility=shown, **look)


START = Place("start", "home")
EXPLORE = Place("explore", "join_inner", ("Scores", "Where they differ", "Anchors", "Selection"))
CONNECT = Place("connect", "conversion_path", ("Stitch", "Languages", "Invert", "Link", "Universe"))
MIGRATE = Place("migrate", "move_up", ("New model", "Drift"))
RESEARCH = Place("research", "science", ("Studies", "Papers"))
DATA = Place("data", "database")  # a button at the top left opens it
PLACES = {place.name: place for place in (START, EXPLORE, CONNECT, MIGRATE, RESEARCH, DATA)}
# Former pages, whose addresses old links may still use.
FORMER = {
    "compare": (EXPLORE, ""),
    "anchors": (EXPLORE, "Anchors"),
    "spaces": (DATA, ""),
    "stitch": (CONNECT, "Stitch"),
    "invert": (CONNECT, "Invert"),
    "bootstrap": (CONNECT, "Link"),
    "translate": (CONNECT, "Universe"),
    "studies": (RESEARCH, "Studies"),
    "papers": (RESEARCH, "Papers"),
}


def pages() -> list[StreamlitPage]:
    """The pages of the navigation, and the hidden pages: Data and the former addresses."""
    former = [
        st.Page(
            partial(go, place, tab, same_settings=True),
            title=name.capitalize(),
            url_path=name,
            visibility="hidden",
        )
        for name, (place, tab) in FORMER.items()
    ]
    return [place.page() for place in PLACES.values()] + former


def go(place: Place, tab: str = "", *, same_settings: bool = False) -> None:
    """Open a place, at this tab if one is given. With `same_settings`, the settings in the address stay."""
    if tab:
        ask_for_tab(place.key, tab)
    settings = None
    if same_settings:
        settings = st.query_params.to_dict()
    st.switch_page(place.file, query_params=settings)
