"""Combine every encoder with every head, without training, and score the result."""

from __future__ import annotations

from app import session
from app.page_settings import kept_tabs
from app.stitch import languages as languages_panel
from app.stitch import panel, try_it

pairs, trial, languages = kept_tabs(["Every pair", "Try it", "Languages"], "stitch.tab")
with pairs:
    if pairs.open:
        panel.draw(panel.choose(session.workspace()))
with trial:
    if trial.open:
        try_it.draw(panel.choose(session.workspace()))
with languages:
    if languages.open:
        languages_panel.draw(session.workspace())
