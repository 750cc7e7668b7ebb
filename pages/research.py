"""The place Research: run the papers' experiments, and compare published and measured numbers."""

from app import session
from app.places import RESEARCH

RESEARCH.draw_tabs(session.workspace())
