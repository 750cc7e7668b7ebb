"""The panes of `tests.browser.panes.scene` in Streamlit, ``?n=2000``, with what Python heard beneath;
or ``?captions=[…]``, texts as captions.
"""

import json

import numpy as np
import streamlit as st

from app.components.linked_scatter import linked_scatter
from tests.browser.panes import scene

st.set_page_config(layout="wide")
if "captions" in st.query_params:
    for text in json.loads(st.query_params["captions"]):
        st.caption(text)
    st.stop()
state = st.session_state
log = state.setdefault("log", [])
state.runs = state.get("runs", 0) + 1
columns = st.columns(4)
columns[0].button("Run again")
if columns[1].button("Move one pane"):
    state.moved = not state.get("moved")
if columns[2].button("Highlight ten"):
    state.chosen = list(range(10))
if columns[3].button("More anchors"):
    state.more = state.get("more", 0) + 1


@st.cache_resource
def drawn(n, anchors, moved):
    made = scene(n, anchors=anchors)
    if moved:
        np.copyto(made.panes[0].coordinates, made.panes[0].coordinates[::-1].copy())
    return made


def remember(event):
    if event.kind != "click":
        state.chosen = event.rows.tolist()
    log.append([event.kind, event.rows.tolist()])


n = int(st.query_params.get("n", 2000))
shown = drawn(n, 8 + state.get("more", 0), bool(state.get("moved")))
linked_scatter(shown, key="panes", selected=state.get("chosen"), on_event=remember)
st.code(json.dumps({"runs": state.runs, "events": log}), language=None)
