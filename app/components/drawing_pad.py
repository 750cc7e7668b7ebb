"""Pictures that the user makes in the browser: drawn by mouse, pen or finger, or taken by a camera."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.components.page import scripts
from relcore.base.errors import SpaceError
from relcore.encoders.pictures import decode_image

if TYPE_CHECKING:
    from PIL.Image import Image

_HERE = Path(__file__).parent
_DRAWN = "relscope.drawn"
_PREFIX = "data:image/png;base64,"
_CSS = (_HERE / "drawing_pad.css").read_text(encoding="utf-8")
_mount = st.components.v2.component("relscope_drawing_pad", css=_CSS, js=scripts("drawing_pad"))
_mount_camera = st.components.v2.component("relscope_camera", css=_CSS, js=scripts("camera"))


def drawing_pad(key: str, label: str, size: int) -> Image | None:
    """The drawing as a picture of `size` × `size` pixels with white strokes on black. Returns None while the
    pad is empty. All pads of the session show the same drawing.

    Raises a SpaceError if the browser sent something other than a picture.
    """
    before = st.session_state.get(_DRAWN, "")
    sent = _latest_picture(_mount, key, label, size, before)
    if sent is None:
        sent = before
    st.session_state[_DRAWN] = sent
    picture = read_picture(sent)
    if picture is None:
        return None
    return picture.convert("L")


def camera(key: str, label: str, size: int = 220) -> Image | None:
    """The latest picture of the browser's camera, `size` × `size` pixels. Returns None until the camera is
    started. The browser sends a new picture after the page has answered the last one.

    Raises a SpaceError if the browser sent something other than a picture.
    """
    return read_picture(_latest_picture(_mount_camera, key, label, size))


def _latest_picture(mount: Callable, key: str, label: str, size: int, before: str = "") -> str | None:
    """The picture as a data URI. Returns "" after the user cleared it, and None before the browser has sent
    one."""
    # When this count rises, the browser knows that its last picture was answered, and sends the next.
    count = f"{key}:answered"
    number = st.session_state.get(count, 0) + 1
    st.session_state[count] = number
    data = {"label": label, "size": size, "answered": number, "before": before}
    # The callback need not do anything: Streamlit keeps the picture for the next run.
    return mount(key=key, data=data, default={"picture": None}, on_picture_change=lambda: None).picture


def read_picture(sent: str | None) -> Image | None:
    if not sent:
        return None
    try:
        content = base64.b64decode(str(sent).removeprefix(_PREFIX), validate=True)
    except (ValueError, binascii.Error) as error:
        raise SpaceError(
            "picture: expected a PNG from the browser, got something else; draw or start the camera again"
        ) from error
    return decode_image(content, "drawing")
