"""A made-up scene in linked panes: ``?n=2000&panes=4&anchors=8&callback=1&link=1&named=.5``, with what Python
heard beneath.

``&solid=1`` adds a dimension, ``&texts=1`` a long sentence to each row, ``&sheet=8`` a picture of 8 × 8
pixels: red is the row by 20, green what is left.
"""

import json

import numpy as np
import streamlit as st
from PIL import Image

from app.components.linked_scatter import linked_scatter
from app.items import make_sheet
from relcore.charts.scene import Pane, Scene, StarLook
from tests.browser.made_up import NAMES, made_up

st.set_page_config(layout="wide")
given = st.query_params
state = st.session_state
TITLES = ("Word2Vec · absolute", "FastText · absolute", "Word2Vec · relative", "FastText · relative")
NOTES = ("PCA, 41 % of variance", "PCA, 38 % of variance", "to 8 anchors, cosine", "to 8 anchors, cosine")


@st.cache_resource
def made_up_sheet(n: int, side: int):
    return make_sheet(
        (Image.new("RGB", (side, side), (row // 20, row % 20 * 12, 128)) for row in range(n)), n
    )


n, panes, k = int(given.get("n", 2000)), int(given.get("panes", 4)), int(given.get("anchors", 8))
ids, categories, clouds = st.cache_resource(made_up)(n, float(given.get("named", 1)))
if "solid" in given:
    clouds = [np.c_[cloud, cloud.std() * np.sin(np.arange(n))] for cloud in clouds]
clouds = clouds if not state.get("moved") else [clouds[0][::-1], *clouds[1:]]
log = state.setdefault("log", [])
columns = st.columns(4)
state.runs = state.get("runs", 0) + 1
columns[0].button("Run again")
if columns[1].button("Move one pane"):
    state.moved = not state.get("moved")
    st.rerun()
if columns[2].button("Highlight ten"):
    state.chosen = list(range(10))
if columns[0].button("Highlight one"):
    state.chosen = [7]
if columns[3].button("More anchors"):
    state.more = state.get("more", 0) + 1

scene = Scene(
    panes=tuple(Pane(title, cloud, note) for title, cloud, note in zip(TITLES, clouds, NOTES, strict=True))[
        :panes
    ],
    ids=ids,
    categories=categories,
    category_names=NAMES,
    anchors=np.arange(k + state.get("more", 0)) * 7 % n,
    stars=state.get("stars", StarLook()),
    hidden=state.get("hidden", ((),))[0],
    named=state.get("named", True),
    turn=state.get("turn", (1, 0, 0, 0, 1, 0, 0, 0, 1)),
    caption=f"{n:,} made-up words in {panes} panes; the same word has the same colour everywhere.",
    texts=(
        np.array([f"This is what word {i} said, at length. " * 8 for i in range(n)], dtype=object)
        if "texts" in given
        else None
    ),
    notes=np.array([f"{i} times" for i in range(n)], dtype=object) if "texts" in given else None,
)


def remember(event):
    if event.stars:
        state.stars = event.stars
        log.append(["stars", [event.stars.size, event.stars.opacity, event.stars.shown]])
        return
    if event.kind in ("hidden", "named", "turn"):
        state[event.kind] = getattr(event, event.kind)
        log.append([event.kind, state[event.kind]])
        return
    if event.kind != "click":
        state.chosen = event.rows.tolist()
    log.append([event.kind, len(event.rows), event.rows[:5].tolist()])


callback = remember if "callback" in given else None
for heard in linked_scatter(
    scene,
    key="panes",
    selected=state.get("chosen"),
    link_zoom="link" in given,
    height=int(given.get("height", 640)),
    sheet=made_up_sheet(n, int(given["sheet"])) if "sheet" in given else None,
    on_event=callback,
):
    remember(heard)
st.code(
    json.dumps(
        {
            "runs": state.runs,
            "events": log,
            "chosen": len(state.get("chosen") or ()),
            "sum": sum(state.get("chosen") or ()),
        }
    ),
    language=None,
)
