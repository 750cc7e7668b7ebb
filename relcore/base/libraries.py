"""Optional libraries, installed by an extra such as ``pip install "relscope[text]"``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    "torch_geometric": "graph",
    "transformers": "text",
    "torchdr": "gpu",
    "umap": "app",
}
OF_KIND = {"images": "vision", "texts": "text", "graph": "graph"}  # extras that the encoders of a kind need


@contextmanager
def extra(name: str = "") -> Iterator[None]:
    """Turn a failed import into an error that says how to install the library; also a decorator.

    `name` is the extra to install, if several extras contain the library. Raises a SpaceError where a library
    of `EXTRAS` is missing.

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
        if (missing := explained(error, name)) is error:
            raise
        raise missing from error


def explained(error: ImportError, name: str = "") -> Exception:
    """An error that says how to install the library; the error itself if no extra installs it."""
    # pandas wraps the ImportError of jinja2
    missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
    library = (getattr(missing, "name", None) or "").partition(".")[0]
    return missing_library(library, name) if library in EXTRAS else error


def missing_library(library: str, name: str = "") -> Exception:
    from relcore.base.errors import SpaceError

    remedy = f'pip install "relscope[{name or EXTRAS[library]}]"'
    return SpaceError(f"expected the package {library}, which is not installed; run: {remedy}")
