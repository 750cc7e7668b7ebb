"""Map a relative space back to an absolute one, its own or another's, and measure what is lost."""

from __future__ import annotations

from app import session
from app.invert import (
    domains_panel,
    invert_grid_panel,
    invert_norms_panel,
    invert_panel,
    invert_setup,
    rescale_panel,
    translate_panel,
)
from app.page_settings import kept_tabs

workspace = session.workspace()
names = ["Rows", invert_panel.GRID_TAB, "Norms", "Rescale", "Translate", "Across datasets"]
rows, grid, norms, rescale, translate, domains = kept_tabs(names, "invert.tab")
with rows:
    if rows.open:
        invert_setup.choosers(workspace)
        invert_panel.draw(workspace)
with grid:
    if grid.open:
        invert_setup.choosers(workspace)
        invert_grid_panel.draw(workspace)
with norms:
    if norms.open:
        invert_norms_panel.draw(workspace)
with rescale:
    if rescale.open:
        rescale_panel.draw(workspace)
with translate:
    if translate.open:
        invert_setup.numbers(workspace, ("delta", "omega", "ridge"))
        translate_panel.draw(workspace)
with domains:
    if domains.open:
        invert_setup.numbers(workspace, ("delta", "omega", "ridge"))
        domains_panel.draw(workspace)
