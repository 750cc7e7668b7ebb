"""Combine every encoder with every head, without training, and score the result."""

from __future__ import annotations

from app import session
from app.page_settings import kept_tabs
from app.stitch import languages, panel, try_it

TABS = {
    "Every pair": lambda workspace: panel.draw(panel.choose(workspace)),
    "Try it": lambda workspace: try_it.draw(panel.choose(workspace)),
    "Languages": languages.draw,
}

for tab, draw in zip(kept_tabs(list(TABS), "stitch.tab"), TABS.values(), strict=True):
    with tab:
        if tab.open:
            draw(session.workspace())
