"""The place Connect: stitch models, retrieve across languages, invert, link, or bring many models into one
space."""

from __future__ import annotations

from functools import partial

from app import session
from app.invert import panel as invert
from app.link import panel as link
from app.places import CONNECT
from app.stitch import languages
from app.stitch import panel as stitch
from app.universe import panel as universe

DRAWS = stitch.page, languages.draw, invert.draw, link.page, universe.page
CONNECT.draw_tabs(*(partial(draw, session.workspace()) for draw in DRAWS))
