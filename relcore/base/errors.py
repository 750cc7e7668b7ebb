"""The exceptions of the core, checks for settings, and the words of messages, tables and hovers: quoted
items, counts, lists, and numbers as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import floor, log10
from typing import Any


class SpaceError(ValueError):
    """A space, a file or a setting is invalid. The message says what is wrong and how to fix it.

    Examples
    --------
    >>> from relcore import SpaceError, match
    >>> try:
    ...     match([[1.0, 2.0]], [[1.0, 2.0]]).source.rows(["a"])
    ... except SpaceError as error:
    ...     print(type(error).__name__)
    SpaceError
    """


class NoCommonId(SpaceError):
    """Two spaces have no id in common, so their rows cannot be paired by id."""


def quote(items: Sequence[str]) -> str:
    """The items as text for an error message, such as ``'a', 'b'``. Each item is cut to 40 characters."""
    return ", ".join(repr(item if len(item) <= 40 else item[:39] + "…") for item in map(str, items))


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """A suggestion such as ``"; did you mean 'a' or 'b'?"``. If no known name is similar to the text, ""."""
    from difflib import get_close_matches

    near = get_close_matches(text, list(dict.fromkeys(known)), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def need_one_of(setting: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise a SpaceError that names the setting, unless the value is allowed."""
    if value not in allowed:
        names = list(map(str, allowed))
        near = did_you_mean(str(value), names)
        raise SpaceError(f"{setting}: expected one of {', '.join(names)}, got {value!r:.80}{near}")


def need_strings(setting: str, value: Any) -> None:
    """Raise a SpaceError that names the setting, unless the value is a tuple of strings."""
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise SpaceError(f"{setting}: expected a list of ids, got {value!r:.80}")


def need_distinct(setting: str, values: Any, allowed: Sequence[Any] | None = None) -> None:
    """Raise a SpaceError that names the setting, unless the value is a non-empty tuple of distinct items that
    are all allowed."""
    if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
        raise SpaceError(f"{setting}: expected at least one, none twice, got {values!r:.80}")
    for value in values if allowed else ():
        need_one_of(setting, value, allowed)


def need_whole(settings: Any, **least: int) -> None:
    """Raise a SpaceError, unless each named attribute is a whole number and at least its given minimum."""
    for name, lowest in least.items():
        value = getattr(settings, name)
        if type(value) is not int or value < lowest:
            raise SpaceError(f"{name}: expected a whole number from {lowest}, got {value!r:.80}")


# Optional libraries. An extra installs them, for example ``pip install "relscope[text]"``.


EXTRAS = {
    "anywidget": "notebook",
    "dask": "cluster",
    "datasets": "text",
    "distributed": "cluster",
    "fsspec": "cluster",
    "gensim": "text",
    "huggingface_hub": "text",
    "jinja2": "app",
    "lancedb": "lancedb",
    "mcp": "mcp",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "openTSNE": "app",
    "plotly": "app",
    "streamlit": "app",
    "tokenizers": "onnx",
    "torch": "vision",
    "transformers": "text",
    "torchdr": "gpu",
    "umap": "app",
}
OF_KIND = {"images": "vision", "texts": "text"}  # extras that the encoders of a kind need


@contextmanager
def extra(name: str = "") -> Iterator[None]:
    """Turn a failed import into an error that says how to install the library. This works as a context and as
    a decorator.

    If several extras contain the library, `name` is the extra to install. Raises a SpaceError if a library of
    `EXTRAS` is missing.

    Examples
    --------
    >>> with extra("text"):
    ...     raise ModuleNotFoundError(name="torch")
    Traceback (most recent call last):
    relcore.base.errors.SpaceError: expected the package torch, which is not installed; run: pip install \
"relscope[text]"
    """
    try:
        yield
    except ImportError as error:
        if (missing := with_install_hint(error, name)) is error:
            raise
        raise missing from error


def with_install_hint(error: ImportError, name: str = "") -> Exception:
    """An error that says how to install the library. If no extra installs the library, the given error."""
    # pandas wraps the ImportError of jinja2
    missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
    library = (getattr(missing, "name", None) or "").partition(".")[0]
    return missing_library(library, name) if library in EXTRAS else error


def missing_library(library: str, name: str = "") -> Exception:
    remedy = f'pip install "relscope[{name or EXTRAS[library]}]"'
    return SpaceError(f"expected the package {library}, which is not installed; run: {remedy}")


# The words of messages, tables and hovers: numbers as texts, such as .356, −.021 and 20,000, counts and
# lists. CSV and LaTeX keep plain numbers.

MINUS = "−"


def short(value: float, places: int = 3) -> str:
    """A number with a fixed number of decimals: ``.304``, ``1.000``, ``−.021``; ``–`` for NaN. There is no
    zero before the point, and no minus before a rounded zero.
    """
    if value != value:
        return "–"
    text = f"{abs(value):,.{places}f}"
    sign = MINUS if value < 0 and text.strip("0,.") else ""
    return sign + (text[1:] if text.startswith("0.") else text)


def short_chance(value: float) -> str:
    """The mean of a chance level, such as ``.167``. Below .005 it has two significant digits (``.00052``);
    below .00001 it is ``0``."""
    if not abs(value) < 0.005:
        return short(value)
    return short(value, 1 - floor(log10(abs(value)))) if abs(value) >= 1e-5 else "0"


def percent(share: float) -> str:
    """A share in percent: ``93 %``, ``0 %``. Below one percent it has one significant digit (``0.005 %``).
    NaN gives ``–``."""
    if share != share:
        return "–"
    value = 100 * share
    if value >= 0.95 or not value:
        return f"{value:.0f} %"
    return f"{value:.{-floor(log10(value))}f} %"


def counted(n: int, thing: str, things: str = "") -> str:
    """A number with its noun, which is singular for one: ``1 row``, ``20,000 rows``. `things` is the plural,
    if it is irregular."""
    return f"{n:,} {thing if n == 1 else things or f'{thing}s'}"


def and_list(names: Iterable[Any]) -> str:
    """The names as a list in a sentence: ``a, b and c``. Raises a ValueError if there are no names."""
    *others, last = map(str, names)
    return f"{', '.join(others)} and {last}" if others else last


def in_cell(value: float) -> str:
    """The number with two decimals, such as ``.78``. A small number has more (``.004``). NaN gives ""."""
    return "" if value != value else short(value, 2 if abs(value) >= 0.095 else 3)


def signed(value: float, places: int = 3) -> str:
    """The number with its sign: ``+.012``, ``−.021``."""
    text = short(value, places)
    return text if text.startswith(MINUS) or value != value else f"+{text}"


def band(low: float, high: float, places: int = 3) -> str:
    """An interval from `low` to `high`: ``.003 … .021``."""
    return f"{short(low, places)} … {short(high, places)}"


def general(value: float, digits: int = 3) -> str:
    """A number of any size with `digits` significant digits: ``.0123``, ``12.3``, ``20,000``."""
    if value != value:
        return "–"
    if value and not 1e-4 <= abs(value) < 1e6:
        return (
            f"{value:.{digits}g}".replace("-", MINUS)
            .replace("e+0", "e")
            .replace("e+", "e")
            .replace(f"e{MINUS}0", f"e{MINUS}")
        )
    text = f"{float(f'{abs(value):.{digits}g}'):,.10f}".rstrip("0").rstrip(".")
    return (MINUS if value < 0 else "") + (text[1:] if text.startswith("0.") else text)
