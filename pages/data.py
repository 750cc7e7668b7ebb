"""The place Data: vectors, texts, pictures, bundled data, databases, and the spaces of this session."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import compute, session
from app.encode import forms, jobs, panel
from app.page_settings import segments
from app.spaces import bundled, check, loaded, loading, pairing, shards, store
from relcore.base.errors import NoCommonId, SpaceError

if jobs.collect():
    st.rerun()  # the toolbar was drawn without the new spaces
workspace = session.workspace()
try:
    pair = compute.matched_models(workspace.source, workspace.target)
    unpaired = False
except SpaceError as error:  # the list of spaces shows this error
    pair = None
    unpaired = isinstance(error, NoCommonId)
if unpaired:
    pairing.draw_unpaired(workspace)
st.subheader("What do you have?", anchor=False)
kinds = {kind: kind for kind in ("Vectors", "Texts", "Pictures", "Bundled", "Database or shards")}
kinds |= {"Texts": "Texts to encode", "Pictures": "Pictures to encode"}
kind = segments("What do you have?", kinds, "data.kind", label_visibility="collapsed")
check.draw(workspace)
if kind == "Vectors":
    loading.draw_vectors()
elif kind == "Bundled":
    bundled.draw()
elif kind == "Database or shards":
    shards.draw()
else:
    panel.draw(partial(forms.choose_dataset, kind))
loaded.draw(workspace, pair)
with st.expander(
    "Store: what was encoded and computed", icon=":material/inventory_2:", key="data.store", on_change="rerun"
) as stored:
    if stored.open:
        store.draw()
