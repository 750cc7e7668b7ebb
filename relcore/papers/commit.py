"""The commit of the project's own checkout: what code a number was measured with."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PROJECT = Path(__file__).parents[2]
_MEASURES = "relcore"


def commit_of(project: Path = _PROJECT) -> str:
    """Short hash of HEAD, ``"a8e5362"``; with "+" behind it where tracked files under relcore differ from it.

    "" where the folder is no checkout of its own, or git is not installed.
    """
    top = _git(project, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != project.resolve():  # installed into a folder of someone else's checkout
        return ""
    changed = _git(project, "status", "--porcelain", "--untracked-files=no", "--", _MEASURES)
    return _git(project, "rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def _git(folder: Path, *asked: str) -> str:
    try:
        return subprocess.run(["git", *asked], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
