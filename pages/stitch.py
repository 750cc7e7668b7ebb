"""Combine every encoder with every head, without training, and score the result."""

from __future__ import annotations

from app import session, sharing
from app.page_settings import kept_tabs
from app.stitch import languages_panel, pictures_words_panel, reconstruction_panel, stitch_panel, stitch_setup, try_it_panel

names = ["Every pair", "Try it", "Languages", "Pictures and words", "Reconstruction"]
pairs, trial, languages, words, reconstruction = kept_tabs(names, "stitch.tab")
with pairs:
    if pairs.open:
        stitch_panel.draw(stitch_setup.choose(session.workspace()))
with trial:
    if trial.open:
        try_it_panel.draw(stitch_setup.choose(session.workspace()))
with languages:
    if languages.open:
        languages_panel.draw(session.workspace())
with words:
    if words.open:
        pictures_words_panel.draw(session.workspace())
with reconstruction:
    if reconstruction.open:
        reconstruction_panel.draw(sharing.open_folder())
