"""Settings from environment variables; an invalid value is an error that names its variable."""

from __future__ import annotations

import os

from relcore.base.errors import SpaceError

CONFINED = "RELSCOPE_CONFINED"
STORE_GB = "RELSCOPE_STORE_GB"
DEVICE = "RELSCOPE_DEVICE"
DEVICE_HELP = "auto (a GPU where there is one), cpu, cuda, or one of several GPUs: cuda:1"


def flag(name: str) -> bool:
    """Whether a variable is 1; it may also be 0 or unset."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise wrong(name, "0 or 1", text)
    return text == "1"


def number(name: str, usual: float, most: float) -> float:
    """The number in a variable, above 0 and below `most`; `usual` if it is not set."""
    text = os.environ.get(name) or str(usual)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < most:
        raise wrong(name, f"a number above 0 and below {most:,.0f}", text)
    return value


def store_bytes() -> int:
    """The maximum size of the store in bytes, from RELSCOPE_STORE_GB; default 10 GB."""
    return int(number(STORE_GB, 10, 1e6) * 1e9)


def wrong(name: str, expected: str, text: str) -> SpaceError:
    return SpaceError(f"{name}: expected {expected}, got {text!r:.80}; correct it or unset it")
