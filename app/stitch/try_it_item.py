"""The item of Try it: a typed sentence, or a picture from the test rows, drawn or uploaded."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from app import messages
from app.components.drawing_pad import drawing_pad
from app.page_settings import kept
from relcore.sources.dataset import Dataset
from relcore.sources.images import decode_image, png_thumbnail
from relcore.sources.look import look_of, made_like
from relcore.spaces import SpaceError
from relcore.stitching.classification import Stitching
from relcore.stitching.one_item import ItemEncoder

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN = 160  # pixels of a picture's longer side


@dataclass(frozen=True, eq=False)
class Asked:
    """An item, and its true label where it is one of the test rows."""

    item: str | Image
    truth: str = ""


def choose(encoder: ItemEncoder, stitching: Stitching) -> Asked | None:
    """The chooser for the kind of items that this encoder takes; None while no item is chosen."""
    return _text(encoder.dataset, stitching) if encoder.kind == "texts" else _picture(encoder.dataset, stitching)


def _text(dataset: Dataset, stitching: Stitching) -> Asked | None:
    key = "stitch.try-text"
    if key not in st.session_state:
        _put_text(dataset, stitching, 0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kept(
            st.text_input,
            "A sentence",
            key=key,
            live="200ms",
            placeholder="Type a sentence; every pair answers as you type",
            max_chars=2000,
        )
        st.button(
            "Another test sentence",
            key="stitch.try-another",
            icon=":material/shuffle:",
            help="A sentence that no head was trained on",
            on_click=_draw_text,
            args=(dataset, stitching),
        )
    text = " ".join(st.session_state[key].split())
    return Asked(text, st.session_state.get("relscope.try-truth", {}).get(text, "")) if text else None


def _draw_text(dataset: Dataset, stitching: Stitching) -> None:
    _put_text(dataset, stitching, int(np.random.default_rng().integers(len(stitching.split.test))))


def _put_text(dataset: Dataset, stitching: Stitching, number: int) -> None:
    text, label = _test_item(dataset, stitching, number)
    text = " ".join(text.split())[:2000]
    st.session_state["stitch.try-text"] = text
    st.session_state["relscope.try-truth"] = {text: label}


def _picture(dataset: Dataset, stitching: Stitching) -> Asked | None:
    look = _look(dataset.digest, dataset)
    sources = {"test": "Test", "draw": "Draw", "upload": "Upload"}
    if not look.on_dark:
        del sources["draw"]
    source = kept(
        st.segmented_control,
        "Picture",
        list(sources),
        default="test",
        format_func=sources.get,
        key="stitch.try-way",
        required=True,
    )
    if source == "test":
        n = len(stitching.split.test)
        number = kept(st.number_input, f"Number, 1 … {n:,}", 1, n, 1, key="stitch.try-number", width=180)
        item, truth = _test_item(dataset, stitching, int(number) - 1)
        _show(item, f"Label: {truth}")
        return Asked(item, truth)
    if source == "draw":
        found = drawing_pad("stitch.try-pad", "Draw here with mouse, pen or finger")
        if found is None:
            st.caption("Draw a picture. Every pair answers when you lift the pen.")
            return None
        return _adapted(found, dataset, "drawing")
    uploaded = st.file_uploader("A picture", type=["png", "jpg", "jpeg", "webp", "bmp", "gif"], key="stitch.try-upload")
    if uploaded is None:
        size = f"{look.size[0]} × {look.size[1]} pixels" if look.size else "its own size"
        grey = ", grey" if look.mode == "L" else ""
        dark = ", light on dark" if look.on_dark else ""
        st.caption(f"The upload is converted to the form the encoders were trained on: {size}{grey}{dark}.")
        return None
    return _adapted(decode_image(uploaded.getvalue(), uploaded.name), dataset, uploaded.name)


def _adapted(picture: Image, dataset: Dataset, where: str) -> Asked | None:
    try:
        item = made_like(picture, _look(dataset.digest, dataset), where)
    except SpaceError as error:
        messages.error(error)
        return None
    _show(item, "As the encoders see it")
    return Asked(item)


def _show(item: Image, caption: str) -> None:
    st.image(BytesIO(png_thumbnail(item, _SHOWN)), caption=caption, alt=caption)


def _test_item(dataset: Dataset, stitching: Stitching, number: int) -> tuple[str | Image, str]:
    """A test row's item and its label."""
    row = int(stitching.split.test[number])
    identifier = stitching.shared.ids[row]
    place = int(np.flatnonzero(dataset.ids == identifier)[0])
    return dataset.item(place), stitching.shared.classes[stitching.shared.targets[row]]


@st.cache_data(max_entries=16, show_spinner=False)
def _look(digest: str, _dataset: Dataset):
    return look_of(_dataset)
