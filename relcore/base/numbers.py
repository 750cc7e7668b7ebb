"""Format numbers for texts, tables and hover texts: ``.356``, ``−.021``, ``20,000``. Files of data do not use
these formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isnan, log10
from typing import Any

MINUS = "−"


def short(value: float, places: int = 3) -> str:
    """The number with `places` decimals: ``.304``, ``1.000``, ``−.021``; ``–`` for NaN. There is no zero
    before the point, and no minus before a rounded zero."""
    if isnan(value):
        return "–"
    text = f"{abs(value):,.{places}f}"
    sign = ""
    if value < 0 and text.strip("0,."):
        sign = MINUS
    return sign + _without_zero(text)


def _without_zero(text: str) -> str:
    """The digits of a number without a zero before the point: ``.5`` for ``0.5``."""
    if text.startswith("0."):
        return text[1:]
    return text


def short_chance(value: float) -> str:
    """The mean of a chance level as text, such as ``.167``. A mean below .005 has two significant digits
    (``.00052``); a mean below .00001 is ``0``."""
    if not abs(value) < 0.005:
        return short(value)
    if abs(value) >= 1e-5:
        return short(value, 1 - floor(log10(abs(value))))
    return "0"


def percent(share: float) -> str:
    """A share, 0 … 1, in percent: ``93 %``, ``0 %``; ``–`` for NaN. Less than one percent is shown with one
    significant digit (``0.005 %``)."""
    if isnan(share):
        return "–"
    value = 100 * share
    if value >= 0.95 or not value:
        return f"{value:.0f} %"
    return f"{value:.{-floor(log10(value))}f} %"


def beside(value: float, limit: float, places: int = 3) -> tuple[str, str]:
    """Both numbers as `short` prints them, with more decimals where `places` would print them alike although
    they differ. So a sentence that says which is larger never stands beside two equal numbers."""
    places = _telling(value, limit, places)
    return short(value, places), short(limit, places)


def percent_beside(share: float, limit: float) -> tuple[str, str]:
    """Both shares in percent, with decimals where they would be printed alike although they differ."""
    if isnan(share) or share == limit or percent(share) != percent(limit):
        return percent(share), percent(limit)
    places = _telling(100 * share, 100 * limit, 0)
    return f"{100 * share:.{places}f} %", f"{100 * limit:.{places}f} %"


_MOST_PLACES = 9  # numbers that differ later are equal but for rounding


def _telling(value: float, limit: float, places: int) -> int:
    """The number of decimals, at least `places`, that tells two numbers apart."""
    if isnan(value) or value == limit:
        return places
    for more in range(places, _MOST_PLACES + 1):
        if short(value, more) != short(limit, more):
            return more
    return places


def counted(n: int, thing: str, things: str = "") -> str:
    """A number with its noun, which is singular for one: ``1 row``, ``20,000 rows``. `things` is the plural,
    if it is irregular."""
    if n == 1:
        return f"{n:,} {thing}"
    return f"{n:,} {things or f'{thing}s'}"


def and_list(names: Iterable[Any]) -> str:
    """The names as a list in a sentence: ``a, b and c``. Raises a ValueError if there are no names."""
    *others, last = map(str, names)
    if others:
        return f"{', '.join(others)} and {last}"
    return last


def in_cell(value: float) -> str:
    """The number with two decimals, or more if it is small: ``.78``, ``.004``; "" for NaN."""
    if isnan(value):
        return ""
    return short(value, 2 if abs(value) >= 0.095 else 3)


def signed(value: float) -> str:
    """The number with its sign: ``+.012``, ``−.021``."""
    text = short(value)
    if text.startswith(MINUS) or isnan(value):
        return text
    return f"+{text}"


def band(low: float, high: float, places: int = 3) -> str:
    """An interval from `low` to `high`: ``.003 … .021``."""
    return f"{short(low, places)} … {short(high, places)}"


def general(value: float, digits: int = 3) -> str:
    """A number of any size with `digits` significant digits: ``.0123``, ``12.3``, ``20,000``."""
    if isnan(value):
        return "–"
    if value and not 1e-4 <= abs(value) < 1e7:
        return (
            f"{value:.{digits}g}".replace("-", MINUS)
            .replace("e+0", "e")
            .replace("e+", "e")
            .replace(f"e{MINUS}0", f"e{MINUS}")
        )
    text = f"{float(f'{abs(value):.{digits}g}'):,.10f}".rstrip("0").rstrip(".")
    sign = ""
    if value < 0:
        sign = MINUS
    return sign + _without_zero(text)
