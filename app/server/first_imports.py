"""Import and load the needs of the first pages while the server starts and the browser opens.

One thread does it: two that enter packages with circular imports may see them half initialised.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import sys
import threading

# With these every module of Start and Explore is there.
MODULES = (
    *("pandas", "scipy.special", "scipy.linalg", "relcore.figures.screen"),
    *("app.components.page", "app.saving", "app.toolbar", "app.spaces.shards"),
    *("app.anchors.effect", "app.anchors.panel"),
    *(f"app.compare.{name}" for name in ("choosers", "differences", "inspector", "scores", "selected_rows")),
    "app.start.story",
)
_thread: threading.Thread | None = None
_known_modules = 0


def start() -> threading.Thread:
    global _thread
    _thread = threading.Thread(target=_import, name="first-imports", daemon=True)
    _thread.start()
    return _thread


def wait() -> None:
    if _thread:
        _thread.join()


def spare_collector() -> None:
    """Exclude modules from garbage collection: Streamlit runs a full collection after each run."""
    global _known_modules
    if len(sys.modules) != _known_modules:
        _known_modules = len(sys.modules)
        gc.freeze()


def _import() -> None:
    for name in MODULES:
        importlib.import_module(name)
    _load_first_spaces()
    # Streamlit looks for a console before its first element: now its look-up of all modules is cached
    inspect.stack()


def _load_first_spaces() -> None:
    """Load the bundled words and their digests, unless `relscope app` was given files."""
    from relcore.base.access import OPENED
    from relcore.catalog import catalog
    from relcore.encoders.words import BUNDLED

    if os.environ.get(OPENED, "[]") == "[]":
        for name in BUNDLED:
            _ = catalog.load(catalog.SpaceSpec("bundled", name)).digest
