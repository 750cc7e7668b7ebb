"""Connect two models: stitch, retrieve across languages, invert, translate, find parallel anchors."""

from __future__ import annotations

from functools import partial

from app import session
from app.bootstrap import panel as bootstrap
from app.invert import panel as invert
from app.invert import translate
from app.places import CONNECT
from app.stitch import languages
from app.stitch import panel as stitch

DRAWS = stitch.page, languages.draw, invert.draw, translate.draw, bootstrap.page
CONNECT.draw_tabs(*(partial(draw, session.workspace()) for draw in DRAWS))
