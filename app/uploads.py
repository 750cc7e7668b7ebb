"""Uploaded files, kept in a folder of the session's own."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any


def keep_upload(uploaded: Any, folder: Path) -> Path:
    """Write an uploaded file into the session's folder; the same content under the same name is written once.

    Only the last part of the name the browser sent is used, below a folder named after the content.
    """
    content = uploaded.getbuffer()
    place = folder / hashlib.blake2b(content, digest_size=8).hexdigest()
    name = uploaded.name.replace("\\", "/").rsplit("/", 1)[-1]
    path = place / (name if name.strip(". ") else "upload")
    if not path.exists():
        place.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path
