"""The places of the app: their files, titles, tabs and former addresses, and the function that opens one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.page_settings import ask_for_tab, kept_tabs
from relcore.base.earlier import FORMER_PAGES
from relcore.base.families import Named
from relcore.base.names import TABS
from relcore.base.plugins import named_in_errors

_PAGES = Path(__file__).parents[1] / "pages"

# Our own tabs, in the family to which plugins add theirs: place and title in small letters → the function
# that draws the tab.
TABS.own |= {
    "explore scores": Named("Scores", "app.compare.scores:draw"),
    "explore why they differ": Named("Why they differ", "app.explain.panel:draw"),
    "explore axis": Named("Axis", "app.axis.panel:draw"),
    "explore anchors": Named("Anchors", "app.anchors.panel:draw"),
    "explore selection": Named("Selection", "app.compare.selected_rows:draw"),
    "connect stitch": Named("Stitch", "app.stitch.panel:page"),
    "connect languages": Named("Languages", "app.stitch.languages:draw"),
    "connect invert": Named("Invert", "app.invert.panel:draw"),
    "connect link": Named("Link", "app.link.panel:page"),
    "connect universe": Named("Universe", "app.universe.panel:page"),
    "migrate new model": Named("New model", "app.migrate.panel:draw"),
    "migrate choose": Named("Choose", "app.choose.panel:draw"),
    "migrate drift": Named("Drift", "app.drift.panel:draw"),
    "research studies": Named("Studies", "app.studies.panel:page"),
    "research papers": Named("Papers", "app.papers.panel:draw"),
    "research training": Named("Training", "app.training.panel:draw"),
}


@dataclass(frozen=True)
class Place:
    """A page of the app. The session state has its open tab under ``NAME.tab``."""

    name: str
    icon: str

    @property
    def entries(self) -> dict[str, Named]:
        """The entries of this place's tabs in the registry, by their titles."""
        found = {}
        for name, entry in TABS.items():
            place, _, title = name.partition(" ")
            if place != self.name:
                continue
            if not entry.plugin:
                title = entry.title
            else:
                title = title.capitalize()
            found[title] = entry
        return found

    @property
    def tabs(self) -> tuple[str, ...]:
        return tuple(self.entries)

    @property
    def title(self) -> str:
        return self.name.capitalize()

    @property
    def key(self) -> str:
        return f"{self.name}.tab"

    @cached_property
    def file(self) -> Path:
        return _PAGES / f"{self.name}.py"

    def draw_tabs(self, *given: Any) -> None:
        """Draw the tabs. Only the open tab is imported and computed: its function gets what is `given`."""
        entries = self.entries
        for tab, entry in zip(kept_tabs(tuple(entries), self.key), entries.values(), strict=True):
            with tab:
                if tab.open:
                    with named_in_errors(entry.plugin):
                        entry.load()(*given)

    def page(self) -> StreamlitPage:
        look = {"title": self.title, "icon": f":material/{self.icon}:"}
        shown = "hidden" if self is DATA else "visible"
        return st.Page(self.file, default=self is START, visibility=shown, **look)


START = Place("start", "home")
EXPLORE = Place("explore", "join_inner")
CONNECT = Place("connect", "conversion_path")
MIGRATE = Place("migrate", "move_up")
RESEARCH = Place("research", "science")
DATA = Place("data", "database")  # a button at the top left opens it
PLACES = {place.name: place for place in (START, EXPLORE, CONNECT, MIGRATE, RESEARCH, DATA)}
# Former pages, whose addresses links may still use.
FORMER = {page: (PLACES[name], tab) for page, (name, tab) in FORMER_PAGES.items()}


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
