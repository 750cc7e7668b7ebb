"""Runs of autoencoders."""

from __future__ import annotations

from relcore.papers.paper_run import PICTURES, PaperRun

RUNS = {
    "codes": PaperRun(
        "Codes of autoencoders, turned onto each other",
        f"{PICTURES}; absolute autoencoders with 2 and 64 numbers in the middle",
        "pictures:codes",
        {"random_states": [0, 1, 2, 3], "epochs": 30, "widths": [2, 64]},
        minutes=2,
    ),
    "autoencoders": PaperRun(
        "Autoencoders stitched",
        PICTURES,
        "pictures:autoencoders",
        {"variational": False, "random_states": [0, 1, 2], "epochs": 30, "n_anchors": 200, "width": 500},
        minutes=3,
    ),
    "variational": PaperRun(
        "Variational autoencoders stitched",
        PICTURES,
        "pictures:autoencoders",
        {"variational": True, "random_states": [0, 1, 2], "epochs": 30, "n_anchors": 200, "width": 500},
        minutes=3,
    ),
}
