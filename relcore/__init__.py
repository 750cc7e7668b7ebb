"""The core of Relscope: latent spaces, absolute and relative to anchors. Needs no screen.

The names of `__all__` are imported when they are first used, so that ``import relcore`` takes no time.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
_MODULES = {
    "InverseRelativeProjection": "inversion",
    "LatentSpace": "spaces",
    "Procrustes": "translation",
    "RelativeProjection": "projection",
    "bootstrap_anchors": "anchors.bootstrap",
    "jaccard": "metrics.neighbours",
    "linear_cka": "metrics.cka",
    "load_space": "sources.files",
    "load_words": "sources.words",
    "match": "spaces",
    "mrr": "metrics.neighbours",
    "read_selection": "selections",
    "read_selections": "selections",
    "select_anchors": "anchors.selection",
    "show": "comparing.notebook",
    "stitch_matrix": "stitching.classification",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'relcore' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"relcore.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
