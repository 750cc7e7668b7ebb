"""Run the papers' experiments on your data, and read what the papers print next to what is measured here."""

from __future__ import annotations

from app import session
from app.page_settings import kept_tabs
from app.papers import panel as papers
from app.places import RESEARCH
from app.studies import panel as studies

studied, printed = kept_tabs(RESEARCH.tabs, RESEARCH.key)
with studied:
    if studied.open:
        studies.page(session.workspace())
with printed:
    if printed.open:
        papers.draw()
