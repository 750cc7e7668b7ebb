"""The place Research: run the papers' experiments, compare published and measured numbers, and bring many
models into one space."""

from __future__ import annotations

from functools import partial

from app import session
from app.papers import panel as papers
from app.places import RESEARCH
from app.studies import panel as studies
from app.universe import panel as universe

workspace = session.workspace()
RESEARCH.draw_tabs(partial(studies.page, workspace), papers.draw, partial(universe.page, workspace))
