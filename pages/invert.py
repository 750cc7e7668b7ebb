"""Map a relative space back to an absolute one, its own or another's, and measure what is lost."""

from __future__ import annotations

from app import session
from app.invert import panel, translate
from app.page_settings import kept_tabs

workspace = session.workspace()
rows, translations = kept_tabs(["Rows", "Translate"], "invert.tab")
with rows:
    if rows.open:
        panel.choosers(workspace)
        panel.draw(workspace)
with translations:
    if translations.open:
        panel.numbers(("delta", "omega", "ridge"))
        translate.draw(workspace)
