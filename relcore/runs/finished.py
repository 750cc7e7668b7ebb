"""Finished: results that come with Relscope, so that a page opens with a picture. They are read by key and
never written.

A group is a JSON file: date and commit of the computation, keys of large entries, each a file beside it, and
the metadata of small ones. `assets/finished/make_finished.py` writes them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from relcore.runs import entries as entry_file
from relcore.runs.entries import Damaged, Entry, Summary

FOLDER = Path(str(files("relcore") / "data" / "finished"))
_log = logging.getLogger("relscope")


@dataclass(frozen=True)
class FinishedEntry:
    """When a result was computed, ``"2026-11-22"``, with the code of which commit, and in which group it
    is.
    """

    date: str
    commit: str
    group: str

    @property
    def in_words(self) -> str:
        """``"Computed on 2026-11-22 with commit 3266a07."``"""
        return f"Computed on {self.date} with commit {self.commit}."


@dataclass(frozen=True)
class FinishedGroup:
    """Results that were computed together; `entries` maps the key of each small one to its metadata."""

    name: str
    date: str
    commit: str
    files: tuple[str, ...]
    entries: Mapping[str, Any]


class Finished:
    """The groups of a folder; an empty or missing one holds nothing."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    @cached_property
    def groups(self) -> dict[str, FinishedGroup]:
        return {path.stem: _group(path) for path in sorted(self.folder.glob("*.json"))}

    @cached_property
    def _made(self) -> dict[str, FinishedEntry]:
        return {
            key: FinishedEntry(group.date, group.commit, name)
            for name, group in self.groups.items()
            for key in (*group.files, *group.entries)
        }

    def made(self, key: str) -> FinishedEntry | None:
        """When and how the result of this key was computed; None where it does not come with Relscope."""
        return self._made.get(key)

    def get(self, key: str) -> Entry | None:
        if (made := self.made(key)) is None:
            return None
        if key in (entries := self.groups[made.group].entries):
            return Entry({}, entries[key])
        path = self.folder / f"{key}.safetensors"
        try:
            return entry_file.read(path)
        except (Damaged, OSError) as error:
            _log.warning("%s: this result that comes with Relscope counts as missing: %s", path, error)
            return None

    def summary(self, key: str) -> Summary | None:
        if (made := self.made(key)) is None:
            return None
        if key in (entries := self.groups[made.group].entries):
            return Summary(key, {}, entries[key], 0)
        return entry_file.summary(key, self.folder / f"{key}.safetensors")


@cache
def finished() -> Finished:
    """Those of this installation, read once."""
    return Finished()


def _group(path: Path) -> FinishedGroup:
    record = json.loads(path.read_text(encoding="utf-8"))
    return FinishedGroup(
        path.stem, record["date"], record["commit"], tuple(record["files"]), record["entries"]
    )
