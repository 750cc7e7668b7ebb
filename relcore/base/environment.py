"""Settings from the environment: a value that a variable cannot have is an error that names it."""

from __future__ import annotations

import os

from relcore.base.errors import SpaceError

CONFINED = "RELSCOPE_CONFINED"
STORE_GB = "RELSCOPE_STORE_GB"


def flag(name: str) -> bool:
    """Whether a variable is 1; it may be 0, or not set."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise wrong(name, "0 or 1", text)
    return text == "1"


def number(name: str, usual: float, most: float) -> float:
    """The number of a variable, above 0 and below `most`; `usual` where it is not set."""
    text = os.environ.get(name) or str(usual)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < most:
        raise wrong(name, f"a number above 0 and below {most:,.0f}", text)
    return value


def store_bytes() -> int:
    """The limit of the store: that of RELSCOPE_STORE_GB, else 10 GB."""
    return int(number(STORE_GB, 10, 1e6) * 1e9)


def wrong(name: str, expected: str, text: str) -> SpaceError:
    return SpaceError(f"{name}: expected {expected}, got {text!r:.80}; correct it or unset it")
