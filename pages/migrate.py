"""The place Migrate: decide about a new embedding model, and compare two versions of a model."""

from __future__ import annotations

from functools import partial

from app import session
from app.drift import panel as drift
from app.migrate import panel as migration
from app.places import MIGRATE

MIGRATE.draw_tabs(*(partial(draw, session.workspace()) for draw in (migration.draw, drift.draw)))
