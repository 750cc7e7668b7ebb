"""drawing_pad: a square to draw in with mouse, pen or finger."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from relcore.base.errors import SpaceError
from relcore.encoders.images import decode_image

if TYPE_CHECKING:
    from PIL.Image import Image

_HERE = Path(__file__).parent
_PREFIX = "data:image/png;base64,"
_mount = st.components.v2.component(
    "relscope_drawing_pad",
    css=(_HERE / "drawing_pad.css").read_text(encoding="utf-8"),
    js=(_HERE / "drawing_pad.js").read_text(encoding="utf-8"),
)


def drawing_pad(key: str, label: str, size: int = 220) -> Image | None:
    """The drawing, white strokes on black, `size` × `size` pixels; None while it is empty.

    Raises a SpaceError where the browser sent no picture.
    """
    # Streamlit keeps the picture; the run that follows reads it.
    state = _mount(
        key=key, data={"label": label, "size": size}, default={"picture": ""}, on_picture_change=lambda: None
    )
    return read_picture(state.picture)


def read_picture(sent: str | None) -> Image | None:
    if not sent:
        return None
    try:
        content = base64.b64decode(str(sent).removeprefix(_PREFIX), validate=True)
    except (ValueError, binascii.Error) as error:
        raise SpaceError(
            "drawing: expected a PNG from the browser, got something else; clear the pad and draw again"
        ) from error
    return decode_image(content, "drawing").convert("L")
