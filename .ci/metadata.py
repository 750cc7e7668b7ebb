"""The README and the addresses of the package, for an index such as PyPI, which shows the README without the
files beside it. The build reads this module (`tool.hatch.metadata.hooks.custom` in pyproject.toml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")  # of a file of this folder


class PackagePage(MetadataHookInterface):
    """Sets `readme` and `urls`. `home` of the settings is the address of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        home = self.config.get("home", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        page = with_addresses(text, home, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        if home:
            metadata["urls"] = urls(home, metadata["version"])


def with_addresses(text: str, home: str, version: str) -> str:
    """The Markdown text with absolute links to the files of a version. Without a home, a link becomes its
    words, and a picture the words that describe it."""

    def link(found: re.Match[str]) -> str:
        picture, words, place = found.groups()
        if not home:
            if picture:
                return f"*{words}*"
            return words
        if picture:
            kind = "raw"
        else:
            kind = "blob"
        return f"{picture}[{words}]({home}/{kind}/v{version}/{place})"

    return _LINK.sub(link, text)


def urls(home: str, version: str) -> dict[str, str]:
    return {
        "Source": home,
        "Documentation": f"{home}/blob/v{version}/docs/places.md",
        "Changelog": f"{home}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
