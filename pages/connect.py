"""Connect two models: stitch, retrieve across languages, invert, translate, find parallel anchors."""

from __future__ import annotations

from app import session
from app.bootstrap import panel as bootstrap
from app.invert import panel as invert
from app.invert import translate
from app.page_settings import kept_tabs
from app.places import CONNECT
from app.stitch import languages
from app.stitch import panel as stitch

DRAWN = {
    "Stitch": stitch.page,
    "Languages": languages.draw,
    "Invert": invert.draw,
    "Translate": translate.draw,
    "Bootstrap": bootstrap.page,
}

for tab, name in zip(kept_tabs(CONNECT.tabs, CONNECT.key), CONNECT.tabs, strict=True):
    with tab:
        if tab.open:
            DRAWN[name](session.workspace())
