"""The exceptions of the core, helpers for their messages, and checks for settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class RelscopeError(Exception):
    """The base class of all errors whose message is meant for the user: what was expected, what came, and
    the remedy. Besides `SpaceError`, these are errors of the store and of jobs.

    Examples
    --------
    >>> from relcore import RelscopeError, SpaceError
    >>> issubclass(SpaceError, RelscopeError) and issubclass(SpaceError, ValueError)
    True
    """


class SpaceError(RelscopeError, ValueError):
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


def quote(items: Iterable[str]) -> str:
    """The items as text for an error message, such as ``'a', 'b'``. Each item is cut to 40 characters."""
    return ", ".join(repr(item if len(item) <= 40 else item[:39] + "…") for item in map(str, items))


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """A suggestion such as ``"; did you mean 'a' or 'b'?"``; "" if no known name is similar to the text."""
    from difflib import get_close_matches

    near = get_close_matches(text, list(dict.fromkeys(known)), n=2, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return ""


def brief(value: Any, most: int = 40) -> str:
    """A value in one line of an error message: its form if it is an array or a table, else its repr, cut to
    `most` characters."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    return f"{value!r:.{most}}".replace("\n", " ")


def is_among(value: Any, allowed: Iterable[Any]) -> bool:
    """Whether a value is one of the allowed ones. Lists and arrays, which cannot be looked up, are not, and
    neither is pandas' NA, which equals nothing."""
    try:
        hash(value)
        return value in allowed
    except TypeError:
        return False


def need_one_of(setting: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise a SpaceError that names the setting, unless the value is allowed."""
    if not is_among(value, allowed):
        names = list(map(str, allowed))
        near = did_you_mean(str(value), names)
        raise SpaceError(f"{setting}: expected one of {', '.join(names)}, got {brief(value, 80)}{near}")


def need_strings(setting: str, value: Any) -> None:
    """Raise a SpaceError that names the setting, unless the value is a tuple of strings."""
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise SpaceError(f"{setting}: expected a list of ids, got {brief(value, 80)}")


# Optional libraries, and the extra that installs each, for example ``pip install "relscope[text]"``.


EXTRAS = {
    "anywidget": "notebook",
    "dask": "cluster",
    "datasets": "text",
    "distributed": "cluster",
    "fsspec": "cluster",
    "gensim": "text",
    "httpx2": "api",
    "huggingface_hub": "text",
    "jinja2": "app",
    "lancedb": "lancedb",
    "mcp": "mcp",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "openTSNE": "app",
    "openai": "api",
    "plotly": "app",
    "streamlit": "app",
    "tokenizers": "onnx",
    "torch": "vision",
    "transformers": "text",
    "torchdr": "gpu",
    "umap": "app",
}
# What every installation has, except one that was made without dependencies.
_NEEDED = {
    "faiss",
    "matplotlib",
    "msgspec",
    "numpy",
    "pandas",
    "pyarrow",
    "regex",
    "safetensors",
    "scipy",
    "shtab",
    "sklearn",
}
OF_KIND = {"images": "vision", "texts": "text"}  # kind of data → the extra that its encoders need


@contextmanager
def extra(name: str = "") -> Iterator[None]:
    """A context and decorator that turns a failed import of a library of `EXTRAS` into a SpaceError, which
    says how to install the library. If several extras contain it, `name` is the extra to install.

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
    """An error that says how to install the missing library; the given error if no extra installs it."""
    # pandas replaces the ImportError of jinja2 by its own, so look at the cause.
    if isinstance(error, ModuleNotFoundError):
        missing = error
    else:
        missing = error.__cause__
    library = (getattr(missing, "name", None) or "").partition(".")[0]
    if library in EXTRAS or library in _NEEDED:
        return missing_library(library, name)
    return error


def missing_library(library: str, name: str = "") -> Exception:
    if library in _NEEDED:
        remedy = "pip install relscope, without --no-deps"
    else:
        remedy = f'pip install "relscope[{name or EXTRAS[library]}]"'
    return SpaceError(f"expected the package {library}, which is not installed; run: {remedy}")
