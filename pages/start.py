"""The place Start: the idea in six steps on real data, three examples, and a button for the user's
own data."""

from __future__ import annotations

from app import saving
from app.places import EXPLORE, go
from app.start import story

if saving.was_given_settings():
    go(EXPLORE, same_settings=True)
story.page()
