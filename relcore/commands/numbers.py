"""Numbers on the command line: whole and finite ones as people write them; argparse puts the option's name before the error."""

from __future__ import annotations

import argparse
import math
import re

_MOST_DIGITS = 18  # within 64 bits
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{_MOST_DIGITS}}}")


def is_number(option: str, text: str) -> bool:
    """Whether the text of an option that also takes a file or ids is a whole number without a sign.

    Raises
    ------
    SpaceError
        A number of more digits than any row has.
    """
    if not text.isascii() or not text.isdecimal():
        return False
    if len(text) > _MOST_DIGITS:
        from relcore.spaces import SpaceError

        raise SpaceError(
            f"{option}: expected a number of at most {_MOST_DIGITS} digits, got {len(text):,} digits; choose fewer"
        )
    return True


def whole(text: str) -> int:
    """A whole number in ASCII digits; Python alone would take "１２" and "1_000"."""
    if not _WHOLE.fullmatch(text.strip()):
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r:.60}")
    return int(text)


def from_one(text: str) -> int:
    """A whole number from 1, such as a number of rows."""
    if (number := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r:.60}")
    return number


def random_state(text: str) -> int:
    """A whole number from 0, which is all that random generators take."""
    if (number := whole(text)) < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, got {text!r:.60}")
    return number


def finite(text: str) -> float:
    """A number that is neither NaN nor infinite."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text or not text.isascii():
        raise argparse.ArgumentTypeError(f"expected a finite number, got {text!r:.60}")
    return number
