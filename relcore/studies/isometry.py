"""The study of whether two trainings differ only by an isometry: disparity on held-out rows, stitched
errors."""

from __future__ import annotations

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.encoders.vision import held_out_rows
from relcore.figures.charts import Line, Lines, PictureGrid, PictureRow
from relcore.represent.anchors import select_anchors
from relcore.represent.translation import Procrustes
from relcore.runs.progress import Progress
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.autoencoders import REPRESENTATIONS, AutoencoderSpec, fit_autoencoder
from relcore.studies.study import (
    Chart,
    Option,
    RunResult,
    Settings,
    Study,
    average,
    count_of,
    digit_pictures,
    mean_at,
    points_chart,
)

_PLANE = "AE, two numbers"
_CODES = {
    f"{family}, {code}": (code, family == "VAE") for family in ("AE", "VAE") for code in REPRESENTATIONS
}
MODELS = (*_CODES, _PLANE)
_ERRORS = {"own": "not stitched", "stitched": "stitched"}
_EXAMPLES = 10


class Reconstruction(Study):
    """Two autoencoders that differ only in their random state are trained on four fifths of the digits. Then
    the encoder of each is combined with the decoder of the other. Errors are mean squared errors × 10³ over
    the other fifth. Absolute codes of two runs are not comparable; codes relative to the same anchors are.
    Whitened codes are ours (Svendsen et al. 2026 whiten otherwise). Codes of width 2 are shown in a plane,
    where the second run is rotated or reflected, scaled and shifted onto the first.
    """

    options = (
        Option("models", "Autoencoders, and the codes that the decoder reads", MODELS, MODELS, many=True),
        Option(
            "epochs",
            "Epochs",
            (5, 15, 30, 60),
            30,
            help="Codes of two numbers are trained for twice as many.",
        ),
        Option("n_anchors", "Anchors", (50, 200, 500), 200, help="With balanced classes, the same for all."),
        Option("n_states", "Pairs of trainings", (3, 5, 10), 3),
    )
    by, names = "model", {model: model for model in MODELS}
    measures = _ERRORS | {"disparity": "disparity after the best turn, 0 equal, 1 unrelated"}

    shared, varied = "epochs n_anchors", {"model": "models"}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        dataset, pictures = digit_pictures(store)
        test = held_out_rows(len(pictures))
        train = np.setdiff1d(np.arange(len(pictures)), test)
        plane, epochs = settings["model"] == _PLANE, settings["epochs"]
        if plane:
            spec, anchors = AutoencoderSpec(width=2, epochs=2 * epochs), train[:0]
        else:
            code, variational = _CODES[settings["model"]]
            spec = AutoencoderSpec(code, variational, epochs=epochs)
            anchors = balanced_anchors(pictures[train], dataset.labels[train], settings["n_anchors"])
        first = 2 * settings["random_state"]
        models = [
            fit_autoencoder(pictures[train], anchors, spec, state, report) for state in (first, first + 1)
        ]
        codes = [model.encode(pictures[test]) for model in models]
        rebuilt = np.array([[decoder.decode(code) for decoder in models] for code in codes])
        errors = mean_squared_errors(rebuilt, pictures[test])
        mean_picture = pictures[train].mean(axis=0, dtype=np.float64)
        shown = np.unique(dataset.labels[test], return_index=True)[1][:_EXAMPLES]
        values = {
            "own": float(np.diag(errors).mean()),
            "stitched": float((errors[0, 1] + errors[1, 0]) / 2),
            "mean picture": float(mean_squared_errors(mean_picture, pictures[test])),
            "test rows": len(test),
            "originals": _pixels(pictures[test][shown]),
            "own pictures": _pixels(rebuilt[0, 0][shown]),
            "stitched pictures": _pixels(rebuilt[0, 1][shown]),
        }
        if plane:
            turned = Procrustes().fit(codes[1], codes[0]).transform(codes[1])
            planes = {"first plane": codes[0], "second plane": codes[1], "second plane, turned": turned}
            values |= {name: np.round(points, 4).tolist() for name, points in planes.items()}
            values |= {"labels": dataset.labels[test].tolist(), "disparity": plane_disparity(*codes)}
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 4.0 + settings["epochs"] * (1.6 if settings["model"] == _PLANE else 0.9)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        charts: dict[str, Chart] = {}
        crossed = table[table.model != _PLANE]
        if len(crossed):
            charts["pictures"] = picture_grid(crossed)
            titles = ("autoencoder and its codes", "MSE × 10³, smaller is better")
            rows, levels = count_of(crossed, "held-out digits"), {"the mean picture": "mean picture"}
            charts["errors"] = points_chart(crossed, "model", self.names, _ERRORS, titles, rows, levels)
        if len(crossed) < len(table):
            run = table[table.model == _PLANE].iloc[0]
            charts["planes as they are"] = _planes(run, "second plane", "as it is")
            charts["planes turned"] = _planes(run, "second plane, turned", "turned onto the first")
        return charts

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        errors = {
            model: [mean_at(table, "model", model, name) for name in _ERRORS]
            for model in dict.fromkeys(table.model)
            if model != _PLANE
        }
        parts = [
            f"{stitched:1} with {model} codes, {short(own.value, 1)} not stitched"
            for model, (own, stitched) in errors.items()
            if stitched.has_interval
        ]
        floor = f"the mean picture has {short(average(table, 'mean picture'), 1)}"
        return (
            f"Mean squared error × 10³ of stitched pictures: {'; '.join([*parts, floor])}." if parts else ""
        )


