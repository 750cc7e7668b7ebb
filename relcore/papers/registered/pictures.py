"""Runs of autoencoders."""

from __future__ import annotations

from relcore.papers.paper_run import MNIST, PICTURES, PaperRun

_TABLE_3 = {"data": "mnist", "image_size": 14, "random_states": [0, 1, 2], "epochs": 5, "n_anchors": 200, "width": 500}

RUNS = {
    "codes": PaperRun(
        "Codes of autoencoders, turned onto each other, digits",
        f"{PICTURES}; absolute autoencoders with 2 and 64 numbers in the middle, 6 trainings of each",
        "codes:turned",
        {"data": "digits", "n_states": 6, "epochs": 30, "widths": [2, 64], "n_train": 5000, "image_size": None},
        minutes=2,
        version=2,
    ),
    "codes-mnist": PaperRun(
        "Codes of autoencoders, turned onto each other, MNIST",
        f"{MNIST}, 2,000 to train on; absolute autoencoders with 2 and 64 numbers in the middle, 20 trainings of each",
        "codes:turned",
        {"data": "mnist", "n_states": 20, "epochs": 10, "widths": [2, 64], "n_train": 2000, "image_size": 14},
        minutes=5,
        local="mnist",
    ),
    "codes-longer": PaperRun(
        "Codes of two numbers, trained three times as long",
        f"{MNIST}, 2,000 to train on; absolute autoencoders with 2 numbers in the middle, 5 trainings",
        "codes:turned",
        {"data": "mnist", "n_states": 5, "epochs": 30, "widths": [2], "n_train": 2000, "image_size": 14},
        minutes=3,
        local="mnist",
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
    "autoencoders-mnist": PaperRun(
        "Autoencoders stitched, MNIST",
        f"{MNIST}, 5,000 to train on",
        "pictures:autoencoders",
        {**_TABLE_3, "variational": False},
        minutes=3,
        local="mnist",
    ),
    "variational-mnist": PaperRun(
        "Variational autoencoders stitched, MNIST",
        f"{MNIST}, 5,000 to train on",
        "pictures:autoencoders",
        {**_TABLE_3, "variational": True},
        minutes=3,
        local="mnist",
    ),
}
