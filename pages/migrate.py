"""The place Migrate: decide about a new embedding model, and compare two versions of a model."""

from app import session
from app.places import MIGRATE

MIGRATE.draw_tabs(session.workspace())
