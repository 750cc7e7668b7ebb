"""The core of Relscope: latent spaces, absolute and relative to anchors. Needs no screen.

The names of `__all__` are imported when they are first used, so that ``import relcore`` takes no time.
"""

from relcore.base.version import __version__ as __version__

TYPE_CHECKING = False  # not from typing: until `relcore.base.stopping` listens, Ctrl-C ends in a traceback
if TYPE_CHECKING:  # what a type checker and an editor read; a test holds it equal to the table below
    from typing import Any

    from relcore.compare.notebook import show as show
    from relcore.encoders.words import load_words as load_words
    from relcore.files.reading import load_space as load_space
    from relcore.linking.bootstrap import bootstrap_anchors as bootstrap_anchors
    from relcore.linking.link import link as link
    from relcore.represent.anchors import select_anchors as select_anchors
    from relcore.represent.similarity import RelativeProjection as RelativeProjection
    from relcore.represent.translation import InverseRelativeProjection as InverseRelativeProjection
    from relcore.represent.translation import Procrustes as Procrustes
    from relcore.scores.cka import linear_cka as linear_cka
    from relcore.scores.neighbours import jaccard as jaccard
    from relcore.scores.neighbours import mrr as mrr
    from relcore.spaces.selections import read_selection as read_selection
    from relcore.spaces.selections import read_selections as read_selections
    from relcore.spaces.space import LatentSpace as LatentSpace
    from relcore.spaces.space import match as match
    from relcore.stitch.stitching import stitch_matrix as stitch_matrix
    from relcore.universe.universe import Universe as Universe

_MODULES = {
    "InverseRelativeProjection": "represent.translation",
    "LatentSpace": "spaces.space",
    "Procrustes": "represent.translation",
    "RelativeProjection": "represent.similarity",
    "Universe": "universe.universe",
    "bootstrap_anchors": "linking.bootstrap",
    "jaccard": "scores.neighbours",
    "linear_cka": "scores.cka",
    "link": "linking.link",
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


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'relcore' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"relcore.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