def _planes(run: pd.Series, moving: str, how: str) -> Lines:
    labels, states = np.array(run.labels), (2 * run.random_state, 2 * run.random_state + 1)
    both = np.concatenate([run["first plane"], run[moving]])
    doubled = np.concatenate([labels, labels])
    runs = np.repeat([f"state {states[0]}", f"state {states[1]}, {how}"], len(labels))
    groups = [(label, doubled == label) for label in np.unique(labels).tolist()]
    lines = tuple(Line(label, *both[rows].T, labels=runs[rows].tolist()) for label, rows in groups)
    note = (
        f"{counted(len(labels), 'held-out digit')} in the planes of random states {states[0]} and"
        f" {states[1]}, the second {how}; disparity after the best turn {short(run.disparity, 2)}"
    )
    return Lines(lines, "first number", "second number", kind="points", note=note)


def picture_grid(table: pd.DataFrame) -> PictureGrid:
    rows = []
    for model, part in table.groupby("model", sort=False):
        family, name = model.split(", ")
        for stitched, measure in enumerate(_ERRORS):
            pictures = np.array(part[f"{measure} pictures"].iloc[0]) / 255
            rows.append(PictureRow(family, name, bool(stitched), pictures, float(part[measure].mean())))
    first = table.iloc[0]
    note = (
        "Encoder of one training, stitched to the decoder of another; errors are means over pairs of"
        f" trainings and {first['test rows']:,} test pictures."
    )
    return PictureGrid(np.array(first.originals) / 255, tuple(rows), note)


def _pixels(pictures: np.ndarray) -> list:
    return np.round(255 * pictures).astype(int).tolist()


def mean_squared_errors(rebuilt: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """The mean squared errors × 10³ of pictures (…, n, height, width) against (n, height, width)."""
    return 1000 * np.mean((rebuilt - pictures) ** 2, axis=(-3, -2, -1), dtype=np.float64)


def balanced_anchors(pictures: np.ndarray, labels: np.ndarray, n_anchors: int) -> np.ndarray:
    flat = pictures.reshape(len(pictures), -1)
    space = LatentSpace(flat, [str(row) for row in range(len(flat))], name="pictures", labels=labels)
    return select_anchors(space, n_anchors, "class-balanced", random_state=0).astype(np.int64)


def plane_disparity(first: np.ndarray, second: np.ndarray) -> float:
    """Procrustes disparity of paired codes (n, d), 0 … 1; 0: equal up to a similarity transformation, 1: no
    better than the mean.

    Raises
    ------
    SpaceError
        All codes of a run are equal.
    """
    from scipy.spatial import procrustes

    try:
        return float(procrustes(first, second)[2])
    except ValueError:
        raise SpaceError(
            "expected codes that differ, got all of them in one place; train for more epochs"
        ) from None
