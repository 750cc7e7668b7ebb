"""What the three papers print, row by row, beside what this software measures."""

from __future__ import annotations

from app import papers_panel

papers_panel.draw()
