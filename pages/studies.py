"""Run the papers' experiments on your data: choose a study, run it, and follow its result."""

from __future__ import annotations

import streamlit as st

from app import session
from app.study import studies_panel, study_results
from relcore.studies.runs import StudyRuns

workspace = session.workspace()
choosers, answer = st.columns([1, 2.4], gap="large")
with choosers:
    study = studies_panel.choose_study()
    spec = studies_panel.choose_options(study, workspace)
runs = StudyRuns(study, spec)
with choosers:
    studies_panel.offer_files(spec)
with answer:
    studies_panel.introduce(study)
    studies_panel.control(runs)
    study_results.draw(runs)
