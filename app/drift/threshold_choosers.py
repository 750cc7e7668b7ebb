"""Thresholds of the drift gate in a popover, and the file for `relscope drift --thresholds`."""

from __future__ import annotations

from dataclasses import fields

import streamlit as st

from relcore.drift.thresholds import Thresholds, as_toml
from relcore.drift.verdict import QUANTITIES, SITUATIONS


def thresholds_of() -> Thresholds:
    """The thresholds that the choosers show; at first the defaults."""
    found = {}
    with st.popover("Thresholds", icon=":material/tune:", key="drift.thresholds"):
        st.caption("How much more than numeric noise may change before the gate alarms: shares from 0 to 1.")
        for column, situation in zip(st.columns(2, gap="medium"), SITUATIONS, strict=True):
            with column:
                st.markdown(f"**{SITUATIONS[situation].title}**")
                usual = getattr(Thresholds(), situation)
                values = {field.name: _chosen(situation, field.name, getattr(usual, field.name)) for field in fields(usual)}
                found[situation] = type(usual)(**values)
        thresholds = Thresholds(**found)
        st.download_button(
            "Download for the command",
            data=as_toml(thresholds),
            file_name="thresholds.toml",
            mime="application/toml",
            key="drift.thresholds-file",
            on_click="ignore",
            icon=":material/download:",
            help="relscope drift OLD NEW --thresholds thresholds.toml",
        )
    return thresholds


def _chosen(situation: str, name: str, usual: float) -> float:
    quantity = QUANTITIES[name.removeprefix("class_")]
    title = f"{quantity.title}, each class" if name.startswith("class_") else quantity.title
    look = {"help": f"{quantity.help[0].upper()}{quantity.help[1:]}.", "format": "%.3f", "persist_state": "session"}
    return float(st.number_input(title, 0.0, 1.0, usual, 0.01, key=f"drift.{situation}.{name}", **look))
