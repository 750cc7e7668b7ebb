"""The runs that stand beside the papers' numbers, by name: what each does, on what, with which sizes."""

from __future__ import annotations

from relcore.papers.paper_run import PaperRun
from relcore.papers.registered import (
    bootstrapping,
    inversion,
    languages,
    networks,
    pictures,
    stitching,
    words,
)

RUNS: dict[str, PaperRun] = {
    **words.RUNS,
    **pictures.RUNS,
    **networks.RUNS,
    **stitching.RUNS,
    **languages.RUNS,
    **inversion.RUNS,
    **bootstrapping.RUNS,
}
