"""Run the papers' experiments on your data: choose a study, run it, and follow its result."""

from __future__ import annotations

import streamlit as st

from app import session
from app.studies import panel
from relcore.studies.study import StudyRuns

workspace = session.workspace()
choosers, answer = st.columns([1, 2.4], gap="large")
with choosers:
    study = panel.choose_study()
    spec = panel.choose_options(study, workspace)
runs = StudyRuns(study, spec)
with choosers:
    panel.offer_files(spec)
with answer:
    panel.introduce(study)
    panel.control(runs)
    panel.draw(runs)
