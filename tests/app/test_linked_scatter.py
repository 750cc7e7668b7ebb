import json

from streamlit.testing.v1 import AppTest


def header_of(at):
    (node,) = at.run().get("bidi_component")
    assert not at.exception
    payload = node.proto.bytes
    return json.loads(payload[4 : 4 + int.from_bytes(payload[:4], "little")])


HOVERS = """
import numpy as np, streamlit as st
from app.components.linked_scatter import linked_scatter
from relcore.figures.scene import PARTS, STEPS, Coloring, ColorScale
from relcore.figures.scene import Pane, Scene
n, changed = 80_000, st.session_state.get("changed")
texts = np.array([f"sentence {i:06}" for i in range(n)], dtype=object)
if changed:
    texts[changed] = "sentence ######"
linked_scatter(Scene((Pane("a", np.zeros((n, 2))),), np.arange(n), np.full(n, -1), texts=texts), key="panes", on_event=print)
"""


def test_one_text_changed_among_many_is_another_file_and_none_is_the_same():
    at = AppTest.from_string(HOVERS)
    first = header_of(at)["files"]["texts"]
    assert header_of(at)["files"]["texts"] == first
    at.session_state["changed"] = 11_111  # in none of the parts from which Streamlit would name a large file
    assert header_of(at)["files"]["texts"] != first


def test_new_coordinates_travel_once_and_known_ones_do_not():
    at = AppTest.from_string(
        HOVERS.replace(
            "np.zeros((n, 2))", "np.full((n, 2), st.session_state.get('place', 0)) * [[1, 2]]"
        ).replace("80_000", "20_000")
    )
    assert header_of(at)["carried"] == [], "the files of the first payload load side by side"
    at.session_state["place"] = 1
    assert header_of(at)["carried"] == ["pane0"]
    assert header_of(at)["carried"] == []


def test_whoever_knows_a_text_and_an_array_cannot_tell_their_addresses(monkeypatch):
    def addresses():
        header = header_of(at)
        return {*header["files"].values(), *header["elsewhere"].values()}

    at = AppTest.from_string(HOVERS)
    first = addresses()
    assert len(first) > 2
    monkeypatch.setattr("app.components.linked_scatter._SECRET", "that of another server")
    assert not first & addresses()
