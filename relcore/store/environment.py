"""Where the store is and how large it may become, as the environment says; and the error of one that cannot save."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "RELSCOPE_STORE"
LIMIT_ENVIRONMENT = "RELSCOPE_STORE_GB"


class StoreError(RuntimeError):
    """The store cannot save an entry: the disk is full, permission is missing, or the content cannot be written."""


def default_limit() -> int:
    """The limit of RELSCOPE_STORE_GB in bytes, else 10 GB."""
    text = os.environ.get(LIMIT_ENVIRONMENT) or "10"
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = 0.0
    if not 0 < gigabytes < 1e6:
        raise StoreError(f"{LIMIT_ENVIRONMENT}: expected a number of gigabytes above 0, got {text!r}; correct it or unset it")
    return int(gigabytes * 1e9)


def cache_folder() -> Path:
    """The folder of a store that the environment does not name."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relscope"
