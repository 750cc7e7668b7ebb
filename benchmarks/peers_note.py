"""benchmarks/peers.md: one section for each benchmark of peers, so that either can be run again alone."""

from __future__ import annotations

import re
from pathlib import Path

NOTE = Path(__file__).parent / "peers.md"
_HEADING = "# Ours and peers, side by side\n"


def write_section(title: str, text: str) -> None:
    """Put the section of this title into the note, in place of the one before, and print it."""
    content = NOTE.read_text(encoding="utf-8") if NOTE.exists() else _HEADING
    sections = dict(re.findall(r"^## (.+)\n([\s\S]*?)(?=^## |\Z)", content, flags=re.MULTILINE))
    sections[title] = f"\n{text.strip()}\n\n"
    body = "".join(f"## {name}\n{one}" for name, one in sorted(sections.items()))
    NOTE.write_text(f"{_HEADING}\n{body.rstrip()}\n", encoding="utf-8")
    print(f"## {title}\n\n{text.strip()}\n")
