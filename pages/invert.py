"""Map a relative space back to an absolute one, its own or another's, and measure what is lost."""

from __future__ import annotations

from app import session
from app.invert import panel
from app.invert import translate as translate_panel
from app.page_settings import kept_tabs

workspace = session.workspace()
rows, translate = kept_tabs(["Rows", "Translate"], "invert.tab")
with rows:
    if rows.open:
        panel.choosers(workspace)
        panel.draw(workspace)
with translate:
    if translate.open:
        panel.numbers(("delta", "omega", "ridge"))
        translate_panel.draw(workspace)
