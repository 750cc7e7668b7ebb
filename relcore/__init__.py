"""The core of Relscope: latent spaces, absolute and relative to anchors. Needs no screen.

The names of `__all__` are imported when they are first used, so that ``import relcore`` takes no time.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"
_MODULES = {
    "InverseRelativeProjection": "represent.translation",
    "LatentSpace": "spaces.space",
    "Procrustes": "represent.translation",
    "RelativeProjection": "represent.similarity",
    "bootstrap_anchors": "represent.bootstrap",
    "jaccard": "scores.neighbours",
    "linear_cka": "scores.cka",
    "load_space": "files.reading",
    "load_words": "encoders.words",
    "match": "spaces.space",
    "mrr": "scores.neighbours",
    "read_selection": "spaces.selections",
    "read_selections": "spaces.selections",
    "select_anchors": "represent.anchors",
    "show": "compare.notebook",
    "stitch_matrix": "stitch.stitching",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'relcore' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"relcore.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
