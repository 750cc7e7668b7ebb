"""Import the modules and load the data of the first pages while the server starts and the browser opens.

A single thread does this. If two threads import packages with circular imports, they may see modules that are
only half initialised.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import sys
import threading

# These modules import all other modules of Start and Explore.
MODULES = (
    *("pandas", "scipy.special", "scipy.linalg", "relcore.figures.screen"),
    *("app.components.page", "app.saving", "app.toolbar", "app.spaces.shards"),
    *("app.anchors.effect", "app.anchors.panel"),
    *(f"app.compare.{name}" for name in ("choosers", "inspector", "row_table", "scores", "selected_rows")),
    *("app.explain.edges", "app.start.story"),
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
    """Exclude modules from garbage collection, because Streamlit runs a full collection after each run."""
    global _known_modules
    if len(sys.modules) != _known_modules:
        _known_modules = len(sys.modules)
        gc.freeze()


def _import() -> None:
    for name in MODULES:
        importlib.import_module(name)
    _load_first_spaces()
    # Cache Streamlit's slow look-up of all modules: before its first element, Streamlit looks for a console.
    inspect.stack()


def _load_first_spaces() -> None:
    """Load the bundled words and their digests, unless files were given to `relscope app`."""
    from relcore.base.access import OPENED
    from relcore.catalog import catalog
    from relcore.encoders.words import BUNDLED

    if os.environ.get(OPENED, "[]") == "[]":
        for name in BUNDLED:
            _ = catalog.load(catalog.SpaceSpec("bundled", name)).digest
