"""The tables and figures of the three papers, next to what this software measures."""

from __future__ import annotations

from app import papers_panel

papers_panel.draw()
