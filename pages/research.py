"""The place Research: run the papers' experiments, and compare published and measured numbers."""

from __future__ import annotations

from functools import partial

from app import session
from app.papers import panel as papers
from app.places import RESEARCH
from app.studies import panel as studies

RESEARCH.draw_tabs(partial(studies.page, session.workspace()), papers.draw)
