"""The tables and figures of the three papers, next to what this software measures."""

from __future__ import annotations

from app.papers import panel

panel.draw()
