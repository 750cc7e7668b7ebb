"""Map a relative space back to an absolute one, its own or another's, and measure what is lost."""

from __future__ import annotations

from app import session
from app.invert import domains as domains_panel
from app.invert import grid as invert_grid_panel
from app.invert import norms as invert_norms_panel
from app.invert import panel
from app.invert import rescale as rescale_panel
from app.invert import translate as translate_panel
from app.page_settings import kept_tabs

workspace = session.workspace()
names = ["Rows", panel.GRID_TAB, "Norms", "Rescale", "Translate", "Across datasets"]
rows, grid, norms, rescale, translate, domains = kept_tabs(names, "invert.tab")
with rows:
    if rows.open:
        panel.choosers(workspace)
        panel.draw(workspace)
with grid:
    if grid.open:
        panel.choosers(workspace)
        invert_grid_panel.draw(workspace)
with norms:
    if norms.open:
        invert_norms_panel.draw(workspace)
with rescale:
    if rescale.open:
        rescale_panel.draw(workspace)
with translate:
    if translate.open:
        panel.numbers(workspace, ("delta", "omega", "ridge"))
        translate_panel.draw(workspace)
with domains:
    if domains.open:
        panel.numbers(workspace, ("delta", "omega", "ridge"))
        domains_panel.draw(workspace)
