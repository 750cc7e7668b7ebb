"""The place Connect: stitch models, retrieve across languages, invert, link, or bring many models into one
space."""

from app import session
from app.places import CONNECT

CONNECT.draw_tabs(session.workspace())
