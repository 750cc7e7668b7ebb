"""What opens files, recipes, links and sessions of version 0.1.0, and what refuses those that only it opens.

Nothing here is for versions that were never released.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relcore.base.errors import SpaceError

# Figure of an earlier version → the study that now draws it; "" if there is none.
FORMER_FIGURES = {
    "cross-domain": "",
    "drift-map": "",
    "drift-series": "",
    "inversion-grid": "pruning",
    "inversion-lengths": "",
    "migration": "",
    "migration-partial": "",
    "migration-threshold": "",
    "norms": "",
    "plane-codes": "",
    "reconstruction": "",
    "reconstruction-mse": "",
    "rescale-input": "",
    "rescale-layers": "",
    "spectrum": "",
    "training": "",
    "translation-table": "",
    "anchor-influence": "anchor-influence",
    "anchor-curve": "anchor-choice",
    "layers": "layers",
    "across-languages": "",
    "zero-shot": "zero-shot",
}

# Sources of spaces and of datasets, and encoders, that only earlier versions had.
FORMER_DATA = ("planetoid", "graph", "timm")

# Study of version 0.1.0 → the study that contains it now; "" if only the page Papers shows its numbers.
FORMER_STUDIES = {
    "across-domains": "",
    "across-languages": "",
    "anchor-curve": "anchor-choice",
    "inversion-sensitivity": "pruning",
    "quantisation": "",
    "quasi-isometry": "",
    "reconstruction": "",
    "rescaled-layers": "",
    "rescaled-rows": "",
    "robustness": "method-map",
    "row-lengths": "",
}

# Column of kinds in files of links.
KIND_OF_LINKS = "found"

# Settings of a session that version 0.1.0 lacked. Session files leave them out at their defaults, so that
# files of version 0.1.0 are written again to the same bytes.
NEWER_SETTINGS = ("stars", "oriented", "look", "others", "example", "tags", "poles")

# Former name of a tab in a session → its name.
FORMER_TABS = {"Bootstrap": "Link"}

# Former page, whose address links may still use → the place and the tab that now have its content.
FORMER_PAGES = {
    "compare": ("explore", ""),
    "anchors": ("explore", "Anchors"),
    "spaces": ("data", ""),
    "stitch": ("connect", "Stitch"),
    "invert": ("connect", "Invert"),
    "bootstrap": ("connect", "Link"),
    "translate": ("connect", "Universe"),
    "studies": ("research", "Studies"),
    "papers": ("research", "Papers"),
}


def refuse_figure(name: object) -> None:
    """Raise a SpaceError if only version 0.1.0 draws the figure of a recipe."""
    if not isinstance(name, str) or name not in FORMER_FIGURES:
        return
    now = "this version does not draw it"
    if study := FORMER_FIGURES[name]:
        now = f"now the study {study!r} draws this figure"
    raise SpaceError(f"recipe of {name}: an earlier version of Relscope opens it; {now}")


def known_settings(figure: str, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe. Recipes of scores could choose an approximate search; now the search is
    always exact."""
    gone = {"relscope", "figure"}
    if figure == "scores":
        gone |= {"neighbours", "target_recall"}
    return {name: value for name, value in recipe.items() if name not in gone}


def refuse_study(name: str) -> None:
    """Raise a SpaceError if only version 0.1.0 runs this study."""
    if name not in FORMER_STUDIES:
        return
    now = "Papers shows its numbers"
    if study := FORMER_STUDIES[name]:
        now = f"now it is part of {study!r}"
    raise SpaceError(f"study {name}: only version 0.1.0 of Relscope opens it; {now}")


def refuse_source(name: str) -> None:
    """Raise a SpaceError if only version 0.1.0 has this source of datasets."""
    if name in FORMER_DATA:
        raise SpaceError(f"source: only an earlier version of Relscope opens {name!r}; choose another")


def refuse_encoder(name: str) -> None:
    """Raise a SpaceError if only version 0.1.0 has this encoder."""
    if name in FORMER_DATA:
        raise SpaceError(f"encoder: an earlier version of Relscope opens {name!r}; choose another encoder")


def refuse_look(look: str) -> None:
    """Raise a SpaceError if only version 0.1.0 draws digits with this look."""
    if look != "plain":
        raise SpaceError(f"look: version 0.1.0 of Relscope opens digits that are {look!r:.20}; leave it out")
