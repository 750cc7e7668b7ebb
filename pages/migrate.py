"""Change the embedding model: what to do about it, and what two versions do differently."""

from __future__ import annotations

from app import session
from app.drift import panel as drift
from app.migrate import page as migration
from app.page_settings import kept_tabs
from app.places import MIGRATE

changed, drifted = kept_tabs(MIGRATE.tabs, MIGRATE.key)
with changed:
    if changed.open:
        migration.draw(session.workspace())
with drifted:
    if drifted.open:
        drift.draw(session.workspace())
